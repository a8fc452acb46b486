// "Read a log": what was pasted, chosen or dropped goes to the worker, and its report comes back.

import { unpacked } from "./archives.js";
import { arrange } from "./arrange.js";
import { announce, el } from "./dom.js";
import { choose, FileList, viewOf } from "./files.js";
import { lang, t } from "./i18n.js";
import { knownRun } from "./known_run.js";
import { Refused } from "./worker_client.js";
import { ResultView } from "./result_view.js";
import { Working } from "./working.js";

const ROLES = ["log", "config", "series", "snapshot", "machine"];
const LONGEST_TEXT = 500_000; // what is longer becomes a file: a text field of this size makes a page slow
const MOST_CASES = 6; // the worker keeps eight results
const PASTED = "oomdoctor.pasted"; // where tools/docs_build/paste.js leaves it
const EXAMPLE = `[rank0]: Traceback (most recent call last):
[rank0]:   File "/workspace/train.py", line 212, in <module>
[rank0]:     trainer.train()
[rank0]:   File "/usr/lib/python3/dist-packages/transformers/trainer.py", line 3675, in compute_loss
[rank0]:     outputs = model(**inputs)
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.97 GiB is free. Including non-PyTorch memory, this process has 21.66 GiB memory in use. Of the allocated memory 20.71 GiB is allocated by PyTorch, and 520.75 MiB is reserved by PyTorch but unallocated.
`;

export class LogView {
  #earlier = []; // cases that were answered before: `{name, text, files, result, lang}`
  cards = [];

  /** `bring` takes files to the view that they belong to, `tryRun` a run to "Will it fit?". */
  constructor(section, client, { files: bring, run: tryRun }) {
    Object.assign(this, { client, section, tryRun });
    this.text = section.querySelector("textarea");
    this.files = new FileList(section.querySelector(".files"), ROLES, () => {});
    this.working = section.querySelector(".working");
    this.bar = section.querySelector(".bar");
    this.cases = this.bar.querySelector("select");
    this.result = new ResultView(section.querySelector(".result"), client, (report, result) => this.#arrange(report, result));
    const form = section.querySelector("form");
    form.addEventListener("submit", (event) => this.#submit(event));
    form.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && this.#submit(event));
    this.text.addEventListener("paste", (event) => this.#pasted(event));
    form.querySelector("[data-act=files]").addEventListener("click", () => this.#choose({}));
    form.querySelector("[data-act=folder]").addEventListener("click", () => this.#choose({ folder: true }));
    form.querySelector("[data-act=example]").addEventListener("click", () => this.#example());
    this.bar.querySelector("[data-act=add]").addEventListener("click", () => this.#more());
    this.edit = this.bar.querySelector("[data-act=edit]");
    this.edit.addEventListener("click", () => this.#editing(!section.classList.contains("editing")));
    this.cases.addEventListener("change", () => this.#restore(Number(this.cases.value)));
    this.bar.querySelector("[data-act=new]").addEventListener("click", () => {
      this.#begin();
      this.text.focus();
    });
    this.bring = bring;
  }

  /** A text that was pasted in the documents, which lie beside this page, is read at once; it is taken out of where it was left. */
  show() {
    let pasted = null;
    try {
      pasted = sessionStorage.getItem(PASTED);
      sessionStorage.removeItem(PASTED);
    } catch {
      // No storage: nothing was left there.
    }
    if (!pasted?.trim()) return;
    this.#begin();
    this.text.value = pasted;
    this.#run();
  }

  /** Whether there is a log that configs can belong to. */
  get hasCase() {
    return Boolean(this.files.size || (this.text.value.trim() && this.text.value !== EXAMPLE));
  }

  /** Files were dropped: they are read at once. Below an answer they begin another case; configs belong to the one that is there. */
  drop(found) {
    const isAdded = this.hasCase && viewOf(found) === "fit";
    if (this.section.classList.contains("answered") && !isAdded) this.#begin();
    this.#add(found);
    this.#run();
  }

  translate() {
    this.files.draw();
    this.#tellInput();
    return this.result.again();
  }

  #submit(event) {
    event.preventDefault();
    this.#run();
  }

  /** Empty the form, and take the answer away; it stays among the cases. */
  #begin() {
    this.#park();
    this.text.value = "";
    this.files.clear();
    this.result.clear();
    this.#answered(false);
  }

  /** Keep the case that is answered, but for the example, which is nobody's. */
  #park() {
    const result = this.section.classList.contains("answered") && this.text.value !== EXAMPLE ? this.result.take() : null;
    if (!result) return;
    this.#earlier.unshift({ name: this.#name(), text: this.text.value, files: this.files.all, result, lang });
    for (const { result: { id } } of this.#earlier.splice(MOST_CASES)) this.client.forget(id);
  }

  /** Show a case of before, in the language of now. */
  #restore(number) {
    const [chosen] = this.#earlier.splice(number, 1);
    this.#begin();
    this.text.value = chosen.text;
    this.files.all = chosen.files;
    if (chosen.lang !== lang) return this.#run();
    this.#answered(true);
    this.result.show(chosen.result);
  }

  /** Files were chosen; alone in the form they may belong to another view. */
  async #choose(what) {
    const found = await choose(what);
    if (!found.length) return;
    const files = await unpacked(found);
    if (!this.files.size && !this.text.value.trim() && viewOf(files) !== "log") return this.bring(files);
    this.#add(files);
  }

  /** Add to the case that is answered, and read it anew. */
  async #more() {
    const found = await choose({});
    if (!found.length) return;
    this.#add(await unpacked(found));
    this.#run();
  }

  /** Add files to what is there; the example is nobody's log, and goes. */
  #add(found) {
    this.#forgetExample();
    this.files.add(found);
  }

  #forgetExample() {
    if (this.text.value === EXAMPLE) this.text.value = "";
  }

  /** With an answer the form is folded: the answer is what the reader came for. */
  #answered(isAnswered) {
    this.section.classList.toggle("answered", isAnswered);
    this.#editing(false);
    this.#tellInput();
  }

  #editing(isOpen) {
    this.section.classList.toggle("editing", isOpen);
    this.edit.setAttribute("aria-expanded", String(isOpen));
  }

  /** Say in the bar what was read. */
  #tellInput() {
    this.bar.querySelector(".read").textContent = this.#name();
    const name = (text, number) => el("option", { value: number }, text);
    this.cases.hidden = !this.#earlier.length;
    this.cases.replaceChildren(name(t("log.cases"), ""), ...this.#earlier.map((each, number) => name(each.name, number)));
  }

  #name() {
    const { names } = this.files;
    const pasted = this.text.value.trim() ? [this.text.value === EXAMPLE ? t("log.is.example") : t("log.is.pasted")] : [];
    const [first = "", second, ...more] = [...pasted, ...names];
    return [first, second, more.length ? `+${more.length}` : null].filter(Boolean).join(" · ");
  }

  /** The layout of the report, and the way to "Will it fit?" where something of the run is known. */
  #arrange(report, { data }) {
    const run = data.verdict.memory_failure === "no" ? {} : knownRun(data, this.cards);
    const go = () => this.tryRun(run, this.files.all.filter(({ role }) => role === "config"));
    const more = Object.keys(run).length ? [el("p", {}, el("button", { type: "button", class: "try", click: go }, t("log.try")))] : [];
    arrange(report, { more, addConfig: () => this.#more() });
  }

  #pasted(event) {
    const isWhole = !this.text.value.trim() || this.text.value === EXAMPLE || (this.text.selectionStart === 0 && this.text.selectionEnd === this.text.value.length);
    this.#forgetExample();
    const text = event.clipboardData.getData("text/plain");
    const isLong = text.length > LONGEST_TEXT;
    if (!isLong && !isWhole) return;
    event.preventDefault();
    if (isLong) this.files.add([{ path: t("files.pasted"), file: new File([text], t("files.pasted")) }]);
    else this.text.value = text;
    if (isWhole) this.#run();
  }

  #example() {
    this.#begin();
    this.text.value = EXAMPLE;
    this.#run();
  }

  async #run() {
    const text = this.text.value.trim() ? this.text.value : null;
    if (!text && !this.files.size) {
      announce(t("log.nothing"));
      this.#answered(false);
      return this.result.refuse(new Refused("usage", t("log.nothing")));
    }
    const command = `oomdoctor diagnose ${this.files.names.map(quoted).join(" ")}`;
    if (this.files.isTooLarge) return this.result.refuse(new Refused("too-large"), command);
    this.result.clear();
    const working = new Working(this.working, this.client);
    const asked = { lang, redact: this.result.redact, ...this.#question(text) };
    try {
      const result = await this.client.ask("diagnose", asked, working.listeners);
      working.done();
      this.#answered(true);
      this.result.show(result);
    } catch (refused) {
      working.done();
      this.#answered(false);
      this.result.refuse(refused, command);
    }
  }

  /** A text alone is a pasted log; beside files that are logs or configs it is one more input. */
  #question(text) {
    if (!this.files.size) return { text };
    const pasted = text ? [{ path: this.files.free(t("files.pasted")), text, role: "log" }] : [];
    return { inputs: [...pasted, ...this.files.inputs] };
  }
}

function quoted(name) {
  return /^[\w./-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
}
