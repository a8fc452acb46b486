"""How long reading memory snapshots takes, and how much memory: `python bench/snapshot.py [--entries 2000000] [FILE...]`.

Without files, snapshots are made: of 12,000 entries, and of as many as are asked for (two million are 345 MiB), with stacks of 60 to
110 frames of which one in seven was seen before. Seconds of the processor count, start included; memory is that of the fullest process.
"""

from __future__ import annotations

import argparse
import os
import pickle
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing import Process
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_SLOT = 1 << 26
_FRAMES = 3000
Fields = dict[str, object]


def made(entries: int, seed: int = 1) -> bytes:
    """Return a snapshot of so many entries."""
    chance = random.Random(seed)
    stacks = _stacks(chance)
    trace: list[Fields] = []
    live: list[tuple[int, int, list[Fields]]] = []
    free: list[int] = []
    top = 0x7F00_0000_0000
    while len(trace) < entries:
        if live and chance.random() < 0.49:
            address, size, frames = live.pop(chance.randrange(len(live)))
            trace += [_entry(action, address, size, frames, len(trace)) for action in ("free_requested", "free_completed")]
            free.append(address)
            continue
        if free:
            address = free.pop(chance.randrange(len(free)))
        else:
            address, top = top, top + _SLOT
        size, frames = chance.randrange(1, _SLOT), next(stacks)
        trace.append(_entry("alloc", address, size, frames, len(trace)))
        live.append((address, size, frames))
    segments = [_segment(address, size, frames) for address, size, frames in sorted(live, key=lambda block: block[0])]
    return pickle.dumps({"segments": segments, "device_traces": [trace], "external_annotations": []}, protocol=4)


def _stacks(chance: random.Random) -> Iterator[list[Fields]]:
    folder = "/opt/env/lib/python3.12/site-packages/torch"
    frames: list[Fields] = [
        {"filename": f"{folder}/m{number % 50}.py" if number % 3 else "??", "line": number % 900, "name": f"function_{number}"}
        for number in range(_FRAMES)
    ]
    seen: list[list[Fields]] = []
    while True:
        if not seen or chance.random() > 0.15:
            seen.append(chance.sample(frames, chance.randrange(60, 110)))
            yield seen[-1]
        else:
            yield chance.choice(seen)


def _entry(action: str, address: int, size: int, frames: list[Fields], number: int) -> Fields:
    return {"action": action, "addr": address, "size": size, "stream": 0, "time_us": 1_700_000_000_000_000 + 9 * number, "frames": frames}


def _segment(address: int, size: int, frames: list[Fields]) -> Fields:
    block = {"address": address, "size": _SLOT, "requested_size": size, "state": "active_allocated", "frames": frames}
    shape: Fields = {"device": 0, "address": address, "total_size": _SLOT, "stream": 0, "segment_type": "large", "blocks": [block]}
    return {**shape, "segment_pool_id": (0, 0), "is_expandable": False}


def measure(file: Path) -> str:
    """Read one file as a person does, and say what it took."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "oomdoctor", "snapshot", str(file), "--format", "json", "-o", os.devnull, "--exit-zero"]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(_ROOT)})  # noqa: S603 - our own program
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    mib, size = after.ru_maxrss / 1024, file.stat().st_size / (1 << 20)
    took = time.monotonic() - begin
    return f"{size:8.1f} MiB: {took:6.2f} s, {used:6.2f} s of the processor, {mib:7.1f} MiB at most, {mib / size:5.1f} x the file"


def main() -> None:
    """Measure the files, smallest first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--entries", type=int, default=2_000_000)
    wanted = parser.parse_args()
    for file in sorted(wanted.files, key=lambda path: path.stat().st_size):
        print(measure(file), file.name)
    with tempfile.TemporaryDirectory() as folder:
        for entries in () if wanted.files else (12_000, wanted.entries):
            file = Path(folder) / f"{entries}.pickle"
            maker = Process(target=_write, args=(file, entries))  # a process that starts others lends them the memory that it has
            maker.start()
            maker.join()
            print(measure(file), f"{entries:,} entries", flush=True)


def _write(file: Path, entries: int) -> None:
    file.write_bytes(made(entries))


if __name__ == "__main__":
    main()
