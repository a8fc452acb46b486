"""The memory snapshot that a recorder wrote at the first failure, as facts of the run."""

from __future__ import annotations

import os
import stat

from oomdoctor.api.runs.snapshot import read_isolated
from oomdoctor.api.runs.snapshot_beside import SnapshotBeside
from oomdoctor.case.gap import Gap
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.evidence import HOLDINGS
from oomdoctor.record.evidence import RefusedRequest
from oomdoctor.record.observations.refusals import frames_of, went_on
from oomdoctor.record.read_folder import RankEvidence, RunEvidence
from oomdoctor.snapshots.explain import SavedState
from oomdoctor.snapshots.facts import decisive, snapshot_facts
from oomdoctor.snapshots.places import short_place
from oomdoctor.snapshots.refusal import reason
from oomdoctor.snapshots.sites import BACKWARD, Holdings, own_frame
from oomdoctor.snapshots.stacks import PythonFrame, Stacks

_MOST_BYTES = 256 << 20


def recorded_snapshot(evidence: RunEvidence, pack: Pack) -> SnapshotBeside:
    """Return what the snapshot of the first failed rank shows, or why it shows nothing."""
    failed = [(rank.ooms[0].time, rank) for rank in evidence.ranks if rank.ooms and rank.snapshots]
    if not failed:
        return SnapshotBeside()
    _, rank = min(failed, key=lambda pair: pair[0])
    path, refused = rank.snapshots[0], rank.ooms[0]
    if not _is_readable(path):
        return SnapshotBeside(gaps=(Gap(path, "it is not a file, or is larger than a recorder's snapshot"),))
    totals = {} if refused.device is None or not refused.total_bytes else {refused.device: refused.total_bytes}
    read = read_isolated(path, pack, totals)
    devices = [device for file in read.files for device in file.devices]
    facts: dict[str, Fact] = {**snapshot_facts(devices)}
    device = decisive(devices)
    if device is not None and not facts.get("snapshot.failed") and not went_on(evidence, rank, refused):
        facts |= _refused_then(rank, refused, device.end)
        facts |= _requested_by(refused, pack)
    return SnapshotBeside(facts, read.gaps, device, at_failure=True)


def _refused_then(rank: RankEvidence, refused: RefusedRequest, end: SavedState) -> dict[str, Fact]:
    """Return why a request failed, from what was saved right after it: a recorder that keeps no history has no entry for the failure."""
    wanted_bytes, free = refused.driver_request_bytes, refused.free_bytes
    if wanted_bytes is None or free is None or wanted_bytes < 0 or free < 0 or rank.ooms[0] is not refused:
        return {}
    in_pool = max(0, end.reserved - end.allocated - end.waiting - end.in_other_pools)
    capacity = end.reserved + free
    why = reason(wanted_bytes, free, end.reserved, end.largest_free_block or 0, in_pool, end.in_other_pools, refused.total_bytes)
    facts: dict[str, Fact] = {
        "failed": True,
        "why": why,
        "requested_bytes": wanted_bytes,
        "request_share": wanted_bytes / capacity if capacity else None,
        "live_bytes": end.allocated,
        "live_share": end.allocated / capacity if capacity else None,
        "free_in_pool_bytes": in_pool,
        "largest_free_bytes": end.largest_free_block,
        "device_free_bytes": free,
    }
    return {f"snapshot.{name}": value for name, value in facts.items() if value is not None}


def _requested_by(refused: RefusedRequest, pack: Pack) -> dict[str, Fact]:
    """Return which line made the request, and for what, from the stack of the thread whose request was refused."""
    stacks = Stacks()
    asking = stacks.add("".join(stacks.frame(PythonFrame(*frame)) for frame in frames_of(refused.stack)))
    own = own_frame(stacks, asking)
    holdings = Holdings(list(pack.records(HOLDINGS)), pack.computations)
    category = BACKWARD if refused.thread == "backward" else holdings.of(stacks, asking)
    facts = {"request_site": None if own is None else short_place(str(own)), "request_category": category}
    return {f"snapshot.{name}": value for name, value in facts.items() if value is not None}


def _is_readable(path: str) -> bool:
    """Return whether it is a plain file of a size that a recorder writes; a link may point outside the folder."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_BYTES
