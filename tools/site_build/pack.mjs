// node pack.mjs RUNTIME PLAIN PACKED: packs a file with Zstandard.

import { readFile, writeFile } from "node:fs/promises";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [runtime, plain, packed] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(path.join(runtime, "pyodide.mjs")).href);
const python = await loadPyodide({ indexURL: `${runtime}/` });
python.FS.writeFile("/plain", await readFile(plain));
python.runPython(`
from compression import zstd
with open("/plain", "rb") as plain, open("/packed", "wb") as packed:
    packed.write(zstd.compress(plain.read(), level=19))
`);
await writeFile(packed, python.FS.readFile("/packed"));
