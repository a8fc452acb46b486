// node compile.mjs RUNTIME LIBRARY REQUESTS OUT KEEP: asks the library all requests in Pyodide, then compiles what was loaded of the standard
// library (and what KEEP names) and all of the library. Fails where a request is not answered.

import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

import { start } from "./python_of_node.mjs";
import { loadRequests } from "./requests.mjs";

try {
  await main(...process.argv.slice(2));
} catch (error) {
  // The stack would show a line of a megabyte.
  console.error(String(error.message));
  process.exit(1);
}

async function main(runtime, library, requests, out, keep) {
  const { python, bridge, ask } = await start({ runtime, archives: [library], env: { PYTHONNODEBUGRANGES: "1" } }); // columns are a third of bytecode

  for (const request of await loadRequests(requests)) {
    const last = (await ask(request)).at(-1);
    if (last.type !== "result") throw new Error(`${request.id}: ${last.code} ${last.text}\n${last.detail}`);
  }

  const here = path.dirname(fileURLToPath(import.meta.url));
  python.FS.writeFile("/tmp/in_pyodide.py", await readFile(path.join(here, "in_pyodide.py")));
  python.FS.mkdirTree("/out");
  python.FS.mount(python.FS.filesystems.NODEFS, { root: out }, "/out");
  const kept = (await readFile(keep, "utf8")).split("\n").map((line) => line.replace(/#.*/, "").trim()).filter(Boolean);
  python.globals.set("kept", python.toPy(kept));
  await python.runPythonAsync(`
import sys, zipfile
sys.path.insert(0, "/tmp")
from in_pyodide import compile_tree, loaded_from
archive = next(path for path in sys.path if path.endswith(".zip"))
names = {name for name in loaded_from(archive)} | set(kept)
names |= {name.rpartition(".")[0] for name in names} - {""}
with zipfile.ZipFile(archive) as whole:
    files = {name for name in whole.namelist() if name.endswith(".py")}
    wanted = {path for name in names for path in (name.replace(".", "/") + ".py", name.replace(".", "/") + "/__init__.py") if path in files}
    missing = [name for name in kept if not {name.replace(".", "/") + ".py", name.replace(".", "/") + "/__init__.py"} & wanted]
    assert not missing, f"keep.txt names what the standard library does not have: {missing}"
    whole.extractall("/tmp/stdlib", sorted(wanted))
compile_tree("/tmp/stdlib", "/out/stdlib")
compile_tree("/library", "/out/library")
`);
  await writeFile(path.join(out, "python.json"), JSON.stringify({ version: python.runPython("sys.version.split()[0]") }));
}
