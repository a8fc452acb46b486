// The layout of a diagnosis: the answer, then what to do beside what shows it. The report has the order; its parts are known by what they are.

import { announce, el } from "./dom.js";
import { t } from "./i18n.js";

const SIZE = /\d[\d,]*(?:\.\d+)?\s?(?:[KMGT]i?B|bytes)\b/g;
const CONFIG_COMMAND = /^oomdoctor diagnose .*--config/;

/** Lay out a report in place; `more` are elements below the steps, `addConfig` lets the reader choose a config. */
export function arrange(report, { more, addConfig }) {
  const steps = report.querySelector(":scope > h3 + ol");
  underline(report);
  if (!steps) return report.append(...more);
  copies(steps, addConfig);
  const todo = el("section", { class: "todo" });
  const shown = el("section", { class: "shown" });
  const heading = steps.previousElementSibling;
  const after = [];
  for (let each = steps.nextElementSibling; each; each = each.nextElementSibling) after.push(each);
  heading.before(el("div", { class: "columns" }, todo, shown));
  // What belongs to the steps stands right below them, up to what they were read from.
  const end = after.findIndex((each) => !(each.tagName === "P" && each.querySelector("code")));
  const own = end < 0 ? after : after.slice(0, end);
  todo.append(heading, steps, ...own, ...more);
  shown.append(...after.slice(own.length));
  const message = [...shown.children].find((each) => each.matches("details") && each.querySelector("pre"));
  if (message) {
    message.open = true;
    shown.prepend(message);
  }
}

/** A button at each step that can be typed; the command that asks for a config is a button here. */
function copies(steps, addConfig) {
  for (const step of steps.children) {
    const codes = [...step.querySelectorAll("code")];
    const command = codes.find((code) => CONFIG_COMMAND.test(code.textContent));
    if (command) {
      command.replaceWith(el("button", { type: "button", click: addConfig }, t("log.add.config")));
      continue;
    }
    const text = codes.map((code) => code.textContent).join("\n");
    if (text) step.append(" ", el("button", { type: "button", class: "copy", "aria-label": t("step.copy", { text }), click: (event) => copy(text, event.target) }, t("step.copy.short")));
  }
}

async function copy(text, button) {
  const isCopied = await navigator.clipboard.writeText(text).then(() => true, () => false);
  const says = t(isCopied ? "step.copied" : "step.copy.not");
  button.textContent = says;
  announce(says);
  setTimeout(() => { button.textContent = t("step.copy.short"); }, 2_000);
}

/** Mark the sizes in quotes that the report counts with. */
function underline(report) {
  const quotes = [...report.querySelectorAll("pre")];
  const told = new Set([...report.querySelectorAll("p, td, desc")].flatMap((each) => each.textContent.match(SIZE) ?? []).map(plain));
  for (const quote of quotes) {
    const text = quote.textContent;
    let from = 0;
    const parts = [];
    for (const found of text.matchAll(SIZE)) {
      if (!told.has(plain(found[0]))) continue;
      parts.push(text.slice(from, found.index), el("mark", {}, found[0]));
      from = found.index + found[0].length;
    }
    if (parts.length) quote.replaceChildren(...parts, text.slice(from));
  }
}

function plain(size) {
  return size.replace(/[\s,]/g, "");
}
