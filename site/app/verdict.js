// The answer of "Will it fit?" at a glance: the word, the figures, a bar, the closest way to yes, and what was assumed.

import { el } from "./dom.js";
import { t } from "./i18n.js";

const GIB = 2 ** 30;
const SVG = "http://www.w3.org/2000/svg";

/** Return what an estimate comes to: `fits` (yes, close, no, depends, or nothing without a card), `need`, its range, and the `room`. */
export function summed({ card, server, needed_bytes: needed, per_gpu_bytes: taken, otherwise = [] }) {
  const said = card?.fits ?? server?.starts;
  const size = card?.needed_bytes ?? needed ?? taken;
  // A no that something assumed makes is no "no".
  const fits = said === "no" && otherwise.some((other) => other.turns && other.fits === "yes") ? "depends" : said;
  return { fits, need: size.expected, low: size.low, high: size.high, room: card?.usable_bytes };
}

/** The answer in a few words. */
export function brief({ fits, need, room }) {
  const size = gib(need);
  if (!fits) return `${t("fit.short.open")} ${t("fit.short.need", { need: size })}`;
  return room ? `${t(`fit.short.${fits}`)} · ${t("fit.short.size", { need: size, room: gib(room) })}` : t(`fit.short.${fits}`);
}

export function range({ low, high }) {
  return low && high ? t("fit.range", { low: gib(low), high: gib(high) }) : "";
}

/** What is needed beside what the card has; the thin line is the range. It says nothing that the words beside it do not. */
export function bar({ fits, need, low, high, room }) {
  if (!room) return null;
  const scale = 100 / (Math.max(room, high ?? need) * 1.02);
  const drawn = document.createElementNS(SVG, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 100 8", preserveAspectRatio: "none", class: `gauge ${fits}`, "aria-hidden": "true" })) drawn.setAttribute(key, value);
  const rect = (name, x, y, width, height) => {
    const made = document.createElementNS(SVG, "rect");
    for (const [key, value] of Object.entries({ class: name, x, y, width, height })) made.setAttribute(key, value);
    drawn.append(made);
  };
  rect("room", 0, 0, room * scale, 8);
  rect("need", 0, 2, need * scale, 4);
  rect("range", low * scale, 3.6, (high - low) * scale, 0.8);
  rect("edge", room * scale, 0, 0.4, 8);
  return drawn;
}

/** What was assumed, each as a way to the field that says it. */
export function assumed(assumptions, edit) {
  if (!assumptions?.length) return null;
  const items = assumptions.map(({ id, text }) => el("li", {}, edit.has(id) ? el("button", { type: "button", class: "quiet", click: () => edit.open(id) }, text) : text));
  return el("div", { class: "assumed" }, el("p", {}, el("strong", {}, t("fit.assumed"))), el("ul", {}, ...items));
}

function gib(bytes) {
  return (bytes / GIB).toFixed(1);
}
