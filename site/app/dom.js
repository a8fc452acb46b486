// Small helpers for elements. Texts are always texts, never markup.

/** Make an element: attributes (a function is a listener, `true` an empty attribute) and children (nodes and texts). */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key, value);
    else if (value !== false && value != null) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child != null));
  return made;
}

/** Say something to who listens to the page. */
export function announce(text) {
  const place = document.getElementById("announce");
  place.textContent = "";
  // A live region speaks when it changes: the same text twice would be silent.
  setTimeout(() => { place.textContent = text; }, 60);
}

/** Bytes as millions of bytes, as files are counted. */
export function megabytes(bytes) {
  return bytes >= 1e8 ? String(Math.round(bytes / 1e6)) : (bytes / 1e6).toFixed(1);
}

/** Bytes as people read the size of a file. */
export function fileSize(bytes) {
  return bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} kB` : `${megabytes(bytes)} MB`;
}

/** Save a text as a file of the reader. */
export function save(text, name, mime) {
  const address = URL.createObjectURL(new Blob([text], { type: mime }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
