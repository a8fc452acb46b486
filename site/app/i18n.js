// The texts of the page, in the reader's language. Texts of reports come from the library.

export const LANGUAGES = ["en", "zh"];
const STORED = "oomdoctor.lang";
let texts = {};
export let lang = "en";

/** The language of the address, else the chosen one, else the browser's. */
export function preferred() {
  const asked = [new URLSearchParams(location.search).get("lang"), stored(), ...navigator.languages.map((each) => each.slice(0, 2))];
  return asked.find((each) => LANGUAGES.includes(each)) ?? "en";
}

/** Load the texts of a language and write them into the page. */
export async function use(language) {
  const answer = await fetch(new URL(`./strings.${language}.json`, import.meta.url));
  texts = await answer.json();
  lang = language;
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  fill(document.body);
}

/** Remember what the reader chose. */
export function remember(language) {
  try {
    localStorage.setItem(STORED, language);
  } catch {
    // A browser that stores nothing forgets it.
  }
}

/** Return a text with its placeholders filled in; a text that is missing is its key. */
export function t(key, values = {}) {
  return (texts[key] ?? key).replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all));
}

/** Write the texts below an element: `data-t` is content, `data-t-label` and `data-t-placeholder` are attributes. */
export function fill(root) {
  for (const each of root.querySelectorAll("[data-t]")) each.textContent = t(each.dataset.t);
  for (const each of root.querySelectorAll("[data-t-label]")) each.setAttribute("aria-label", t(each.dataset.tLabel));
  for (const each of root.querySelectorAll("[data-t-placeholder]")) each.placeholder = t(each.dataset.tPlaceholder);
}

function stored() {
  try {
    return localStorage.getItem(STORED);
  } catch {
    return null;
  }
}
