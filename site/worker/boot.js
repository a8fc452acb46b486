// Start Python with the library in it. Nothing here is of a browser: tests start it in Node.

import { forPython } from "./prefilter.js";

const LIBRARY = "/library";

/**
 * Return Pyodide and the bridge. `indexURL` is where the runtime lies, `library` promises the bytes of library.zip, `step` is told what
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
  python.unpackArchive(new Uint8Array(await library), "zip", { extractDir: LIBRARY });
  python.runPython(`import sys; sys.path.insert(0, "${LIBRARY}")`);
  step("rules");
  const bridge = python.pyimport("bridge");
  bridge.use_page_engine(forPython.build, forPython.scan);
  return { python, bridge };
}
