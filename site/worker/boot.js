// Start Python with the library in it. Nothing here is of a browser: tests start it in Node.

import { forPython } from "./prefilter.js";

const ARCHIVE = "/tmp/archive";
// Zstandard, as no browser unpacks anything that is a third smaller than gzip; a build that is under way has the bare zip. Piece by piece, as
// memory that Python once took it keeps; file by file, as extractall takes three times as long.
const UNPACK = `
import os, shutil, sys, zipfile
from compression import zstd
def unpack(path, target):
    plain = path + ".zip"
    with open(path, "rb") as packed:
        is_plain = packed.read(2) == b"PK"
    if not is_plain:
        with zstd.open(path) as packed, open(plain, "wb") as file:
            shutil.copyfileobj(packed, file, 1 << 20)
        os.unlink(path)
    with zipfile.ZipFile(path if is_plain else plain) as archive:
        for folder in sorted({os.path.dirname(name) for name in archive.namelist()}):
            os.makedirs(os.path.join(target, folder), exist_ok=True)
        for name in archive.namelist():
            with open(os.path.join(target, name), "wb", 0) as file:
                file.write(archive.read(name))
    os.unlink(path if is_plain else plain)
sys.path.insert(0, "/library")
`;

/**
 * Return Pyodide and the bridge. `indexURL` is where the runtime lies, `archives` promise the bytes of what is imported, `step` is told what
 * is done next, `env` are variables of Python.
 */
export async function boot({ loadPyodide, indexURL, archives, step, env = {} }) {
  for (const each of archives) each.catch(() => {}); // told below, once the runtime is there
  const python = await loadPyodide({
    indexURL,
    packageBaseUrl: indexURL,
    env: { HOME: "/home", PYTHONHASHSEED: "0", ...env },
    stdout: () => {},
    stderr: () => {},
  });
  step("library");
  python.runPython(UNPACK);
  for (const each of archives) {
    python.FS.writeFile(ARCHIVE, new Uint8Array(await each));
    python.runPython(`unpack("${ARCHIVE}", "/library")`);
  }
  step("rules");
  const bridge = python.pyimport("bridge");
  bridge.use_page_engine(forPython.build, forPython.scan);
  return { python, bridge };
}
