"""A case: everything known about one run, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from oomdoctor.case.event import Certainty, Event, Kind, Value
from oomdoctor.case.gap import Gap
from oomdoctor.case.incident import Incident
from oomdoctor.case.server_ledger import ServerLedger
from oomdoctor.case.stated import StatedRun

if TYPE_CHECKING:
    from oomdoctor.case.environment import Environment
    from oomdoctor.case.expected import Expected, Told
    from oomdoctor.case.recorded.parts import MeasuredParts
    from oomdoctor.case.recorded.series import SeenSeries
    from oomdoctor.case.serving import ServedRun
    from oomdoctor.case.settings import RunConfig
    from oomdoctor.case.text import Text


class Verdict(Struct, frozen=True, kw_only=True):
    """Whether memory failed, in one word, and what would settle it."""

    memory_failure: str
    """`yes`, `no` or `possible`."""
    kind: Kind
    certainty: Certainty
    survived: bool = False
    reason: str = ""
    """Why it is so: a key of the report's texts, never shown as it is."""
    settle: str | None = None
    """The check that would settle a `possible`: a key of the report's texts."""


class Source(Struct, frozen=True, kw_only=True):
    """One input and how much of it was read."""

    name: str
    size: int
    """Bytes read, after decompression."""
    complete: bool = True


class LogStart(Struct, frozen=True):
    """How a log begins: there stands the command that was typed."""

    name: str
    data: bytes


SEVERAL_RUNS = "several-runs"
"""The reason of a verdict over runs of which more than one failed."""


class RunLine(Struct, frozen=True, kw_only=True):
    """One of several runs in a line."""

    name: str
    """What its logs have in common."""
    sources: tuple[str, ...]
    verdict: Verdict
    incident: Incident | None = None
    """The failure that decides the verdict."""
    error: str | None = None
    """The error that its logs end with where no message is known."""
    title: Text | None = None
    """The first finding; None where there is none."""
    rank: int | None = None
    """Of the process that failed first."""
    group: str | None = None
    """Equal for runs that failed alike."""
    is_apart: bool = True
    """Its logs are files of their own: no members of an archive, no lines among those of others."""

    @property
    def failed(self) -> bool:
        """Whether it did not end well: memory, something else, or nobody knows."""
        return self.verdict.memory_failure != "no" or (not self.verdict.survived and (self.incident is not None or self.error is not None))


_WORST = {"yes": 0, "possible": 1, "no": 2}


def worst_first(line: RunLine) -> tuple[int, int]:
    """Return where a run stands among several: failures of memory, then what may be one, then other errors, then the rest."""
    return _WORST[line.verdict.memory_failure], 0 if line.failed else 1


def reported_run(runs: Sequence[RunLine]) -> RunLine:
    """Return the run of several that an issue is about, as it is about one: the worst of those whose logs lie apart from the others'."""
    return min(runs, key=lambda line: (not line.is_apart, *worst_first(line)))


class Case(Struct, frozen=True, kw_only=True):
    """One run: what its logs state, in order, and what is missing."""

    sources: tuple[Source, ...]
    events: tuple[Event, ...]
    incidents: tuple[Incident, ...]
    verdict: Verdict
    facts: Mapping[str, Value] = field(default_factory=dict)
    """What the log shows of the run's settings and machine, by name (`log.bf16`); where it is silent, what the environment says."""
    stated: StatedRun = StatedRun()
    """What the text around the log says of the run."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of commands and arguments that the logs print, known or not, as they are written."""
    training: RunConfig | None = None
    """The settings of the run, from its config files and its log."""
    environment: Environment | None = None
    """The machine of the run, where one was given or agrees with the log."""
    environment_note: Text | None = None
    """Whether facts of a machine are used, and why or why not; None where nobody asked."""
    estimate: Expected | None = None
    """What the arithmetic says of the run; None where its model is not known."""
    served: ServedRun | None = None
    """What it says of a server, in place of `estimate`."""
    ledgers: tuple[ServerLedger, ...] = ()
    """What servers printed of the memory of each card while they started."""
    runs: tuple[RunLine, ...] = ()
    """The runs that were told apart; empty where what was given belongs to one. Then `incidents` are those of all of them."""
    told: Told | None = None
    """What somebody says of a run without a log; None where there is one, or nobody says that memory ran out."""
    series: tuple[SeenSeries, ...] = ()
    """What monitors recorded beside the logs."""
    measured: MeasuredParts | None = None
    """What a snapshot shows the card's memory to have been held for; None where there is none, or it does not tell."""
    unread: int = 0
    """Messages that were counted and not parsed, because thousands like them were."""
    gaps: tuple[Gap, ...] = ()
    not_read: tuple[str, ...] = ()
    """Inputs that could not be read, or not to their end; the gaps of these names say why."""
