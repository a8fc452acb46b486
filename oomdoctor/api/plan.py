"""What to change so that a run fits on its GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.api.config_run import config_request, mended_settings, plan_writer
from oomdoctor.api.configs import read_settings
from oomdoctor.api.estimate import asked_settings
from oomdoctor.api.inputs import Path, Paths, path_list, path_text
from oomdoctor.api.models import (
    asked_card,
    card_assumption,
    cards_there,
    fetch_unknown,
    find_card,
    job_assumption,
    known_framework,
    number_of_cards,
)
from oomdoctor.api.refusals import run_refusals
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.serving import AnyPlans
from oomdoctor.case.settings import RunConfig, RunSettings, Scalar
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.planning.plan_request import PlanRequest, plan_request
from oomdoctor.planning.plan_run import plan_run


def plan(
    config: Paths = (),
    *,
    log: Diagnosis | Paths = (),
    gpu: str | None = None,
    gpus: int | None = None,
    model: Path | None = None,
    hub: bool = False,
    framework: str | None = None,
    settings: RunSettings | Mapping[str, Scalar] | None = None,
    serve: bool = False,
    server_version: str | None = None,
    top: int = 5,
    rules: Path | None = None,
) -> AnyPlans:
    """Plan what to change so that a run fits on its GPUs, the smallest change first and at most `top` plans.

    `config` are the run's config files, `log` its logs or their diagnosis; either is enough, and for a `model` alone LoRA is planned.
    `gpu` is the name of a GPU or a size (`24GB`), by default the GPU of the log, and `gpus` the number of them. `model` and `hub` are those
    of `estimate`, and so are `settings` and `serve`, which override the files; a log gives its own.
    `framework` is the run's if nothing shows it, `server_version` the server release if neither a file nor
    a log names it. The assumptions made about the run are in `now.assumptions` of the result. `rules` is a folder of rules that are
    added on top of the built-in ones.

    Raise UsageError if a file cannot be read, or the model or the GPU is unknown.

    >>> import oomdoctor
    >>> plans = oomdoctor.plan("fixtures/compare/today.yaml", gpu="RTX 4090")
    >>> plans.fits
    'no'
    >>> [measure.fix for measure in plans.plans[0].measures]
    ['fused-cross-entropy', 'quantise-4bit-8bit']
    """
    pack, name, configs = load_pack(over=path_text(rules)), path_text(model), path_list(config)
    card = None if gpu is None else find_card(gpu)
    gpus = number_of_cards(card, gpus)
    framework, is_known = known_framework(framework, pack), server_version is not None
    given = None if settings is None and not serve else asked_settings(RunSettings(), gpus=gpus, settings=settings, serve=serve)
    request = _request(log, configs, pack, given, hub=hub, model=name, gpus=gpus, framework=framework, is_known=is_known, gpu=gpu)
    if card is None and request.budget is None and request.training is not None:
        card = asked_card(None, request.training.settings)
    of_job = () if request.training is None else job_assumption(card, request.training.settings)
    request = replace(request, assumptions=(*card_assumption(card), *of_job, *request.assumptions))
    if server_version is not None and request.framework is not None:
        request = replace(request, log={f"log.{request.framework}_version": server_version, **request.log})
    writer = plan_writer(configs, request, pack, gpu) if configs and given is None else None
    plans = plan_run(request, pack, card=card, gpus=gpus, model=name, top=top, writer=writer)
    if request.training is None:
        return plans
    settings, shape = request.training.settings, plans.now.setup.shape
    return replace(plans, refusals=run_refusals(settings, shape, request.framework, name, cards_there(gpus, settings), card, pack))


def _request(
    log: Diagnosis | Paths,
    configs: Sequence[str],
    pack: Pack,
    given: RunSettings | None,
    *,
    hub: bool,
    model: str | None,
    gpus: int | None,
    framework: str | None,
    is_known: bool,
    gpu: str | None,
) -> PlanRequest:
    """Return the run described by logs and configs."""
    diagnosis = log if isinstance(log, Diagnosis) else None
    if not isinstance(log, Diagnosis) and log:
        from oomdoctor.api.pipeline import diagnose_logs  # noqa: PLC0415 - a plan from configs alone reads no log

        diagnosis = diagnose_logs(path_list(log), pack, config=configs)
    if diagnosis is None:
        run = mended_settings(configs, pack, gpu) if configs and given is None else None
        if run is None and configs:
            run = read_settings(configs, pack, all_needed=False)[0]
        if given is not None:
            run = replace(run or RunConfig(), settings=(run or RunConfig()).settings.with_values(given.known()))
        if hub:
            fetch_unknown(model or (run and run.settings.model))
        return config_request(run, pack, model=model, gpus=gpus, framework=framework, is_known=is_known)
    case = diagnosis.case
    if hub:
        fetch_unknown(model or (case.training and case.training.settings.model) or case.facts.get("log.model_name_or_path"))
    incident = case.incidents[0] if case.incidents else None
    return plan_request(case.training, case.facts, incident, model=model, gpus=gpus, framework=framework)
