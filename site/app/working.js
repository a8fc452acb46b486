// What a view shows while the worker reads: how far it is, what the end of the log says already, and the way to stop it.

import { announce, el, megabytes } from "./dom.js";
import { t } from "./i18n.js";

/** Shows the progress of one request in `place` until `done`. */
export class Working {
  constructor(place, client) {
    this.place = place;
    this.client = client;
    this.text = el("p");
    this.bar = el("progress", { max: 1, "aria-label": t("work.bar") });
    this.early = el("div", { class: "early", role: "status" });
    const cancel = el("button", { type: "button", click: () => client.cancel() }, t("work.cancel"));
    place.replaceChildren(el("div", { class: "actions" }, this.text, this.bar, cancel), this.early);
    place.hidden = false;
    this.#say(client.isReady ? t("work.thinking") : t("engine.waits"));
    announce(this.text.textContent);
  }

  /** What `ask` of the client calls. */
  get listeners() {
    return { progress: (message) => this.#progress(message), early: (message) => this.#early(message) };
  }

  done() {
    this.place.hidden = true;
    this.place.replaceChildren();
  }

  #progress({ done, total }) {
    const isAll = total && done >= total;
    if (total) this.bar.value = Math.min(1, done / total);
    else this.bar.removeAttribute("value");
    const values = { done: megabytes(done), total: total ? megabytes(total) : "" };
    this.#say(isAll ? t("work.thinking") : t(total ? "work.reading" : "work.read", values));
  }

  #early({ source, text }) {
    this.early.replaceChildren(el("p", { class: "dim" }, t("work.early", { source })), el("p", {}, text));
  }

  #say(text) {
    this.text.textContent = text;
  }
}
