// The HTML of a report as elements of this page. The library has escaped what logs say; this is the second lock: only listed
// elements and attributes are made anew, and nothing that could load, run or leave its place.

const HTML = new Set(("a br caption code col colgroup dd details div dl dt em figcaption figure h2 h3 h4 hr li ol p pre section small " +
  "span strong sub summary sup table tbody td tfoot th thead tr ul").split(" "));
const SVG = new Set("svg g defs title desc path line polyline polygon rect circle ellipse text tspan pattern clipPath".split(" "));
const ATTRIBUTES = new Set(("class colspan rowspan scope start open role lang viewBox preserveAspectRatio x y x1 x2 y1 y2 dx dy width height " +
  "d points cx cy r rx ry transform fill fill-opacity stroke stroke-width stroke-dasharray stroke-linecap stroke-linejoin opacity " +
  "text-anchor dominant-baseline font-size font-weight patternUnits patternTransform clip-path focusable").split(" "));
const IDS = new Set(["id", "aria-labelledby", "aria-describedby"]);
const DEEPEST = 60;
const SVG_SPACE = "http://www.w3.org/2000/svg";

let reports = 0;

/** Return the content of the report: of a whole page its `main`, of a fragment all of it. Its ids are its own on the page. */
export function reportNodes(html) {
  reports += 1;
  const parsed = new DOMParser().parseFromString(html, "text/html");
  const root = parsed.querySelector("main") ?? parsed.body;
  const made = document.createDocumentFragment();
  copyChildren(root, made, 0);
  return made;
}

function copyChildren(from, to, depth) {
  if (depth > DEEPEST) return;
  for (const node of from.childNodes) {
    if (node.nodeType === Node.TEXT_NODE) to.append(node.data);
    else if (node.nodeType === Node.ELEMENT_NODE) copyElement(node, to, depth);
  }
}

function copyElement(node, to, depth) {
  const isSvg = node.namespaceURI === SVG_SPACE;
  const name = node.localName;
  if (!(isSvg ? SVG : HTML).has(name)) return;
  const made = isSvg ? document.createElementNS(SVG_SPACE, name) : document.createElement(lowered(node, name));
  for (const { name: key, value } of node.attributes) setAttribute(made, key, value);
  if (name === "a" && !isSvg) link(made, node.getAttribute("href"));
  copyChildren(node, made, depth + 1);
  to.append(name === "table" && node.classList.contains("grid") ? scrolling(made, node) : made);
}

/** A report is a part of the page here: its headings are one level lower, and a heading of a column without a word is a cell. */
function lowered(node, name) {
  if (name === "h2" || name === "h3") return name === "h2" ? "h3" : "h4";
  return name === "th" && !node.textContent.trim() && !node.children.length ? "td" : name;
}

function setAttribute(made, key, value) {
  if (IDS.has(key)) made.setAttribute(key, value.split(/\s+/).filter(Boolean).map((id) => `r${reports}-${id}`).join(" "));
  else if (key.startsWith("aria-") || (ATTRIBUTES.has(key) && !/url\s*\(/i.test(value))) made.setAttribute(key, value);
  else if (/^url\(#[\w-]+\)$/.test(value) && ATTRIBUTES.has(key)) made.setAttribute(key, `url(#r${reports}-${value.slice(5, -1)})`);
}

function link(made, href) {
  if (!/^https?:\/\//i.test(href ?? "")) return;
  made.href = href;
  made.rel = "noreferrer noopener";
  made.target = "_blank";
}

/** A wide table scrolls by itself, also with the keyboard. */
function scrolling(table, node) {
  const box = document.createElement("div");
  box.className = "scroll";
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", node.closest("figure")?.querySelector("figcaption")?.textContent ?? "");
  box.append(table);
  return box;
}
