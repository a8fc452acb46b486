"""A machine, its GPUs and the interpreter of a run, and what is wrong with them."""

from __future__ import annotations

import os

from oomdoctor.api.inputs import Path, path_text, read_beginning
from oomdoctor.api.results import MachineReport
from oomdoctor.case.environment import Environment
from oomdoctor.errors import UsageError
from oomdoctor.findings.bugs import bugs_of_packages
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.bug import BUGS
from oomdoctor.machine.collect.environment import collect_environment
from oomdoctor.machine.collect.interpreter import find_executable
from oomdoctor.machine.findings import environment_findings


def environment(
    report: bytes | Path | None = None, *, python: Path | None = None, deep: bool = False, rules: Path | None = None
) -> MachineReport:
    """Describe a machine, and judge what about it would make a run fail.

    Without `report` this is the current machine: `python` is the interpreter of the run or its environment's folder (default:
    the active one's), and with `deep` torch is imported there, in a separate process. `report` is a file with the output of
    collect_env, nvidia-smi, pip freeze and the like (`-` is standard input), or that output as bytes. `rules` is a folder of
    rules that are added on top of the built-in ones.

    Raise UsageError if the file cannot be read or describes no machine, or if there is no such interpreter.

    >>> import oomdoctor
    >>> report = oomdoctor.environment("fixtures/compare/today-env.txt")
    >>> report.environment.torch.version
    '2.6.0+cu124'
    """
    machine = _this_machine(path_text(python), deep=deep) if report is None else _described(report)
    pack = load_pack(over=path_text(rules))
    packages = {name: package.version for name, package in machine.packages.items()}
    if machine.torch is not None and machine.torch.version is not None:
        packages.setdefault("torch", machine.torch.version)
    bugs = bugs_of_packages(pack.records(BUGS), packages)
    return MachineReport(environment=machine, findings=environment_findings(machine, pack), bugs=bugs)


def _described(report: bytes | Path) -> Environment:
    """Return the machine that a text or a file describes. Raise UsageError if it describes none."""
    from oomdoctor.machine.reports.read import describes_nothing, read_report  # noqa: PLC0415 - most ask about this machine

    name = "<text>" if isinstance(report, bytes) else os.fspath(report)
    machine = read_report(report if isinstance(report, bytes) else read_beginning(name, "--from"), name)
    if describes_nothing(machine):
        raise UsageError(f"--from {name}: {machine.gaps[0].why}; supported: {machine.gaps[0].how}")
    return machine


def _this_machine(python: str | None, *, deep: bool) -> Environment:
    path = None if python is None else os.path.expanduser(python)
    if path is not None and find_executable(path) is None:
        raise UsageError(f"--python {python}: no interpreter found there")
    return collect_environment(os.environ, python=path, deep=deep)
