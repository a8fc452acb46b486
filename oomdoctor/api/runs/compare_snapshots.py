"""Two memory snapshots: what changed from one to the other."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.api.inputs import Path
from oomdoctor.api.runs.snapshot import SnapshotReport, snapshot
from oomdoctor.comparing.snapshots import SnapshotChange, snapshot_change
from oomdoctor.errors import UsageError
from oomdoctor.snapshots.explain import DeviceExplanation
from oomdoctor.snapshots.facts import decisive

_PICKLE = b"\x80"
_PROTOCOLS = range(2, 6)


class SnapshotComparison(Struct, frozen=True, kw_only=True):
    """Two snapshots and what changed."""

    before: SnapshotReport
    after: SnapshotReport
    change: SnapshotChange


def is_snapshot(path: Path) -> bool:
    """Return whether a file is a pickle by its first bytes, which no log, config or description of a machine begins with."""
    try:
        with open(path, "rb") as file:
            first = file.read(2)
    except OSError:
        return False
    return first[:1] == _PICKLE and first[1:] != b"" and first[1] in _PROTOCOLS


def compare_snapshots(before: Path, after: Path, *, rules: Path | None = None) -> SnapshotComparison:
    """Compare two memory snapshots, each by the card that failed, else by the fullest.

    Raise UsageError where one of them cannot be read or holds no card.
    """
    first, second = (snapshot(path, rules=rules) for path in (before, after))
    return SnapshotComparison(before=first, after=second, change=snapshot_change(_device(first), _device(second)))


def _device(report: SnapshotReport) -> DeviceExplanation:
    device = decisive([device for file in report.files for device in file.devices])
    if device is None:
        raise UsageError(f"{report.files[0].name}: it holds no memory of any card")
    return device
