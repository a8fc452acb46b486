"""What cards hold, asked of NVML once a second by a process of its own: a library that hangs or crashes takes nothing with it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module

from msgspec import DecodeError, Struct
from msgspec.json import decode, encode

from oomdoctor.machine.collect.nvml import CardUse, NvmlMeter
from oomdoctor.record.command.beside import Beside
from oomdoctor.record.evidence import CardSample, EvidenceGap

_EVERY = 1.0
_STALE = 5.0
"""Seconds after which an answer tells nothing of the moment."""
_MOST_WAITING = 1 << 20
Meter = Callable[[], Iterable[CardUse]]


class _Answer(Struct, frozen=True):
    """What the process says in a line."""

    cards: tuple[CardUse, ...] = ()
    error: str | None = None


class Cards:
    """The cards of the machine, from the sampler's side."""

    def __init__(self, start: Callable[[], Meter] | None = None) -> None:
        """Ask from now on; `start` makes what measures (default: NVML)."""
        self.gaps: list[EvidenceGap] = []
        self._last: _Answer = _Answer()
        self._time = time.monotonic()
        self._unread = b""
        self._beside = Beside(lambda parent, writer: _live(start or _nvml, parent, writer))

    def sample(self, processes: Mapping[int, int]) -> tuple[CardSample, ...]:
        """Return what is held on each card now, and what of it these processes hold."""
        self._read()
        if time.monotonic() - self._time > _STALE:
            return ()
        return tuple(
            CardSample(index=card.index, used=card.used_bytes, total=card.total_bytes, ours=_ours(card, processes))
            for card in self._last.cards
        )

    def held(self, pid: int) -> int | None:
        """Return what a process held when last asked."""
        sizes = [card.processes[pid] for card in self._last.cards if pid in card.processes]
        return sum(sizes) if sizes else None

    def close(self) -> None:
        """Ask no more."""
        self._beside.kill()

    def _read(self) -> None:
        """Take the newest line that has come."""
        try:
            self._unread += os.read(self._beside.reader, _MOST_WAITING)
        except BlockingIOError:
            if time.monotonic() - self._time > _STALE:
                self._gap("NVML does not respond")
            return
        except OSError:
            return
        *lines, self._unread = self._unread.split(b"\n")
        if lines:
            self._time = time.monotonic()
            try:
                self._last = decode(lines[-1], type=_Answer)
            except DecodeError:
                return
            if self._last.error is not None:
                self._gap(self._last.error)

    def _gap(self, why: str) -> None:
        if not self.gaps:
            self.gaps.append(EvidenceGap(what="memory of the cards", why=why, how="nvidia-smi"))


def _ours(card: CardUse, processes: Mapping[int, int]) -> int | None:
    """Return what these processes hold; None where NVML names none of them, as inside most containers."""
    sizes = [size for pid, size in card.processes.items() if pid in processes]
    return sum(sizes) if sizes else None


def _live(start: Callable[[], Meter], parent: int, writer: int) -> None:
    try:
        meter = start()
        while os.getppid() == parent:
            os.write(writer, encode(_Answer(cards=tuple(meter()))) + b"\n")
            time.sleep(_EVERY)
    except Exception as error:  # noqa: BLE001 - whatever a library does, the run goes on
        os.write(writer, encode(_Answer(error=f"NVML: {error}"[:200])) + b"\n")


def _nvml() -> Meter:
    return NvmlMeter(import_module("pynvml"))  # only where there is a driver, in a process of its own
