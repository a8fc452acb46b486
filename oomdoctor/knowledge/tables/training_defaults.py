"""What a framework takes where a config says nothing: by its version, by how the run is spread, by what is trained.

Where several rows of a name hold the first counts, and they are looked at in this order: the framework's own rows for the run's way of
spreading, those of the program that spreads it (accelerate, DeepSpeed), the framework's rows for every way, those of the framework whose
arguments it takes. A type of the weights that the config gives goes before rows for every way: casting comes after loading.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from msgspec import Struct

from oomdoctor.case.setup import Engine
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.base import Plain
from oomdoctor.knowledge.records.framework import FRAMEWORKS, FrameworkRecord, TrainingDefault
from oomdoctor.versions import parse_version, within

LAYERS: Mapping[Engine, str] = {"deepspeed": "deepspeed", "fsdp1": "accelerate", "fsdp2": "accelerate"}
"""The program that spreads a run, where trainers leave that to one."""

_TRAINER = "transformers"
_LOADED = ("full_weights", "frozen_weights")
"""What has the type that the config gives the weights."""


class DefaultsQuery(Struct, frozen=True):
    """What decides which defaults hold."""

    engine: Engine = "none"
    method: str = "sft"
    weights: str | None = None
    """The type that the config gives the weights."""
    attention: str = "sdpa"
    packed: bool = False
    whole: bool | None = None
    """Whether all weights are trained; None where the framework decides that too."""
    computes_wide: bool = False
    """Whether the run computes in fp32, so that nothing is mixed."""
    versions: tuple[tuple[str, str], ...] = ()
    """The versions that are known, by framework."""


@cache
def framework_records() -> dict[str, FrameworkRecord]:
    """Return all frameworks by name."""
    return {record.framework: record for record in load_pack().records(FRAMEWORKS)}


_NO_WORD = frozenset({"fsdp", "weights", "zero_stage"})
"""What decides how a run is spread and kept, as programs do it without a word."""


def without_a_word(framework: str | None) -> dict[str, Plain]:
    """Return what a program does where no setting of its own says otherwise: the key `*` of its record."""
    record = framework_records().get(framework or "")
    sources = {} if record is None else record.settings
    always = ((name, source) for name in _NO_WORD & sources.keys() for source in sources[name] if not isinstance(source, str))
    return {name: value for name, source in always if source.key == "*" and (value := source.map.get("*")) is not None}


def training_default(record: FrameworkRecord, name: str, query: DefaultsQuery) -> TrainingDefault | None:
    """Return what a framework takes for `name`; None where nothing is known."""
    return next(_in_turn(record, name, query), None)


def default_value(record: FrameworkRecord, name: str, query: DefaultsQuery) -> Plain | None:
    """Return the value alone, or the type that the config gives the weights where nothing casts them."""
    row = training_default(record, name, query)
    if query.weights is not None and name in _LOADED and not (row is not None and row.engines):
        return query.weights
    return None if row is None else row.value


def defaults_version(record: FrameworkRecord, query: DefaultsQuery) -> str:
    """Return the version whose defaults count: the known one, else the release of the record; empty without any."""
    if record.defaults is None:
        return ""
    known = dict(query.versions).get(record.framework)
    return known if known and parse_version(known) is not None else record.defaults.release


def _in_turn(record: FrameworkRecord, name: str, query: DefaultsQuery) -> Iterator[TrainingDefault]:
    own = tuple(_holding(record, name, query))
    yield from (row for row in own if row.engines)
    layer = LAYERS.get(query.engine)
    if layer is not None and not query.computes_wide and _computes_mixed(record):
        yield from (row for row in _holding(framework_records()[layer], name, query) if row.engines)
    yield from own
    if (origin := _origin(record)) is not None:
        yield from _in_turn(framework_records()[origin], name, query)


def _origin(record: FrameworkRecord) -> str | None:
    """Return the framework whose defaults a framework has where it has none of its own: that of its arguments."""
    return record.trains_like or (_TRAINER if record.defaults is not None and _TRAINER in record.shares else None)


def _computes_mixed(record: FrameworkRecord) -> bool:
    """Return whether a framework leaves precision and spreading to accelerate: its passes run under autocast."""
    trained = framework_records().get(record.trains_like or "", record)
    return trained.training is not None and trained.training.autocast and trained.defaults is not None


def _holding(record: FrameworkRecord, name: str, query: DefaultsQuery) -> Iterator[TrainingDefault]:
    if record.defaults is None:
        return
    rows: list[TrainingDefault] = getattr(record.defaults, name)
    known = defaults_version(record, query)
    for row in rows:
        if (
            _is_of_version(row, known)
            and (not row.engines or query.engine in row.engines)
            and (not row.methods or query.method in row.methods)
            and row.weights in (None, query.weights)
            and (not row.attentions or query.attention in row.attentions)
            and row.packed in (None, query.packed)
            and row.whole in (None, query.whole)
        ):
            yield row


def _is_of_version(row: TrainingDefault, known: str) -> bool:
    """Return whether a row holds for a version."""
    is_within = within(known, row.since, row.until) if known else None
    return row.until is None if is_within is None else is_within
