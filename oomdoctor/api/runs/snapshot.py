"""Memory snapshots: what was holding memory when it ran out, why the request did not fit, and what grew."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from msgspec import Struct

from oomdoctor.api.inputs import Path, Paths, path_list, path_text
from oomdoctor.api.runs.snapshot_findings import snapshot_findings
from oomdoctor.case.diagnosis import Finding
from oomdoctor.case.gap import Gap
from oomdoctor.case.text import Text
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.knowledge.records.evidence import HOLDINGS
from oomdoctor.machine.probe.isolated_process import IsolatedFailure, run_isolated
from oomdoctor.snapshots.explain import DeviceExplanation, explain
from oomdoctor.snapshots.facts import snapshot_facts
from oomdoctor.snapshots.forms.file import read_file
from oomdoctor.snapshots.read import NotASnapshot, NotReadable, limit_memory
from oomdoctor.snapshots.recording import Recording
from oomdoctor.snapshots.sites import Holdings

_SECONDS_PER_MIB = 1.0
_LEAST_SECONDS = 30.0
"""CPU time, and per MiB; reading takes less than a tenth of it."""
_CLOCK = 10
"""It may take this many times as long in wall-clock time: other processes use the CPU too, and pure waiting must end eventually."""
_ENDED = {
    "timeout": "reading it did not finish in time: its storage does not respond, or the machine is overloaded",
    "SIGXCPU": "reading it takes longer than for a snapshot of its size: it is not a snapshot, or is malicious",
}


class SnapshotFile(Struct, frozen=True, kw_only=True):
    """One file, and what it shows."""

    name: str
    form: str
    torch_at_least: str | None
    devices: tuple[DeviceExplanation, ...]
    unreadable: int = 0
    is_cut: bool = False
    """Whether the file ends, or is damaged, before its trace does."""


class SnapshotReport(Struct, frozen=True, kw_only=True):
    """What the snapshots of one run show."""

    files: tuple[SnapshotFile, ...]
    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]
    categories: dict[str, Text]
    """What memory is held for, in words (rules/holdings.yaml)."""


class ReadSnapshot(Struct, frozen=True):
    """The result of reading a file in a separate process."""

    files: tuple[SnapshotFile, ...] = ()
    gaps: tuple[Gap, ...] = ()


def snapshot(files: Paths, *, rules: Path | None = None, totals: Mapping[int, int] | None = None) -> SnapshotReport:
    """Explain memory snapshots of one run, one file per rank.

    Nothing in a file is executed. `totals` are the bytes of the GPUs, by index, if known. `rules` is a folder of rules
    that are added on top of the built-in ones.

    Raise UsageError if a file does not exist or no file can be read; if only some cannot, the gaps say why.
    """
    pack = load_pack(over=path_text(rules))
    read, gaps = list[SnapshotFile](), list[Gap]()
    for path in path_list(files):
        answer = read_isolated(path, pack, dict(totals or {}))
        read += answer.files
        gaps += answer.gaps
    if not read:
        raise UsageError("; ".join(f"{gap.what}: {gap.why}" for gap in gaps) or "no file given")
    devices = [device for file in read for device in file.devices]
    return SnapshotReport(
        files=tuple(read),
        findings=snapshot_findings(snapshot_facts(devices), pack),
        gaps=tuple(gaps),
        categories={record.id: Text(record.says.en, record.says.zh) for record in pack.records(HOLDINGS)},
    )


def read_isolated(path: str, pack: Pack, totals: dict[int, int]) -> ReadSnapshot:
    """Read a file in a separate process: the resources a hostile one can use are limited, and all it can terminate is that process."""
    try:
        size = os.stat(path).st_size
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    holdings = Holdings(list(pack.records(HOLDINGS)), pack.computations)

    def work() -> ReadSnapshot:
        return _explained(path, size, holdings, totals)

    seconds = _LEAST_SECONDS + _SECONDS_PER_MIB * size / (1 << 20)
    answer = run_isolated(work, ReadSnapshot, _CLOCK * seconds, seconds)
    if isinstance(answer, IsolatedFailure):
        return _unread(path, _ENDED.get(answer.why, f"reading it ended with {answer.why}: it is not a snapshot, or is malicious"))
    return answer


def _explained(path: str, size: int, holdings: Holdings, totals: Mapping[int, int]) -> ReadSnapshot:
    try:
        parts = read_file(path, size, limit_memory)
        files = tuple(_file(path, part.name, part.recording, holdings, totals) for part in parts if part.recording is not None)
    except (NotReadable, NotASnapshot) as error:
        return _unread(path, str(error))
    except OSError as error:
        return _unread(path, error.strerror or str(error))
    except MemoryError:
        return _unread(path, "it requests more memory than a snapshot of its size needs")
    unread = (Gap(_name(path, part.name), part.why) for part in parts if part.recording is None)
    gaps = (Gap(f"{path}: {gap.what}", gap.why, gap.how) for part in parts if part.recording is not None for gap in part.recording.gaps)
    return ReadSnapshot(files, (*unread, *gaps, *(gap for file in files for gap in _inconsistencies(file))))


def _unread(path: str, why: str) -> ReadSnapshot:
    return ReadSnapshot(gaps=(Gap(path, why),))


def _inconsistencies(file: SnapshotFile) -> Iterator[Gap]:
    """Yield where the trace of a device and the saved state are inconsistent."""
    for device in file.devices:
        if device.disagrees:
            why = "the trace and the saved state are inconsistent, so sums before the end may be wrong"
            yield Gap(f"{file.name}: device {device.index}", why)


def _name(path: str, part: str | None) -> str:
    return path if part is None else f"{path}#{part}"


def _file(path: str, part: str | None, recording: Recording, holdings: Holdings, totals: Mapping[int, int]) -> SnapshotFile:
    return SnapshotFile(
        name=_name(path, part),
        form=recording.form,
        torch_at_least=recording.torch_at_least,
        devices=explain(recording, holdings, totals),
        unreadable=recording.unreadable,
        is_cut=recording.is_cut,
    )
