"""The settings with which a run's program does not start, as reported by `estimate`, `check` and `plan`."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from oomdoctor.api.models import find_shape
from oomdoctor.case.refusal import StartupRefusal
from oomdoctor.case.settings import ConfigIssue, RunConfig, RunSettings
from oomdoctor.case.shape import Shape
from oomdoctor.case.text import Text
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.framework import FRAMEWORKS
from oomdoctor.knowledge.tables.cards import Card
from oomdoctor.setups.programs.installed import installed_frameworks
from oomdoctor.setups.programs.refusals import LaunchedRun, refusals

_SAID_ELSEWHERE = frozenset({"packed_whole", "bf16"})
"""Checks for which rules/checks has its own complaint."""


def run_refusals(
    settings: RunSettings, shape: Shape, framework: str | None, model: str | None, gpus: int | None, card: Card | None, pack: Pack
) -> tuple[StartupRefusal, ...]:
    """Return the checks at which the program stops; `gpus` is None if the number of GPUs is unknown."""
    record = pack.record(FRAMEWORKS, framework or "")
    if record is None or framework is None:
        return ()
    version = settings.server_version or settings.framework_version or installed_frameworks(pack).get(framework)
    named = replace(settings, model=model or settings.model)
    return refusals(LaunchedRun(settings=named, shape=shape, card=card, cards=gpus), framework, record.title, version)


def config_refusals(run: RunConfig, model: str | None, gpus: int | None, card: Card | None, pack: Pack) -> tuple[ConfigIssue, ...]:
    """Return the same as complaints about a config, each at the line of its setting; empty if the model is unknown."""
    try:
        shape = find_shape(model or run.settings.model, run.settings)
    except UsageError:
        return ()
    if shape.pictures is not None:
        return ()
    return tuple(_issues(run, run_refusals(run.settings, shape, run.framework, model, gpus, card, pack)))


def _issues(run: RunConfig, refused: tuple[StartupRefusal, ...]) -> Iterator[ConfigIssue]:
    for refusal in refused:
        place = run.places.get(refusal.setting) or run.places.get("model")
        if place is None or refusal.id in _SAID_ELSEWHERE:
            continue
        instead = str(refusal.instead[0]) if refusal.instead and refusal.setting in run.places else None
        yield ConfigIssue(
            id=f"refused-{refusal.id.replace('_', '-')}",
            severity="error",
            key=place.key,
            file=place.file,
            line=place.line,
            what=Text(
                f"{refusal.program} does not start: its log ends with “{refusal.message}”",
                f"{refusal.program} 无法启动：日志会以“{refusal.message}”结束",
            ),
            why=refusal.why,
            replacement=instead,
        )
