"""Two memory snapshots: what changed from one to the other."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.api.inputs import Path, path_text
from oomdoctor.api.runs.snapshot import SnapshotReport, snapshot
from oomdoctor.comparing.snapshots import SnapshotChange, snapshot_change
from oomdoctor.errors import UsageError
from oomdoctor.snapshots.explain import DeviceExplanation
from oomdoctor.snapshots.facts import decisive
from oomdoctor.snapshots.forms.file import begins_as_snapshot
from oomdoctor.snapshots.opcodes import NotReadable


class SnapshotComparison(Struct, frozen=True, kw_only=True):
    """Two snapshots and what changed."""

    before: SnapshotReport
    after: SnapshotReport
    change: SnapshotChange


def is_snapshot(path: Path) -> bool:
    """Return whether a file begins like a memory snapshot in any of its forms, unlike any log, config or machine description."""
    try:
        return begins_as_snapshot(path_text(path) or "")
    except (OSError, NotReadable):
        return False


def compare_snapshots(before: Path, after: Path, *, rules: Path | None = None) -> SnapshotComparison:
    """Compare two memory snapshots, each by the GPU that failed, or otherwise by the fullest.

    Raise UsageError if one of them cannot be read or contains no GPU.
    """
    first, second = (snapshot(path, rules=rules) for path in (before, after))
    return SnapshotComparison(before=first, after=second, change=snapshot_change(_device(first), _device(second)))


def _device(report: SnapshotReport) -> DeviceExplanation:
    device = decisive([device for file in report.files for device in file.devices])
    if device is None:
        raise UsageError(f"{report.files[0].name}: it contains no memory of any card")
    return device
