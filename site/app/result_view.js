// A report on the page, and what can be done with it: copy, save, print, with names hidden or not.

import { announce, el, save } from "./dom.js";
import { lang, t } from "./i18n.js";
import { problem } from "./problem.js";
import { reportNodes } from "./report_html.js";

const COPIES = { diagnose: ["reply", "issue", "markdown"], snapshot: ["markdown"] };

/** Shows one result below the heading of `place`, in the language of the page; `arrange` lays out its report. */
export class ResultView {
  #result = null;
  #redact = true;

  constructor(place, client, arrange = () => {}) {
    Object.assign(this, { place, client, arrange, heading: place.querySelector("h2"), tools: place.querySelector(".bar") });
  }

  /** Give the result away, to be shown again later: the worker keeps it. */
  take() {
    const result = this.#result;
    this.#result = null;
    return result;
  }

  get redact() {
    return this.#redact;
  }

  /** Show a result, and put the reader there. */
  show(result) {
    this.client.forget(this.#result?.id);
    this.#result = result;
    this.#draw(result.html);
    this.heading.focus({ preventScroll: true });
    this.place.scrollIntoView({ block: "nearest" });
    announce(this.report.querySelector("p")?.textContent ?? result.title);
  }

  refuse(refused, command) {
    this.clear();
    this.place.hidden = false;
    this.place.append(problem(refused, command));
    this.heading.focus();
  }

  clear() {
    this.isShared = false;
    this.client.forget(this.#result?.id);
    this.#result = null;
    this.place.replaceChildren(...[this.tools, this.heading].filter(Boolean));
    this.place.hidden = true;
  }

  /** Write the report anew: in another language, or with names hidden or shown. */
  async again() {
    if (!this.#result) return;
    try {
      this.#draw((await this.#render("html")).text);
    } catch (refused) {
      this.message.replaceChildren(problem(refused));
    }
  }

  #draw(html) {
    this.report = el("div", { class: "report", lang: lang === "zh" ? "zh-CN" : "en" });
    this.report.append(reportNodes(html));
    this.message = el("div", { class: "copied" });
    this.arrange(this.report, this.#result);
    this.report.firstElementChild?.after(this.#notes());
    this.tools?.querySelector(".share")?.remove();
    if (this.tools) this.tools.append(this.#share());
    this.place.replaceChildren(...[this.tools ?? this.#share(), this.heading, this.report].filter(Boolean));
    this.place.hidden = false;
  }

  /** All that can be done with a report, folded: copy, save, print, with names hidden or not. */
  #share() {
    const isOpen = this.isShared ?? false;
    return el("details", { class: "share", open: isOpen, toggle: (event) => { this.isShared = event.target.open; } }, el("summary", {}, t("share")), this.#actions());
  }

  #actions() {
    const copies = COPIES[this.#result.kind].map((form) => el("button", { type: "button", click: () => this.#copy(form) }, t(`share.${form}`)));
    const saves = ["html", "json"].map((form) => el("button", { type: "button", click: () => this.#save(form) }, t(`share.${form}`)));
    const box = el("input", { type: "checkbox", checked: this.#redact, "aria-describedby": `${this.heading.id}-hides`, change: (event) => this.#hide(event.target.checked) });
    return el("div", { class: "shared" },
      el("div", { class: "actions", role: "group", "aria-label": t("share.actions") }, ...copies, ...saves,
        el("button", { type: "button", click: () => print() }, t("share.print"))),
      el("label", {}, box, " ", t("share.redact")),
      el("p", { class: "hint", id: `${this.heading.id}-hides` }, t(`share.redact.${this.#redact ? "on" : "off"}`)),
      this.message);
  }

  #notes() {
    const { notes } = this.#result;
    if (!notes?.length) return "";
    return el("div", { class: "problem" }, el("p", {}, el("strong", {}, t("notes"))), el("ul", {}, ...notes.map((note) => el("li", {}, note))));
  }

  async #hide(isHidden) {
    this.#redact = isHidden;
    await this.again();
    this.place.querySelector(".share input[type=checkbox]").focus();
    announce(t(`share.redact.${isHidden ? "on" : "off"}`));
  }

  #render(form) {
    return this.client.ask("render", { of: this.#result.id, form, lang, redact: this.#redact });
  }

  async #copy(form) {
    try {
      const { text } = await this.#render(form);
      await this.#shown(text);
    } catch (refused) {
      this.message.replaceChildren(problem(refused));
    }
  }

  /** Copy, and show what was copied: a reader who pastes it elsewhere sees before what goes out. */
  async #shown(text) {
    const area = el("textarea", { readonly: true, rows: 8, "aria-label": t("share.text") });
    area.value = text;
    const isCopied = await navigator.clipboard.writeText(text).then(() => true, () => false);
    const says = t(isCopied ? "share.copied" : "share.copy.by.hand");
    this.message.replaceChildren(el("p", {}, says), area);
    announce(says);
    if (!isCopied) area.select();
  }

  async #save(form) {
    try {
      const { text, name, mime } = await this.#render(form);
      save(text, name, mime);
      this.message.replaceChildren(el("p", {}, t("share.saved", { name })));
      announce(t("share.saved", { name }));
    } catch (refused) {
      this.message.replaceChildren(problem(refused));
    }
  }
}
