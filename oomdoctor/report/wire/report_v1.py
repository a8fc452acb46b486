"""The structures of `oomdoctor/report/v1`: one diagnosis. Additions are allowed, renames are not."""

from __future__ import annotations

from typing import Annotated, Literal, Union

from msgspec import Meta, Struct

from oomdoctor.case.event import Certainty, Kind, Outcome
from oomdoctor.report.wire.bugs import BugV1
from oomdoctor.report.wire.estimate_v1 import ExpectedV1
from oomdoctor.report.wire.plan_v1 import PlansV1
from oomdoctor.report.wire.request_v1 import RequestV1
from oomdoctor.report.wire.server_ledger import LEDGERS_LIMIT, ServerLedgerV1
from oomdoctor.report.wire.settings_v1 import ConfigIssueV1, Count, GapV1, LineNumber, SettingV1

Tag = Literal["oomdoctor/report/v1"]
Answer = Annotated[str, Meta(extra_json_schema={"enum": ["yes", "no", "possible"]})]
FitsWord = Annotated[str, Meta(extra_json_schema={"enum": ["yes", "close", "no"]})]
Harm = Annotated[str, Meta(extra_json_schema={"enum": ["none", "slower", "effort", "quality", "hardware"]})]
Safety = Annotated[str, Meta(extra_json_schema={"enum": ["safe", "review"]})]
Origin = Annotated[str, Meta(extra_json_schema={"enum": ["measured", "derived", "estimated"]})]
FieldValue = Union[str, int, float, bool, list[object], None]
"""What a field of a message can hold; a list is of numbers, or of objects."""
_SIZES = {"patternProperties": {"_bytes$": {"type": ["integer", "array", "null"]}}}
Fields = Annotated[dict[str, FieldValue], Meta(extra_json_schema=_SIZES)]
_NOTE = {"properties": {"note": {"type": "string"}}}
FOLLOWED_LIMIT = 50
RUNS_LIMIT = 1000
SERIES_LIMIT = 64


class VerdictV1(Struct, frozen=True, kw_only=True):
    """Whether memory failed."""

    memory_failure: Answer
    kind: Kind
    certainty: Certainty
    survived: bool
    reason: str
    """Why, as a key."""
    settle: str | None
    """What to check to settle a `possible`."""
    summary: str
    """The verdict in one sentence."""


class EventV1(Struct, frozen=True, kw_only=True):
    """One message, parsed."""

    signature: str
    kind: Kind
    certainty: Certainty | None
    outcome: Outcome
    source: str
    """The file as it was given."""
    line: LineNumber | None
    """1-based; null where it was not counted."""
    offset: Count
    """Byte offset in the decompressed source; of what was seen and not printed, a number that tells it from others."""
    lines_from_end: Count | None
    """Lines after it, where that is known instead of `line`."""
    rank: Count | None
    time: str | None
    text: str
    phase: str | None
    frame: str | None
    fields: Fields
    """What the message says; names that end in `_bytes` are integer bytes."""


class LedgerEntryV1(Struct, frozen=True, kw_only=True):
    """One part of a memory."""

    what: str
    bytes: int
    of: str
    source: Origin


class IncidentV1(Struct, frozen=True, kw_only=True):
    """One failure, what repeats it and what followed from it."""

    kind: Kind
    certainty: Certainty
    survived: bool
    phase: str | None
    ranks: tuple[int, ...]
    gpus: tuple[int, ...]
    count: LineNumber
    root: EventV1
    derived: dict[str, FieldValue]
    ledger: tuple[LedgerEntryV1, ...]
    consequences: Annotated[tuple[EventV1, ...], Meta(max_length=FOLLOWED_LIMIT)]
    consequences_more: Count
    repeats: Annotated[tuple[EventV1, ...], Meta(max_length=FOLLOWED_LIMIT)]
    repeats_more: Count


class SourceV1(Struct, frozen=True, kw_only=True):
    """One input."""

    name: str
    size: Count
    complete: bool


class ConfigSettingV1(Struct, frozen=True, kw_only=True):
    """One setting and where it stands; null where it was worked out from others."""

    value: str | int | float | bool | None
    key: str | None
    file: str | None
    line: int | None


class RunConfigV1(Struct, frozen=True, kw_only=True):
    """The settings of the run in the words that all frameworks share, and what of them does not take effect."""

    framework: str | None
    version: str | None
    settings: dict[str, ConfigSettingV1]
    complaints: tuple[ConfigIssueV1, ...]
    complaints_more: Count


class EvidenceV1(Struct, frozen=True, kw_only=True):
    """A line that a finding stands on."""

    source: str
    """The file as it was given."""
    line: LineNumber | None
    """1-based; null where it was not counted."""
    offset: Count
    """Byte offset in the decompressed source; of what was seen and not printed, a number that tells it from others."""
    lines_from_end: Count | None
    """Lines after it, where that is known instead of `line`."""
    text: str


class MeasuredSavingV1(Struct, frozen=True, kw_only=True):
    """What a fix frees of memory that was measured, per card; derived."""

    bytes: Count
    of_bytes: Count
    """What was measured of the parts that it lowers."""
    by: Literal["setting", "model", "half", "at-most"]
    """From the old and the new value of the setting, from the memory model, for half of a setting whose value is not known, or at most."""


class FixV1(Struct, frozen=True, kw_only=True):
    """One thing to do."""

    id: str
    title: str
    how: str
    settings: tuple[SettingV1, ...]
    command: str | None
    frees: str | None
    """What it frees, in words."""
    frees_terms: tuple[str, ...]
    """The terms of the memory model that it lowers."""
    frees_bytes: int | None
    """Bytes per card at most: a figure of the message, or estimated from the number of parameters."""
    fits: bool | None
    """Whether the run would fit with this fix; null where that is too close to say or unknown."""
    fits_word: FitsWord | None
    """The same in words; null where it is unknown."""
    costs: str | None
    harm: Harm
    """The worst of what it costs."""
    needs: tuple[str, ...]
    """What must hold for it to help and is not known."""
    safety: Safety
    cites: tuple[str, ...]
    frees_measured: MeasuredSavingV1 | None = None
    """Null where what it lowers was not measured."""
    typed: tuple[str, ...] = ()
    """Of which one is typed where no program is known that has a key for it, each with who understands it in brackets."""


class NotThisV1(Struct, frozen=True, kw_only=True):
    """Advice that people meet and that is wrong here."""

    advice: str
    why: str
    cites: tuple[str, ...]


class CiteV1(Struct, frozen=True, kw_only=True):
    """A source and whether it is right."""

    source: str
    title: str
    url: str | None
    says: str
    verdict: str | None
    correction: str | None


class SignV1(Struct, frozen=True, kw_only=True):
    """Something that was seen and speaks for an explanation or against it."""

    id: str
    says: str
    weight: float
    """What it adds to the natural logarithm of the odds; below 0 it speaks against."""


class OpenCauseV1(Struct, frozen=True, kw_only=True):
    """That the log cannot tell the cause: the readings that remain, and what settles it."""

    findings: tuple[str, ...]
    """Ids of findings, the most probable first."""
    settled_by: str
    command: str | None


class FailurePhaseV1(Struct, frozen=True, kw_only=True):
    """A time at which the run can have died, and what to do then."""

    id: str
    says: str
    """When it was, as a condition."""
    fixes: tuple[FixV1, ...]
    """Each where the one before is not enough."""


class OpenPhaseV1(Struct, frozen=True, kw_only=True):
    """That nothing tells when the run died, so that what to do depends on it."""

    phases: tuple[FailurePhaseV1, ...]
    """The most probable first."""
    settled_by: str
    """What stands in the traceback at each of these times."""


class FindingV1(Struct, frozen=True, kw_only=True):
    """A rule's judgement."""

    id: str
    cause: str | None
    severity: str
    confidence: Certainty
    probability: Annotated[float, Meta(ge=0, le=1)] | None
    """Among all explanations of the failure; null for a statement, which competes with none."""
    signs: tuple[SignV1, ...]
    """What speaks for it and against it, beside its own conditions."""
    title: str
    why: str
    evidence: tuple[EvidenceV1, ...]
    unknowns: tuple[str, ...]
    fixes: tuple[FixV1, ...]
    already: tuple[SettingV1, ...]
    """What the run does already."""
    not_this: tuple[NotThisV1, ...]
    """Advice that is wrong here."""
    cites: tuple[CiteV1, ...]


class ToldV1(Struct, frozen=True, kw_only=True):
    """What a text without a log says of a run."""

    text: str
    """The line that says that memory ran out."""
    model: str | None
    card: str | None
    plan: PlansV1 | None
    """Whether it fits and what would make it fit, as `oomdoctor plan --format json` writes it.

    Null where model, card or method are not told."""


class RunV1(Struct, frozen=True, kw_only=True):
    """One of several runs."""

    name: str
    """What its logs have in common."""
    sources: tuple[str, ...]
    memory_failure: Answer
    kind: Kind
    certainty: Certainty
    survived: bool
    reason: str
    """Why, as a key."""
    signature: str | None
    """The message that decides it; null where no message is known."""
    error: str | None
    """The error that its logs end with where no message is known."""
    title: str | None
    """The first finding."""
    first_file: str | None
    """The log in which the failure stands."""
    first_rank: int | None
    """Of the process that failed first."""
    group: str | None
    """Equal for runs that failed alike; null where none is known."""


class PaceV1(Struct, frozen=True, kw_only=True):
    """How fast memory grows, and the range in which that lies nine times of ten; bytes, or percent where the series is in percent."""

    low: float
    middle: float
    high: float


class RecordedSeriesV1(Struct, frozen=True, kw_only=True):
    """Memory over time, as a monitor recorded it. Sizes are bytes; null where the series is in percent."""

    source: str
    of: Literal["card", "process", "host"]
    card: str | None
    process: Count | None
    name: str | None
    samples: Count
    """Of the work: without loading, and without what came after the end."""
    shape: Annotated[str, Meta(extra_json_schema={"enum": ["steady", "staircase", "leak", "climb", "saw-tooth", "unclear"]})] | None
    """Derived; null where there are too few samples."""
    total_bytes: Count | None
    first_bytes: Count | None
    last_bytes: Count | None
    highest_bytes: Count | None
    lowest_bytes: Count | None
    last_climb_bytes: Count | None
    """How far the last samples are above all before."""
    rises: Count
    per_hour: PaceV1 | None
    per_step: PaceV1 | None
    hours_to_full: float | None
    interval_s: float | None
    failed_at: float | None
    """Where the failure of the log stands on the clock of the series, in seconds."""
    course: tuple[Count, ...]
    """The highest in each of at most 240 pieces of the whole series; empty where it is in percent."""


class ExpectedPartV1(Struct, frozen=True, kw_only=True):
    """What the memory model says of a part at its fullest moment; estimated."""

    bytes: Count
    low_bytes: Count
    high_bytes: Count


class MeasuredPartV1(Struct, frozen=True, kw_only=True):
    """What lived on the card for one use."""

    what: str
    """A category, as `oomdoctor snapshot` names it."""
    says: str
    bytes: Count
    source: Origin
    """How its use is known: `measured` by the frames of all its blocks, `derived` by the moment or by missing frames."""
    site: str | None
    """The line that holds most of it, as file:line:function."""
    expected: ExpectedPartV1 | None
    """Null where the settings of the run are not known."""
    difference_bytes: int | None
    """What is there beyond what is expected; derived."""
    meaning: str | None
    """What a large difference means."""


class MeasuredV1(Struct, frozen=True, kw_only=True):
    """What a snapshot shows the memory of a card to have been held for."""

    device: Count
    at: Literal["failure", "peak", "end"]
    """At the failed request, at the highest of the recording, or when the snapshot was saved."""
    parts: tuple[MeasuredPartV1, ...]


class ReportV1(Struct, frozen=True, kw_only=True):
    """A report of oomdoctor: one diagnosis."""

    schema: Tag
    oomdoctor: str
    """The version that wrote the report."""
    verdict: VerdictV1
    incidents: tuple[IncidentV1, ...]
    """Failures, the one that decides the verdict first."""
    events: tuple[EventV1, ...]
    """Every parsed message, in order, 1000 at most: the first and the last half."""
    events_more: Count
    """How many events were left out."""
    unread: Count
    """Messages that were counted and not parsed, because thousands like them were."""
    sources: tuple[SourceV1, ...]
    environment: Annotated[dict[str, object], Meta(extra_json_schema=_NOTE)]
    """The machine of the run as `oomdoctor env --format json` writes it, where it is known.

    `note` says whether its facts are used, and why."""
    training: dict[str, RunConfigV1 | FieldValue]
    """What the log prints of the run's settings, by name; under `config` what its config files say."""
    estimate: ExpectedV1 | None
    """What the run should have taken, where its model is known."""
    findings: tuple[FindingV1, ...]
    """Judgements of rules, the root first."""
    open_cause: OpenCauseV1 | None
    """Where the log cannot tell the cause."""
    gaps: tuple[GapV1, ...]
    """What is not known."""
    conclusions: tuple[str, ...] = ()
    """What follows from the figures of the failure, whatever its cause is."""
    open_phase: OpenPhaseV1 | None = None
    """Where no more than a message tells of the run: what to do by when it died."""
    told: ToldV1 | None = None
    """What somebody says of a run without a log."""
    series: Annotated[tuple[RecordedSeriesV1, ...], Meta(max_length=SERIES_LIMIT)] = ()
    """What monitors recorded beside the logs."""
    measured: MeasuredV1 | None = None
    """What the memory of the card was held for, beside what the settings lead to expect; null where no snapshot tells."""
    request: RequestV1 | None = None
    """What asked for the memory that was not there; null where no memory failed."""
    server_memory: Annotated[tuple[ServerLedgerV1, ...], Meta(max_length=LEDGERS_LIMIT)] = ()
    """What servers printed of the memory of each card while they started, added up."""
    bugs: tuple[BugV1, ...] = ()
    """Known bugs of releases that the log shows; their steps stand first in the first finding."""
    runs: Annotated[tuple[RunV1, ...], Meta(max_length=RUNS_LIMIT)] = ()
    """The runs that were told apart, in their order; empty where what was given belongs to one."""
    runs_more: Count = 0
    """How many runs were left out."""
