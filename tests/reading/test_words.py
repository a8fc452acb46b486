"""What programs and systems print, a line as the whole of a log: those that say that memory was refused, and their near misses."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from yaml_table import read_table

from oomdoctor.case.case import Verdict
from oomdoctor.judging.verdict import decide
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.parse.reading import LogReader

TABLES = Path(__file__).parent / "words"
KINDS = ("device-oom", "host-oom", "shm-oom", "memory")


@cache
def reader() -> LogReader:
    return LogReader(load_pack())


def verdict_of(line: str) -> Verdict:
    read = reader().read_one("line", line.encode())
    return decide(read.events, [read], load_pack().lexicon).verdict


def test_programs_say_in_their_words_that_memory_was_refused() -> None:
    rows = [(kind, line) for group in read_table(TABLES / "failures.yaml") for kind in KINDS for line in group.get(kind, [])]
    assert len(rows) > 350
    missed = [line for kind, line in rows if not is_of(verdict_of(line), kind)]
    assert missed == []


def is_of(verdict: Verdict, kind: str) -> bool:
    """Return whether memory failed, of a kind or of any."""
    return verdict.memory_failure != "no" and (kind == "memory" or verdict.kind.value.replace("masked-device", "device") == kind)


def test_what_is_said_of_memory_and_of_other_lacks_is_no_failure_of_it() -> None:
    lines = [line for group in read_table(TABLES / "near_misses.yaml") for line in group["lines"]]
    assert len(lines) > 350
    alarms = [line for line in lines if verdict_of(line).memory_failure != "no"]
    assert alarms == []
