#!/usr/bin/env python3
"""How other tools answer the project's own situations: did memory fail, and which memory?

    python bench/other_tools.py                           # oomdoctor, grep, and accelerate where it is installed, into docs/benchmark.md
    python bench/other_tools.py --only grep               # one of them, printed
    python bench/other_tools.py -- my-tool --json '{}'    # any command; {} is the folder with the logs of one run

A command answers by the last line of its output, a JSON object with `memory_failure` (yes, no or possible) and, where it knows,
`kind` (one of KINDS); where it prints no such line, by its exit status: 1 is a failure of memory, 0 is none.

The situations are those of tests/situations and fixtures/cases: they were written for this project and are no sample of what runs meet, so
its own row shows that it does what it was built for, and the others how far a plain test carries.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

import yaml

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from situation_table import rows  # noqa: E402 - the table stands beside the tests

REPORT = ROOT / "docs" / "benchmark.md"
BEGIN, END = "<!-- bench/other_tools.py writes from here -->", "<!-- to here -->"
KINDS = ("device-oom", "masked-device-oom", "host-oom", "shm-oom")
_LOGS = (".log", ".txt", ".out", ".err")
_SECONDS = 60


class Situation(NamedTuple):
    """The logs of one run in a folder, and what is right."""

    folder: Path
    right: frozenset[str]
    kind: str | None


class Told(NamedTuple):
    """What a tool says."""

    memory_failure: str
    kind: str | None = None


class Score(NamedTuple):
    """How often a tool is right."""

    right: int
    asked: int
    missed: int
    """Failures of memory that it calls none."""
    failures: int
    accused: int
    """Healthy runs, and other failures, that it calls a failure of memory."""
    others: int
    kinds: int
    """Failures for which it also names the correct memory."""
    known_kinds: int


Tool = Callable[[Path], Told]


def situations(folder: Path) -> Iterator[Situation]:
    """Yield all of them; those of the table are written below `folder`."""
    for number, (_, row) in enumerate(rows()):
        place = folder / f"{number:03}"
        for name, text in (row.get("files") or {"train.log": row["log"]}).items():
            if name not in row.get("config", []):
                (place / name).parent.mkdir(parents=True, exist_ok=True)
                (place / name).write_text(text, encoding="utf-8")
        yield Situation(place, frozenset(map(str, row["verdict"])), None)
    for path in sorted((ROOT / "fixtures/cases").glob("*/expect.yaml")):
        expect = yaml.safe_load(path.read_text(encoding="utf-8"))
        place = folder / path.parent.name
        place.mkdir()
        for log in path.parent.rglob("*"):
            if log.is_file() and log.suffix in _LOGS:
                (place / log.name).write_bytes(log.read_bytes())
        yield Situation(place, frozenset([str(expect["memory_failure"])]), expect["kind"] if expect["memory_failure"] != "no" else None)


def score(tool: Tool, asked: Sequence[Situation]) -> Score:
    """Return how often a tool is right. A "possible" is right where it is right, and neither misses a failure nor accuses."""
    pairs = [(each, tool(each.folder)) for each in asked]
    failures = [(each, told) for each, told in pairs if each.right == {"yes"}]
    others = [told for each, told in pairs if each.right == {"no"}]
    kinds = [(each, told) for each, told in failures if each.kind is not None]
    return Score(
        right=sum(told.memory_failure in each.right for each, told in pairs),
        asked=len(pairs),
        missed=sum(told.memory_failure == "no" for _, told in failures),
        failures=len(failures),
        accused=sum(told.memory_failure == "yes" for told in others),
        others=len(others),
        kinds=sum(told.memory_failure == "yes" and told.kind == each.kind for each, told in kinds),
        known_kinds=len(kinds),
    )


def by_oomdoctor(folder: Path) -> Told:
    """Ask this project."""
    import oomdoctor

    verdict = oomdoctor.diagnose(folder).case.verdict
    return Told(verdict.memory_failure, verdict.kind.value)


def by_grep(folder: Path) -> Told:
    """Look for the words that people look for."""
    done = subprocess.run(["grep", "-rqiE", r"out of memory|\boom\b|OutOfMemory|oom-kill", str(folder)], check=False)
    return Told("yes" if done.returncode == 0 else "no")


def by_accelerate(folder: Path) -> Told:
    """Ask the test by which accelerate lowers the batch size: whether an exception with this text is a lack of memory."""
    should_reduce_batch_size = import_module("accelerate.utils.memory").should_reduce_batch_size
    texts = (path.read_text(encoding="utf-8", errors="replace") for path in folder.rglob("*") if path.is_file())
    return Told("yes" if any(should_reduce_batch_size(RuntimeError(line)) for text in texts for line in text.splitlines()) else "no")


def by_command(words: Sequence[str], folder: Path) -> Told:
    """Ask any command."""
    done = subprocess.run(
        [word.replace("{}", str(folder)) for word in words], capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    last = (done.stdout.strip().splitlines() or [""])[-1]
    try:
        told = json.loads(last)
        return Told(str(told["memory_failure"]), told.get("kind"))
    except (ValueError, KeyError, TypeError):
        return Told("yes" if done.returncode == 1 else "no")


TOOLS: dict[str, Tool] = {"oomdoctor": by_oomdoctor, "grep": by_grep, "accelerate": by_accelerate}
_ABOUT = {
    "grep": r"`grep -rqiE 'out of memory\|\boom\b\|OutOfMemory\|oom-kill'`",
    "accelerate": "`should_reduce_batch_size` of accelerate, applied to each line",
}


def table(scores: dict[str, Score]) -> list[str]:
    """Return the table as Markdown."""
    lines = ["| tool | correct verdicts | failures missed | false alarms | correct memory |", "|---|---|---|---|---|"]
    for name, each in scores.items():
        kinds = f"{each.kinds} of {each.known_kinds}" if each.kinds else "not stated"
        lines.append(
            f"| {_ABOUT.get(name, name)} | {each.right} of {each.asked} ({each.right / each.asked:.2f}) "
            f"| {each.missed} of {each.failures} | {each.accused} of {each.others} | {kinds} |"
        )
    return lines


def written(text: str) -> dict[str, str]:
    """Return the rows of a document's table by their first cell."""
    body = text.split(BEGIN)[1].split(END)[0]
    return {re.split(r"(?<!\\)\|", line)[1].strip(): line for line in body.splitlines() if line.startswith("|")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=TOOLS)
    parser.add_argument("command", nargs="*")
    asked = parser.parse_args()
    tools = {asked.command[0]: partial(by_command, asked.command)} if asked.command else TOOLS
    with tempfile.TemporaryDirectory() as folder:
        everything = list(situations(Path(folder)))
        scores = {}
        for name, tool in tools.items():
            if asked.only in (None, name):
                try:
                    scores[name] = score(tool, everything)
                except ImportError as why:
                    print(f"{name}: not installed ({why})", file=sys.stderr)
    lines = table(scores)
    print("\n".join(lines))
    if not asked.command and asked.only is None and len(scores) == len(TOOLS):
        before, after = REPORT.read_text(encoding="utf-8").split(BEGIN)[0], REPORT.read_text(encoding="utf-8").split(END)[1]
        REPORT.write_text(f"{before}{BEGIN}\n" + "\n".join(lines) + f"\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
