// Starts the page: its language, its views, the worker, and the service worker that makes it work offline.

import { unpacked } from "./archives.js";
import { announce, el, megabytes } from "./dom.js";
import { dropped, viewOf } from "./files.js";
import { lang, LANGUAGES, preferred, remember, t, use } from "./i18n.js";
import { follow, open, route } from "./router.js";
import { FitView } from "./view_fit.js";
import { LogView } from "./view_log.js";
import { SnapshotView } from "./view_snapshot.js";
import { WorkerClient } from "./worker_client.js";

const client = new WorkerClient();
const byId = (id) => document.getElementById(id);
const state = { state: "booting", step: "start" };

await use(preferred());
const views = {
  log: new LogView(byId("view-log"), client, { files: bring, run: tryRun }),
  fit: new FitView(byId("view-fit"), client),
  snapshot: new SnapshotView(byId("view-snapshot"), client),
};
for (const each of document.querySelectorAll("header.top, footer.foot")) each.hidden = false;

client.addEventListener("state", ({ detail }) => {
  Object.assign(state, { done: 0, total: 0 }, detail);
  engine();
  if (detail.version) started(detail.version);
  if (["restarted", "dead"].includes(detail.state)) notice(t(detail.state === "dead" ? "engine.failed" : "engine.restarted", { why: detail.why }));
});
client.start();
language();
follow(show);
drops();
prints();
byId("language").addEventListener("click", changeLanguage);
choices();
offline();

function show({ view, query }) {
  for (const [name] of Object.entries(views)) byId(`view-${name}`).hidden = name !== view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${t(`${view}.title`)} · oomdoctor`;
  views[view].show?.(query);
}

/** Say in the head of the page how far the worker is. */
function engine() {
  const { state: now, step = "start", done, total } = state;
  const values = { done: megabytes(done ?? 0), total: megabytes(total ?? 0) };
  byId("engine-text").textContent = now === "booting" || now === "restarted" ? t(`engine.${total ? step : "start"}`, values) : t(`engine.${now}`);
  byId("engine-text").className = now;
  byId("engine-bar").hidden = !total || now !== "booting";
  byId("engine-bar").value = total ? done / total : 0;
}

function started(version) {
  byId("version").textContent = `oomdoctor ${version}`;
  announce(t("engine.ready"));
}

function language() {
  const other = LANGUAGES.find((each) => each !== lang);
  byId("language").textContent = t("language.other");
  byId("language").lang = other;
  document.body.dataset.drop = t("files.drop");
  engine();
}

async function changeLanguage() {
  const other = LANGUAGES.find((each) => each !== lang);
  remember(other);
  await use(other);
  language();
  document.title = `${t(`${route().view}.title`)} · oomdoctor`;
  for (const view of Object.values(views)) await view.translate();
}

/** Bring files to the view that they belong to, wherever they were dropped or chosen. */
async function bring(found) {
  const files = await unpacked(found);
  if (!files.length) return;
  const belongs = viewOf(files);
  const view = belongs === "fit" && route().view === "log" && views.log.hasCase ? "log" : belongs;
  open(view);
  views[view].drop(files);
}

/** Ask whether a run fits: what a diagnosis knows of it, and the configs that were given with it. */
function tryRun(run, configs) {
  open("fit");
  views.fit.take(run, configs);
}

/** A file may be dropped anywhere. */
function drops() {
  let depth = 0;
  const hint = (isOver) => document.body.classList.toggle("dropping", isOver);
  addEventListener("dragenter", (event) => { event.preventDefault(); depth += 1; hint(true); });
  addEventListener("dragover", (event) => event.preventDefault());
  addEventListener("dragleave", () => { depth -= 1; hint(depth > 0); });
  addEventListener("drop", async (event) => {
    if (!event.dataTransfer.files.length) return;
    event.preventDefault();
    depth = 0;
    hint(false);
    await bring(await dropped(event.dataTransfer));
  });
}

/** On paper nothing can be opened: what is folded is printed open. */
function prints() {
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll(".report details:not([open])")];
    for (const each of closed) each.open = true;
  });
  addEventListener("afterprint", () => closed.forEach((each) => { each.open = false; }));
}

async function choices() {
  try {
    const answer = await fetch(new URL("choices.json", document.baseURI));
    if (!answer.ok) return;
    const offered = await answer.json();
    views.fit.offer(offered);
    views.log.cards = offered.cards;
  } catch {
    // Suggestions are a help; every name can be typed.
  }
}

async function offline() {
  if (!("serviceWorker" in navigator)) return;
  try {
    const registration = await navigator.serviceWorker.register(new URL("sw.js", document.baseURI), { scope: "./" });
    if (registration.waiting) offer(registration.waiting);
    registration.addEventListener("updatefound", () => {
      const found = registration.installing;
      found.addEventListener("statechange", () => found.state === "installed" && navigator.serviceWorker.controller && offer(found));
    });
  } catch {
    // Without a service worker the page works as long as its host does.
  }
}

/** Offer a new version of the page: the reader says when, as results are lost with the old one. */
function offer(found) {
  const reload = () => {
    navigator.serviceWorker.addEventListener("controllerchange", () => location.reload());
    found.postMessage("skip-waiting");
  };
  notice(t("update.text"), el("button", { type: "button", click: reload }, t("update.reload")));
}

function notice(text, ...more) {
  byId("notice").hidden = false;
  byId("notice").replaceChildren(el("p", {}, text, " ", ...more));
}
