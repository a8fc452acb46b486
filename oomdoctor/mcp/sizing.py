"""The tools that say what a run takes of a card, and what to change so that it fits."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from oomdoctor import __version__
from oomdoctor.api.check import check
from oomdoctor.api.estimate import estimate
from oomdoctor.api.fix import apply_fix, fix
from oomdoctor.api.plan import plan
from oomdoctor.api.results import ConfigFix
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.mcp.answers import CheckAnswer, EstimateAnswer, FixAnswer, PlanAnswer, cut
from oomdoctor.mcp.diagnosing import Configs, Logs
from oomdoctor.mcp.toolbox import Toolbox
from oomdoctor.report.edits.check import compose as compose_check
from oomdoctor.report.edits.fix import render as render_fix
from oomdoctor.report.memory.estimate_answer import estimate_document
from oomdoctor.report.memory.estimate_json import convert_run_estimate
from oomdoctor.report.memory.plan_answer import convert_found_plans, plan_document
from oomdoctor.report.safety.redact import redact_text
from oomdoctor.report.wire.check import convert_check

Gpu = Annotated[str | None, Field(description="The card: a name (RTX 4090, 2xH100) or a size (24GB).")]
Gpus = Annotated[int | None, Field(description="Number of cards.", ge=1, le=100_000)]
Model = Annotated[str | None, Field(description="A model by name (Qwen3-8B), or a folder or file with its config.json.")]
Framework = Annotated[str | None, Field(description="llamafactory, transformers, ms-swift, torchtune, vllm ..., if no config shows it.")]
Settings = Annotated[
    dict[str, str | int | float | bool],
    Field(
        description="finetuning (full, lora, qlora), micro_batch, sequence_length, optimizer, gradient_checkpointing, zero_stage, "
        "load_bits, lora_rank, precision, memory_share ..."
    ),
]
Only = Annotated[list[str], Field(description="Use only the fixes, issues and plans with these IDs.")]
PlanNumber = Annotated[
    int | None, Field(description="The plan number from plan_fit, from 1; default: the first that can be written to the files.", ge=1)
]
Review = Annotated[bool, Field(description="Include changes that a person should decide, which may change what is trained.")]


class SizingTools:
    """Each public method is a tool."""

    def __init__(self, box: Toolbox) -> None:
        self._box = box

    def estimate_memory(
        self,
        config: Configs = [],  # noqa: B006 - the default stands in the tool's schema
        model: Model = None,
        gpu: Gpu = None,
        gpus: Gpus = None,
        framework: Framework = None,
        settings: Settings = {},  # noqa: B006
        serve: Annotated[bool, Field(description="Serve the model instead of training it.")] = False,
    ) -> EstimateAnswer:
        """Estimate the GPU memory of a training run or a server, part by part, and whether it fits. Give config files or a model."""
        roots, wording = self._box.roots, self._box.wording
        run = estimate(
            roots.paths(config), model=roots.model(model), gpu=gpu, gpus=gpus, framework=framework, settings=settings, serve=serve
        )
        told = self._box.tell(estimate_document(run, wording, __version__), lambda: convert_run_estimate(run, wording), only_keys=True)
        return EstimateAnswer(
            **told._asdict(),
            fits=run.fits,
            needed_bytes=run.needed.expected if run.needed else None,
            low_bytes=run.needed.low if run.needed else None,
            high_bytes=run.needed.high if run.needed else None,
            usable_bytes=run.fit.budget.usable if run.fit else None,
            turned_by=[wording.say(other.text) for other in run.otherwise if other.turns],
        )

    def plan_fit(
        self,
        config: Configs = [],  # noqa: B006
        logs: Logs = [],  # noqa: B006
        model: Model = None,
        gpu: Gpu = None,
        gpus: Gpus = None,
        framework: Framework = None,
        top: Annotated[int, Field(description="Maximum number of plans.", ge=1, le=10)] = 3,
    ) -> PlanAnswer:
        """Show what to change so that a run fits its cards, smallest change first. Needs a config, a log or a model. Writes nothing."""
        roots, wording = self._box.roots, self._box.wording
        if not (config or logs or model):
            raise UsageError("what to plan? give `config`, `logs` or `model`")
        plans = plan(
            roots.paths(config),
            log=roots.paths(logs),
            gpu=gpu,
            gpus=gpus,
            model=roots.model(model),
            framework=framework,
            top=top,
        )
        document = plan_document(plans, load_pack(), wording, __version__)
        told = self._box.tell(document, lambda: convert_found_plans(plans, wording), only_keys=True)
        return PlanAnswer(
            **told._asdict(),
            fits=plans.fits,
            plans=[[measure.fix for measure in each.measures] for each in (*plans.plans, *plans.by_hand)],
            is_possible=plans.obstacle is None and not plans.broken,
        )

    def check_config(
        self,
        config: Annotated[list[str], Field(description="Config files and launch scripts of one run.", min_length=1)],
        gpu: Gpu = None,
        gpus: Gpus = None,
        model: Model = None,
    ) -> CheckAnswer:
        """Check a config before a run: errors, settings without effect and, given a card, whether it fits. Read-only."""
        roots, wording = self._box.roots, self._box.wording
        result = check(roots.paths(config), gpu=gpu, gpus=gpus, model=roots.model(model))
        told = self._box.tell(
            compose_check(result.config, result.memory, result.gaps, wording, __version__, bugs=result.bugs),
            lambda: convert_check(result.config, result.memory, result.gaps, wording, __version__, bugs=result.bugs),
            only_keys=True,
        )
        severities = [issue.severity for issue in result.config.issues]
        return CheckAnswer(
            **told._asdict(),
            framework=result.config.framework,
            errors=severities.count("error"),
            warnings=severities.count("warning"),
            fits=result.memory.fits if result.memory else None,
        )

    def propose_fix(
        self,
        config: Annotated[list[str], Field(description="The config files to change.", min_length=1)],
        logs: Logs = [],  # noqa: B006
        gpu: Gpu = None,
        gpus: Gpus = None,
        model: Model = None,
        plan: PlanNumber = None,
        only: Only = [],  # noqa: B006
        review: Review = False,
    ) -> FixAnswer:
        """Show a diff of the config files that makes the run fit and fixes their problems. Writes nothing."""
        changes = self._fix(config, logs, gpu, gpus, model, plan, only, review=review)
        return self._fixed(changes)

    def apply_fix(
        self,
        digest: Annotated[str, Field(description="The digest from propose_fix; the other arguments must be the same as in that call.")],
        config: Annotated[list[str], Field(description="The config files to change.", min_length=1)],
        logs: Logs = [],  # noqa: B006
        gpu: Gpu = None,
        gpus: Gpus = None,
        model: Model = None,
        plan: PlanNumber = None,
        only: Only = [],  # noqa: B006
        review: Review = False,
    ) -> FixAnswer:
        """Write the changes shown by propose_fix to the config files; a copy of each is kept as FILE.bak-1."""
        changes = self._fix(config, logs, gpu, gpus, model, plan, only, review=review)
        if _digest(changes) != digest:
            raise UsageError("the changes do not match that digest: the files or the arguments have changed; call propose_fix again")
        for path in changes.applied.files:
            self._box.roots.path(path)
        apply_fix(changes)
        return replace(self._fixed(changes), is_written=True)

    def _fix(
        self,
        config: list[str],
        logs: list[str],
        gpu: str | None,
        gpus: int | None,
        model: str | None,
        plan: int | None,
        only: list[str],
        *,
        review: bool,
    ) -> ConfigFix:
        roots = self._box.roots
        return fix(
            roots.paths(config), log=roots.paths(logs), gpu=gpu, gpus=gpus, model=roots.model(model), plan=plan, only=only, review=review
        )

    def _fixed(self, changes: ConfigFix) -> FixAnswer:
        shown = render_fix(changes.applied, changes.before, changes.choice, changes.plans, self._box.wording, color=False)
        text = redact_text(shown, only_keys=True)
        return FixAnswer(
            answer_id=self._box.kept.keep(lambda _: text),
            text=cut(text),
            steps=[step.proposal.id for step in changes.applied.steps],
            undecided=[proposal.id for proposal in changes.choice.undecided],
            files=list(changes.applied.files),
            digest=_digest(changes),
        )


def _digest(changes: ConfigFix) -> str:
    """Return what stands for the files before and after."""
    digest = hashlib.sha256()
    for files in (changes.before, changes.applied.files):
        for path, data in sorted(files.items()):
            digest.update(f"{path}\0{len(data)}\0".encode("utf-8", "surrogatepass") + data)
    return digest.hexdigest()[:16]
