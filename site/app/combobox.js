// A text field with suggestions (the ARIA combobox pattern), found as people write them: `4090`, `rtx4090`, `a100 80g`, `llama3.1 8b`.

import { el } from "./dom.js";

const SHOWN = 12;
const FILLERS = new Set(["gpu", "card", "gb", "model"]);

/** Give an input suggestions: `choices` returns `[name, detail?]`; `label` names the list. An accepted one is an `input` event of the field. */
export function suggest(input, choices, label) {
  const list = el("ul", { role: "listbox", id: `${input.id}-list`, "aria-label": label, class: "suggestions", hidden: true });
  let active = -1;
  set(input, { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id, autocomplete: "off", spellcheck: "false" });

  function open() {
    const found = matching(choices(), input.value);
    list.replaceChildren(...found.map(([name, detail], at) =>
      el("li", { role: "option", id: `${list.id}-${at}`, "aria-selected": "false", "data-name": name }, name, detail ? el("span", { class: "dim" }, ` ${detail}`) : null)));
    activate(-1);
    show(found.length > 0 && found[0][0] !== input.value);
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
    input.value = option.dataset.name;
    show(false);
    input.dispatchEvent(new Event("input", { bubbles: true }));
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

/**
 * Return the choices in which every word of what was typed stands, whatever stands between its letters and figures: those first in which the
 * words begin and end as words do, then in the order of the list, which has the common ones first.
 */
export function matching(choices, typed) {
  const words = typed.toLowerCase().split(/[\s,/()_-]+/).filter((word) => squeezed(word) && !FILLERS.has(word));
  const found = [];
  choices.forEach((choice, order) => {
    const name = choice[0].toLowerCase();
    const whole = squeezed(`${name} ${choice[1] ?? ""}`.toLowerCase());
    if (words.every((word) => whole.includes(squeezed(word)))) found.push([words.reduce((sum, word) => sum + apart(name, word), 0), order, choice]);
  });
  found.sort((one, other) => one[0] - other[0] || one[1] - other[1]);
  return found.slice(0, SHOWN).map(([, , choice]) => choice);
}

/** How far a word is from standing alone in a name: 0 alone, 1 at the beginning of a word, 2 anywhere, as `300` in `3000` too. */
function apart(name, word) {
  const parts = name.split(/[^a-z0-9.]+/);
  let least = 2;
  for (let from = 0; from < parts.length; from++) {
    let joined = "";
    for (let to = from; to < parts.length && joined.length < word.length; to++) {
      joined += parts[to];
      if (joined === word) return 0;
    }
    if (joined.startsWith(word) && !(/\d$/.test(word) && /^\d/.test(joined.slice(word.length)))) least = 1;
  }
  return least;
}

function squeezed(text) {
  return text.replace(/[^a-z0-9\u4e00-\u9fff]/g, "");
}

function set(node, attributes) {
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
}
