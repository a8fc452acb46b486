// "Will it fit?": a form that is answered as it is filled in. The address holds the question; files stay out of it.

import { announce, el } from "./dom.js";
import { choose, FileList } from "./files.js";
import { asFields, EXAMPLE, FIELDS, question } from "./fit_fields.js";
import { FitForm } from "./fit_form.js";
import { lang, t } from "./i18n.js";
import { problem } from "./problem.js";
import { reportNodes } from "./report_html.js";
import { write } from "./router.js";
import { Tabs } from "./tabs.js";
import { assumed, bar, brief, range, summed } from "./verdict.js";

const PAUSE = 250; // ms without an input before what takes longer than an estimate is computed
const REPOSITORY = /^[\w.-]+\/[\w.-]+$/;
const TABS = ["estimate", "plan", "cards", "formats", "sweep", "check"];

export class FitView {
  #asked = 0; // 0 until the view is shown for the first time
  #timer = 0;
  #values = EXAMPLE;
  #fromFiles = {}; // what the files say, as the form has it
  #fromLog = {}; // what a diagnosis knows of its run
  #answered = {}; // the question that each part answers

  constructor(section, client) {
    Object.assign(this, { client, place: section.querySelector(".fit-result") });
    this.form = new FitForm(section.querySelector("form"), () => this.#changed());
    this.list = el("ul", { class: "files", hidden: true });
    this.files = new FileList(this.list, ["config", "model", "log"], () => this.#filesChanged());
    this.short = el("p", { class: "short" });
    this.more = el("div", { class: "verdict-more" });
    this.closest = el("p", { class: "closest" });
    this.aside = el("div", { class: "aside" });
    this.said = el("p", { class: "hint", role: "status" });
    this.parts = Object.fromEntries(TABS.map((name) => [name, el("section", { hidden: true, class: `answer ${name}` })]));
    this.tabs = new Tabs(this.parts, (name) => this.#chosen(name));
    this.question = el("p", { class: "on-paper" });
    this.verdict = el("div", { class: "verdict" }, el("div", {}, this.short, this.more, this.closest), this.aside);
    this.place.append(this.question, this.tabs.list, ...Object.values(this.parts));
  }

  /** The lists of suggestions have come. */
  offer(choices) {
    this.form.choices = choices;
    if (this.#asked) this.#draw();
  }

  /** The view is shown with the question of the address; one that is answered already is not asked again. */
  show(query) {
    const { tab, ...values } = Object.fromEntries(query);
    if (tab) this.tabs.show(tab);
    const isSame = !query.size || new URLSearchParams(values).toString() === new URLSearchParams(this.#values).toString();
    if (this.#asked && isSame && !this.place.querySelector("[aria-busy]")) return this.#write();
    if (query.size) {
      this.#values = values;
      this.#fromLog = {};
    }
    this.#draw();
    this.#compute();
  }

  /** Files are the question: the example goes, what the reader filled in stays. */
  drop(found) {
    if (this.#values === EXAMPLE) this.#values = { purpose: "train" };
    if (!this.#asked) this.#draw();
    this.files.add(found);
  }

  /** Take over a run from a diagnosis: `{name: {value, place}}`, and its configs. */
  take(run, configs) {
    this.#fromLog = asFields(run);
    this.#values = { purpose: run.method?.value === "serve" ? "serve" : "train" };
    this.files.all = configs;
    this.#filesChanged();
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
    this.form.draw(this.#values, this.#read, [
      this.list,
      this.verdict,
      el("div", { class: "actions" },
        button("fit.config", async () => {
          const found = await choose({});
          if (found.length) this.drop(found);
        }),
        button("fit.link", () => this.#link()),
        button("fit.reset", () => this.#clear()),
        this.said),
    ]);
    this.tabs.list.setAttribute("aria-label", t("fit.tabs"));
    this.#nameTabs();
    this.#write();
  }

  #nameTabs() {
    const { serve } = this.#question;
    const names = { estimate: t("fit.estimate"), plan: t("fit.plan"), cards: t("fit.cards"), formats: t("fit.formats"), sweep: t(serve ? "fit.sweep.serve" : "fit.sweep.train") };
    this.tabs.name(this.#hasConfig ? { ...names, check: t("fit.check") } : names);
  }

  get #hasConfig() {
    return this.files.inputs.some(({ role }) => role === "config");
  }

  get #read() {
    return { ...this.#fromLog, ...this.#fromFiles };
  }

  /** What is asked beside the files: what a diagnosis knows, and before it what the reader filled in. */
  get #question() {
    const known = Object.fromEntries(Object.entries(this.#fromLog).filter(([name]) => !this.#fromFiles[name]).map(([name, { value }]) => [name, value]));
    return question({ ...known, ...this.#values });
  }

  #changed() {
    this.#values = this.form.values;
    this.#write();
    this.#compute();
  }

  /** The files fill the form before they are asked about. */
  async #filesChanged() {
    this.#fromFiles = {};
    const asked = ++this.#asked;
    if (this.files.size) {
      try {
        const { data, id } = await this.client.ask("settings", { inputs: this.files.inputs, lang });
        this.client.forget(id);
        if (asked !== this.#asked) return;
        const place = this.files.names.join(" · ");
        const read = { ...data.settings, framework: data.framework && { value: data.framework, place }, model: data.model_file ? { value: "", place } : data.settings.model };
        this.#fromFiles = asFields(read);
        for (const each of Object.values(this.#fromFiles)) each.place ??= place;
        if (data.settings.method?.value === "serve") this.#values = { ...this.#values, purpose: "serve" };
      } catch {
        // What cannot be read is told by the estimate, which reads the same files.
      }
    }
    this.#draw();
    this.#compute();
  }

  #write() {
    const tab = this.tabs.current === "estimate" ? {} : { tab: this.tabs.current };
    if (location.hash.startsWith("#fit")) write("fit", new URLSearchParams({ ...this.#values, ...tab }));
  }

  #clear() {
    this.#values = { purpose: this.#values.purpose };
    this.#fromLog = {};
    this.#fromFiles = {};
    this.files.clear();
    this.#draw();
    this.#compute();
  }

  async #link() {
    const address = new URL(`#fit?${new URLSearchParams(this.form.all)}`, location.href).href;
    const isCopied = await navigator.clipboard.writeText(address).then(() => true, () => false);
    this.said.textContent = isCopied ? t("fit.link.copied") : address;
  }

  get #fields() {
    return { question: this.#question, inputs: this.files.inputs, lang };
  }

  /** Ask for the estimate at once, for the rest when the reader pauses; an answer to an older question is dropped. */
  #compute() {
    const asked = ++this.#asked;
    clearTimeout(this.#timer);
    this.question.textContent = [this.form.words, ...this.files.names].join(" · ");
    this.#nameTabs();
    const fields = this.#fields;
    if (!fields.question.model && !this.files.size) return this.#nothing();
    this.tabs.list.hidden = false;
    if (!this.client.isReady) this.#brief(t("fit.waiting"));
    // What stands there answers an older question, until its own answer takes its place.
    for (const part of Object.values(this.parts)) if (part.childNodes.length) part.setAttribute("aria-busy", "true");
    this.parts[this.tabs.current].setAttribute("aria-busy", "true");
    this.#estimate(fields, asked);
  }

  async #estimate(fields, asked) {
    const result = await this.#part("estimate", fields, asked);
    if (!result || asked !== this.#asked) return;
    this.#verdict(result.data);
    this.#timer = setTimeout(() => this.#rest(asked, summed(result.data)), PAUSE);
  }

  async #rest(asked, { fits }) {
    announce(this.short.textContent);
    // The plan is the way to yes, whatever tab is open.
    if (fits && fits !== "yes" && this.#fields.question.gpu) await this.#ask("plan", asked);
    await this.#ask(this.tabs.current, asked);
  }

  /** The reader chose a tab: it is computed now, where it does not answer the question of now. */
  #chosen(name) {
    this.#write();
    this.#ask(name, this.#asked);
  }

  async #ask(name, asked) {
    const fields = this.#fields;
    const run = fields.question;
    if (asked !== this.#asked || this.#answered[name] === asked || name === "estimate" || (!run.model && !this.files.size)) return;
    const more = name === "check" ? { model: run.model, gpu: run.gpu, gpus: run.gpus } : name === "plan" ? { server_version: run.settings.server_version } : {};
    this.parts[name].setAttribute("aria-busy", "true");
    const result = await this.#part(name, { ...fields, ...more }, asked);
    if (result && name === "plan") this.#closest(result.data);
  }

  /** Ask for one part of the answer and show it; return the result, or nothing where it was refused or is out of date. */
  async #part(name, fields, asked) {
    try {
      const result = await this.client.ask(name, fields);
      this.client.forget(result.id);
      if (asked !== this.#asked) return null;
      this.#writePart(name, reportNodes(result.html));
      this.#answered[name] = asked;
      return result;
    } catch (refused) {
      if (asked !== this.#asked || refused.code === "replaced" || refused.code === "cancelled") return null;
      const isWhole = name === "formats" && refused.code === "usage";
      this.#writePart(name, isWhole ? el("p", { class: "hint" }, t("fit.formats.none")) : problem(refused, "oomdoctor estimate"), this.#where(refused, fields));
      this.#answered[name] = asked;
      if (name === "estimate") this.#refused();
      return null;
    }
  }

  /** Without an estimate nothing else is known; why stands where its parts would. */
  #refused() {
    this.tabs.show("estimate");
    for (const name of TABS) if (name !== "estimate") this.#empty(name);
    this.#brief("");
  }

  #writePart(name, ...content) {
    if (name !== "estimate" && this.parts.estimate.querySelector(".report")) withoutRepeats(content[0], this.parts.estimate.querySelector(".report"));
    const { scrollLeft = 0 } = this.parts[name].querySelector(".scroll") ?? {};
    const open = [...this.parts[name].querySelectorAll("details")].map((each) => each.open);
    this.parts[name].replaceChildren(el("div", { class: "report", lang: document.documentElement.lang }, ...content));
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

  #empty(name) {
    this.parts[name].removeAttribute("aria-busy");
    this.parts[name].replaceChildren();
  }

  #nothing() {
    this.tabs.list.hidden = true;
    TABS.forEach((name) => this.#empty(name));
    this.#brief(t("fit.no.model"));
  }

  #verdict(data) {
    const sum = summed(data);
    this.#brief(brief(sum), sum.fits);
    this.more.replaceChildren(...[bar(sum), range(sum) && el("p", { class: "dim" }, range(sum))].filter(Boolean));
    const texts = Object.fromEntries(data.assumptions.map(({ id, text }) => [id, text]));
    this.form.tellSources(texts);
    const list = assumed(data.assumptions, { has: (id) => FIELDS.some(({ name }) => name === id), open: (id) => this.form.edit(id) });
    this.aside.replaceChildren(...(list ? [list] : []));
  }

  /** The cheapest plan in a line, with a button that fills it into the form. */
  #closest({ plans }) {
    const steps = [...this.parts.plan.querySelectorAll("ol")].at(0)?.querySelector("li strong")?.textContent;
    if (!plans.length || !steps) return;
    const sets = Object.assign({}, ...plans[0].measures.map((measure) => measure.sets));
    const filled = asFields(Object.fromEntries(Object.entries({ ...sets, method: this.#question.serve ? "serve" : undefined }).filter(([, value]) => value !== undefined).map(([name, value]) => [name, { value }])));
    const isWhole = Object.keys(sets).length === Object.keys(filled).length;
    const apply = () => {
      this.#values = { ...this.#values, ...Object.fromEntries(Object.entries(filled).map(([name, { value }]) => [name, value])) };
      this.#draw();
      this.#compute();
    };
    this.closest.replaceChildren(el("strong", {}, t("fit.closest")), " ", steps.replace(/[.。]$/, ""), " ",
      ...(isWhole ? [el("button", { type: "button", click: apply }, t("fit.apply"))] : [el("button", { type: "button", class: "quiet", click: () => this.tabs.choose("plan") }, t("fit.plan"))]));
  }

  #brief(text, fits) {
    this.short.textContent = text;
    this.short.className = `short ${fits ?? ""}`;
    for (const each of [this.more, this.closest, this.aside]) each.replaceChildren();
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
