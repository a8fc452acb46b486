"""Two runs or machines, and what changed between them that matters for memory."""

from __future__ import annotations

import os
from collections.abc import Sequence

from oomdoctor.api.configs import read_settings
from oomdoctor.api.diagnose import diagnose_folder
from oomdoctor.api.inputs import CONFIG_ENDINGS, Path, Paths, default_jobs, path_list, path_text, read_beginning
from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.comparison import Comparison, Side
from oomdoctor.case.environment import Environment
from oomdoctor.comparing.compare import compare as compare_sides
from oomdoctor.errors import UsageError
from oomdoctor.ingest.sources import expand_sources
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.machine.reports.read import describes_nothing, read_report
from oomdoctor.record.recognise import is_evidence


def compare(
    before: Path,
    after: Path,
    *,
    config: tuple[Paths, Paths] = ((), ()),
    environment: tuple[Path | None, Path | None] = (None, None),
    rules: Path | None = None,
) -> Comparison:
    """Compare two runs or machines: what changed that matters for memory, the most suspicious first.

    `before` and `after` are logs, folders of logs or evidence folders, configs (.yaml, .json, .sh), or files that describe machines.
    `config` are the config files of each run, `environment` a file that describes the machine of each. `rules` is a folder of rules
    that are added on top of the built-in ones.

    Raise UsageError if a file cannot be read, or if the two have no facts in common.

    >>> import oomdoctor
    >>> comparison = oomdoctor.compare("fixtures/compare/last-week.yaml", "fixtures/compare/today.yaml")
    >>> [(change.id, change.before, change.after) for change in comparison.changes]
    [('sequence-length', '4096', '6144'), ('lora-rank', '16', '24')]
    """
    pack = load_pack(over=path_text(rules))
    first, second = (
        _side(os.fspath(path), path_list(config[at]), path_text(environment[at]), pack) for at, path in enumerate((before, after))
    )
    comparison = compare_sides(first, second, pack)
    if not comparison.compared and not comparison.matters:
        raise UsageError(f"{before} and {after} have nothing in common to compare; --config and --env add what belongs to them")
    return comparison


def _side(path: str, configs: Sequence[str], environment: str | None, pack: Pack) -> Side:
    """Return what one argument and its accompanying files show."""
    machine = None if environment is None else _machine(environment)
    if environment is not None and machine is None:
        raise UsageError(f"--env {environment}: nothing in it describes a machine")
    if os.path.isdir(path):
        return _run(path, configs, machine, pack)
    described = _machine(path)
    if path.lower().endswith(CONFIG_ENDINGS):
        return _settings(path, configs if described is not None else [path, *configs], machine or described, pack)
    run = _run(path, configs, machine or described, pack)
    # A machine description is also read as a log, and as such it says nothing.
    return Side(name=path, environment=machine or described) if described is not None and _is_no_log(run) else run


def _is_no_log(side: Side) -> bool:
    case = side.diagnosis.case if side.diagnosis is not None else None
    return case is None or (not case.incidents and case.verdict.memory_failure == "no" and not case.training)


def _machine(path: str) -> Environment | None:
    """Return the machine that a file describes, if it does."""
    environment = read_report(read_beginning(path, "compare"), path)
    return None if describes_nothing(environment) else environment


def _settings(name: str, files: Sequence[str], machine: Environment | None, pack: Pack) -> Side:
    """Return a run without a log: what its config files and its machine show."""
    return Side(name=name, environment=machine, training=read_settings(files, pack)[0])


def _run(path: str, configs: Sequence[str], machine: Environment | None, pack: Pack) -> Side:
    """Return a run with its log."""
    for name in configs:
        if not os.path.isfile(name):
            raise UsageError(f"--config {name}: no such file")
    if os.path.isdir(path) and is_evidence(path):
        diagnosis = diagnose_folder(path, pack, configs, None, default_jobs())
    else:
        diagnosis = diagnose_logs(list(expand_sources([path])), pack, config=configs, jobs=default_jobs())
    if not any(source.size for source in diagnosis.case.sources):
        reason = next((gap.why for gap in diagnosis.case.gaps), "nothing to read in it")
        raise UsageError(f"{path}: {reason}")
    return Side(name=path, diagnosis=diagnosis, environment=machine, training=diagnosis.case.training)
