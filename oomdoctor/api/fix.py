"""The changes required by a diagnosis and by config issues, computed and then written to the files."""

from __future__ import annotations

import os
from collections.abc import Sequence

from oomdoctor.api.config_run import ConfigRun
from oomdoctor.api.inputs import Path, Paths, path_list, path_text
from oomdoctor.api.results import ConfigFix, WrittenFix
from oomdoctor.case.serving import AnyPlans
from oomdoctor.configs.edit.store import read_file, write_files
from oomdoctor.configs.proposals.choice import Choice, ProposalSelection, choose, choose_by_name
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack


def fix(
    config: Paths,
    *,
    log: Paths = (),
    gpu: str | None = None,
    gpus: int | None = None,
    model: Path | None = None,
    plan: int | None = None,
    only: Sequence[str] = (),
    review: bool = False,
    folder: Path | None = None,
    rules: Path | None = None,
) -> ConfigFix:
    """Compute how to change a run's config so that it fits: only values change; comments, order and quotes are preserved.

    Nothing is written; `apply_fix` does that. `config` are the files to change, `log` the logs of the run. Errors in the
    configs are always corrected; in addition, the first plan that makes the run fit is used (`plan` selects another one by its number),
    or the fixes of the diagnosis if the model or the GPU is unknown. `only` selects the fixes, issues and plans with these ids
    and nothing else. `review` includes what a person should decide. New files go into `folder`. `gpu`, `gpus` and `model` are
    those of `plan`, `rules` is a folder of rules that are added on top of the built-in ones.

    Raise UsageError if a file cannot be read, a plan or an id does not exist, or the model or the GPU is unknown.

    >>> import oomdoctor
    >>> changes = oomdoctor.fix("fixtures/compare/today.yaml", gpu="RTX 4090", review=True)
    >>> [step.proposal.id for step in changes.applied.steps]
    ['plan-1']
    """
    run = ConfigRun(path_list(log), path_list(config), load_pack(over=path_text(rules)), path_text(folder), gpu)
    plans = run.plans(gpu, gpus, path_text(model), plan)
    choice = _choice(run.proposals(plans, gpus), plans, review=review, only=only, plan=plan)
    applied = run.applied(choice.taken)
    waits = bool((only or plans) and choice.undecided)
    stuck = plans is not None and (plans.obstacle is not None or bool(plans.broken))
    incomplete = any(step.left for step in applied.steps) or waits or stuck
    return ConfigFix(before=run.files, applied=applied, choice=choice, plans=plans, is_incomplete=incomplete)


def apply_fix(changes: ConfigFix, folder: Path | None = None) -> WrittenFix:
    """Write the files of a fix, each atomically; a copy of each changed file is kept as FILE.bak-1, FILE.bak-2 and so on.

    With `folder` the files are written there instead. Raise UsageError, with nothing replaced, if a file was changed since it
    was read, a folder cannot be written, or a file of that name in `folder` has different contents.

    >>> import oomdoctor, tempfile
    >>> changes = oomdoctor.fix("fixtures/compare/today.yaml", gpu="RTX 4090", review=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     written = oomdoctor.apply_fix(changes, folder)
    >>> [path.rpartition("/")[2] for path in written.created]
    ['today.yaml']
    """
    files = files_to_write(changes, folder)
    copies = write_files(files, changes.before if folder is None else {})
    return WrittenFix(copies=copies, created=tuple(path for path in files if path not in copies))


def files_to_write(changes: ConfigFix, folder: Path | None = None) -> dict[str, bytes]:
    """Return the files that still have to be written, by path; in `folder`, which is created, if given.

    Raise UsageError if a file of that name in `folder` has different contents.
    """
    if folder is None:
        return changes.applied.files
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as why:
        raise UsageError(f"cannot write {os.fspath(folder)}: {(why.strerror or str(why)).lower()}") from why
    files: dict[str, bytes] = {}
    for path, data in changes.applied.files.items():
        place = os.path.join(folder, os.path.basename(path))
        if place in files or (os.path.lexists(place) and read_file(place) != data):
            raise UsageError(f"{place} already exists with different content; it is not overwritten")
        if not os.path.lexists(place):
            files[place] = data
    return files


def _choice(proposals: ProposalSelection, plans: AnyPlans | None, *, review: bool, only: Sequence[str], plan: int | None) -> Choice:
    """Return what is done and what waits. Raise UsageError if something was named that does not exist."""
    if only and plan is not None:
        raise UsageError("--plan and --only are mutually exclusive; --only plan-2 selects only the second plan")
    known = sorted({proposal.id for proposal in proposals.all()})
    unknown = next((name for name in only if name not in known), None)
    if unknown is not None:
        raise UsageError(f"--only {unknown}: not proposed here" + (f"; available: {', '.join(known)}" if known else ""))
    if plan is not None and plans is not None and len(plans.plans) < plan and plans.plans:
        raise UsageError(f"--plan {plan}: the last one is {len(plans.plans)} (see oomdoctor plan)")
    if only:
        return choose_by_name(proposals, only, yes=review)
    return choose(proposals, yes=review, plan=None if plan is None else f"plan-{plan}")
