// The address: `#log`, `#fit?model=...`, `#snapshot`. It holds the view and the form, never a log.

const VIEWS = ["log", "fit", "snapshot"];

/** Return the view of the address, and what it says of it. */
export function route() {
  const [name, query = ""] = location.hash.slice(1).split("?");
  return { view: VIEWS.includes(name) ? name : "log", query: new URLSearchParams(query) };
}

/** Call `show` with the route, now and whenever it changes. */
export function follow(show) {
  addEventListener("hashchange", () => show(route()));
  show(route());
}

/** Write what a view says of itself into the address, without a step in the history. */
export function write(view, query) {
  const text = query.toString();
  history.replaceState(null, "", `#${view}${text ? `?${text}` : ""}`);
}

/** Open a view, as a step in the history. */
export function open(view) {
  if (route().view !== view) location.hash = view;
}
