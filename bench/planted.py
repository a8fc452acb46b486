"""Plants failures in generated logs and checks that each is found, with its figures, rank and place, and nothing else.

    python bench/planted.py

The truth is what the generator (bench/logs.py) wrote down; sizes are read here again, so that the tool is not checked against itself.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import logs
from logs import PREFIXES, SHAPES

from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Event
from oomdoctor.knowledge.pack import Pack, load_pack

EVENT_KIND = {
    "cuda-oom": "device-oom", "cuda-oom-1x": "device-oom", "vllm-cache": "device-oom", "xla-oom": "device-oom",
    "nvml-symbol": "masked-device-oom", "nvml-success": "masked-device-oom", "cublas-handle": "masked-device-oom",
    "nccl-oom": "masked-device-oom", "kernel-oom": "host-oom", "slurm-oom": "host-oom", "cpu-allocator": "host-oom",
    "numpy-array": "host-oom", "killed-worker": "host-oom", "loader-shm": "shm-oom",
}  # fmt: skip
FIELD = {
    "requested": "requested_bytes", "capacity": "total_bytes", "free": "free_bytes", "used": "process_bytes",
    "allocated": "allocated_bytes", "reserved": "reserved_bytes", "reserved_unallocated": "reserved_unallocated_bytes",
    "device": "gpu_index", "symbol": "symbol", "line": "source_line", "pid": "pid", "events": "count", "exitcode": "exit_code",
    "bytes": "requested_bytes",
}  # fmt: skip
"""Name in the truth -> name in the event, where the value needs no more than its unit."""
UNTAGGED = ("kernel-oom", "slurm-oom", "nccl-oom", "killed-worker")
"""Messages that do not come out of a Python program: no `[rankN]:` before them."""
QUIET = ("clean", "nearmiss", "binary")
_PIECE = 32 << 10
"""A message in a line without end is placed at a piece of it."""


class Job(NamedTuple):
    """One log to diagnose, and what stands in it."""

    path: str
    name: str
    shape: str
    prefix: str
    truths: list[dict[str, Any]]


def expected(truth: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the event of a planted failure must have."""
    fields = truth["fields"]
    out = {FIELD[name]: _size(value) if _is_size(value) else value for name, value in fields.items() if name in FIELD}
    if "anon_rss_kb" in fields:
        out["anon_rss_bytes"] = fields["anon_rss_kb"] * 1024
    if "job" in fields:
        out["step"] = f"{fields['job']}.0"
    if "shape" in fields:
        out["requested_bytes"] = math.prod(fields["shape"]) * 4
        out["shape"] = f"({', '.join(map(str, fields['shape']))})"
    return out


def stated_rank(truth: Mapping[str, Any], prefix: str) -> int | None:
    """The rank that the log says; None where it says none."""
    says = prefix in ("default", "srun") or truth["kind"] not in UNTAGGED or truth["kind"] == "killed-worker"
    return truth["rank"] if says else None


def differences(found: Diagnosis, job: Job) -> Iterator[str]:
    """Every difference between a diagnosis and what was planted."""
    serious = [event for event in found.case.events if event.kind.value != "context" and event.outcome.value == "failure"]
    left = [event for event in serious if event.kind.is_memory]
    for truth in job.truths:
        kind = truth["kind"]
        place = truth["offset"]
        event = next((one for one in left if _fits(one, truth, place, job.shape)), None)
        if event is None:
            there = [one.signature for one in serious if one.place.offset == place]
            yield f"{kind}: not found at {place} (there: {there})"
            continue
        left.remove(event)
        yield from (
            f"{kind}: {name} is {event.fields.get(name)!r} instead of {value!r} ({event.signature})"
            for name, value in expected(truth).items()
            if event.fields.get(name) != value
        )
        rank = stated_rank(truth, job.prefix)
        # NCCL's [N] is the device and no more; it is often the rank too, so both answers are right.
        if job.shape != "oneline" and event.rank != rank and not (kind == "nccl-oom" and event.rank == truth["rank"]):
            yield f"{kind}: rank is {event.rank} instead of {rank} ({event.signature})"
    if job.shape == "dense":
        left = [event for event in left if not event.signature.startswith("torch-cuda-oom")]
    yield from (f"not planted: {event.signature} at {event.place.offset}: {event.text[:80]}" for event in left)
    if not job.truths:
        yield from (f"not planted: {event.signature} at {event.place.offset}: {event.text[:80]}" for event in serious if event not in left)
    said, kinds = found.case.verdict.memory_failure, {truth["kind"] for truth in job.truths}
    quiet = "possible" if job.shape == "binary" else "no"  # what is no text was not read, and shows nothing
    right = (quiet,) if not kinds else ("yes", "possible") if kinds == {"killed-worker"} else ("yes",)
    if job.shape != "dense" and said not in right:
        yield f"verdict is {said} instead of {' or '.join(right)} ({', '.join(sorted(kinds))})"


def line_differences(found: Diagnosis, job: Job) -> Iterator[str]:
    """Line numbers, counted here with the plainest means."""
    if job.shape not in ("utf16", "dense"):
        data = Path(job.path).read_bytes()
        for event in found.case.events:
            line = event.place.line
            if event.is_failure and line is not None and line != data.count(b"\n", 0, event.place.offset) + 1:
                yield f"{event.signature}: line {line} instead of {data.count(bytes([10]), 0, event.place.offset) + 1}"


_pack: Pack | None = None


def check(job: Job) -> tuple[Job, list[str], str]:
    """One diagnosis in its process: the job, its differences, the verdict."""
    global _pack  # noqa: PLW0603 - the rules are loaded once a process
    _pack = _pack or load_pack()
    found = diagnose_logs([job.path], _pack)
    return job, [*differences(found, job), *line_differences(found, job)], found.case.verdict.memory_failure


def many(work: Path, files: int) -> list[Job]:
    """Small logs, a fifth of them with one failure."""
    folder, truth = work / f"many-{files}", work / f"many-{files}.truth"
    if not truth.exists():
        _make("--folder", folder, "--files", files, "--size", "100KiB", "--failures", "random", "--truth", truth)
    planted: dict[str, list[dict[str, Any]]] = {}
    for row in _rows(truth):
        planted.setdefault(row["file"], []).append(row)
    paths = sorted(folder.rglob("*.log"))
    return [Job(str(path), "small logs", "mixed", "none", planted.get(str(path.relative_to(folder)), [])) for path in paths]


def shapes(work: Path, size: str) -> Iterator[Job]:
    """Every shape and prefix with one failure of each kind, longer than what is read closely; and failures in the middle."""
    for shape, prefix in [*((shape, "none") for shape in SHAPES), *(("mixed", prefix) for prefix in PREFIXES if prefix != "none")]:
        stem = f"{shape}-{prefix}-{size}"
        log, truth = work / f"{stem}.log", work / f"{stem}.truth"
        if not truth.exists():
            form = ("--size", size, "--shape", shape, "--prefix", prefix, "--ranks", 16)
            _make(*form, "--failures", "none" if shape in QUIET else "all", "--output", log, "--truth", truth)
        yield Job(str(log), f"{shape}, prefix {prefix}", shape, prefix, _rows(truth))
    middle, first, then = work / f"middle-{size}.log", work / f"mixed-none-{size}.log", work / f"clean-none-{size}.log"
    if not middle.exists():
        middle.write_bytes(first.read_bytes() + then.read_bytes() * 2)
    yield Job(str(middle), "mixed, then as much without failure twice", "mixed", "none", _rows(first.with_suffix(".truth")))


def _fits(event: Event, truth: Mapping[str, Any], place: int, shape: str) -> bool:
    if event.kind.value != EVENT_KIND[truth["kind"]]:
        return False
    if shape != "oneline":
        return event.place.offset == place
    same = all(event.fields.get(name) == value for name, value in expected(truth).items())
    return same and abs(event.place.offset - place) <= _PIECE


def _is_size(value: object) -> bool:
    return isinstance(value, str) and value.endswith("iB")


def _size(text: str) -> int:
    number, unit = text.split()
    return round(float(number) * (1 << 10 * "BKMGT".index(unit[0])))


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def _make(*options: object) -> None:
    logs.main([str(option) for option in options])


def main() -> int:
    """Prints counts and every difference; status 1 where there is one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", default=os.path.join(tempfile.gettempdir(), "oomdoctor-planted"), help="where logs are kept between runs")
    parser.add_argument("--files", type=int, default=10_000, help="number of small logs")
    parser.add_argument("--size", default="24MiB", help="size of the log of each shape")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--most", type=int, default=40, help="differences to show in full for each group")
    options = parser.parse_args()
    work = Path(options.work)
    work.mkdir(parents=True, exist_ok=True)
    jobs = [*many(work, options.files), *shapes(work, options.size)]
    groups: dict[str, list[tuple[Job, list[str], str]]] = {}
    with ProcessPoolExecutor(options.jobs) as pool:
        for done in pool.map(check, jobs, chunksize=8):
            groups.setdefault(done[0].name, []).append(done)
    wrong = 0
    for name, results in groups.items():
        planted = sum(len(job.truths) for job, _, _ in results)
        said = Counter(verdict for _, _, verdict in results)
        texts = [(os.path.basename(job.path), text) for job, found, _ in results for text in found]
        wrong += len(texts)
        verdicts = ", ".join(f"{key} {count}" for key, count in sorted(said.items()))
        print(f"{name}: {len(results)} logs, {planted} planted, verdicts: {verdicts}; {len(texts)} differences")
        for file, text in texts[: options.most]:
            print(f"    {file}: {text}")
        for heading, count in Counter(" ".join(text.split()[:4]) for _, text in texts).most_common() if len(texts) > options.most else []:
            print(f"    in all: {count} x {heading} ...")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
