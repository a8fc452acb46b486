// "Snapshot": who holds the card, and how it came to that.

import { choose, FileList } from "./files.js";
import { lang } from "./i18n.js";
import { ResultView } from "./result_view.js";
import { Working } from "./working.js";
import { Refused } from "./worker_client.js";
import { addZoom } from "./zoom.js";

const HOW = `torch.cuda.memory._record_memory_history()
...
torch.cuda.memory._dump_snapshot("rank0.pickle")`;

export class SnapshotView {
  constructor(section, client) {
    this.client = client;
    this.files = new FileList(section.querySelector(".files"), ["snapshot"], () => this.#run());
    this.working = section.querySelector(".working");
    const place = section.querySelector(".result");
    this.result = new ResultView(place, client);
    new MutationObserver(() => chartFirst(place)).observe(place, { childList: true });
    section.querySelector(".how").textContent = HOW;
    section.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
    section.querySelector("[data-act=files]").addEventListener("click", async () => this.drop(await choose({})));
  }

  drop(found) {
    if (found.length) this.files.add(found);
  }

  translate() {
    this.files.draw();
    return this.result.again();
  }

  async #run() {
    this.result.clear();
    if (!this.files.size) return;
    const command = `oomdoctor snapshot ${this.files.names.join(" ")}`;
    if (this.files.isTooLarge) return this.result.refuse(new Refused("too-large"), command);
    const working = new Working(this.working, this.client);
    try {
      const result = await this.client.ask("snapshot", { inputs: this.files.inputs, lang, redact: this.result.redact }, working.listeners);
      working.done();
      this.result.show(result);
    } catch (refused) {
      working.done();
      this.result.refuse(refused, command);
    }
  }
}

/** Whenever a report is drawn: its chart stands above what can be done with the report, and can be zoomed. */
function chartFirst(place) {
  const [chart, share] = [place.querySelector("figure"), place.querySelector(".share")];
  if (!chart) return;
  if (share) chart.after(share);
  addZoom(chart);
}
