// The requests of the page, one after the other, answered by Python. What differs between a browser and a test comes from outside:
// `post` sends a message, `mount` lays the inputs of a request into a folder, `unmount` takes them away, `heap` tells the bytes of Python.

const LARGEST = 2 ** 31;
const KEPT = 8;
const QUIET = 50; // ms between pieces of what nobody asked for, in which a request can come in
const REPLACED_BY_NEWER = new Set(["estimate", "sweep", "cards", "formats"]);
const PACKED = /\.(gz|zst|xz|bz2)$/i;

export class Session {
  #bridge;
  #post;
  #mount;
  #unmount;
  #heap;
  #waiting = [];
  #is_working = false;
  #folders = new Map(); // of the results that are kept, the oldest first
  #count = 0;

  constructor({ bridge, post, mount, unmount, heap }) {
    this.#bridge = bridge;
    this.#post = post;
    this.#mount = mount;
    this.#unmount = unmount;
    this.#heap = heap;
  }

  /** Take a message of the page. */
  take(request) {
    if (REPLACED_BY_NEWER.has(request.type)) this.#replace(request.type);
    this.#waiting.push(request);
    this.#later();
  }

  /** Do a piece of work again and again while nobody asks, until it says that nothing is left. */
  rest(piece) {
    setTimeout(() => {
      if (this.#is_working || this.#waiting.length || piece()) this.rest(piece);
    }, QUIET);
  }

  #replace(type) {
    this.#waiting = this.#waiting.filter((request) => {
      if (request.type !== type) return true;
      this.#fail(request, "replaced", "a newer request took its place");
      return false;
    });
  }

  // Not at once: what the page sent while Python worked comes in first, and may replace what waits.
  #later() {
    if (this.#is_working || !this.#waiting.length) return;
    this.#is_working = true;
    setTimeout(() => {
      this.#work(this.#waiting.shift());
      this.#is_working = false;
      this.#later();
    });
  }

  #work(request) {
    const began = performance.now();
    if (request.v !== 1) return this.#fail(request, "usage", `version ${request.v} of the protocol is not known`);
    if (request.type === "forget") return this.#forget(request.of);
    const hindrance = request.type === "render" ? this.#notKept(request) : wrongInputs(request.inputs ?? []);
    if (hindrance) return this.#fail(request, ...hindrance);
    try {
      const answer = JSON.parse(this.#answered(request));
      if (answer.type === "error") return this.#send(request, answer);
      this.#send(request, { type: "result", ...answer, heap: this.#heap(), ms: performance.now() - began });
    } catch (error) {
      // Python lives on after an exception of its own; this one came from beneath it.
      this.#post({ v: 1, type: "fatal", text: String(error?.message ?? error) });
    }
  }

  #answered(request) {
    if (request.type === "render") return this.#bridge.answer(JSON.stringify(request), this.#folders.get(request.of), null);
    const inputs = request.inputs ?? [];
    const folder = `/inputs/${++this.#count}`;
    this.#mount(folder, inputs);
    const given = inputs.map(({ path, role }) => ({ path, role: role ?? null }));
    const text = JSON.stringify({ ...request, inputs: given });
    const answer = this.#bridge.answer(text, folder, this.#listener(request, inputs));
    this.#keep(request.id, folder);
    return answer;
  }

  #listener(request, inputs) {
    const total = inputs.some(({ path }) => PACKED.test(path)) ? null : bytesOf(inputs) + (request.text ?? "").length;
    return {
      progress: (done) => this.#send(request, { type: "progress", done, total }),
      early: (source, text, from_end) => this.#send(request, { type: "early", source, text, from_end: from_end ?? null }),
    };
  }

  #keep(id, folder) {
    this.#forget(id);
    this.#folders.set(id, folder);
    if (this.#folders.size > KEPT) this.#forget(this.#folders.keys().next().value);
  }

  #forget(id) {
    const folder = this.#folders.get(id);
    if (folder === undefined) return;
    this.#folders.delete(id);
    this.#bridge.forget(id);
    this.#unmount(folder);
  }

  #notKept(request) {
    return this.#folders.has(request.of) ? null : ["unknown-result", `no result ${request.of} is kept`];
  }

  #fail(request, code, text) {
    this.#send(request, { type: "error", code, text, detail: "" });
  }

  #send(request, message) {
    this.#post({ v: 1, id: request.id, ...message });
  }
}

/** Return the code and the text of what is wrong with the inputs of a request; null where nothing is. */
function wrongInputs(inputs) {
  if (!Array.isArray(inputs)) return ["usage", "the inputs are no list"];
  const paths = inputs.map((input) => input?.path);
  const wrong = paths.find((path) => typeof path !== "string" || path.split("/").some((part) => ["", ".", ".."].includes(part)) || path.includes("\0"));
  if (paths.length !== paths.filter((path) => typeof path === "string").length || wrong !== undefined) {
    return ["usage", `an input cannot be called ${JSON.stringify(wrong ?? null)}`];
  }
  const twice = clashing(paths);
  if (twice !== undefined) return ["usage", `two inputs are called ${JSON.stringify(twice)}`];
  if (bytesOf(inputs) > LARGEST) return ["too-large", "more than 2 GiB: use the command on the machine where the files are"];
  return null;
}

/** Return a path that two inputs have, or that is a folder of another; undefined where there is none. A folder may hold very many. */
function clashing(paths) {
  const folders = new Set(paths.flatMap((path) => path.split("/").map((_, at, parts) => parts.slice(0, at).join("/"))));
  const seen = new Set();
  return paths.find((path) => folders.has(path) || seen.size === seen.add(path).size);
}

function bytesOf(inputs) {
  return inputs.reduce((sum, { file, text }) => sum + (file?.size ?? text?.length ?? 0), 0);
}
