"""Convert what memory snapshots tell to `oomdoctor/snapshot/v1`."""

from __future__ import annotations

from typing import cast

from oomdoctor.api.runs.snapshot import SnapshotFile, SnapshotReport
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wire.diagnosis import convert_finding
from oomdoctor.report.wire.runs.snapshot_v1 import (
    DeviceV1,
    EndV1,
    FileV1,
    GrowthV1,
    HeldAt,
    HolderV1,
    NeighbourV1,
    OomV1,
    PeakV1,
    SnapshotV1,
    StepsFrom,
    Why,
)
from oomdoctor.report.wire.settings_v1 import gap
from oomdoctor.report.wording.wording import Wording
from oomdoctor.snapshots.explain import DeviceExplanation
from oomdoctor.snapshots.growth import Growth
from oomdoctor.snapshots.refusal import Refusal
from oomdoctor.snapshots.sites import Holder

_LONGEST = 1000


def convert_snapshot(report: SnapshotReport, wording: Wording, version: str) -> SnapshotV1:
    """Convert the report: the first file stands at the top, and where there are several, each in `files`."""
    files = tuple(_file(file) for file in report.files)
    return SnapshotV1(
        oomdoctor=version,
        form=files[0].form,
        torch_at_least=files[0].torch_at_least,
        devices=files[0].devices,
        files=files if len(files) > 1 else (),
        findings=tuple(convert_finding(finding, wording) for finding in report.findings),
        gaps=tuple(gap(missing) for missing in report.gaps),
    )


def _file(file: SnapshotFile) -> FileV1:
    return FileV1(
        name=clean_line(file.name, _LONGEST),
        form=file.form,
        torch_at_least=file.torch_at_least,
        devices=tuple(_device(device) for device in file.devices),
    )


def _device(device: DeviceExplanation) -> DeviceV1:
    end, peak = device.end, device.peak
    return DeviceV1(
        index=device.index,
        history=device.has_history,
        entries=device.entries,
        end=EndV1(
            reserved_bytes=end.reserved,
            requested_bytes=end.requested,
            allocated_bytes=end.allocated,
            waiting_bytes=end.waiting,
            largest_free_block_bytes=end.largest_free_block,
            free_in_other_pools_bytes=end.in_other_pools,
        ),
        peak=PeakV1(position=peak.position, requested_bytes=peak.requested, reserved_bytes=peak.reserved),
        ooms=tuple(_oom(oom) for oom in device.ooms),
        holders_at=cast(HeldAt, device.holders_at),
        holders=tuple(_holder(holder) for holder in device.holders),
        steps_from=cast(StepsFrom, device.steps.source),
        steps=len(device.steps.ends),
        growth=tuple(_growth(growth) for growth in device.growth),
    )


def _oom(oom: Refusal) -> OomV1:
    return OomV1(
        position=oom.position,
        requested_bytes=oom.requested,
        reserved_bytes=oom.reserved,
        device_free_bytes=oom.device_free,
        largest_free_block_bytes=oom.largest_free_block,
        free_in_pool_bytes=oom.free_in_pool,
        free_elsewhere_bytes=oom.free_elsewhere,
        live_requested_bytes=oom.live_requested,
        survived=oom.survived,
        why=cast(Why, oom.why),
        site=_place(oom.site),
        category=_words(oom.category),
        beside=tuple(
            NeighbourV1(site=_place(beside.site), category=_words(beside.category), bytes=beside.size, blocks=beside.blocks)
            for beside in oom.beside
        ),
    )


def _place(place: str | None) -> str | None:
    return None if place is None else clean_line(place, _LONGEST)


def _words(category: str) -> str:
    """Return a category as it is written in the answer: `optimizer states`."""
    return category.replace("-", " ")


def _holder(holder: Holder) -> HolderV1:
    site, frame = _place(holder.site), _place(holder.frame)
    return HolderV1(site=site, frame=frame, category=_words(holder.category), bytes=holder.size, blocks=holder.blocks)


def _growth(growth: Growth) -> GrowthV1:
    return GrowthV1(
        site=clean_line(growth.site, _LONGEST),
        bytes_per_step=growth.bytes_per_step,
        steps=growth.steps,
        held_bytes=growth.held,
        blocks=growth.blocks,
    )
