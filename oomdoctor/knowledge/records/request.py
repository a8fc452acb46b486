"""The shape of rules/requests, which allocation of which program failed and what changes it, and of rules/operations.yaml."""

from typing import Annotated, Union

from msgspec import Meta, Struct

from oomdoctor.case.event import Resource
from oomdoctor.knowledge.records.base import Id, Record, RecordKind, TextRecord
from oomdoctor.knowledge.records.condition import Condition

ANY = "any"
"""In place of a program: any that computes with PyTorch."""


class OperationRecord(Record, frozen=True, kw_only=True):
    """Something for which programs allocate memory."""

    id: Id
    title: TextRecord
    """A noun: what was being allocated."""
    alone: bool = False
    """Whether nothing else grows with the same settings: then the request must fit by itself, else the others become smaller with it."""
    general: bool = False
    """Whether it is what any pass through a model or any program has, so that an operation that is shown beside it counts."""
    trains: bool = False
    """Whether only a run that learns does it: what a program asks for that only answers is never this."""


class QuantityRecord(Record, frozen=True, kw_only=True):
    """Something with which an allocation grows: a setting of a run, or a size of the model or its input."""

    id: Annotated[str, Meta(pattern=r"^[a-z0-9_]+$", max_length=40)]
    title: TextRecord


class OperationFile(Record, frozen=True, kw_only=True):
    """The file rules/operations.yaml."""

    operations: list[OperationRecord]
    quantities: list[QuantityRecord]


class RequestSign(Record, frozen=True, kw_only=True):
    """What shows a request; all that one sign names must hold."""

    message: str | None = None
    """A pattern in the message of the failure and the three lines before it."""
    frame: str | None = None
    """A pattern in the frames and source lines of the failing traceback; where there is none, in the lines around the failure."""
    near: str | None = None
    """A pattern in the last lines before the failure, or the first after it."""
    computes: str | None = None
    """What was being computed (rules/computations.yaml)."""
    shape: list[Union[str, int, float]] = []
    """Quantities and numbers whose product is the size that was asked for."""
    when: Condition | None = None
    """A condition over the facts of the case."""


class RequestProof(Record, frozen=True, kw_only=True):
    """The one thing that tells what the log cannot."""

    says: TextRecord
    command: str | None = None


class RequestRecord(Record, frozen=True, kw_only=True):
    """One operation of one program, or of a few that do it alike."""

    id: Id
    operation: str
    programs: Annotated[list[str], Meta(min_length=1)]
    """Frameworks, or programs of messages; `any` is any that computes with PyTorch."""
    phases: list[str] = []
    """The phase of the failure must be one of these where it is known."""
    memory: Resource | None = None
    """Whose memory must have failed, where the same frames ask for that of a card or of the host."""
    signs: Annotated[list[RequestSign], Meta(min_length=1)]
    """Any one of these is enough."""
    grows_with: dict[str, float] = {}
    """Quantity -> the power with which the request grows; a negative one where it falls."""
    knobs: list[str] = []
    """Fixes, in the order in which to try them."""
    does_not_help: list[str] = []
    """Fixes that are never proposed for this request."""
    settled_by: RequestProof | None = None
    source: str
    example: str
    """The end of a log for which this row is chosen."""
    near_miss: str
    """One for which it is not."""


class SignPattern(Struct, frozen=True):
    """A pattern of a sign."""

    pattern: str
    needs: list[str]
    """Pieces of which one stands in every text that it matches; empty where none is known."""


class SignCore(Struct, frozen=True):
    """What looking for a sign needs."""

    message: SignPattern | None
    frame: SignPattern | None
    near: SignPattern | None
    computes: str | None
    shape: list[Union[str, int, float]]
    when: Condition | None


class RequestCore(Struct, frozen=True):
    """What choosing the request of a failure needs of each row."""

    id: str
    programs: list[str]
    phases: list[str]
    memory: Resource | None
    signs: list[SignCore]
    general: bool
    trains: bool


class RequestFile(Record, frozen=True, kw_only=True):
    """A file of rules/requests: the requests of a program or a family."""

    requests: list[RequestRecord]


OPERATIONS = RecordKind("operations", OperationRecord)
QUANTITIES = RecordKind("quantities", QuantityRecord)
REQUESTS = RecordKind("requests", RequestRecord)
