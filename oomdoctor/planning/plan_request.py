"""The input of a plan: the run described by configs and logs, and the GPU of the log."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.event import Value
from oomdoctor.case.incident import Incident
from oomdoctor.case.plan import MemoryBudget
from oomdoctor.case.settings import RunConfig
from oomdoctor.case.setup import Setup
from oomdoctor.case.shape import Shape
from oomdoctor.case.text import Text
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.planning.memory_budget import budget_from_log
from oomdoctor.planning.observed.run_expected_vs_observed import at_failure, explaining_length
from oomdoctor.setups.from_log import LoggedRun, run_from_log, setup_from_log, which_model
from oomdoctor.setups.model_files import read_shape, unknown_model
from oomdoctor.setups.programs.ggml import with_context


class PlanRequest(Struct, frozen=True, kw_only=True):
    """A run, and the GPU that it failed on."""

    setup: Setup
    assumptions: tuple[Assumption, ...]
    framework: str | None
    training: RunConfig | None
    log: Mapping[str, Value]
    budget: MemoryBudget | None
    """None if no log gives the size of the GPU."""
    unexplained: int = 0
    """Bytes that were on the GPU at the failure and that the settings do not explain."""


def plan_request(
    training: RunConfig | None,
    log: Mapping[str, Value],
    incident: Incident | None,
    *,
    model: str | None = None,
    gpus: int | None = None,
    framework: str | None = None,
) -> PlanRequest:
    """Return the run described by configs and logs. Raise UsageError if nothing identifies the model."""
    known = run_from_log(training, log)
    known = replace(known, cards=gpus or known.cards, framework=framework or known.framework)
    shape = _shape(known, model)
    known = replace(known, settings=with_context(known.settings, known.framework, shape, None))
    setup, assumptions = setup_from_log(known, shape)
    if incident is not None and known.settings.micro_batch and not known.settings.sequence_length:
        setup, assumptions = _with_length(setup, assumptions, incident)
    at = at_failure(setup, incident) if incident is not None and known.settings.finetuning else None
    return PlanRequest(
        setup=setup,
        assumptions=assumptions,
        framework=known.framework,
        training=training,
        log=log,
        budget=budget_from_log(incident.root, log) if incident is not None else None,
        unexplained=max(0, at.seen - at.expected) if at is not None else 0,
    )


def _with_length(setup: Setup, assumptions: tuple[Assumption, ...], incident: Incident) -> tuple[Setup, tuple[Assumption, ...]]:
    """Return the run with samples as long as the memory on the GPU at the failure implies."""
    length = explaining_length(setup, incident)
    if length is None:
        return setup, assumptions
    text = Text(
        f"{length} tokens in the longest sample: that many explain what was on the card",
        f"最长样本 {length} 个 token，由失败时的显存占用推算",
    )
    others = tuple(assumption for assumption in assumptions if assumption.id != "sequence_length")
    return replace(setup, length=length), (Assumption(id="sequence_length", text=text, is_question=True), *others)


def _shape(known: LoggedRun, model: str | None) -> Shape:
    named = model or known.settings.model
    shape = (read_shape(str(model)) or model_shape(str(model))) if model else known.shape or (read_shape(str(named)) if named else None)
    if shape is None:
        raise UsageError(unknown_model(str(named)) if named else which_model(known.settings))
    return shape
