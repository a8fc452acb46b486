// A text field with suggestions (the ARIA combobox pattern): every word of what was typed must be in a suggestion.

import { el } from "./dom.js";

const SHOWN = 12;

/** Give an input suggestions: `choices` returns `[text]`; `label` names the list. An accepted one is an `input` event of the field. */
export function suggest(input, choices, label) {
  const list = el("ul", { role: "listbox", id: `${input.id}-list`, "aria-label": label, class: "suggestions", hidden: true });
  let active = -1;
  set(input, { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id, autocomplete: "off", spellcheck: "false" });

  function open() {
    const found = matching(choices(), input.value);
    list.replaceChildren(...found.map((text, at) => el("li", { role: "option", id: `${list.id}-${at}`, "aria-selected": "false" }, text)));
    activate(-1);
    show(found.length > 0 && !(found.length === 1 && found[0] === input.value));
  }

  function show(isOpen) {
    list.hidden = !isOpen;
    input.setAttribute("aria-expanded", String(isOpen));
    if (!isOpen) input.removeAttribute("aria-activedescendant");
  }

  function activate(at) {
    active = at;
    [...list.children].forEach((option, each) => option.setAttribute("aria-selected", String(each === at)));
    const option = list.children[at];
    if (!option) return input.removeAttribute("aria-activedescendant");
    input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  function accept(option) {
    input.value = option.textContent;
    show(false);
    input.dispatchEvent(new Event("input", { bubbles: true }));
    show(false);
  }

  function key(event) {
    const { length } = list.children;
    if (event.key === "Escape" && !list.hidden) show(false);
    else if (event.key === "Enter" && !list.hidden && active >= 0) accept(list.children[active]);
    else if (event.key === "ArrowDown" && list.hidden) open();
    else if (event.key === "ArrowDown") activate((active + 1) % length);
    else if (event.key === "ArrowUp" && !list.hidden) activate((active - 1 + length) % length);
    else return;
    event.preventDefault();
  }

  input.addEventListener("input", (event) => event.isTrusted && open());
  input.addEventListener("keydown", key);
  input.addEventListener("blur", () => show(false));
  // Before the field loses its focus, which closes the list.
  list.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const option = event.target.closest("[role=option]");
    if (option) accept(option);
  });
  return list;
}

function matching(choices, typed) {
  const words = typed.toLowerCase().split(/[\s,]+/).filter(Boolean);
  return choices.filter((choice) => words.every((word) => choice.toLowerCase().includes(word))).slice(0, SHOWN);
}

function set(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
}
