// node pack.mjs RUNTIME FILE...: packs files with Zstandard, each into FILE.zst.

import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [runtime, ...files] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(path.join(runtime, "pyodide.mjs")).href);
const python = await loadPyodide({ indexURL: `${runtime}/` });
for (const file of files) {
  python.FS.writeFile("/plain", await readFile(file));
  python.runPython(`
from compression import zstd
with open("/plain", "rb") as plain, open("/packed", "wb") as packed:
    packed.write(zstd.compress(plain.read(), level=22))
`);
  await writeFile(`${file}.zst`, python.FS.readFile("/packed"));
}
