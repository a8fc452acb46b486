// The form of "Will it fit?": it writes fields from their data and reads their values.

import { suggest } from "./combobox.js";
import { el } from "./dom.js";
import { FIELDS } from "./fit_fields.js";
import { t } from "./i18n.js";

const PURPOSES = ["train", "serve"];

/** Draws the fields in `form` and tells `changed` of every input. `choices` are those of choices.json. */
export class FitForm {
  constructor(form, changed) {
    Object.assign(this, { form, choices: {} });
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", () => {
      this.#fold();
      changed();
    });
  }

  /** The texts of the fields by name; without those that are empty. */
  get values() {
    const said = [...new FormData(this.form)].filter(([name, value]) => name === "purpose" || (value && this.#isAsked(name)));
    return Object.fromEntries(said);
  }

  /** The question in words: what stands in the fields that are asked. */
  get words() {
    const fields = [...this.form.querySelectorAll("[data-of]:not([hidden])")].map((field) => [field.querySelector("label"), field.querySelector("[name]")]);
    const said = fields.filter(([, input]) => input.value).map(([label, input]) => `${label.textContent}: ${input.selectedOptions?.[0].textContent ?? input.value}`);
    return said.join(" · ");
  }

  /** Draw the form with these values; `around` are the elements after the fields. */
  draw(values, around) {
    const isOpen = this.form.querySelector("details")?.open ?? FIELDS.some((field) => field.more && values[field.name]);
    const fields = (more) => FIELDS.filter((field) => Boolean(field.more) === more).map((field) => this.#field(field, values[field.name] ?? ""));
    this.form.replaceChildren(
      el("fieldset", { class: "purpose" }, el("legend", {}, t("fit.purpose")), ...PURPOSES.map((purpose) => this.#purpose(purpose, values.purpose ?? "train"))),
      el("div", { class: "fields" }, ...fields(false)),
      el("details", { open: isOpen }, el("summary", {}, t("fit.more")), el("div", { class: "fields" }, ...fields(true))),
      ...around);
    this.#fold();
  }

  #purpose(purpose, chosen) {
    return el("label", {}, el("input", { type: "radio", name: "purpose", value: purpose, checked: purpose === chosen }), " ", t(`fit.${purpose}`));
  }

  #field(field, value) {
    const id = `fit-${field.name}`;
    const input = field.kind === "choice" || field.kind === "switch" ? this.#select(field, id, value) : this.#input(field, id, value);
    const list = field.whole ? suggest(input, () => this.#suggestions(field), t("fit.options")) : null;
    return el("div", { class: field.whole ? "field whole" : "field", "data-of": field.of }, el("label", { for: id }, t(`field.${field.name}`)), input, list);
  }

  #input({ name, kind, min, max, step }, id, value) {
    const limits = kind === "number" ? { type: "number", min, max, step: step ?? 1, inputmode: step && step < 1 ? "decimal" : "numeric" } : { type: "text", spellcheck: "false" };
    return el("input", { id, name, value, ...limits });
  }

  #select(field, id, value) {
    const options = field.kind === "switch" ? [["yes", "fit.yes"], ["no", "fit.no"]] : field.options ?? this.#listed(field, value);
    return el("select", { id, name: field.name },
      el("option", { value: "" }, t("fit.open")),
      ...options.map(([each, key, values]) => el("option", { value: each, selected: each === value }, key ? t(key, values) : each)));
  }

  /** The names of a list; before it has come, the one that the address holds. */
  #listed(field, value) {
    const names = this.choices[field.from] ?? [];
    return (value && !names.includes(value) ? [...names, value] : names).map((name) => [name, null]);
  }

  #suggestions(field) {
    return (this.choices[field.from] ?? []).map((each) => each.name ?? each);
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
