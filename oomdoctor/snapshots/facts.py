"""What rules can ask of a snapshot: `snapshot.<name>`, of the device that failed, else of the fullest; what is missing is unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Union

from oomdoctor.snapshots.explain import AT_OOM, DeviceExplanation
from oomdoctor.snapshots.places import short_place
from oomdoctor.snapshots.refusal import Refusal
from oomdoctor.snapshots.sites import Holder

_NAMED = 3
"""Lines that are named of those whose blocks stand in the way."""
Fact = Union[str, int, float, bool]


def decisive(devices: Sequence[DeviceExplanation]) -> DeviceExplanation | None:
    """Return the device that the answer is about: the one whose run ended there, else the fullest."""
    return max(devices, key=lambda device: (device.holders_at == AT_OOM, device.peak.requested), default=None)


def last_refusal(device: DeviceExplanation) -> Refusal | None:
    """Return the failure that ended the run, else the last one that was survived; None where no request failed."""
    return next((oom for oom in reversed(device.ooms) if not oom.survived), device.ooms[-1] if device.ooms else None)


def snapshot_facts(devices: Sequence[DeviceExplanation]) -> dict[str, Fact]:
    """Return every fact of the snapshots of one run, by name."""
    device = decisive(devices)
    if device is None:
        return {}
    refusal = last_refusal(device)
    facts = {**_totals(device), **_holders(device), **_kept(device), **_growth(device), **({} if refusal is None else _refusal(refusal))}
    return {f"snapshot.{name}": value for name, value in facts.items() if value is not None}


def _totals(device: DeviceExplanation) -> dict[str, Fact | None]:
    return {
        "failed": bool(device.ooms) and not all(oom.survived for oom in device.ooms),
        "survived": bool(device.ooms) and all(oom.survived for oom in device.ooms),
        "ooms": len(device.ooms),
        "peak_bytes": device.peak.requested,
        "reserved_bytes": device.peak.reserved,
        "has_history": device.has_history,
        "has_frames": device.has_frames,
        "ends_giving_back": device.ends_giving_back,
        "given_back_bytes": device.given_back or None,
    }


def _refusal(refusal: Refusal) -> dict[str, Fact | None]:
    capacity = refusal.reserved + refusal.device_free
    return {
        "why": refusal.why,
        "requested_bytes": refusal.requested,
        "request_share": refusal.requested / capacity if capacity else None,
        "request_site": None if refusal.site is None else short_place(refusal.site),
        "request_category": refusal.category,
        "live_bytes": refusal.live_requested,
        "live_share": refusal.live_requested / capacity if capacity else None,
        "free_in_pool_bytes": refusal.free_in_pool,
        "largest_free_bytes": refusal.largest_free_block,
        "device_free_bytes": refusal.device_free,
        "free_elsewhere_bytes": refusal.free_elsewhere,
        "beside_sites": ", ".join(dict.fromkeys(short_place(beside.site) for beside in refusal.beside[:_NAMED] if beside.site)) or None,
    }


def _holders(device: DeviceExplanation) -> dict[str, Fact | None]:
    """Return the largest holder and the share of each category, at the moment that matters."""
    total = sum(holder.size for holder in device.holders)
    if not total:
        return {}
    categories = by_category(device.holders)
    category, first = next(iter(categories)), device.holders[0]
    shares: dict[str, Fact | None] = {f"{name.replace('-', '_')}_share": size / total for name, size in categories.items()}
    return {
        "category": category,
        "category_share": categories[category] / total,
        "holder_site": None if first.site is None else short_place(first.site),
        "holder_bytes": first.size,
        "holder_share": first.size / total,
        "holder_category": first.category,
        **shares,
    }


def _kept(device: DeviceExplanation) -> dict[str, Fact | None]:
    """Return what forward passes left, where it is none of what checkpointing keeps."""
    left = device.kept
    if left is None or left.is_checkpointed:
        return {}
    total = sum(holder.size for holder in device.holders)
    return {
        "left_share": left.size / total if total else None,
        "left_blocks": left.blocks,
        "left_paths": left.paths,
        "kept_site": short_place(left.site),
        "kept_bytes": left.most,
        "kept_blocks": left.most_blocks,
        "kept_share": left.most / total if total else None,
        "kept_of_left_share": left.most / left.size if left.size else None,
        "kept_phase": left.phase,
        "kept_without_gradients": left.without_gradients,
    }


def by_category(holders: Sequence[Holder]) -> dict[str, int]:
    """Return the bytes of each category, the largest first."""
    categories: Counter[str] = Counter()
    for holder in holders:
        categories[holder.category] += holder.size
    return dict(categories.most_common())


def _growth(device: DeviceExplanation) -> dict[str, Fact | None]:
    if not device.growth:
        return {}
    total = sum(holder.size for holder in device.holders)
    first = device.growth[0]
    return {
        "growth_site": short_place(first.site),
        "growth_category": next(iter(by_category([holder for holder in device.holders if holder.site == first.site])), None),
        "growth_added_bytes": first.bytes_per_step,
        "growth_steps": first.steps,
        "growth_held_bytes": first.held,
        "growth_share": first.held / total if total else None,
        "growth_freed_in_a_step_bytes": device.freed_in_a_step,
        "steps_from": device.steps.source,
    }
