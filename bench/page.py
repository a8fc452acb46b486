"""The page in a headless Chromium: the same answers as the command, and what it costs.

    python bench/page.py measure --site dist/site                     start, first diagnosis, estimate, logs of 20 and 200 MB
    python bench/page.py same --site dist/site FOLDER --every 10      JSON of the page and of the library for logs in a folder
    python bench/page.py sizes --site dist/site runs.jsonl            answers to questions as of `estimate --spec`

Needs playwright from the index and a Chromium of the system (CHROMIUM, default the first in PATH). Nothing but the loopback address is
reached: requests elsewhere are ended, and counted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from oomdoctor import __version__, diagnose
from oomdoctor.api.inputs import unread_lines
from oomdoctor.cli.web.page_server import serve_page
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording
from oomdoctor.setups.spec_lines import answer_lines

LOGS = Path(__file__).with_name("logs.py")
IDLE_MS = 2000
"""How long a reader of the page looks at it before the first question, at least."""
FLAGS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]
CLIENT = """
window.client = async (base) => {
  const began = performance.now();
  window.longest = 0;
  const note = (list) => { for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration); };
  new PerformanceObserver(note).observe({ type: "longtask" });
  const blob = new Blob([`import ${JSON.stringify(base + "worker/worker.js")};`], { type: "text/javascript" });
  const worker = new Worker(URL.createObjectURL(blob), { type: "module" });
  const waiting = new Map();
  const ready = new Promise((resolve, reject) => {
    worker.onerror = (event) => reject(new Error(event.message || "the worker did not start"));
    worker.onmessage = ({ data }) => {
      if (data.type === "ready") resolve({ ...data, seen: performance.now() - began });
      if (data.type === "fatal") { reject(new Error(data.text)); for (const [, done] of waiting) done(data); }
      if (["result", "error"].includes(data.type)) { waiting.get(data.id)(data); waiting.delete(data.id); }
    };
  });
  worker.postMessage({ v: 1, type: "boot", base });
  let count = 0;
  document.body.innerHTML = "<input type=file id=file>";
  window.ofFile = (path) => window.ask({ type: "diagnose", inputs: [{ path, role: "log", file: file.files[0] }] });
  window.asJson = async (path) => {
    const answer = await window.ofFile(path);
    return answer.type === "result" ? window.ask({ type: "render", of: answer.id, form: "json" }) : answer;
  };
  window.ask = (request) => new Promise((done) => {
    const id = ++count, asked = performance.now();
    waiting.set(id, (answer) => done({ ...answer, seen: performance.now() - asked }));
    worker.postMessage({ v: 1, id, ...request });
  });
  return ready;
};
"""


@contextmanager
def page_of(site: str, profile: str | None = None) -> Iterator[tuple[Any, str, list[str]]]:
    """Open a page with the policy of the site; yield it, the address, and the hosts that anything was asked of."""
    from playwright.sync_api import sync_playwright

    hosts: list[str] = []
    with serve_page(site, 0) as server, sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_address[1]}/"
        chromium = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        context = playwright.chromium.launch_persistent_context(profile or folder, executable_path=chromium, args=FLAGS, headless=True)
        context.on("request", lambda request: hosts.append(request.url.split("/")[2] if "://" in request.url else ""))
        context.route(lambda url: "://" in url and not url.startswith((base, "blob:")), lambda route: route.abort())
        page = context.new_page()
        # A page with the policy and nothing else of the shell, so that what is measured is the machinery.
        page.goto(f"{base}licenses.txt")
        page.evaluate(f"() => {{ {CLIENT} }}")
        yield page, base, hosts
        context.close()
        server.shutdown()


def measure(site: str, runs: int) -> None:
    """Print the figures, each the median of its runs."""
    figures: dict[str, list[float]] = {}
    oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.50 GiB."
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as profile:
            for start in ("cold", "warm"):
                with page_of(site, profile) as (page, base, hosts):
                    before = _renderer_seconds()
                    ready = page.evaluate("(base) => window.client(base)", base)
                    _note(figures, f"ready, {start} (ms)", ready["seen"])
                    _note(figures, f"the same, {start} (ms of processors)", 1000 * (_renderer_seconds() - before))
                    first = page.evaluate("(text) => window.ask({type: 'diagnose', text})", oom)
                    _note(figures, f"first diagnosis, {start} (ms)", first["seen"])
                    if others := {host for host in hosts if host} - {base.split("/")[2]}:
                        raise SystemExit(f"something was asked of {others}")
            for wait, when in ((0, "at once"), (IDLE_MS, "after a while")):
                _first_estimates(figures, site, wait, when)
            _once_started(figures, site)
    for name, values in figures.items():
        print(f"{name:52} {statistics.median(values):10.1f}   ({min(values):.1f} to {max(values):.1f}, {len(values)})")


def _first_estimates(figures: dict[str, list[float]], site: str, wait: int, when: str) -> None:
    """Ask the first estimates, the first of them so many milliseconds after the page is ready."""
    question = {"model": "Qwen2.5-7B", "gpu": "24GB", "settings": {"finetuning": "lora", "micro_batch": 2, "sequence_length": 4096}}
    with page_of(site) as (page, base, _):
        page.evaluate("(base) => window.client(base)", base)
        page.wait_for_timeout(wait)
        for name in (f"first estimate, asked {when}", "an estimate after that"):
            before = _renderer_seconds()
            answer = page.evaluate("(question) => window.ask({type: 'estimate', question})", question)
            _note(figures, f"{name} (ms)", answer["seen"])
            _note(figures, f"{name} (ms of processors)", 1000 * (_renderer_seconds() - before))


def _once_started(figures: dict[str, list[float]], site: str) -> None:
    with page_of(site) as (page, base, _), tempfile.TemporaryDirectory() as folder:
        page.evaluate("(base) => window.client(base)", base)
        for megabytes in (1, 20, 200):
            path = _log(Path(folder), megabytes)
            page.set_input_files("#file", path)
            before = _renderer_seconds()
            answer = page.evaluate("window.ofFile('train.log')")
            if answer["type"] != "result":
                raise SystemExit(f"{megabytes} MB: {answer}")
            _note(figures, f"{megabytes} MB log (s)", answer["seen"] / 1000)
            _note(figures, f"the same, {megabytes} MB (s of processors)", _renderer_seconds() - before)
        _note(figures, "Python's heap afterwards (MiB)", answer["heap"] / (1 << 20))
        _note(figures, "fullest renderer process (MiB)", _renderer_peak())
        _note(figures, "longest task on the main thread (ms; 0: none over 50)", page.evaluate("window.longest"))


def _log(folder: Path, megabytes: int) -> str:
    """Return a log of a size: made by bench/logs.py."""
    path = folder / f"{megabytes}.log"
    subprocess.run([sys.executable, str(LOGS), "--size", f"{megabytes}MiB", "--output", str(path)], check=True)
    return str(path)


def _renderers() -> Iterator[Path]:
    """Yield the renderers that were started from here; other programs on the machine may have their own."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[process.name] = (process / "stat").read_text().rpartition(")")[2].split()[1]
    for name in parents:
        above = name
        while above in parents and above != str(os.getpid()):
            above = parents[above]
        with suppress(OSError):
            if above == str(os.getpid()) and b"--type=renderer" in Path(f"/proc/{name}/cmdline").read_bytes():
                yield Path(f"/proc/{name}")


def _renderer_peak() -> float:
    """Return the largest memory that a renderer has had, in MiB."""
    lines = (line for process in _renderers() for line in (process / "status").read_text().splitlines())
    return max((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), default=0) / 1024


def _renderer_seconds() -> float:
    """Return the seconds that processors gave to the renderers: what does not hang on what else the machine does."""
    fields = ((process / "stat").read_text().rpartition(")")[2].split() for process in _renderers())
    return sum(int(field[11]) + int(field[12]) for field in fields) / os.sysconf("SC_CLK_TCK")


def _note(figures: dict[str, list[float]], name: str, value: float) -> None:
    figures.setdefault(name, []).append(value)


def same(site: str, folder: Path, pattern: str, every: int) -> int:
    """Diagnose logs in the page and by the library; print which differ. Return 1 where one does."""
    files = [path for path in sorted(folder.rglob(pattern)) if path.is_file()]
    differing, compared, began = 0, 0, time.monotonic()
    with page_of(site) as (page, base, hosts):
        page.evaluate("(base) => window.client(base)", base)
        for path in files[::every]:
            page.set_input_files("#file", str(path))
            answer = page.evaluate("(path) => window.asJson(path)", path.name)
            here = _native(path)
            compared += 1
            there = json.loads(answer["text"]) if answer["type"] == "result" else None
            if there != here or (there is None and answer["code"] != "unreadable"):
                differing += 1
                print(f"differs: {path}: {answer.get('code') or _difference(there, here)}")
        asked = sorted({host for host in hosts if host})
        print(f"{compared} of {len(files)} logs, {differing} differ; {time.monotonic() - began:.0f} s; asked of {asked}")
    return int(differing > 0)


def _native(path: Path) -> dict[str, Any] | None:
    """Return what the library says here, in the folder of the log; None where nothing could be read."""
    before = os.getcwd()
    os.chdir(path.parent)
    try:
        diagnosis = diagnose([path.name])
        if unread_lines(diagnosis):
            return None
        return json.loads(json_text(convert_diagnosis(diagnosis, Wording("en"), __version__), redact=True))
    finally:
        os.chdir(before)


def _difference(there: Any, here: Any, at: str = "") -> str:
    if isinstance(there, dict) and isinstance(here, dict):
        keys = [key for key in {**there, **here} if there.get(key) != here.get(key)]
        return _difference(there.get(keys[0]), here.get(keys[0]), f"{at}.{keys[0]}") if keys else at
    if isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        number = next((number for number, (one, other) in enumerate(zip(there, here)) if one != other), 0)
        return _difference(there[number], here[number], f"{at}[{number}]")
    return f"{at}: {json.dumps(there)[:200]} in the page, {json.dumps(here)[:200]} here"


def sizes(site: str, runs: Path) -> int:
    """Answer questions in the page and here; return 1 where an answer differs."""
    lines = [line for line in runs.read_text().splitlines() if line.strip()]
    with page_of(site) as (page, base, _):
        page.evaluate("(base) => window.client(base)", base)
        answer = page.evaluate("(lines) => window.ask({type: 'answer_specs', lines})", lines)
    here = [json.loads(line) for line in answer_lines(line.encode() for line in lines)]
    differing = [number for number, (there, own) in enumerate(zip(answer["data"], here, strict=True)) if there != own]
    refused = sum(bool(own.get("refused")) for own in here)
    print(f"{len(here)} questions, {refused} refused; {len(differing)} answers differ {differing}")
    return int(bool(differing))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["measure", "same", "sizes"])
    parser.add_argument("place", nargs="?", type=Path, help="the folder of logs, or the file of questions")
    parser.add_argument("--site", default="dist/site")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--every", type=int, default=1, help="only every n-th log")
    parser.add_argument("--names", default="*.log", help="a pattern of the names of logs")
    chosen = parser.parse_intermixed_args()
    if chosen.what == "measure":
        measure(chosen.site, chosen.runs)
        return 0
    if chosen.what == "same":
        return same(chosen.site, chosen.place, chosen.names, chosen.every)
    return sizes(chosen.site, chosen.place)


if __name__ == "__main__":
    sys.exit(main())
