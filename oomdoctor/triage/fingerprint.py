"""Three hashes, each with a version (row.GROUPING_VERSION): what failed, whose job it is, and which group it belongs to.

Nothing that differs when the same thing happens again goes in: no pids, ranks, addresses, line numbers, clock times, exact sizes.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomdoctor.case.event import Value
    from oomdoctor.case.incident import Incident
    from oomdoctor.findings.derived import Figures

_IDS = re.compile(
    r"(?<![A-Za-z0-9])(?:\d{3,}|[0-9a-f]{8,}|\d{4}-\d\d-\d\d)(?![A-Za-z0-9])|[-_.](?:run|try|attempt|v|seed|trial)?[-_.]?\d+$"
)
_DATES = re.compile(r"(?<![A-Za-z0-9])\d+(?![A-Za-z0-9])")
"""Standalone numbers in a path: folders for a year, a month or a day."""
_NUMBERS = re.compile(r"0x[0-9a-fA-F]+|\d+(?:\.\d+)?")
LEAST_OTHERS = 0.2
"""If other processes use at least this share of GPU memory, they are the cause of the failure."""


def fingerprint(incident: Incident) -> str:
    """Return a hash of what failed: kind, message, phase, own frame and approximate sizes."""
    root = incident.root
    sizes = _sizes(incident)
    place = _frame(root.frame) if root.frame else "" if any(sizes) else _NUMBERS.sub("#", root.text)[:160]
    return _hash(incident.kind.value, root.signature, incident.phase or "", place, *sizes)


def campaign(user: str | None, submitted_in: str, name: str | None, folder: str, native: str) -> str:
    """Return whose job it is: the user, and the name without numbering.

    Where nobody knows the user, the place from which it was submitted (`submitted_in`) tells users apart; without a name there are the
    array, or the folder of its logs.
    """
    array, _, task = native.partition("_")
    called = without_ids(name) if name else f"{folder}/{array}" if task else _IDS.sub("", folder)
    return _hash(user or _DATES.sub("", _IDS.sub("", submitted_in)), called)


def without_ids(name: str) -> str:
    """Return a name without numbering."""
    return _IDS.sub("", name) or name


def config_key(settings: Mapping[str, Value]) -> str | None:
    """Return a hash of the settings shown in a log; None if there are none."""
    told = sorted((name, str(value)) for name, value in settings.items() if name.startswith("log."))
    return _hash(*(f"{name}={value}" for name, value in told)) if told else None


def group_of(incident: Incident, family: str, whose: str) -> str:
    """Return the group of a failure: the same kind and amount of memory, in one user's submissions of the same job.

    `family`: what names the message whichever release wrote it. Where in the program it failed is left out: a log shows it or not,
    as its lines were cut.
    """
    return _hash(incident.kind.value, family, whose, *_sizes(incident))


def group_of_node(node: str) -> str:
    """Return the group of failures on a node whose GPUs are used by others."""
    return _hash("node", node)


def group_of_a_card(what: str) -> str:
    """Return the group of equal failures (`what`: their fingerprint) on a GPU used by others, if the logs name no node."""
    return _hash("card", what)


def is_held_by_others(figures: Figures) -> bool:
    """Return whether a message shows that other processes use a considerable part of the GPU."""
    share = figures.get("other_share", figures.get("unaccounted_share"))
    return isinstance(share, float) and share >= LEAST_OTHERS


def _frame(frame: str) -> str:
    """Return a frame without its line number and the package's install path."""
    path, _, function = frame.rpartition(" in ")
    file = re.sub(r":\d+$", "", path).replace("\\", "/")
    return f"{file.split('site-packages/')[-1] if 'site-packages/' in file else os.path.basename(file)} {function}"


def _sizes(incident: Incident) -> list[str]:
    return [_rough(incident.root.size(name)) for name in ("requested_bytes", "total_bytes")]


def _rough(size: int | None) -> str:
    return "" if not size or size < 0 else str(round(math.log2(size)))


def _hash(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=8).hexdigest()
