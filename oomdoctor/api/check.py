"""A config before the run: what is wrong with it, and whether the run fits on the GPUs."""

from __future__ import annotations

import shlex

from msgspec.structs import replace

from oomdoctor.api.configs import no_config, read_settings
from oomdoctor.api.estimate import estimate_run
from oomdoctor.api.inputs import Path, Paths, path_list, path_text
from oomdoctor.api.models import asked_card, cards_there, fetch_unknown, find_card, is_model_name, number_of_cards
from oomdoctor.api.refusals import config_refusals
from oomdoctor.api.results import ConfigCheck, RunEstimate
from oomdoctor.case.diagnosis import KnownBug
from oomdoctor.case.gap import Gap
from oomdoctor.case.settings import RunConfig
from oomdoctor.errors import UsageError
from oomdoctor.findings.bugs import bugs_of_packages
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.knowledge.records.bug import BUGS
from oomdoctor.knowledge.tables.cards import Card
from oomdoctor.setups.programs.installed import installed_frameworks


def check(
    config: Paths,
    *,
    gpu: str | None = None,
    gpus: int | None = None,
    model: Path | None = None,
    hub: bool = False,
    server_version: str | None = None,
    rules: Path | None = None,
) -> ConfigCheck:
    """Check a config before anything runs: what stops the run or has no effect and, with `gpu`, whether it fits on the GPUs.

    `config` are the files of one run; neighboring files that they name are read too. `gpu`, `gpus`, `model` and `hub` are those
    of `estimate`, `server_version` is the server release if no file names it, `rules` is a folder of rules that are added
    on top of the built-in ones.

    Raise UsageError if a file cannot be read or is not a supported config, or the GPU is unknown.

    >>> import oomdoctor
    >>> result = oomdoctor.check("fixtures/compare/today.yaml", gpu="L40S")
    >>> result.config.framework, result.memory.fits
    ('llamafactory', 'yes')
    """
    card = None if gpu is None else find_card(gpu)
    paths, name = path_list(config), path_text(model)
    if named := next((path for path in paths if is_model_name(path)), None):
        other = f"For a model alone: oomdoctor estimate {shlex.quote(named)}"
        raise UsageError(f"{named}: no such file; check reads a run's config. {other}")
    facts = {} if card is None else {"log.gpu_name": card.name}
    pack = load_pack(over=path_text(rules))
    run, gaps = read_settings(paths, pack, facts=facts)
    if run is None or not run.written:
        raise UsageError(no_config(paths[0], () if run is None else run.issues))
    card = card or asked_card(None, run.settings)
    run = _with_refusals(run, name, cards_there(gpus, run.settings), card, pack)
    bugs = _bugs(run, server_version, pack)
    if card is None:
        return ConfigCheck(config=run, gaps=tuple(gaps), bugs=bugs)
    if hub:
        fetch_unknown(name or run.settings.model)
    if server_version is not None:
        run = replace(run, settings=replace(run.settings, server_version=server_version))
    memory = _memory(run, name, number_of_cards(card, gpus), card, pack)
    if isinstance(memory, Gap):
        return ConfigCheck(config=run, unknown=memory.why, gaps=(*gaps, memory), bugs=bugs)
    return ConfigCheck(config=run, memory=memory, gaps=tuple(gaps), bugs=bugs)


def _bugs(run: RunConfig, server_version: str | None, pack: Pack) -> tuple[KnownBug, ...]:
    """Return the known memory bugs of the framework's release: the stated one, or otherwise the one installed here."""
    framework = run.framework
    version = server_version or run.version or run.settings.server_version or installed_frameworks(pack).get(framework or "")
    if framework is None or version is None:
        return ()
    bugs = [bug for bug in pack.records(BUGS) if framework in bug.runs]
    return bugs_of_packages(bugs, {bug.program: version for bug in bugs})


def _with_refusals(run: RunConfig, model: str | None, gpus: int | None, card: Card | None, pack: Pack) -> RunConfig:
    """Return the run with the settings its program rejects among the issues, before those that stop nothing."""
    refused = config_refusals(run, model, number_of_cards(card, gpus), card, pack)
    errors = tuple(issue for issue in run.issues if issue.severity == "error")
    return replace(run, issues=(*errors, *refused, *run.issues[len(errors) :])) if refused else run


def _memory(run: RunConfig, model: str | None, gpus: int | None, card: Card, pack: Pack) -> RunEstimate | Gap:
    """Return the memory the run uses on a GPU, or why that is unknown."""
    try:
        return estimate_run(run.settings, model, run.framework, gpus, card, pack)
    except UsageError as error:
        return Gap(what="memory", why=str(error))
