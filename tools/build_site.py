"""Build the page: `python tools/build_site.py --out dist/site`. Needs node and npm, and an index of packages the first time.

What others made is fetched once into a cache and checked against site/lock.json; the bytecode is compiled in the very Python that the page
runs, and of its standard library only what is used is shipped. The same sources give the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from site_build.archives import packed, without_comments, zip_folder  # noqa: E402
from site_build.choices import choices  # noqa: E402
from site_build.downloads import Lock, fetch, read_lock, unpack  # noqa: E402
from site_build.library import PACKAGES, lay_out  # noqa: E402
from site_build.requests import all_requests, as_json  # noqa: E402

from oomdoctor import __version__  # noqa: E402
from oomdoctor.report.charts.stylesheet import stylesheet  # noqa: E402

SITE = ROOT / "site"
RUNTIME = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm")
SHELL = ("index.html", "app", "worker")
NOT_SHIPPED = (".py", ".pyc", ".md")
MOST_WIRE = 7_000_000
MOST_OWN = 1_750_000
MOST_SHELL = 60_000
"""Bytes as they are sent, gzip where a file is not packed: of everything, of what this project made, of its HTML, JavaScript and CSS."""
OWN = ("index.html", "app/", "worker/", "runtime/library.zip.zst", "choices.json", "report.css", "sw.js", "version.json")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--out", type=Path, help="the folder of the page; what is in it goes")
    wanted.add_argument("--fetch", action="store_true", help="only fetch what others made")
    parser.add_argument("--cache", type=Path, default=_cache(), help="where downloads are kept (default: the user's cache)")
    parser.add_argument("--work", type=Path, help="keep the work files in this folder")
    chosen = parser.parse_args()
    if chosen.fetch:
        for locked in read_lock(SITE).files:
            fetch(locked, chosen.cache)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return build(chosen.out, chosen.cache, chosen.work or Path(folder))


def build(out: Path, cache: Path, work: Path) -> int:
    """Build the page and print its sizes. Return 1 where a budget is exceeded."""
    lock = read_lock(SITE)
    runtime, requirements = _unpacked(lock, cache, work)
    _compile(runtime, requirements, work, lock)
    shutil.rmtree(out, ignore_errors=True)
    (out / "runtime").mkdir(parents=True)
    for name in RUNTIME:
        shutil.copyfile(runtime / name, out / "runtime" / name)
    info = json.loads((runtime / "pyodide-lock.json").read_text())["info"]
    _write(out / "runtime/pyodide-lock.json", json.dumps({"info": info, "packages": {}}).encode())
    _write(out / "runtime/python_stdlib.zip.gz", packed(zip_folder(work / "bytecode/stdlib")))
    _archives(runtime, work, out)
    _shell(out)
    _write(out / "choices.json", choices())
    _write(out / "report.css", stylesheet().encode())
    _write(out / "licenses.txt", licenses(lock, requirements).encode())
    _versions(out)
    return _budgets(out)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "oomdoctor-site"


def _unpacked(lock: Lock, cache: Path, work: Path) -> tuple[Path, Path]:
    """Return the folders of the runtime and of what the library requires."""
    runtime, requirements = work / "runtime", work / "requirements"
    for locked in lock.files:
        path = fetch(locked, cache)
        if locked.origin == "npm":
            runtime = unpack(path, runtime)
        else:
            unpack(path, requirements)
    return runtime, requirements


def _compile(runtime: Path, requirements: Path, work: Path, lock: Lock) -> None:
    """Compile the library and what it uses of the standard library, in the Python of the page."""
    sources, bytecode = work / "sources", work / "bytecode"
    for folder in (sources, bytecode):
        shutil.rmtree(folder, ignore_errors=True)
    lay_out(ROOT, requirements, sources)
    _write(work / "library.zip", zip_folder(sources))
    _write(work / "requests.json", as_json(ROOT, all_requests(ROOT)).encode())
    bytecode.mkdir(exist_ok=True)
    script = ROOT / "tools/site_build/compile.mjs"
    given = [runtime, work / "library.zip", work / "requests.json", bytecode, SITE / "keep.txt"]
    subprocess.run(["node", str(script), *map(str, given)], check=True)
    compiled_by = json.loads((bytecode / "python.json").read_text())["version"]
    if compiled_by != lock.python:
        raise SystemExit(f"the runtime is Python {compiled_by}, and {lock.python} is locked")
    for path in sources.rglob("*"):
        if path.is_file() and path.suffix != ".py":
            _write(bytecode / "library" / path.relative_to(sources), path.read_bytes())


def _archives(runtime: Path, work: Path, out: Path) -> None:
    """Write what is imported as Zstandard, packed by the Python of the page: the one that is here may not have it."""
    whole = work / "bytecode/library"
    for name in PACKAGES:
        (work / "bytecode/packages").mkdir(exist_ok=True)
        (whole / name).rename(work / "bytecode/packages" / name)
    plain = [work / f"{name}.zip" for name in ("library", "packages")]
    for path in plain:
        _write(path, zip_folder(work / "bytecode" / path.stem))
    subprocess.run(["node", str(ROOT / "tools/site_build/pack.mjs"), str(runtime), *map(str, plain)], check=True)
    for path in plain:
        shutil.copyfile(f"{path}.zst", out / "runtime" / f"{path.name}.zst")


def _shell(out: Path) -> None:
    """Copy the page itself, scripts and styles without their comments."""
    for name in SHELL:
        path = SITE / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            if file.is_file() and file.suffix not in NOT_SHIPPED:
                _write(out / file.relative_to(SITE), without_comments(file.name, file.read_text(encoding="utf-8")).encode())


def licenses(lock: Lock, requirements: Path) -> str:
    """Return whose work the page ships, under which licence, and where its source is."""
    lines = [f"oomdoctor {__version__}: Apache-2.0", f"Python {lock.python}: PSF-2.0, source at https://github.com/python/cpython"]
    lines += [f"{each.name} {each.version}: {each.licence}, source at {each.source}" for each in lock.files]
    texts = [(ROOT / "LICENSE", "oomdoctor")]
    texts += [
        (path, path.relative_to(requirements).parts[0]) for path in sorted(requirements.glob("*.dist-info/licenses/*")) if path.is_file()
    ]
    return "\n".join(lines) + "\n" + "".join(f"\n\n==== {name}: {path.name}\n\n{path.read_text()}" for path, name in texts)


def _versions(out: Path) -> None:
    """Write version.json and the service worker, which know every file by its hash."""
    files = {path.relative_to(out).as_posix(): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}
    table = {name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()} for name, data in files.items()}
    version = json.dumps({"version": __version__, "files": table}, indent=1, sort_keys=True).encode() + b"\n"
    _write(out / "version.json", version)
    hashes = {name: entry["sha256"] for name, entry in table.items()} | {"version.json": hashlib.sha256(version).hexdigest()}
    text = (SITE / "sw.js").read_text()
    text = text.replace('VERSION = "";', f'VERSION = "{__version__}-{hashlib.sha256(version).hexdigest()[:12]}";')
    _write(out / "sw.js", text.replace("FILES = {};", f"FILES = {json.dumps(hashes, indent=1, sort_keys=True)};").encode())


def _budgets(out: Path) -> int:
    """Print what is sent, and what of it is too much."""
    sizes = dict(_wire(out))
    own = {name: size for name, size in sizes.items() if name.startswith(OWN)}
    shell = {name: size for name, size in own.items() if name.endswith((".html", ".js", ".css"))}
    for name, size in sorted(sizes.items(), key=lambda item: -item[1])[:12]:
        print(f"{size:>10,}  {name}")
    exceeded = 0
    for what, sum_, most in (
        ("all", sum(sizes.values()), MOST_WIRE),
        ("our own", sum(own.values()), MOST_OWN),
        ("HTML, JavaScript and CSS of our own", sum(shell.values()), MOST_SHELL),
    ):
        print(f"{sum_:>10,}  {what} (at most {most:,})")
        exceeded += sum_ > most
    return int(exceeded > 0)


def _wire(out: Path) -> Iterator[tuple[str, int]]:
    for path in out.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            yield path.relative_to(out).as_posix(), len(data) if path.suffix in (".gz", ".zst") else len(gzip.compress(data, 9))


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
