// The form of "Will it fit?": it writes fields from their data and reads their values.

import { suggest } from "./combobox.js";
import { el } from "./dom.js";
import { FIELDS } from "./fit_fields.js";
import { t } from "./i18n.js";

const PURPOSES = ["train", "serve"];
const SUGGESTED = new Set(["models", "cards"]);

/** Draws the fields in `form` and tells `changed` of every input. `choices` are those of choices.json. */
export class FitForm {
  #set = new Set(); // the fields that the reader or the address filled in; the others show what was read
  #read = {};

  constructor(form, changed) {
    Object.assign(this, { form, choices: {} });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", ({ target }) => {
      this.#set.add(target.name);
      this.#fold();
      this.tellSources();
      changed();
    });
  }

  /** The texts of the fields that somebody filled in, by name. */
  get values() {
    return Object.fromEntries(Object.entries(this.all).filter(([name]) => name === "purpose" || this.#set.has(name)));
  }

  /** The texts of all fields that are filled, whoever did it. */
  get all() {
    return Object.fromEntries([...new FormData(this.form)].filter(([name, value]) => name === "purpose" || (value && this.#isAsked(name))));
  }

  /** The question in words: what stands in the fields that are asked. */
  get words() {
    const fields = [...this.form.querySelectorAll("[data-of]:not([hidden])")].map((field) => [field.querySelector("label"), field.querySelector("[name]")]);
    const said = fields.filter(([, input]) => input.value).map(([label, input]) => `${label.textContent}: ${input.selectedOptions?.[0].textContent ?? input.value}`);
    return said.join(" · ");
  }

  /** Draw the form with these values and what was read beside them (`{name: {value, place}}`); `between` are the elements before those that are folded. */
  draw(values, read, between) {
    this.#set = new Set(Object.keys(values));
    this.#read = read;
    const isFilled = ({ name, main }) => !main && (values[name] || read[name]);
    const isOpen = this.form.querySelector("details")?.open || FIELDS.some(isFilled);
    const fields = (main) => FIELDS.filter((field) => Boolean(field.main) === main).map((field) => this.#field(field, values[field.name] ?? read[field.name]?.value ?? ""));
    this.form.replaceChildren(
      el("div", { class: "main-fields" },
        el("fieldset", { class: "purpose" }, el("legend", {}, t("fit.purpose")), ...PURPOSES.map((purpose) => this.#purpose(purpose, values.purpose ?? "train"))),
        ...fields(true)),
      ...between,
      el("details", { open: isOpen }, el("summary", {}, t("fit.more")), el("div", { class: "fields" }, ...fields(false))));
    this.#fold();
    this.tellSources();
  }

  /** Say below each field where its value is from: a file, the reader, or an assumption of the library (`{id: text}`). */
  tellSources(assumed = this.assumed ?? {}) {
    this.assumed = assumed;
    for (const { name } of FIELDS) {
      const input = this.form.elements[name];
      const from = this.form.querySelector(`#from-${name}`);
      if (!input || !from) continue;
      const { place } = this.#read[name] ?? {};
      if (!input.value && !place) from.textContent = assumed[name] ? t("fit.from.assumed", { text: assumed[name] }) : "";
      else if (this.#set.has(name)) from.textContent = t("fit.from.reader");
      else from.textContent = place ? t("fit.from.file", { place }) : t("fit.from.log");
    }
  }

  /** Put the reader into a field. Return whether there is such a field. */
  edit(name) {
    const input = this.form.elements[name];
    if (!input?.focus) return false;
    const folded = input.closest("details");
    if (folded) folded.open = true;
    input.focus();
    return true;
  }

  #purpose(purpose, chosen) {
    return el("label", {}, el("input", { type: "radio", name: "purpose", value: purpose, checked: purpose === chosen }), " ", t(`fit.${purpose}`));
  }

  #field(field, value) {
    const id = `fit-${field.name}`;
    const input = field.kind === "choice" || field.kind === "switch" ? this.#select(field, id, value) : this.#input(field, id, value);
    const list = SUGGESTED.has(field.from) ? suggest(input, () => this.#suggestions(field), t("fit.options")) : null;
    input.setAttribute("aria-describedby", `from-${field.name}`);
    return el("div", { class: `field ${field.name}`, "data-of": field.of },
      el("label", { for: id }, t(`field.${field.name}`)), input, list, el("small", { class: "from", id: `from-${field.name}` }));
  }

  #input({ name, kind, min, max, step }, id, value) {
    const limits = kind === "number" ? { type: "number", min, max, step: step ?? 1, inputmode: step && step < 1 ? "decimal" : "numeric" } : { type: "text", spellcheck: "false" };
    return el("input", { id, name, value, ...limits });
  }

  #select(field, id, value) {
    const options = field.kind === "switch" ? [["yes", "fit.yes"], ["no", "fit.no"]] : field.options ?? this.#listed(field, value);
    return el("select", { id, name: field.name },
      el("option", { value: "" }, t("fit.open")),
      ...options.map(([each, key, values]) => el("option", { value: each, selected: each === value }, key ? t(key, values) : typeof values === "string" ? values : each)));
  }

  /** The names of a list, as `[name, title]`; before it has come, and where a file has another name, that one too. */
  #listed(field, value) {
    const names = (this.choices[field.from] ?? []).map((each) => (Array.isArray(each) ? each : [each, each]));
    const all = value && !names.some(([name]) => name === value) ? [...names, [value, value]] : names;
    return all.map(([name, title]) => [name, null, title]);
  }

  /** What a text field offers: `[name, size]` of cards, `[name]` of models. */
  #suggestions(field) {
    return (this.choices[field.from] ?? []).map((each) => (Array.isArray(each) ? [each[0], `${each[1]} GB`] : [each]));
  }

  #isAsked(name) {
    const { of } = FIELDS.find((field) => field.name === name) ?? {};
    return of === "both" || of === new FormData(this.form).get("purpose");
  }

  #fold() {
    for (const field of this.form.querySelectorAll("[data-of]")) {
      field.hidden = !this.#isAsked(field.querySelector("[name]").name);
    }
  }
}
