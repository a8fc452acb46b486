"""Measures in the keys of the run's own framework: file, line, key, the old value and the new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.advice.fixes import rows_of
from oomdoctor.advice.frameworks import framework
from oomdoctor.advice.settings import config_of, written_settings
from oomdoctor.case.plan import Measure, Outcome, Plan, Plans
from oomdoctor.case.settings import RunConfig, Scalar
from oomdoctor.findings.conditions import Fact, KnownFacts
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.fix import FixRecord, SettingRecord
from oomdoctor.planning.options import is_general

_LAYERS = ("deepspeed", "fsdp", "accelerate")
"""The layers whose keys are shown if the framework itself has none."""
_SPREAD = ("zero2-zero3", "offload-optimizer", "offload-params", "fsdp-full-shard", "smaller-zero-buffers")
"""Fixes that a layer below the framework can do by itself."""


class MeasureKeys(Struct, frozen=True):
    """The keys in which a run's settings are written."""

    pack: Pack
    training: RunConfig | None
    known: KnownFacts

    def has(self, fix: str) -> bool:
        """Return whether the run's framework can do a fix with its settings; if the framework is unknown, whether most can."""
        if framework(self.known, self.pack.frameworks) is None:
            return is_general(fix)
        record = self.pack.fix(fix)
        return record is None or not record.settings or bool(self._rows(record))

    def with_keys(self, plans: Plans[Outcome]) -> Plans[Outcome]:
        """Return the plans with their settings as the run's framework or server writes them."""
        obstacle = plans.obstacle
        if obstacle is not None:
            on_cards = None if obstacle.on_cards is None else self._of_plan(obstacle.on_cards)
            obstacle = replace(obstacle, closest=self._of_plan(obstacle.closest), on_cards=on_cards)
        return replace(plans, plans=tuple(self._of_plan(plan) for plan in plans.plans), obstacle=obstacle)

    def _of_plan(self, plan: Plan[Outcome]) -> Plan[Outcome]:
        return replace(plan, measures=self.of_measures(plan.measures))

    def of_measures(self, measures: Sequence[Measure]) -> tuple[Measure, ...]:
        """Return measures that are made together, each key once."""
        return _once([self.of_measure(measure) for measure in measures])

    def of_measure(self, measure: Measure) -> Measure:
        """Return the measure with its settings as the run's framework writes them."""
        fix = self.pack.fix(measure.fix)
        if fix is None:
            return measure
        sets, config = dict(measure.sets), config_of(self.training)
        settings = written_settings(self._usable(fix), sets, self.known.facts, config)
        return replace(measure, settings=settings or written_settings(self._below(fix, sets), sets, self.known.facts, config))

    def _rows(self, fix: FixRecord) -> list[SettingRecord]:
        """Return the framework's own rows, or otherwise those of a layer below; accompanying rows alone do nothing."""
        rows = self._usable(fix)
        return rows if any(not row.along for row in rows) else self._below(fix)

    def _usable(self, fix: FixRecord) -> list[SettingRecord]:
        """Return the rows that the run's version has: a plan is written, so an unknown version is taken to be the newest."""
        return rows_of(self.pack, fix, self.known, self.training, takes_newest=True)

    def _below(self, fix: FixRecord, sets: Mapping[str, Scalar] | None = None) -> list[SettingRecord]:
        """Return the rows of the first layer that does it, or sets what is to be set, if the framework accepts DeepSpeed."""
        sharding = self.pack.fix("zero2-zero3")
        takes = {row.framework for row in sharding.settings} if sharding is not None else set()
        name = framework(self.known, self.pack.frameworks)
        if fix.id not in _SPREAD or (name is not None and name not in takes):
            return []
        rows = [row for row in fix.settings if row.framework in _LAYERS and row.when is None]
        setting = [row for row in rows if sets is None or row.sets in sets] or rows
        # A run distributed by accelerate has its stage in accelerate's file, and none of DeepSpeed's own.
        there = set() if self.training is None else {place.framework for place in self.training.places.values()}
        layer = min((row.framework for row in setting), key=lambda name: (name not in there, _LAYERS.index(name)), default=None)
        return [row for row in rows if row.framework == layer]


def measure_keys(pack: Pack, training: RunConfig | None, facts: Mapping[str, Fact], framework: str | None) -> MeasureKeys:
    """Return the keys of a run; `framework` is what it runs on, as far as known."""
    named = {} if framework is None else {"training.framework": framework}
    return MeasureKeys(pack, training, KnownFacts({**facts, **(training.facts() if training else {}), **named}, ()))


def _once(measures: Sequence[Measure]) -> tuple[Measure, ...]:
    """Return each key with its last value: a file that offloads everything replaces one that only shards."""
    last = {(setting.framework, setting.key): setting for measure in measures for setting in measure.settings}
    return tuple(
        replace(measure, settings=tuple(setting for setting in measure.settings if last[setting.framework, setting.key] is setting))
        for measure in measures
    )
