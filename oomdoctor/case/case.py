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
    """The reason: a key of the report's texts, never shown as it is."""
    settle: str | None = None
    """The check that would settle a `possible`: a key of the report's texts."""


class Source(Struct, frozen=True, kw_only=True):
    """One input and how much of it was read."""

    name: str
    size: int
    """Bytes read, after decompression."""
    complete: bool = True


class LogStart(Struct, frozen=True):
    """The beginning of a log, which contains the command that was typed."""

    name: str
    data: bytes


SEVERAL_RUNS = "several-runs"
"""The reason for a verdict over runs if more than one failed."""


class RunLine(Struct, frozen=True, kw_only=True):
    """One of several runs, as one line."""

    name: str
    """What its logs have in common."""
    sources: tuple[str, ...]
    verdict: Verdict
    incident: Incident | None = None
    """The failure that decides the verdict."""
    error: str | None = None
    """The error that its logs end with if no message is known."""
    title: Text | None = None
    """The first finding; None if there is none."""
    rank: int | None = None
    """The rank of the process that failed first."""
    group: str | None = None
    """The same for runs that failed in the same way."""
    is_apart: bool = True
    """Its logs are separate files: not members of an archive, and not lines among those of others."""

    @property
    def failed(self) -> bool:
        """Whether it did not end well: because of memory, something else, or an unknown cause."""
        return self.verdict.memory_failure != "no" or (not self.verdict.survived and (self.incident is not None or self.error is not None))


_WORST = {"yes": 0, "possible": 1, "no": 2}


def worst_first(line: RunLine) -> tuple[int, int]:
    """Return the sort key of a run: memory failures, then possible ones, then other errors, then the rest."""
    return _WORST[line.verdict.memory_failure], 0 if line.failed else 1


def reported_run(runs: Sequence[RunLine]) -> RunLine:
    """Return the one of several runs that an issue is about: the worst of those whose logs are separate from the others."""
    return min(runs, key=lambda line: (not line.is_apart, *worst_first(line)))


class Case(Struct, frozen=True, kw_only=True):
    """One run: what its logs state, in order, and what is missing."""

    sources: tuple[Source, ...]
    events: tuple[Event, ...]
    incidents: tuple[Incident, ...]
    verdict: Verdict
    facts: Mapping[str, Value] = field(default_factory=dict)
    """What the log shows about the run's settings and machine, by name (`log.bf16`); if it says nothing, what the environment shows."""
    stated: StatedRun = StatedRun()
    """What the text around the log says about the run."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of commands and arguments printed in the logs, known or not, as written."""
    training: RunConfig | None = None
    """The settings of the run, from its config files and its log."""
    environment: Environment | None = None
    """The machine of the run, if one was given or matches the log."""
    environment_note: Text | None = None
    """Whether facts of a machine are used, and why or why not; None if not requested."""
    estimate: Expected | None = None
    """The calculated estimate for the run; None if its model is unknown."""
    served: ServedRun | None = None
    """The calculated result for a server, in place of `estimate`."""
    ledgers: tuple[ServerLedger, ...] = ()
    """What servers printed about the memory of each GPU during startup."""
    runs: tuple[RunLine, ...] = ()
    """The runs that were told apart; empty if the input belongs to one. Otherwise `incidents` are those of all of them."""
    told: Told | None = None
    """What someone says about a run without a log; None if there is a log, or nobody says that memory ran out."""
    series: tuple[SeenSeries, ...] = ()
    """What monitors recorded alongside the logs."""
    measured: MeasuredParts | None = None
    """What a snapshot shows the GPU memory was used for; None if there is no snapshot, or it does not show that."""
    unread: int = 0
    """Messages that were counted but not parsed, because there were thousands like them."""
    gaps: tuple[Gap, ...] = ()
    not_read: tuple[str, ...] = ()
    """Inputs that could not be read, or not to their end; the gaps with these names give the reason."""
