"""Random logs over every reader: crashes, and inputs that cost too much time per byte.

`python bench/fuzz.py --inputs 200000 --seed 1` mutates the examples of the rules, spliced with the noise that logs are
full of, and gives each input to the cleaning, to every family and to every signature; some also to the whole path from
(compressed, cut, damaged) bytes to the reports. `--stretch` instead repeats parts of every signature's examples to
20 kB and 80 kB, where a pattern that backtracks shows. With atheris installed, `--atheris` lets coverage choose the inputs.

The same seed gives the same inputs, whatever the number of jobs.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import importlib
import lzma
import multiprocessing
import os
import random
import signal
import sys
import time
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from oomdoctor import __version__
from oomdoctor.api import pipeline
from oomdoctor.ingest.clean import split_flows
from oomdoctor.knowledge.pack import PROBLEMS, SIGNATURES, Pack, builtin_rules, load_pack
from oomdoctor.parse import reading as read_sources
from oomdoctor.parse.families.registry import FAMILIES, load_family
from oomdoctor.parse.signature import Match, Signature
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.render.html import render as html
from oomdoctor.report.render.markdown import render as markdown
from oomdoctor.report.render.terminal import render as terminal
from oomdoctor.report.safety.redact import redact
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording

BATCH = 500
HANG_S = 20.0
_WORTH_TIMING = {"diagnosis and reports": 16_384}
"""Bytes below which the time of a call says nothing about its time per byte; 512 for the others."""
_DIAGNOSED = 23
_ARCHIVED = 17
_TURNS = 20
"""One input in so many takes the long way; two primes, so that some take both."""

Reader = Callable[[str], Iterable[Match]]


class Hang(BaseException):
    """An input that a reader did not finish; not an Exception, so that no reader takes it for bad input."""


@dataclass(slots=True)
class Slow:
    """The slowest call of one reader."""

    reader: str
    seconds: float
    data: bytes

    @property
    def per_byte(self) -> float:
        return self.seconds / max(1, len(self.data))


@dataclass(slots=True)
class Tally:
    """What a batch of inputs gave."""

    inputs: int = 0
    size: int = 0
    calls: int = 0
    crashes: dict[str, tuple[str, bytes, str]] = field(default_factory=dict)
    """Where it crashed -> (reader, the shortest input, the traceback)."""
    slow: dict[str, Slow] = field(default_factory=dict)
    """Reader -> its slowest input per byte."""

    def add(self, other: Tally) -> None:
        self.inputs += other.inputs
        self.size += other.size
        self.calls += other.calls
        for where, crash in other.crashes.items():
            if where not in self.crashes or len(crash[1]) < len(self.crashes[where][1]):
                self.crashes[where] = crash
        for reader, slow in other.slow.items():
            if reader not in self.slow or slow.per_byte > self.slow[reader].per_byte:
                self.slow[reader] = slow


@cache
def pack() -> Pack:
    return load_pack()


@cache
def reading() -> read_sources.LogReader:
    return read_sources.LogReader(pack())


@cache
def messages() -> tuple[str, ...]:
    """What inputs are made of: the examples and near misses of all rules, and lines of healthy runs."""
    texts = [one.text for record in pack().records(SIGNATURES) for one in (*record.examples, *record.near_misses)]
    texts += [one.log for record in pack().records(PROBLEMS) for one in (*record.examples, *record.near_misses)]
    healthy = Path(builtin_rules(), "healthy.txt")
    texts += healthy.read_text(encoding="utf-8").splitlines() if healthy.is_file() else []
    return tuple(text for text in texts if text)


@cache
def signatures() -> tuple[Signature, ...]:
    return tuple(Signature(core) for core in pack().signatures)


@cache
def by_literal() -> tuple[tuple[str, tuple[int, ...]], ...]:
    behind: dict[str, list[int]] = {}
    for number, one in enumerate(signatures()):
        for literal in one.literals:
            behind.setdefault(literal, []).append(number)
    return tuple((literal, tuple(numbers)) for literal, numbers in behind.items())


# --- inputs ---------------------------------------------------------------------------------------------------------

_PREFIXES = (
    "[rank3]: ", "[rank0]:[E105 10:00:01.000000000 x.cpp:1] ", "(RayTrainWorker pid=77, ip=10.0.0.9) ",
    "2026-01-05 10:00:01,123 ", ">>> ", "> ",
    "12: ", "rank 4: ", "node-a-1: ", "trainer-0  | ", "E   ", "stderr: ", "2026-01-05T10:00:01.123456789Z stderr F ", "[ 1234.567890] ",
    "Jan  5 10:00:01 box kernel: ", "ERROR 01-05 10:00:01 worker.py:12] ", "[default7]:", "\x1b[36m(pid=9)\x1b[0m ", "\ufeff", "\t\t",
)  # fmt: skip
_NOISE = (
    "\x1b[31m", "\x1b[0m", "\x1b]0;title\x07",
    "\x1b]8;;http://example.org\x1b\\", "\x1b[", "\x1b", "\x9b1m", "[0m", "\r", "\r\n", "\n", "\n\n", "\0", "\t",
    "&amp;", "&lt;", "<br>", "</span>",
    "\\n", "\\u001b[1m", "\\", '"', "'", "`", "│", " ", "内存不足", "显存", "é", "\U0001f525", "\u202e", "\u200b",
    " 41%|####      | 41/900 [10:00<12:00,  1.50s/it]", "Traceback (most recent call last):\n",
    '  File "/x/site-packages/a.py", line 3, in forward\n',
    "total-vm:1kB, ", "CUDA out of memory. ", "Tried to allocate ",
    "GiB", "MiB", "0 bytes", "-1", "17179869184.00 GiB", "nan", "inf", "1e308",
)  # fmt: skip
_BYTES = (
    b"\xff", b"\xfe\xff", b"\xff\xfe", b"\xe4\xb8", b"\xf0\x9f\x94",
    b"\xc0\x80", b"\xed\xa0\x80", b"\x1f\x8b", b"BZh", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00",
)  # fmt: skip
_NUMBERS = ("", "0", "-1", "9" * 19, "9" * 25, "9" * 400, "0.0", "1e9", "\u0663", "1,234", "18446744073709551615")
_RUNS = " \t0123456789.,:;/\\-_=|()[]{}<>'\"aZ\n\r#>"


def make(seed: int, number: int) -> bytes:
    """The input with this number: one or more real messages, mutated, among noise."""
    rng = random.Random(seed * 1_000_003 + number)
    parts = [rng.choice(messages()) for _ in range(rng.choice((1, 1, 1, 2, 3, 6)))]
    text = rng.choice(("\n", "\n", "", " ", "\r", "\n[rank1]: ")).join(_mutated(rng, one) for one in parts)
    if rng.random() < 0.3:
        prefix = rng.choice(_PREFIXES)
        text = "\n".join((prefix if rng.random() < 0.9 else rng.choice(_PREFIXES)) + line for line in text.split("\n"))
    if rng.random() < 0.06:
        width = rng.choice((60, 80, 120, 200))
        text = "\n".join(line[at : at + width] for line in text.split("\n") for at in range(0, max(1, len(line)), width))
    if rng.random() < 0.02:
        text = text.encode("utf-8", "replace").decode("utf-8", "replace").replace("\n", "\\n")
    data = text.encode("utf-16" if rng.random() < 0.005 else "utf-8", "surrogatepass")
    if rng.random() < 0.25:
        data = _damaged(rng, data)
    return data


def _mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        text = rng.choice(_MUTATIONS)(rng, text)[:24_000]
    return text


def _span(rng: random.Random, text: str) -> tuple[int, int]:
    start = rng.randrange(len(text) + 1)
    return start, min(len(text), start + rng.choice((1, 1, 3, 8, 20, 80)))


def _drop(rng: random.Random, text: str) -> str:
    start, end = _span(rng, text)
    return text[:start] + text[end:]


def _repeat(rng: random.Random, text: str) -> str:
    start, end = _span(rng, text)
    return text[:end] + text[start:end] * min(rng.choice((1, 2, 9, 60, 700)), 6000 // max(1, end - start)) + text[end:]


def _run(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + rng.choice(_RUNS) * rng.choice((2, 9, 40, 300, 5000)) + text[start:]


def _noise(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + rng.choice(_NOISE) + text[start:]


def _number(rng: random.Random, text: str) -> str:
    digits = [at for at, char in enumerate(text) if char.isdigit()]
    if not digits:
        return text
    at = rng.choice(digits)
    return text[:at] + rng.choice(_NUMBERS) + text[at + 1 :]


def _splice(rng: random.Random, text: str) -> str:
    other = rng.choice(messages())
    return text[: rng.randrange(len(text) + 1)] + other[rng.randrange(len(other) + 1) :]


def _cut(rng: random.Random, text: str) -> str:
    return text[: rng.randrange(len(text) + 1)]


def _swap(rng: random.Random, text: str) -> str:
    start = rng.randrange(len(text) + 1)
    return text[:start] + chr(rng.choice((rng.randrange(128), rng.randrange(0x250), rng.randrange(0x3000, 0x9FFF)))) + text[start + 1 :]


def _wider(rng: random.Random, text: str) -> str:
    blanks = [at for at, char in enumerate(text) if char == " "]
    if not blanks:
        return text
    at = rng.choice(blanks)
    return text[:at] + rng.choice(("\n", "  ", "\t", "\r\n", "\xa0", " " * 300, "")) + text[at + 1 :]


_MUTATIONS: tuple[Callable[[random.Random, str], str], ...] = (
    _drop, _repeat, _run, _noise, _noise, _number, _number, _splice, _cut, _swap, _wider,
)  # fmt: skip


def _damaged(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(data) + 1)
        what = rng.randrange(3)
        if what == 0:
            data = data[:at] + rng.choice(_BYTES) + data[at:]
        elif what == 1:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        else:
            data = rng.choice(_BYTES) + data
    return data


def _archived(rng: random.Random, data: bytes) -> bytes:
    """The input compressed, sometimes twice, sometimes cut off or damaged."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        data = rng.choice(_packers())(data)
    if rng.random() < 0.4:
        data = data[: rng.randrange(len(data) + 1)]
    if rng.random() < 0.3 and data:
        at = rng.randrange(len(data))
        data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    return data


@cache
def _packers() -> tuple[Callable[[bytes], bytes], ...]:
    packers: list[Callable[[bytes], bytes]] = [
        lambda data: gzip.compress(data, 1, mtime=0), lambda data: bz2.compress(data, 1), lambda data: lzma.compress(data, preset=0),
    ]  # fmt: skip
    with suppress(ImportError):
        packers.append(importlib.import_module("zstandard").ZstdCompressor(level=1).compress)
    return tuple(packers)


# --- readers --------------------------------------------------------------------------------------------------------


def _diagnosed(data: bytes) -> None:
    """The whole path: streams, windows, events, timeline, findings, every form of the report."""
    diagnosis = pipeline.diagnose_logs(["fuzz.log"], pack(), text=data)
    json_text(convert_diagnosis(diagnosis, Wording("en"), __version__), redact=True).encode()
    document = compose(diagnosis, Wording("zh"), __version__)
    for render in (markdown, html, lambda one: terminal(one, width=80, color=False)):
        render(redact(document)).encode()


def _pieces(data: bytes, turn: int | None = None) -> Iterator[tuple[str, Callable[[], object]]]:
    """(name, call) for everything that is run on each input.

    Of the signatures those with a literal in it are run, and in turn a part of the others.
    """
    found: list[str] = []

    def clean() -> None:
        found.extend(flow.text for flow in split_flows(data, 0))

    yield "clean", clean
    text = "".join(found)
    for name in FAMILIES:
        yield name, partial(_drain, load_family(name, pack()), text)
    listed = signatures()
    wanted = set(range(len(listed)) if turn is None else range(turn, len(listed), _TURNS))
    wanted.update(number for literal, behind in by_literal() if literal in text for number in behind)
    for number in sorted(wanted):
        yield listed[number].id, partial(_drain, listed[number].matches, text)


def _drain(read: Reader, text: str) -> None:
    for _ in read(text):
        pass


def _run_one(data: bytes, number: int, seed: int, tally: Tally) -> None:
    tally.inputs += 1
    tally.size += len(data)
    for name, call in _pieces(data, number % _TURNS):
        _timed(name, call, data, tally)
    if number % _DIAGNOSED == 0:
        _timed("diagnosis and reports", lambda: _diagnosed(data), data, tally)
    if number % _ARCHIVED == 0:
        packed = _archived(random.Random(seed + number), data)
        _timed("archive", lambda: reading().read_one("fuzz.log.gz", packed), packed, tally)


def _timed(name: str, call: Callable[[], object], data: bytes, tally: Tally) -> None:
    tally.calls += 1
    start = time.perf_counter()
    try:
        call()
    except (Exception, Hang) as why:  # noqa: BLE001 - any exception is what we look for
        frame = traceback.extract_tb(why.__traceback__)[-1]
        where = f"{type(why).__name__} in {Path(frame.filename).name}:{frame.lineno} {frame.name}"
        if where not in tally.crashes or len(data) < len(tally.crashes[where][1]):
            tally.crashes[where] = (name, data, "".join(traceback.format_exception(why)[-4:]))
    seconds = time.perf_counter() - start
    if len(data) >= _WORTH_TIMING.get(name, 512) and name != "archive":
        slow = tally.slow.get(name)
        if slow is None or seconds * len(slow.data) > slow.seconds * len(data):
            tally.slow[name] = Slow(name, seconds, data)


def _on_alarm(_signal: int, _frame: FrameType | None) -> None:
    raise Hang


def _batch(job: tuple[int, int, int]) -> Tally:
    seed, first, until = job
    signal.signal(signal.SIGALRM, _on_alarm)
    tally = Tally()
    for number in range(first, until):
        signal.setitimer(signal.ITIMER_REAL, HANG_S)
        try:
            _run_one(make(seed, number), number, seed, tally)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return tally


# --- reports --------------------------------------------------------------------------------------------------------


def minimal(data: bytes, fails: Callable[[bytes], bool], budget_s: float = 20.0) -> bytes:
    """A shorter input that still fails: pieces are left out as long as that helps."""
    until = time.monotonic() + budget_s
    size = max(1, len(data) // 2)
    while size and time.monotonic() < until:
        at = 0
        while at < len(data) and time.monotonic() < until:
            shorter = data[:at] + data[at + size :]
            if fails(shorter):
                data = shorter
            else:
                at += size
        size //= 2
    return data


def _fails_alike(where: str, name: str) -> Callable[[bytes], bool]:
    def fails(data: bytes) -> bool:
        tally = Tally()
        if name == "archive":
            _timed(name, lambda: reading().read_one("fuzz.log", data), data, tally)
        elif name == "diagnosis and reports":
            _timed(name, lambda: _diagnosed(data), data, tally)
        else:
            _pieces_of(name, data, tally)
        return where in tally.crashes

    return fails


def _pieces_of(reader: str, data: bytes, tally: Tally) -> None:
    """One reader on one input, after the cleaning that it needs."""
    for name, call in _pieces(data):
        if name in (reader, "clean"):
            _timed(name, call, data, tally)


def _again(slow: Slow) -> Slow:
    """The slowest call once more, three times, so that a pause of the machine is not taken for the input's."""
    best = slow.seconds
    for _ in range(3):
        tally = Tally()
        if slow.reader == "diagnosis and reports":
            _timed(slow.reader, lambda: _diagnosed(slow.data), slow.data, tally)
        else:
            _pieces_of(slow.reader, slow.data, tally)
        best = min(best, tally.slow[slow.reader].seconds)
    return Slow(slow.reader, best, slow.data)


def fuzz(inputs: int, seed: int, jobs: int, save: Path | None) -> int:
    """Runs the inputs and prints what they gave; the number of crashes."""
    start = time.perf_counter()
    work = [(seed, first, min(first + BATCH, inputs)) for first in range(0, inputs, BATCH)]
    total = Tally()
    if not signatures() or not messages():
        sys.exit("the rules hold no signatures")
    if jobs == 1:
        for job in work:
            total.add(_batch(job))
    else:
        with multiprocessing.get_context("fork").Pool(jobs) as pool:
            for done in pool.imap_unordered(_batch, work):
                total.add(done)
                if sys.stderr.isatty():
                    print(f"\r{total.inputs} inputs, {len(total.crashes)} crashes", end="", file=sys.stderr)
    seconds = time.perf_counter() - start
    print(f"{total.inputs} inputs, {total.size / 1e6:.1f} MB, {total.calls} calls in {seconds:.0f} s with {jobs} jobs, seed {seed}")
    print(f"{len(total.crashes)} crashes")
    for where, (reader, data, trace) in sorted(total.crashes.items()):
        small = data if where.startswith("Hang") else minimal(data, _fails_alike(where, reader))
        print(f"\n{where} ({reader}, {len(small)} bytes): {small[:400]!r}\n{trace}")
        if save is not None:
            save.mkdir(parents=True, exist_ok=True)
            (save / f"crash-{zlib.crc32(where.encode()):08x}.bin").write_bytes(small)
    print("\nslowest by time per byte, timed again:")
    slowest = sorted(total.slow.values(), key=lambda one: -one.per_byte)[:40]
    for one in sorted(map(_again, slowest), key=lambda one: -one.per_byte)[:12]:
        figures = f"{one.per_byte * 1e9:8.0f} ns/byte  {one.seconds * 1e3:7.2f} ms  {len(one.data):6d} bytes"
        print(f"  {figures}  {one.reader}: {one.data[:70]!r}")
        if save is not None:
            save.mkdir(parents=True, exist_ok=True)
            (save / f"slow-{one.reader.replace(' ', '-')}.bin").write_bytes(one.data)
    return len(total.crashes)


_STRETCHED = (20_000, 80_000)


def stretched(text: str, size: int) -> Iterator[str]:
    """A message repeated to `size` in the ways that make a pattern begin again and again."""
    half = text[: max(1, len(text) * 2 // 3)]
    for piece in (text + "\n", text + " ", half, text[:-1]):
        yield (piece * (size // max(1, len(piece)) + 1))[:size]
    for run in (" ", "0", "a "):
        yield (half + run * size)[:size]


def stretch(jobs: int) -> int:
    """Every pattern and family on stretched examples; prints the slowest and what four times the text cost."""
    start = time.perf_counter()
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        rows = [row for found in pool.imap_unordered(_stretch_one, pack().names("signatures"), chunksize=8) for row in found]
    growing = [row for row in rows if _grows(row)]
    names = {row[0] for row in rows}
    print(f"{len(names)} patterns stretched to {_STRETCHED[-1]} bytes in {time.perf_counter() - start:.0f} s")
    print(f"{len(growing)} grow faster than the text (more than 8 times for 4 times the text)")
    for name, small, large, text in sorted(growing, key=lambda row: -row[2])[:20]:
        print(f"  {small * 1e3:8.1f} ms -> {large * 1e3:8.1f} ms  {name}: {text[:80]!r}")
    print("slowest:")
    for name, small, large, text in sorted(rows, key=lambda row: -row[2])[:10]:
        print(f"  {small * 1e3:8.1f} ms -> {large * 1e3:8.1f} ms  {name}: {text[:80]!r}")
    return 0


def _grows(row: tuple[str, float, float, str]) -> bool:
    return row[2] > 0.02 and row[2] > 8 * row[1]


def _stretch_one(name: str) -> list[tuple[str, float, float, str]]:
    """(id, seconds for the short text, for the long one, the text) for each way of stretching."""
    one = next(one for one in signatures() if one.id == name)
    read: Reader = load_family(one.family, pack()) if one.family else one.matches
    record = pack().signature(name)
    text = record.examples[0].text if record is not None else ""
    rows = []
    for short, long in zip(*(stretched(text, size) for size in _STRETCHED)):
        row = (name, _seconds(read, short), _seconds(read, long), long)
        if _grows(row):
            row = (name, row[1], min(row[2], _seconds(read, long), _seconds(read, long)), long)
        rows.append(row)
    return rows


def _seconds(read: Reader, text: str) -> float:
    begin = time.perf_counter()
    _drain(read, text)
    return time.perf_counter() - begin


def guided(arguments: list[str]) -> None:
    """Inputs chosen by coverage; needs atheris and runs until it is stopped."""
    try:
        atheris: Any = importlib.import_module("atheris")
    except ImportError:
        sys.exit("atheris is not installed; run without --atheris for seeded random inputs")

    def one(data: bytes) -> None:
        for _, call in _pieces(data):
            call()
        _diagnosed(data)

    reading()
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], *arguments], one)
    atheris.Fuzz()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--save", type=Path, help="write the minimal inputs that crash into this folder")
    parser.add_argument("--stretch", action="store_true", help="repeat parts of every example instead")
    parser.add_argument("--atheris", action="store_true", help="let coverage choose the inputs; further arguments go to libFuzzer")
    options, rest = parser.parse_known_args()
    if options.atheris:
        guided(rest)
    elif rest:
        parser.error(f"unknown arguments: {' '.join(rest)}")
    elif options.stretch:
        sys.exit(stretch(options.jobs))
    else:
        sys.exit(1 if fuzz(options.inputs, options.seed, options.jobs, options.save) else 0)


if __name__ == "__main__":
    main()
