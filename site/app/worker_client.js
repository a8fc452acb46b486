// The page's side of PROTOCOL.md: starts the worker, asks it, and starts another one where it is cancelled or dies.

/** An `error` answer, or a request that was given up (`cancelled`, `lost`, `dead`). */
export class Refused extends Error {
  constructor(code, text = "", detail = "") {
    super(text || code);
    Object.assign(this, { code, detail });
  }
}

/**
 * Asks the worker. Events: `state` with `detail.state` `booting` (step, done, total), `ready` (version), `busy`, `restarted`,
 * `dead` (why).
 */
export class WorkerClient extends EventTarget {
  #worker = null;
  #waiting = new Map();
  #next = 1;
  #isReady = false;
  #hasDied = false;
  #why = null; // why Python does not run, and will not

  /** Start the worker. From a blob: then the policy of this page binds it, which a worker loaded by address is free of. */
  start() {
    const base = new URL("./", document.baseURI).href;
    const source = `import ${JSON.stringify(`${base}worker/worker.js`)};`;
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    this.#isReady = false;
    const worker = new Worker(address, { type: "module" });
    this.#worker = worker;
    const isCurrent = () => this.#worker === worker;
    worker.addEventListener("message", ({ data }) => isCurrent() && this.#receive(data));
    worker.addEventListener("error", (event) => isCurrent() && this.#died(event.message || "worker"));
    worker.postMessage({ v: 1, type: "boot", base });
    this.#tell("booting", { step: "start" });
  }

  get isReady() {
    return this.#isReady;
  }

  /** Ask, and return the result; `progress` and `early` are called with their messages. Throws Refused. */
  ask(type, fields, { progress, early } = {}) {
    if (this.#why !== null) return Promise.reject(new Refused("dead", this.#why));
    return new Promise((resolve, reject) => {
      const id = this.#next++;
      const message = { v: 1, type, id, ...fields };
      this.#waiting.set(id, { message, resolve, reject, progress, early });
      if (this.#isReady) this.#post(message);
    });
  }

  /** Give up everything that was asked: only a new worker stops what runs. Results of before cannot be rendered any more. */
  cancel() {
    this.#end("cancelled");
    this.start();
  }

  forget(of) {
    if (this.#isReady && of) this.#worker.postMessage({ v: 1, type: "forget", of });
  }

  #post(message) {
    this.#worker.postMessage(message);
    this.#tell("busy");
  }

  #receive(data) {
    const asked = this.#waiting.get(data.id);
    if (data.type === "boot-progress") this.#tell("booting", data);
    else if (data.type === "ready") this.#ready(data);
    else if (data.type === "fatal") this.#died(data.text);
    else if (data.type === "progress") asked?.progress?.(data);
    else if (data.type === "early") asked?.early?.(data);
    else if (asked) this.#settle(data, asked);
  }

  #ready(data) {
    this.#isReady = true;
    this.#tell("ready", data);
    for (const { message } of this.#waiting.values()) this.#post(message);
  }

  #settle(data, { resolve, reject }) {
    this.#waiting.delete(data.id);
    if (!this.#waiting.size) this.#tell("ready");
    if (data.type === "result") resolve(data);
    else reject(new Refused(data.code, data.text, data.detail));
  }

  #died(why) {
    this.#end(this.#hasDied ? "dead" : "lost", why);
    if (this.#hasDied) {
      this.#why = why;
      return this.#tell("dead", { why });
    }
    this.#hasDied = true;
    this.#tell("restarted");
    this.start();
  }

  #end(code, why) {
    this.#worker.terminate();
    this.#isReady = false;
    const waiting = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const { reject } of waiting) reject(new Refused(code, why));
  }

  #tell(state, more = {}) {
    this.dispatchEvent(new CustomEvent("state", { detail: { ...more, state } }));
  }
}
