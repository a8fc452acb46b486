// Start Python with the library in it. Nothing here is of a browser: tests start it in Node.

import { forPython } from "./prefilter.js";

const ARCHIVE = "/tmp/library";
// Zstandard, as no browser unpacks anything that is a third smaller than gzip; a build that is under way has the bare zip.
const UNPACK = `
import io, os, sys, zipfile
from compression import zstd
with open("${ARCHIVE}", "rb") as file:
    data = file.read()
os.unlink("${ARCHIVE}")
with zipfile.ZipFile(io.BytesIO(data if data.startswith(b"PK") else zstd.decompress(data))) as archive:
    archive.extractall("/library")
sys.path.insert(0, "/library")
del data, file, archive
`;

/**
 * Return Pyodide and the bridge. `indexURL` is where the runtime lies, `library` promises the bytes of its archive, `step` is told what
 * is done next, `env` are variables of Python.
 */
export async function boot({ loadPyodide, indexURL, library, step, env = {} }) {
  library.catch(() => {}); // told below, once the runtime is there
  const python = await loadPyodide({
    indexURL,
    packageBaseUrl: indexURL,
    env: { HOME: "/home", PYTHONHASHSEED: "0", ...env },
    stdout: () => {},
    stderr: () => {},
  });
  step("library");
  python.FS.writeFile(ARCHIVE, new Uint8Array(await library));
  python.runPython(UNPACK);
  step("rules");
  const bridge = python.pyimport("bridge");
  bridge.use_page_engine(forPython.build, forPython.scan);
  return { python, bridge };
}
