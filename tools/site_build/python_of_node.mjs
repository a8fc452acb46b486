// Python as the page has it, in Node: `start` for builds and tests. Inputs are copied into its memory, as Node has no Blob that Python reads.

import { readFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";

import { boot } from "../../site/worker/boot.js";
import { Session } from "../../site/worker/session.js";

/** Return Pyodide, the bridge, and `ask`, which answers with all messages of a request. */
export async function start({ runtime, archives, env }) {
  const { loadPyodide } = await import(pathToFileURL(path.join(runtime, "pyodide.mjs")).href);
  const steps = [];
  const started = await boot({ loadPyodide, indexURL: `${runtime}/`, archives: archives.map((each) => readFile(each)), step: (step) => steps.push(step), env });
  return { ...started, steps, ...asking(started) };
}

export function asking({ python, bridge }) {
  const heard = new Map();
  const session = new Session({
    bridge,
    heap: () => python._module.HEAPU8.length,
    post(message) {
      if (message.type === "fatal") throw new Error(message.text);
      const { messages, done } = heard.get(message.id) ?? { messages: [], done() {} };
      messages.push(message);
      if (["result", "error", "fatal"].includes(message.type)) done(messages);
    },
    ...mounting(python.FS),
  });
  const ask = (request) =>
    new Promise((done) => {
      heard.set(request.id, { messages: [], done });
      session.take({ v: 1, ...request });
    });
  return { session, ask };
}

function mounting(FS) {
  return {
    mount(folder, inputs) {
      FS.mkdirTree(folder);
      for (const { path: name, bytes, text } of inputs) {
        FS.mkdirTree(path.posix.dirname(`${folder}/${name}`));
        FS.writeFile(`${folder}/${name}`, bytes ?? text);
      }
    },
    unmount(folder) {
      FS.chdir("/");
      remove(FS, folder);
    },
  };
}

function remove(FS, place) {
  if (!FS.isDir(FS.stat(place).mode)) return FS.unlink(place);
  for (const name of FS.readdir(place).filter((name) => name !== "." && name !== "..")) remove(FS, `${place}/${name}`);
  FS.rmdir(place);
}
