"""What a text without a log says of a run, and what the arithmetic makes of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.event import Value
from oomdoctor.case.expected import Change, Told
from oomdoctor.case.plan import Plans
from oomdoctor.case.settings import RunConfig, RunSettings
from oomdoctor.knowledge.pack import Pack
from oomdoctor.parse.prose import find_said_shortage
from oomdoctor.planning.framework_keys import measure_keys
from oomdoctor.planning.memory_budget import memory_budget
from oomdoctor.planning.plans import plans
from oomdoctor.planning.run_space import run_space
from oomdoctor.setups.from_settings import setup_from_settings
from oomdoctor.setups.told import ToldRun, read_told

_SHORT = 2000
"""A text of this length that names a model and a card is about a run; a longer one may be a document."""


def judge_told(text: str, config: RunConfig | None, log: Mapping[str, Value], pack: Pack) -> Told | None:
    """Return what a text says of a run whose memory ran out; None where it does not say that."""
    if find_said_shortage(text, describes_a_run=True) is None:
        return None
    run = read_told(text)
    described = len(text) <= _SHORT and run.shape is not None and (run.card_name is not None or run.method_is_told)
    line = find_said_shortage(text, describes_a_run=described)
    if line is None:
        return None
    outcome = _plans(run, config, log, pack)
    return Told(
        text=line,
        model=run.settings.model,
        card=run.card_name,
        card_is_known=run.card is not None,
        method_is_told=run.method_is_told,
        plans=outcome,
        changes=tuple(_changes(outcome, pack)) if outcome is not None else (),
    )


def _plans(run: ToldRun, config: RunConfig | None, log: Mapping[str, Value], pack: Pack) -> Plans[Estimate] | None:
    """Return whether the run fits and the smallest plan with which it does; None where model, card or method are not told."""
    if run.shape is None or run.card is None or not run.method_is_told:
        return None
    settings = _with_told(config.settings if config else RunSettings(), run.settings)
    framework = (config.framework if config else None) or log.get("log.framework")
    setup, assumptions = setup_from_settings(settings, run.shape, str(framework) if framework else None, run.cards)
    budget = memory_budget(run.card)
    keys = measure_keys(pack, config, log, str(framework) if framework else None)
    outcome = keys.with_keys(plans(run_space(setup, budget, keys.has), top=1))
    return replace(outcome, now=replace(outcome.now, assumptions=assumptions))


def _changes(outcome: Plans[Estimate], pack: Pack) -> Iterator[Change]:
    """Yield the changes of the smallest plan, or of what comes closest."""
    plan = outcome.plans[0] if outcome.plans else outcome.obstacle.closest if outcome.obstacle is not None else None
    for measure in plan.measures if plan is not None else ():
        record = pack.fix(measure.fix)
        if record is not None:
            yield Change(title=record.title, settings=measure.settings)


def _with_told(settings: RunSettings, told: RunSettings) -> RunSettings:
    """Return the settings with what was told where a config or a log says nothing."""
    known = settings.known()
    return replace(settings, **{name: value for name, value in told.known().items() if name not in known})
