// Asks the search of the documents, as their pages do: node docs_search.mjs FOLDER < queries.json; prints the first pages of each query.

import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { runInThisContext } from "node:vm";

const [SETUP, READY, QUERY, RESULT] = [0, 1, 2, 3];
const folder = process.argv[2];
const workers = join(folder, "assets/javascripts/workers");
const [script] = (await readdir(workers)).filter((name) => /^search\..*\.js$/.test(name));

let answered;
globalThis.self = { postMessage: (message) => answered(message) };
runInThisContext(await readFile(join(workers, script), "utf-8"));

function ask(type, data, wanted) {
  return new Promise((resolve, reject) => {
    answered = (message) => (message.type === wanted ? resolve(message.data) : reject(new Error(`message ${message.type}`)));
    globalThis.self.onmessage({ data: { type, data } });
  });
}

const index = JSON.parse(await readFile(join(folder, "search.json"), "utf-8"));
await ask(SETUP, index, READY);
const queries = JSON.parse(await new Response(process.stdin).text());
const found = {};
for (const query of queries) {
  const result = await ask(QUERY, { input: query }, RESULT);
  found[query] = result.items.slice(0, 3).map((item) => index.items[item.id].location);
}
process.stdout.write(JSON.stringify(found));
