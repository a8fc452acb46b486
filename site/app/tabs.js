// Tabs (the ARIA pattern): one panel is shown; the arrow keys go from tab to tab.

import { el } from "./dom.js";

export class Tabs {
  /** `panels` are `{name: element}`; `chosen` is called with the name of a tab that the reader chose. */
  constructor(panels, chosen) {
    Object.assign(this, { panels, chosen, current: Object.keys(panels)[0] });
    this.list = el("div", { role: "tablist", class: "tabs", keydown: (event) => this.#key(event) });
    for (const [name, panel] of Object.entries(panels)) {
      const tab = el("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": `panel-${name}`, click: () => this.choose(name) });
      for (const [key, value] of Object.entries({ role: "tabpanel", id: `panel-${name}`, "aria-labelledby": tab.id })) panel.setAttribute(key, value);
      this.list.append(tab);
    }
  }

  /** Write the names of the tabs; one that has no name now is not offered. */
  name(names) {
    for (const tab of this.list.children) {
      const name = tab.id.slice(4);
      tab.textContent = names[name] ?? "";
      tab.hidden = !names[name];
    }
    this.show(names[this.current] ? this.current : Object.keys(names)[0]);
  }

  choose(name) {
    this.show(name);
    this.chosen(name);
  }

  show(name) {
    this.current = this.panels[name] ? name : this.current;
    for (const tab of this.list.children) {
      const isChosen = tab.id === `tab-${this.current}`;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      this.panels[tab.id.slice(4)].hidden = !isChosen;
    }
  }

  #key({ key }) {
    const tabs = [...this.list.children].filter((tab) => !tab.hidden);
    const at = tabs.findIndex((tab) => tab.id === `tab-${this.current}`);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[key];
    if (next === undefined) return;
    const tab = tabs.at(next % tabs.length);
    tab.focus();
    this.choose(tab.id.slice(4));
  }
}
