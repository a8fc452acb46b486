// The files that a view is to read: chosen, dropped (folders too) or pasted.

import { announce, el, fileSize } from "./dom.js";
import { t } from "./i18n.js";

const CONFIG = /\.(ya?ml|json|toml|sh|bash|slurm|sbatch|py)$/i;
const MOST = 20_000; // files of one folder
const LARGEST = 2 * 2 ** 30;

/** Return the role that the name of a file says, as PROTOCOL.md has it, or the first of `roles` where it is none of them. */
function roleOf(path, roles) {
  const said = path.includes("/") ? ["log"]
    : /^config\.json$/i.test(path) ? ["model", "config"]
    : CONFIG.test(path) ? ["config"]
    : /\.csv$/i.test(path) ? ["series"]
    : /\.(pickle|pkl)$/i.test(path) ? ["snapshot"] : ["log"];
  return said.find((role) => roles.includes(role)) ?? roles[0];
}

/** The view that files belong to: memory snapshots and configs alone have one of their own; all else is read as a log. */
export function viewOf(found) {
  const all = (pattern) => found.every(({ path }) => !path.includes("/") && pattern.test(path));
  return all(/\.(pickle|pkl)$/i) ? "snapshot" : all(CONFIG) ? "fit" : "log";
}

function isSame(one, other) {
  return one !== undefined && one.size === other.size && one.lastModified === other.lastModified;
}

/** Return the path, with a number where it is taken: `train.log`, `train-2.log`. */
function freeName(path, taken) {
  let name = path;
  for (let number = 2; taken.has(name); number++) name = path.replace(/(\.[^.]*)?$/, `-${number}$1`);
  return name;
}

/** The files of a view and their list on the page. `roles` are those that a reader can choose from. */
export class FileList {
  #files = [];

  constructor(place, roles, changed) {
    Object.assign(this, { place, roles, changed });
  }

  /** The inputs of a request; what lies in a folder has no role of its own: the folder is given whole. */
  get inputs() {
    return this.#files.map(({ path, file, role }) => (path.includes("/") ? { path, file } : { path, file, role }));
  }

  /** What is in the list, to be put into another one. */
  get all() {
    return this.#files.map((each) => ({ ...each }));
  }

  set all(files) {
    this.#files = files;
    this.draw();
  }

  /** The files as a command line names them: a folder is given whole. */
  get names() {
    return [...new Set(this.#files.map(shown))];
  }

  get size() {
    return this.#files.length;
  }

  get isTooLarge() {
    return this.#files.reduce((sum, { file }) => sum + file.size, 0) > LARGEST;
  }

  /** Add files: `[{path, file}]`. The same file again is left out, and that is said; another of its name gets a number. */
  add(found) {
    const known = new Map(this.#files.map(({ path, file }) => [path, file]));
    for (const { path, file } of found) {
      if (isSame(known.get(path), file) || (known.has(path) && path.includes("/"))) {
        announce(t("files.same", { name: path }));
        continue;
      }
      const name = freeName(path, known);
      known.set(name, file);
      this.#files.push({ path: name, file, role: roleOf(name, this.roles) });
    }
    this.draw();
    this.changed();
  }

  /** Return a name for one more file. */
  free(path) {
    return freeName(path, new Map(this.#files.map((each) => [each.path, each.file])));
  }

  clear() {
    this.#files = [];
    this.draw();
  }

  draw() {
    this.place.hidden = !this.#files.length;
    const lines = new Map();
    for (const each of this.#files) {
      const name = shown(each);
      if (lines.has(name)) lines.get(name).push(each);
      else lines.set(name, [each]);
    }
    this.place.replaceChildren(...[...lines].map(([name, files]) => this.#line(name, files)));
  }

  #line(name, files) {
    const size = files.reduce((sum, { file }) => sum + file.size, 0);
    const remove = () => {
      this.#files = this.#files.filter((each) => !files.includes(each));
      this.draw();
      this.changed();
    };
    return el("li", {},
      el("span", { class: "file" }, name, files.length > 1 ? ` × ${files.length}` : null),
      el("span", { class: "dim" }, ` ${fileSize(size)} `),
      name.endsWith("/") ? null : this.#role(files[0]),
      el("button", { type: "button", class: "quiet", "aria-label": t("files.remove", { name }), click: remove }, "×"));
  }

  #role(each) {
    if (this.roles.length < 2) return null;
    const options = this.roles.map((role) => el("option", { value: role, selected: role === each.role }, t(`role.${role}`)));
    const change = (event) => {
      each.role = event.target.value;
      this.changed();
    };
    return el("select", { "aria-label": t("files.role", { name: each.path }), change }, ...options);
  }
}

/** Let the reader choose files; `folder` lets them choose a whole one. */
export function choose({ folder = false, multiple = true, accept = "" }) {
  return new Promise((resolve) => {
    const input = el("input", { type: "file", multiple, accept: accept || null, webkitdirectory: folder });
    input.addEventListener("change", () => resolve([...input.files].slice(0, MOST).map((file) => ({ path: file.webkitRelativePath || file.name, file }))));
    input.addEventListener("cancel", () => resolve([]));
    input.click();
  });
}

/** Return the files of a drop, and those in the folders of it. */
export async function dropped(transfer) {
  // All at once: after the first wait the items are gone.
  const items = [...transfer.items].filter((item) => item.kind === "file").map((item) => item.webkitGetAsEntry?.() ?? item.getAsFile());
  const found = [];
  for (const item of items) {
    if (item instanceof File) found.push({ path: item.name, file: item });
    else if (item) await walk(item, found);
  }
  return found;
}

async function walk(entry, found) {
  if (found.length >= MOST) return;
  if (entry.isFile) {
    const file = await new Promise((resolve) => entry.file(resolve, () => resolve(null)));
    if (file) found.push({ path: entry.fullPath.replace(/^\//, ""), file });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const some = await new Promise((resolve) => reader.readEntries(resolve, () => resolve([])));
    if (!some.length) return;
    for (const each of some) await walk(each, found);
  }
}

/** The line in which a file is shown: its own, or that of the folder that was given whole. */
function shown({ path }) {
  return path.includes("/") ? `${path.slice(0, path.indexOf("/"))}/` : path;
}
