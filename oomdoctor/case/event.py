"""Events: facts that the evidence states. An event is a parsed message or an observation; a judgment is a Finding."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Literal, Union, get_args

from msgspec import Struct, field

from oomdoctor.case.text import Text

Value = Union[int, float, str, tuple[int, ...], tuple[Mapping[str, Union[int, str, None]], ...]]
"""What a message field can contain; sizes are int bytes and their names end in `_bytes`."""


class Kind(str, Enum):
    """What a message is about; the vocabulary of the report contract."""

    DEVICE_OOM = "device-oom"
    MASKED_DEVICE_OOM = "masked-device-oom"
    HOST_OOM = "host-oom"
    SHM_OOM = "shm-oom"
    KERNEL_RESOURCE = "kernel-resource"
    LOOK_ALIKE = "look-alike"
    CONSEQUENCE = "consequence"
    OTHER_ERROR = "other-error"
    CONTEXT = "context"
    NONE = "none"

    @property
    def is_memory(self) -> bool:
        """Return whether a message of this kind concerns exhausted memory."""
        return self in _MEMORY


_MEMORY = frozenset({Kind.DEVICE_OOM, Kind.MASKED_DEVICE_OOM, Kind.HOST_OOM, Kind.SHM_OOM})


class Certainty(str, Enum):
    """How certain a message or a finding is of what it says."""

    CERTAIN = "certain"
    LIKELY = "likely"
    POSSIBLE = "possible"

    @classmethod
    def of(cls, probability: float) -> Certainty:
        """Return the word for a probability: what is certain is right 95 times out of 100, what is likely 75."""
        return cls.CERTAIN if probability >= 0.95 else cls.LIKELY if probability >= 0.75 else cls.POSSIBLE


class Outcome(str, Enum):
    """Whether the program that prints the message gives up (failure) or may continue (pressure)."""

    FAILURE = "failure"
    PRESSURE = "pressure"


Statement = Literal[
    "allocation-refused",
    "limit-exceeded",
    "process-ended",
    "evicted",
    "device-lost",
    "other-error",
    "pressure",
    "consequence",
    "figures",
]
"""What a message states."""
STATEMENTS: tuple[Statement, ...] = get_args(Statement)
Resource = Literal["device", "host", "shm", "chip"]
"""Whose memory: a GPU's, the host's, /dev/shm, or on a GPU's chip (shared memory and registers of a kernel)."""
RESOURCES: tuple[Resource, ...] = get_args(Resource)
_RESOURCE: Mapping[Kind, Resource] = {
    Kind.DEVICE_OOM: "device",
    Kind.MASKED_DEVICE_OOM: "device",
    Kind.HOST_OOM: "host",
    Kind.SHM_OOM: "shm",
    Kind.KERNEL_RESOURCE: "chip",
}
_STATED: Mapping[Kind, Statement] = {Kind.CONTEXT: "figures", Kind.CONSEQUENCE: "consequence", Kind.LOOK_ALIKE: "other-error"}
_OF_ENDINGS = frozenset({"exit_code", "signal", "ended_by"})


class Place(Struct, frozen=True):
    """The location of a message."""

    source: str
    """The name of the file or stream, as the user gave it."""

    offset: int
    """Byte offset of the line in the (decompressed) source."""

    line: int | None = None
    """1-based line number; None if counting would have cost more than finding."""

    from_end: int | None = None
    """Lines between this one and the end of the source, if that is known instead."""

    is_whole: bool = False
    """The source contains structures rather than lines: the event concerns all of it, and `offset` only distinguishes it from others."""


class Event(Struct, frozen=True, kw_only=True):
    """One parsed message, or one observation by a recorder or a reader of a series (rules/observations)."""

    signature: str
    kind: Kind
    certainty: Certainty | None
    outcome: Outcome
    place: Place
    text: str
    fields: Mapping[str, Value] = field(default_factory=dict)
    rank: int | None = None
    worker: str | None = None
    time: str | None = None
    phase: str | None = None
    frame: str | None = None
    """The innermost frame of the traceback that the message ends, `file:line in function`."""
    computes: str | None = None
    """What was being computed, according to the innermost frames (rules/computations.yaml)."""
    caught: bool = False
    """The words around it say that the program handled it (skipped the batch, retried)."""
    says: Text | None = None
    """For an observation that was not printed: `text` in both languages."""

    def size(self, name: str) -> int | None:
        """Return a byte figure of the message, None if it is not given."""
        value = self.fields.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    @property
    def is_failure(self) -> bool:
        """Return whether it is a memory message that a program prints when it gives up."""
        return self.kind.is_memory and self.outcome is Outcome.FAILURE

    @property
    def resource(self) -> Resource | None:
        """Whose memory it concerns; None if no memory."""
        return _RESOURCE.get(self.kind)

    @property
    def statement(self) -> Statement:
        """What it states, as shown by its kind, outcome and fields."""
        if self.outcome is Outcome.PRESSURE:
            return "pressure"
        ended = not _OF_ENDINGS.isdisjoint(self.fields)
        return _STATED.get(self.kind, "process-ended" if ended else "allocation-refused")


_ROWS = frozenset({"nvidia-smi-gpu-row", "gpustat-row", "cuda-jl-card-row"})


def card_share(event: Event) -> float | None:
    """Return the used fraction of the GPU memory that a row shows; None if the event is not such a row."""
    total = event.size("total_bytes")
    if event.signature not in _ROWS or not total:
        return None
    used, free = event.size("used_bytes"), event.size("free_bytes")
    if used is None and free is not None:
        used = total - free
    return None if used is None else used / total
