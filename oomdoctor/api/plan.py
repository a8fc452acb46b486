"""What to change so that a run fits its cards."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from oomdoctor.api.configs import read_settings
from oomdoctor.api.inputs import Path, Paths, path_list, path_text
from oomdoctor.api.models import fetch_unknown, find_card
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.plan import MemoryBudget
from oomdoctor.case.serving import AnyPlans, Served
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.knowledge.tables.cards import Card
from oomdoctor.planning.framework_keys import measure_keys
from oomdoctor.planning.memory_budget import memory_budget
from oomdoctor.planning.plan_request import PlanRequest, plan_request
from oomdoctor.planning.plans import plans
from oomdoctor.planning.run_space import run_space
from oomdoctor.planning.server_space import server_space
from oomdoctor.setups.from_log import run_from_log
from oomdoctor.setups.server import CardLookup, serve_run, server_record


def plan(
    config: Paths = (),
    *,
    log: Diagnosis | Paths = (),
    gpu: str | None = None,
    gpus: int | None = None,
    model: Path | None = None,
    hub: bool = False,
    framework: str | None = None,
    top: int = 5,
    rules: Path | None = None,
) -> AnyPlans:
    """Plan what to change so that a run fits its cards, the smallest change first and `top` plans at most.

    `config` are the run's config files, `log` its logs or their diagnosis; either is enough. `gpu` is the name of a card or a
    size (`24GB`), by default the card of the log, and `gpus` how many. `model` and `hub` are those of `estimate`. `framework`
    is the run's where nothing shows it. What had to be assumed of the run is in `now.assumptions` of the result.
    `rules` is a folder of rules that are laid over the built-in ones.

    Raise UsageError where a file cannot be read, or the model or the card is not known.

    >>> import oomdoctor
    >>> plans = oomdoctor.plan("fixtures/compare/today.yaml", gpu="RTX 4090")
    >>> plans.fits
    'no'
    >>> [measure.fix for measure in plans.plans[0].measures]
    ['fused-cross-entropy', 'quantise-4bit-8bit']
    """
    pack, name = load_pack(over=path_text(rules)), path_text(model)
    request = _request(log, path_list(config), pack, hub=hub, model=name, gpus=gpus, framework=framework)
    return plan_run(request, pack, gpu=gpu, gpus=gpus, model=name, top=top)


def plan_run(request: PlanRequest, pack: Pack, *, gpu: str | None, gpus: int | None, model: str | None, top: int) -> AnyPlans:
    """Plan for the run of a request, in the keys of its framework. Raise UsageError where no card is known."""
    keys = measure_keys(pack, request.training, request.log, request.framework)
    budget = _budget(gpu, request)
    served = _served(request, budget, model, gpus, pack)
    if served is None:
        run = keys.with_keys(plans(run_space(request.setup, budget, keys.has), top=top))
        return replace(run, now=replace(run.now, assumptions=request.assumptions))
    server = keys.with_keys(plans(server_space(served, budget, keys.has), top=top))
    return replace(server, now=replace(server.now, assumptions=served.assumptions))


def _request(
    log: Diagnosis | Paths, configs: Sequence[str], pack: Pack, *, hub: bool, model: str | None, gpus: int | None, framework: str | None
) -> PlanRequest:
    """Return the run that logs and configs tell of."""
    diagnosis = log if isinstance(log, Diagnosis) else None
    if not isinstance(log, Diagnosis) and log:
        from oomdoctor.api.pipeline import diagnose_logs  # noqa: PLC0415 - a plan from configs alone reads no log

        diagnosis = diagnose_logs(path_list(log), pack, config=configs)
    if diagnosis is None:
        run, _ = read_settings(configs, pack, all_needed=False)
        if hub:
            fetch_unknown(model or (run and run.settings.model))
        return plan_request(run, {}, None, model=model, gpus=gpus, framework=framework)
    case = diagnosis.case
    if hub:
        fetch_unknown(model or (case.training and case.training.settings.model) or case.facts.get("log.model_name_or_path"))
    incident = case.incidents[0] if case.incidents else None
    return plan_request(case.training, case.facts, incident, model=model, gpus=gpus, framework=framework)


def _budget(gpu: str | None, request: PlanRequest) -> MemoryBudget:
    """Return the memory of the card that was named, else of the log's, without what the log shows and no setting explains."""
    if gpu is not None:
        return memory_budget(find_card(gpu)).minus_unexplained(request.unexplained)
    if request.budget is not None:
        return request.budget.minus_unexplained(request.unexplained)
    printed = request.log.get("log.total_bytes")
    if isinstance(printed, int) and printed > 0:
        return memory_budget(Card(str(request.log.get("log.gpu_name", "")), printed))
    raise UsageError("which card? name it with --gpu (RTX 4090, A100-80GB, 24GB)")


def _served(request: PlanRequest, budget: MemoryBudget, model: str | None, gpus: int | None, pack: Pack) -> Served | None:
    """Return what the run makes of its card where it is a server."""
    run = run_from_log(request.training, request.log)
    settings = replace(run.settings, model=model) if model else run.settings
    run = replace(run, settings=settings, cards=gpus or run.cards, framework=request.framework)
    record = server_record(run.settings, run.framework, pack)
    return None if record is None else serve_run(run, request.log, request.setup.shape, record, CardLookup(budget.card, budget.total))
