"""The shape of rules/signatures, messages that programs print, and of rules/observations, what is seen of a run."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from oomdoctor.knowledge.records.base import Id, Record, TextRecord

KindName = Literal[
    "device-oom", "masked-device-oom", "host-oom", "shm-oom", "kernel-resource", "look-alike", "consequence", "other-error", "context"
]
CertaintyName = Literal["certain", "likely", "possible"]
FamilyName = Literal[
    "torch-allocator",
    "nvml-assert",
    "kernel-oom",
    "nvidia-smi",
    "memory-summary",
    "elastic-box",
    "array-size",
    "words",
]
UnitName = Literal["KiB", "MiB", "GiB", "TiB"]
PurposeName = Literal["training", "inference"]
LEDGER, LEDGER_BEGINS = "memory-ledger", "ledger-begins"
"""Topics of rules/topics.yaml that code asks for: figures of what a server takes of a card, and that a server starts anew."""


class Example(Record, frozen=True, kw_only=True):
    """A text that a signature must recognise, and the fields that it must find."""

    text: str = ""
    """Of what is seen it follows from the fields."""
    fields: dict[str, Any] = {}


class NearMiss(Record, frozen=True, kw_only=True):
    """A text that must leave the signature quiet, and why."""

    text: str
    why: str


class SignatureRecord(Record, frozen=True, kw_only=True, omit_defaults=True):
    """One message that a program prints."""

    id: Id
    kind: KindName
    certainty: CertaintyName | None = None
    outcome: Literal["failure", "pressure"] = "failure"
    general: bool = False
    """A sentence that many programs print: it gives way to every other message on its lines."""
    literals: Annotated[list[str], Meta(min_length=1)] = []
    literal_parts: list[list[str]] = []
    """More literals, in parts: each of the first before each of the second, and so on."""
    pattern: str | None = None
    family: FamilyName | None = None
    set: dict[str, int | str] = {}
    unit: dict[str, UnitName] = {}
    purpose: PurposeName | None = None
    """What runs are for that print it, where it tells: advice for training is wrong where a program only answers."""
    program: str | None = None
    tells: list[Id] = []
    """What it says beyond its kind, outcome and fields: topics of rules/topics.yaml, by which rules ask for it."""
    since: str | None = None
    until: str | None = None
    source: str
    note: str | None = None
    examples: list[Example] = []
    near_misses: list[NearMiss] = []
    says: TextRecord | None = None
    """Of what is seen and not printed: how it is quoted (knowledge/rows/observations.py). No text matches it."""

    def __post_init__(self) -> None:
        if self.says is None and not (self.literals and all(example.text for example in self.examples)):
            raise ValueError("a message needs a literal, and each example needs its text")
        if self.says is not None and (self.literals or self.pattern or self.family):
            raise ValueError("a quoted observation is not printed: no literal, pattern or family")


class SignatureFile(Record, frozen=True, kw_only=True):
    """A file rules/signatures/<program>.yaml, or one of rules/observations.

    What stands at its head counts for each that does not say otherwise.
    """

    program: str
    kind: KindName | None = None
    certainty: CertaintyName | None = None
    purpose: PurposeName | None = None
    tells: list[Id] = []
    signatures: list[SignatureRecord]


class TopicFile(Record, frozen=True, kw_only=True):
    """The file rules/topics.yaml."""

    topics: dict[Id, Annotated[str, Meta(min_length=1)]]
    """What messages can tell beyond their kind, outcome and fields -> what that means."""


class Alternative(Struct, frozen=True, array_like=True):
    """One branch of a pattern."""

    pattern: str
    """The regular expression, with the names for numbers and sizes spelt out."""
    needs: list[str] | None = None
    """Pieces of which one stands in every text that it matches; None where nobody knows any."""
    reach: int = 0
    """A match begins so many characters before such a piece at most."""


class SignatureCore(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What matching needs of a signature."""

    id: str
    program: str
    kind: KindName
    literals: list[str]
    certainty: CertaintyName | None = None
    purpose: PurposeName | None = None
    outcome: Literal["failure", "pressure"] = "failure"
    general: bool = False
    alternatives: list[Alternative] = []
    """The branches of its pattern, in their order."""
    family: FamilyName | None = None
    set: dict[str, int | str] = {}
    unit: dict[str, UnitName] = {}
    says: TextRecord | None = None

    @property
    def is_aside(self) -> bool:
        """Whether the message is only context or a warning."""
        return self.kind == "context" or self.outcome == "pressure"
