// The page's worker: starts Python when the page says where the files lie, then answers its requests (PROTOCOL.md).

import { boot } from "./boot.js";
import { Session } from "./session.js";

const ARCHIVES = ["library.zip.zst", "packages.zip.zst"];
const STDLIB = "python_stdlib.zip";
const TOLD = ["pyodide.asm.wasm", `${STDLIB}.gz`, ...ARCHIVES];

let taken = null;

self.onmessage = async ({ data }) => {
  if (taken !== null) return (await taken)?.take(data);
  if (data?.type !== "boot") return;
  taken = start(data.base).catch((error) => {
    post({ v: 1, type: "fatal", text: String(error?.message ?? error) });
    return null;
  });
};

function post(message) {
  self.postMessage(message);
}

async function start(base) {
  const began = performance.now();
  const indexURL = new URL("runtime/", base).href;
  const [{ loadPyodide }, { files }] = await Promise.all([import(`${indexURL}pyodide.mjs`), json(`${base}version.json`)]);
  const told = { step: "runtime", done: 0, total: TOLD.reduce((sum, name) => sum + files[`runtime/${name}`].bytes, 0) };
  const tell = (change) => post({ v: 1, type: "boot-progress", ...Object.assign(told, change) });
  const count = (bytes) => tell({ done: told.done + bytes });
  const archives = ARCHIVES.map((name) => plain(indexURL + name, count).then((response) => response.arrayBuffer()));
  const stdlib = () => plain(`${indexURL}${STDLIB}.gz`, count);
  const { python, bridge } = await withFetch(stdlib, () => boot({ loadPyodide, indexURL, archives, step: (step) => tell({ step }) }));
  tell({ done: told.total });
  const heap = () => python._module.HEAPU8.length;
  post({ v: 1, type: "ready", version: bridge.__version__, python: python.runPython("import sys; sys.version.split()[0]"), heap: heap(), ms: performance.now() - began });
  const session = new Session({ bridge, post, heap, ...mounting(python.FS) });
  session.rest(() => bridge.warm());
  return session;
}

async function json(url) {
  return (await fetched(url)).json();
}

async function fetched(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: status ${response.status}`);
  return response;
}

/** Start Pyodide, which fetches its standard library by name: that one comes packed. Afterwards nothing is fetched any more. */
async function withFetch(stdlib, start) {
  const { fetch } = self;
  self.fetch = (url, options) => (String(url).endsWith(`/${STDLIB}`) ? stdlib() : fetch(url, options));
  const started = await start();
  // The policy of the page is what holds this; it is the second lock.
  for (const name of ["fetch", "XMLHttpRequest", "WebSocket", "EventSource"]) self[name] = undefined;
  return started;
}

/** Return a response with the bytes of a file, unpacked where it is gzip. Some hosts have unpacked it on the way: its first bytes tell. */
async function plain(url, count) {
  const reader = (await fetched(url)).body.getReader();
  let next = await reader.read();
  const is_packed = next.value?.[0] === 0x1f && next.value[1] === 0x8b;
  const bytes = new ReadableStream({
    async pull(controller) {
      if (next.done) return controller.close();
      count(next.value.length);
      controller.enqueue(next.value);
      next = await reader.read();
    },
  });
  return new Response(is_packed ? bytes.pipeThrough(new DecompressionStream("gzip")) : bytes);
}

/** Inputs as files that Python reads in place: nothing is copied in. */
function mounting(FS) {
  return {
    mount(folder, inputs) {
      FS.mkdirTree(folder);
      const blobs = inputs.map(({ path, file, text }) => ({ name: path, data: file ?? new Blob([text]) }));
      FS.mount(FS.filesystems.WORKERFS, { blobs }, folder);
    },
    unmount(folder) {
      FS.chdir("/");
      FS.unmount(folder);
      FS.rmdir(folder);
    },
  };
}
