"""What the lines of a pack hold."""

from msgspec import Struct

from oomdoctor.knowledge.records.evidence import EvidenceCore
from oomdoctor.knowledge.records.problem import ProblemCore

FORMAT = 24
"""Raised with every change of what a pack holds, so that no older one is read."""


class PackLine(Struct, frozen=True, array_like=True):
    """Where a line of the pack begins, and its length, in bytes."""

    start: int
    length: int


class PackEntry(PackLine, frozen=True, array_like=True):
    """The line of a record, and the file that it is from, relative to the folder of the rules."""

    path: str


class PackMatching(Struct, frozen=True):
    """What matching needs at once."""

    literals: list[str]
    behind: list[list[int]]
    sampled: set[int]
    courses: set[int]
    families: dict[str, list[int]]
    observed: list[int]
    """The cores of what is seen and not printed."""
    cores: list[PackLine]
    problems: list[ProblemCore]
    evidence: list[EvidenceCore]
    topics: dict[str, list[str]]
    """Signature -> what it tells."""


class PackHead(Struct, frozen=True):
    """The first line of a pack."""

    format: int
    check: int
    """The checksum of all other lines."""
    matching: PackLine
    computations: PackLine
    requests: PackLine
    frameworks: PackLine
    lexicon: PackLine
    shown_bugs: PackLine
    parts: dict[str, PackLine]
    """For each part of the pack its index, which maps ids to entries."""


class PackFormat(Struct):
    """The number of the format, which the first line of every pack states."""

    format: int = 0
