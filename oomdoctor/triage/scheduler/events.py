"""Kubernetes events that report out-of-memory kills: they name a node, and the pod only by its UID in the kernel's message."""

from __future__ import annotations

import re
from typing import Union

from msgspec import DecodeError, Struct, ValidationError, field
from msgspec.json import Decoder

from oomdoctor.triage.scheduler.record import seconds

_KILLS = frozenset({"OOMKilling", "OOMKilled", "SystemOOM"})
"""Reasons used by node-problem-detector, container runtimes and the kubelet."""
_UID = re.compile(r"pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})")
"""The pod UID in the name of its cgroup; systemd writes its dashes as underscores."""


class MemoryKill(Struct, frozen=True, kw_only=True):
    """An out-of-memory kill: where, when (seconds since 1970), and in which pod if known."""

    node: str | None
    time: int | None
    uid: str | None


class _Object(Struct):
    kind: str = ""
    name: str = ""
    uid: Union[str, None] = None


class _Source(Struct):
    host: Union[str, None] = None


class _Event(Struct):
    kind: str = ""
    reason: Union[str, None] = None
    message: Union[str, None] = None
    about: _Object = field(default_factory=_Object, name="involvedObject")
    source: Union[_Source, None] = None
    first: Union[str, None] = field(default=None, name="firstTimestamp")
    last: Union[str, None] = field(default=None, name="lastTimestamp")
    micro: Union[str, None] = field(default=None, name="eventTime")
    items: list[_Event] = field(default_factory=list)


_DECODER = Decoder(Union[_Event, list[_Event]])


def read_kills(text: bytes) -> list[MemoryKill]:
    """Return the kills in an event or a list of events; other kinds are ignored. Raise ValueError if the text is not such JSON."""
    try:
        read = _DECODER.decode(text)
    except (DecodeError, ValidationError, RecursionError) as why:
        raise ValueError(str(why)) from why
    listed = read if isinstance(read, list) else read.items or [read]
    return [_kill(event) for event in listed if event.kind == "Event" and event.reason in _KILLS]


def _kill(event: _Event) -> MemoryKill:
    told = _UID.search(event.message or "")
    about = event.about
    host = event.source.host if event.source is not None else None
    return MemoryKill(
        node=about.name if about.kind == "Node" else host,
        time=seconds(event.last or event.first or event.micro),
        uid=told[1].replace("_", "-") if told else about.uid if about.kind == "Pod" else None,
    )
