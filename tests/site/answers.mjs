// node answers.mjs SITE REQUESTS: starts the built page's Python in Node, asks all requests in their order, writes what came for each, and
// what it cost: {ready, heap, answers: [[message, ...], ...]}.

import { copyFile, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { gunzipSync } from "node:zlib";

import { start } from "../../tools/site_build/python_of_node.mjs";
import { loadRequests } from "../../tools/site_build/requests.mjs";

const [site, requests] = process.argv.slice(2);
const runtime = await mkdtemp(path.join(tmpdir(), "page-"));
try {
  for (const name of await readdir(path.join(site, "runtime"))) {
    const from = path.join(site, "runtime", name);
    if (name.endsWith(".gz")) await writeFile(path.join(runtime, name.slice(0, -3)), gunzipSync(await readFile(from)));
    else await copyFile(from, path.join(runtime, name));
  }
  const began = performance.now();
  const { python, ask } = await start({ runtime, archives: ["library", "packages"].map((name) => path.join(runtime, `${name}.zip.zst`)) });
  const ready = performance.now() - began;
  const answers = [];
  for (const request of await loadRequests(requests)) answers.push(await ask(request));
  process.stdout.write(JSON.stringify({ ready, heap: python._module.HEAPU8.length, answers }));
} finally {
  await rm(runtime, { recursive: true });
}
