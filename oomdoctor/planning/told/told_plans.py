"""What a text without a log says about a run, and what the arithmetic concludes from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from operator import itemgetter

from msgspec.structs import replace

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.event import Certainty, Value
from oomdoctor.case.expected import Change, Told
from oomdoctor.case.plan import Plans
from oomdoctor.case.settings import RunConfig, RunSettings
from oomdoctor.knowledge.pack import Pack
from oomdoctor.planning.framework_keys import measure_keys
from oomdoctor.planning.memory_budget import memory_budget
from oomdoctor.planning.plans import plans
from oomdoctor.planning.run_space import run_space
from oomdoctor.reading.testimony import Testimony, find_testimony
from oomdoctor.setups.from_settings import setup_from_settings
from oomdoctor.setups.words.told import ToldRun, read_told

_WORTHWHILE = 0.9
"""Anything that lowers the memory needed by less than a tenth, and is not enough, is not useful advice."""
_KILL = "told-kill"
_SHORT = 2000
"""A text up to this length that names a model and a GPU is about a run; a longer one may be a document."""
_PACKAGE_ROW = re.compile(r"(?m)^[\w.-]{1,80}==\S{1,80}[ \t\r]*$")
"""A line of a package list: it says what is installed, not what ran."""


def judge_told(text: str, config: RunConfig | None, log: Mapping[str, Value], pack: Pack) -> Told | None:
    """Return what a text says about a run whose memory ran out; None if it does not say that."""
    run = read_told(text)
    described = len(text) <= _SHORT and run.shape is not None and (run.card_name is not None or run.method_is_told)
    told = find_testimony(text, pack.lexicon, describes_a_run=described)
    if told is None:
        return None
    signature = _signature(told)
    outcome = _plans(run, config, log, text, pack) if signature.startswith("told-card") else None
    return Told(
        text=told.line,
        start=told.start,
        signature=signature,
        certainty=Certainty.LIKELY if told.is_plain else Certainty.POSSIBLE,
        phase=told.phase,
        framework=_named_framework(text, pack),
        model=run.settings.model,
        card=run.card_name,
        card_is_known=run.card is not None,
        method_is_told=run.method_is_told,
        plans=outcome,
        changes=tuple(_changes(outcome, pack)) if outcome is not None else (),
    )


def _signature(told: Testimony) -> str:
    """Return what someone says failed: a kill concerns the machine's memory; if no memory is named, the GPU's is meant."""
    if told.whose == "shared":
        return "told-shared-memory-shortage"
    whose = "card" if told.whose in ("device", None) and not told.is_killed else "host"
    if told.grows:
        return f"told-{whose}-growth"
    return _KILL if told.is_killed else f"told-{whose}-shortage"


def _plans(run: ToldRun, config: RunConfig | None, log: Mapping[str, Value], text: str, pack: Pack) -> Plans[Estimate] | None:
    """Return whether the run fits and the smallest plan with which it does; None if model, GPU or method are not given."""
    if run.shape is None or run.card is None or not run.method_is_told:
        return None
    settings = _with_told(config.settings if config else RunSettings(), run.settings)
    framework = (config.framework if config else None) or str(log.get("log.framework") or "") or _named_framework(text, pack)
    setup, assumptions = setup_from_settings(settings, run.shape, framework, run.cards)
    budget = memory_budget(run.card)
    keys = measure_keys(pack, replace(config or RunConfig(), framework=framework, settings=settings), log, framework)
    outcome = keys.with_keys(plans(run_space(setup, budget, keys.has), top=1))
    return replace(outcome, now=replace(outcome.now, assumptions=assumptions))


def _named_framework(text: str, pack: Pack) -> str | None:
    """Return the framework that a text names outside a package list, or shows by a command; not one that runs below another."""
    text = _PACKAGE_ROW.sub("", text)
    marks = sorted(
        ((record.in_logs.order, record) for record in pack.frameworks if record.in_logs is not None and record.layer is None),
        key=itemgetter(0),
    )
    for _, record in marks:
        names = "|".join(re.escape(name) for name in (record.framework, record.title, *record.names))
        pattern = record.in_logs.pattern if record.in_logs else None
        if re.search(rf"(?i)(?<![\w/-])(?:{names})(?![\w/-])", text) or (pattern and re.search(pattern, text)):
            return record.framework
    return None


def _changes(outcome: Plans[Estimate], pack: Pack) -> Iterator[Change]:
    """Yield the changes of the smallest plan, or of what comes closest."""
    plan = outcome.plans[0] if outcome.plans else outcome.obstacle.closest if outcome.obstacle is not None else None
    if plan is None or plan.outcome.expected > _WORTHWHILE * outcome.now.expected:
        return
    for fix in dict.fromkeys(measure.fix for measure in plan.measures):
        record = pack.fix(fix)
        if record is not None:
            settings = tuple(setting for measure in plan.measures if measure.fix == fix for setting in measure.settings)
            yield Change(title=record.title, settings=settings)


def _with_told(settings: RunSettings, told: RunSettings) -> RunSettings:
    """Return the settings, with stated values where a config or a log says nothing."""
    known = settings.known()
    return replace(settings, **{name: value for name, value in told.known().items() if name not in known})
