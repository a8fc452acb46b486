// What stands in the place of a result where there is none.

import { el } from "./dom.js";
import { t } from "./i18n.js";

/** Return the words for what was refused; `command` is the line that does the same outside of the browser. */
export function problem(refused, command) {
  const { code = "internal", message, detail } = refused;
  if (code === "cancelled") return el("p", { class: "dim" }, t("work.cancelled"));
  if (code === "lost") return box(el("p", {}, t("engine.restarted")));
  if (code === "dead") return box(el("p", {}, t("engine.failed", { why: message })));
  if (code === "unknown-result") return box(el("p", {}, t("share.gone")));
  if (code === "too-large" || code === "out-of-memory") return box(el("p", {}, t(`error.${code}`)), el("pre", {}, command));
  if (code === "usage" || code === "unreadable") return box(el("p", {}, el("strong", {}, t(`error.${code}`))), el("p", { class: "said" }, message));
  return box(el("p", {}, t("error.internal")), el("pre", {}, [message, detail ?? refused.stack].filter(Boolean).join("\n\n")));
}

function box(...content) {
  return el("div", { class: "problem", role: "alert" }, ...content);
}
