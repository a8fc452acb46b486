// "Read a log": what was pasted, chosen or dropped goes to the worker, and its report comes back.

import { announce, el } from "./dom.js";
import { choose, FileList } from "./files.js";
import { lang, t } from "./i18n.js";
import { Refused } from "./worker_client.js";
import { ResultView } from "./result_view.js";
import { Working } from "./working.js";

const ROLES = ["log", "config", "series", "snapshot", "machine"];
const LONGEST_TEXT = 500_000; // what is longer becomes a file: a text field of this size makes a page slow
const PASTED = "oomdoctor.pasted"; // where tools/docs_build/paste.js leaves it
const EXAMPLE = `[rank0]: Traceback (most recent call last):
[rank0]:   File "/workspace/train.py", line 212, in <module>
[rank0]:     trainer.train()
[rank0]:   File "/usr/lib/python3/dist-packages/transformers/trainer.py", line 3675, in compute_loss
[rank0]:     outputs = model(**inputs)
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.64 GiB. GPU 0 has a total capacity of 23.64 GiB of which 1.97 GiB is free. Including non-PyTorch memory, this process has 21.66 GiB memory in use. Of the allocated memory 20.71 GiB is allocated by PyTorch, and 520.75 MiB is reserved by PyTorch but unallocated.
`;

export class LogView {
  constructor(section, client) {
    this.client = client;
    this.section = section;
    this.text = section.querySelector("textarea");
    this.files = new FileList(section.querySelector(".files"), ROLES, () => {});
    this.working = section.querySelector(".working");
    this.result = new ResultView(section.querySelector(".result"), client);
    const form = section.querySelector("form");
    form.addEventListener("submit", (event) => this.#submit(event));
    form.addEventListener("keydown", (event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && this.#submit(event));
    this.text.addEventListener("paste", (event) => this.#pasted(event));
    form.querySelector("[data-act=files]").addEventListener("click", async () => this.#add(await choose({})));
    form.querySelector("[data-act=folder]").addEventListener("click", async () => this.#add(await choose({ folder: true })));
    form.querySelector("[data-act=example]").addEventListener("click", () => this.#example());
    this.another = form.querySelector("[data-act=new]");
    this.another.addEventListener("click", () => {
      this.#begin();
      this.text.focus();
    });
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

  /** Files were dropped: they are read at once. Below an answer they begin another case; a button adds to the one that is there. */
  drop(found) {
    if (this.section.classList.contains("answered")) this.#begin();
    this.#add(found);
    this.#run();
  }

  translate() {
    this.files.draw();
    return this.result.again();
  }

  #submit(event) {
    event.preventDefault();
    this.#run();
  }

  /** Empty the form, and take the answer away. */
  #begin() {
    this.text.value = "";
    this.files.clear();
    this.result.clear();
    this.#answered(false);
  }

  /** Add files to what is there; the example is nobody's log, and goes. */
  #add(found) {
    if (found.length) this.#forgetExample();
    this.files.add(found);
  }

  #forgetExample() {
    if (this.text.value === EXAMPLE) this.text.value = "";
  }

  /** With an answer the form is small: the answer is what the reader came for. */
  #answered(isAnswered) {
    this.section.classList.toggle("answered", isAnswered);
    this.another.hidden = !isAnswered;
  }

  #pasted(event) {
    this.#forgetExample();
    const text = event.clipboardData.getData("text/plain");
    if (text.length <= LONGEST_TEXT) return;
    event.preventDefault();
    this.files.add([{ path: t("files.pasted"), file: new File([text], t("files.pasted")) }]);
  }

  #example() {
    this.text.value = EXAMPLE;
    this.files.clear();
    this.#run();
  }

  async #run() {
    const text = this.text.value.trim() ? this.text.value : null;
    if (!text && !this.files.size) {
      announce(t("log.nothing"));
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
