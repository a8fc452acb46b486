"""Damaged memory snapshots and rings over the whole reader: crashes, hangs, and code that runs.

`python bench/fuzz_snapshots.py --inputs 1000000 --seed 1` mutates pickles of Python and of C++, pages of memory_viz, JSON, zips,
traces of the profiler and rings, reads each and explains it. The same seed gives the same inputs. An audit hook ends the run
where anything is executed, opened or started; an alarm where an input takes longer than ten seconds.
"""

from __future__ import annotations

import argparse
import codecs
import random
import resource
import signal
import struct
import sys
import time
from collections import Counter
from pathlib import Path
from types import FrameType

_ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(_ROOT), str(_ROOT / "tests")]

from snapshots.made_forms import STEADY, chrome, from_cpp, page, timeline, value, zipped  # noqa: E402
from snapshots.made_snapshots import fragmented, other_stream, pickled, survived, training  # noqa: E402

from oomdoctor.knowledge.pack import load_pack  # noqa: E402
from oomdoctor.knowledge.records.evidence import HOLDINGS  # noqa: E402
from oomdoctor.record.ring import MAGIC, read_ring  # noqa: E402
from oomdoctor.snapshots.explain import explain  # noqa: E402
from oomdoctor.snapshots.facts import snapshot_facts  # noqa: E402
from oomdoctor.snapshots.forms.chrome import chrome_trace, is_chrome_trace  # noqa: E402
from oomdoctor.snapshots.forms.file import FilePart, parts_of  # noqa: E402
from oomdoctor.snapshots.forms.packed import Ahead  # noqa: E402
from oomdoctor.snapshots.opcodes import NotReadable  # noqa: E402
from oomdoctor.snapshots.read import NotASnapshot  # noqa: E402
from oomdoctor.snapshots.sites import Holdings  # noqa: E402

_HANG_S = 10.0
_OPCODES = b"()]}.aeshqjrKMJGNX\x80\x85\x86\x87\x88\x89\x8a\x8c\x94\x95\x93cRbio\x81\x8f\x90\x91\x82"
_EVENTS = ("exec", "os.system", "os.exec", "os.posix_spawn", "subprocess.Popen", "pickle.find_class", "socket.connect", "open", "compile")
_LEAST_MEMORY = 4 << 30


class Hang(BaseException):
    """An input that took too long."""


class Executed(BaseException):
    """An input that made the interpreter do something, or gave figures that cannot be."""


def seeds() -> list[bytes]:
    """Return what is mutated."""
    programs = [fragmented(), other_stream(), survived(), training(steps=4, leak=3)]
    wholes = [pickled(program) for program in programs]
    others = [from_cpp(value(wholes[0])), page(("a", wholes[1]), ("b", wholes[2])), zipped(wholes[3])]
    rows = [(at, 100 + at, at * 7 % 13) for at in range(40)]
    return [*wholes, *wholes, *others, timeline(rows), chrome(STEADY * 8), _ring()]


def _ring() -> bytes:
    head = b'{"names": ["time", "live"], "pid": 7}'
    numbers = struct.pack("<40d", *(float(number) for number in range(40)))
    return struct.pack("<8sIIII", MAGIC, len(head), 20, 2, 0) + head + struct.pack("<Q", 31) + numbers


def mutant(chance: random.Random, corpus: list[bytes]) -> bytes:
    """Return one input: bytes changed, parts cut out, repeated or taken from another, opcodes put in."""
    data = bytearray(chance.choice(corpus))
    for _ in range(1 if chance.random() < 0.5 else chance.randrange(1, 12)):
        at, kind = chance.randrange(len(data) + 1), chance.randrange(7)
        length = min(chance.choice((1, 2, 4, 9, 40, 400)), len(data) - at)
        if kind == 0 and at < len(data):
            data[at] = chance.randrange(256)
        elif kind == 1 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 2:
            data[at:at] = bytes((chance.choice(_OPCODES),)) * chance.choice((1, 1, 2, 60))
        elif kind == 3:
            del data[at : at + length]
        elif kind == 4:
            data[at:at] = data[at : at + length] * chance.choice((1, 2, 30))
        elif kind == 5:
            other = chance.choice(corpus)
            begin = chance.randrange(len(other))
            data[at : at + length] = other[begin : begin + length]
        elif chance.random() < 0.2:
            del data[at:]
    return bytes(data)


def read(data: bytes, holdings: Holdings) -> str:
    """Read one input to the end; return what became of it."""
    if data.startswith(MAGIC):
        return "refused" if read_ring(data) is None else "read"
    first = data[: 1 << 16].lstrip()
    try:
        if first[:1] in (b"{", b"[") and is_chrome_trace(first):
            parts = [FilePart(None, chrome_trace(Ahead(_Bytes(data))))]
        else:
            parts = list(parts_of(data, first))
        devices = [device for part in parts if part.recording is not None for device in explain(part.recording, holdings, {0: 1 << 34})]
        snapshot_facts(devices)
    except (NotReadable, NotASnapshot):
        return "refused"
    if any(device.peak.requested < 0 or device.peak.reserved < 0 for device in devices):
        raise Executed("a negative figure")
    return "read"


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self._data = data

    def read(self, size: int = -1, /) -> bytes:
        size = len(self._data) if size < 0 else size
        out, self._data = self._data[:size], self._data[size:]
        return out


def _watch(event: str, values: tuple[object, ...]) -> None:
    if _is_watched and event in _EVENTS:
        raise Executed(f"{event}: {values}")


_is_watched = False


def _on_alarm(_number: int, _frame: FrameType | None) -> None:
    raise Hang


def main() -> None:
    """Run the inputs; end with status 1 at the first that does harm, and keep it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, default=Path("harmful-snapshot"))
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    wanted = parser.parse_args()
    pack, corpus, chance = load_pack(), seeds(), random.Random(wanted.seed)
    holdings, counts, begin, slowest = Holdings(list(pack.records(HOLDINGS)), pack.computations), Counter[str](), time.monotonic(), 0.0
    for whole in corpus:
        read(whole, holdings)  # imports what is imported late
    for name in ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig"):
        codecs.lookup(name)  # json looks for these
    signal.signal(signal.SIGALRM, _on_alarm)
    resource.setrlimit(resource.RLIMIT_AS, (_LEAST_MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    sys.addaudithook(_watch)
    global _is_watched  # noqa: PLW0603 - an audit hook cannot be taken off
    for _ in range(wanted.inputs):
        data, started = mutant(chance, corpus), time.monotonic()
        if started - begin > wanted.seconds:
            break
        try:
            signal.setitimer(signal.ITIMER_REAL, _HANG_S)
            _is_watched = True
            counts[read(data, holdings)] += 1
        except BaseException:
            _is_watched = False
            wanted.keep.write_bytes(data)
            print(f"after {sum(counts.values())} inputs; the input is in {wanted.keep}")
            raise
        finally:
            _is_watched = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        slowest = max(slowest, time.monotonic() - started)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{sum(counts.values())} inputs, {dict(counts)}, no crash, no hang, nothing ran; slowest {slowest:.2f} s, {peak} MiB at most")


if __name__ == "__main__":
    main()
