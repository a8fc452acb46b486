// "Will it fit?": a form that is answered as it is filled in. The address holds the question; files stay out of it.

import { announce, el } from "./dom.js";
import { choose, FileList } from "./files.js";
import { EXAMPLE, question } from "./fit_fields.js";
import { FitForm } from "./fit_form.js";
import { lang, t } from "./i18n.js";
import { problem } from "./problem.js";
import { reportNodes } from "./report_html.js";
import { write } from "./router.js";

const GIB = 2 ** 30;
const PAUSE = 250; // ms without an input before plans and the table are computed, which take longer than an estimate
const REPOSITORY = /^[\w.-]+\/[\w.-]+$/;

export class FitView {
  #asked = 0; // 0 until the view is shown for the first time
  #timer = 0;
  #values = EXAMPLE;

  constructor(section, client) {
    Object.assign(this, { client, place: section.querySelector(".fit-result") });
    this.form = new FitForm(section.querySelector("form"), () => this.#changed());
    this.list = el("ul", { class: "files", hidden: true });
    this.files = new FileList(this.list, ["config", "model", "log"], () => this.#compute());
    this.short = el("p", { class: "short" });
    this.said = el("p", { class: "hint", role: "status" });
    this.parts = Object.fromEntries(["check", "estimate", "plan", "sweep"].map((name) => [name, el("section", { hidden: true, class: `answer ${name}` })]));
    this.question = el("p", { class: "on-paper" });
    this.place.append(this.question, ...["estimate", "check", "plan", "sweep"].map((name) => this.parts[name]));
  }

  /** The lists of suggestions have come. */
  offer(choices) {
    this.form.choices = choices;
    if (this.#asked) this.#draw();
  }

  /** The view is shown with the question of the address; one that is answered already is not asked again. */
  show(query) {
    const isSame = !query.size || query.toString() === new URLSearchParams(this.#values).toString();
    if (this.#asked && isSame && !this.place.querySelector("[aria-busy]")) return this.#write();
    if (query.size) this.#values = Object.fromEntries(query);
    this.#draw();
    this.#compute();
  }

  drop(found) {
    this.files.add(found);
  }

  translate() {
    if (!this.#asked) return;
    this.#draw();
    this.#compute();
  }

  #draw() {
    const button = (key, click) => el("button", { type: "button", click }, t(key));
    this.list.setAttribute("aria-label", t("files.list"));
    this.files.draw();
    this.form.draw(this.#values, [
      this.list,
      el("div", { class: "actions" },
        button("fit.config", async () => this.files.add(await choose({}))),
        button("fit.link", () => this.#link()),
        button("fit.reset", () => this.#clear())),
      el("p", { class: "hint" }, t("fit.config.hint")),
      this.said,
      this.short,
    ]);
    this.#write();
  }

  #changed() {
    this.#values = this.form.values;
    this.#write();
    this.#compute();
  }

  #write() {
    if (location.hash.startsWith("#fit")) write("fit", new URLSearchParams(this.#values));
  }

  #clear() {
    this.#values = { purpose: this.#values.purpose };
    this.files.clear();
    this.#draw();
    this.#compute();
  }

  async #link() {
    const isCopied = await navigator.clipboard.writeText(location.href).then(() => true, () => false);
    this.said.textContent = isCopied ? t("fit.link.copied") : location.href;
  }

  /** Ask for the estimate at once, for the rest when the reader pauses; an answer to an older question is dropped. */
  #compute() {
    const asked = ++this.#asked;
    clearTimeout(this.#timer);
    this.question.textContent = [this.form.words, ...this.files.names].join(" · ");
    const fields = { question: question(this.#values), inputs: this.files.inputs, lang };
    if (!fields.question.model && !this.files.size) return this.#nothing();
    if (!this.client.isReady) this.#brief(t("fit.waiting"));
    // What stands there answers an older question, until its own answer takes its place.
    for (const part of Object.values(this.parts)) part.setAttribute("aria-busy", "true");
    this.#estimate(fields, asked);
  }

  async #estimate(fields, asked) {
    const result = await this.#part("estimate", fields, asked, t("fit.estimate"));
    if (!result || asked !== this.#asked) return;
    this.#brief(brief(result.data), result.data.card?.fits ?? result.data.server?.starts);
    this.#timer = setTimeout(() => this.#rest(fields, asked, result.data), PAUSE);
  }

  async #rest(fields, asked, estimate) {
    announce(this.short.textContent);
    const { question: run } = fields;
    const fits = estimate.card?.fits ?? estimate.server?.starts;
    if (this.files.inputs.some(({ role }) => role === "config")) {
      await this.#part("check", { ...fields, model: run.model, gpu: run.gpu, gpus: run.gpus }, asked, t("fit.check"));
    } else this.#hide("check");
    if (run.gpu && fits !== "yes") await this.#part("plan", { ...fields, server_version: run.settings.server_version }, asked, t("fit.plan"));
    else this.#hide("plan");
    if (asked === this.#asked) await this.#part("sweep", fields, asked, t(run.serve ? "fit.sweep.serve" : "fit.sweep.train"));
  }

  /** Ask for one part of the answer and show it; return the result, or nothing where it was refused or is out of date. */
  async #part(name, fields, asked, title) {
    try {
      const result = await this.client.ask(name, fields);
      this.client.forget(result.id);
      if (asked !== this.#asked) return null;
      this.#writePart(name, title, reportNodes(result.html));
      return result;
    } catch (refused) {
      if (asked !== this.#asked || refused.code === "replaced" || refused.code === "cancelled") return null;
      this.#writePart(name, title, problem(refused, "oomdoctor estimate"), this.#where(refused, fields));
      if (name === "estimate") {
        this.#brief("");
        ["check", "plan", "sweep"].forEach((each) => this.#hide(each));
      }
      return null;
    }
  }

  #writePart(name, title, ...content) {
    if (name === "plan" || name === "sweep") withoutRepeats(content[0], this.parts.estimate.querySelector(".report"));
    const { scrollLeft = 0 } = this.parts[name].querySelector(".scroll") ?? {};
    const open = [...this.parts[name].querySelectorAll("details")].map((each) => each.open);
    this.parts[name].replaceChildren(el("h3", { class: "answer-title" }, title), el("div", { class: "report", lang: document.documentElement.lang }, ...content));
    this.parts[name].hidden = false;
    this.parts[name].removeAttribute("aria-busy");
    // What the reader has opened stays open while the figures change.
    this.parts[name].querySelectorAll("details").forEach((each, at) => { each.open = open[at] ?? false; });
    this.parts[name].querySelector(".scroll")?.scrollTo(scrollLeft, 0);
  }

  /** Where the config.json of a model may be that the library does not know. The reader opens it; the page asks nobody. */
  #where(refused, { question: { model } }) {
    const isKnown = (this.form.choices.models ?? []).includes(model);
    if (refused.code !== "usage" || isKnown || !REPOSITORY.test(model ?? "")) return null;
    const address = `https://huggingface.co/${model}/raw/main/config.json`;
    return el("p", {}, t("fit.unknown.model"), " ", el("a", { href: address, rel: "noreferrer noopener", target: "_blank" }, address));
  }

  #hide(name) {
    this.parts[name].hidden = true;
    this.parts[name].removeAttribute("aria-busy");
    this.parts[name].replaceChildren();
  }

  #nothing() {
    Object.keys(this.parts).forEach((name) => this.#hide(name));
    this.#brief(t("fit.no.model"));
  }

  #brief(text, fits) {
    this.short.textContent = text;
    this.short.className = `short ${fits ?? ""}`;
  }
}

/** Leave out the sections (a heading or something folded, and what follows) that stand in the part above in the same words. */
function withoutRepeats(content, above) {
  const known = new Set(sections(above).map(words));
  for (const section of sections(content)) if (known.has(words(section))) section.forEach((node) => node.remove());
}

function sections(root) {
  const found = [[]];
  for (const node of root.children) {
    if (/^(H3|DETAILS)$/.test(node.tagName)) found.push([]);
    found.at(-1).push(node);
  }
  return found;
}

function words(nodes) {
  return nodes.map((node) => node.textContent).join("\n");
}

/** The answer in a few words, for a small screen and for who listens. */
function brief({ card, server, needed_bytes: needed, per_gpu_bytes: taken }) {
  const fits = card?.fits ?? server?.starts;
  const need = ((card?.needed_bytes ?? needed ?? taken).expected / GIB).toFixed(1);
  if (!fits) return `${t("fit.short.open")} ${t("fit.short.need", { need })}`;
  const word = t(`fit.short.${fits}`);
  return card?.usable_bytes ? `${word} · ${t("fit.short.size", { need, room: (card.usable_bytes / GIB).toFixed(1) })}` : word;
}
