"""Lists of installed packages: `pip freeze`, `pip list`, `conda list`, and the lines that collect_env makes of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from oomdoctor.machine.collect.packages import normalise_name
from oomdoctor.machine.reports.merge_facts import Fact
from oomdoctor.machine.reports.values import leading_version

_NAME = r"[A-Za-z0-9_][\w.-]{0,80}"
_PINNED = re.compile(
    rf"^\s{{0,8}}(?:\[pip\d?\]\s{{0,4}})?(?P<name>{_NAME})(?:\[[\w,-]{{1,80}}\])?={{2,3}}(?P<version>[\w.+!-]{{1,60}})\s*(?:;.*)?$"
)
_OLD = re.compile(rf"^\[pip\d?\] (?P<name>{_NAME}) \((?P<version>[\w.+!-]{{1,60}})(?:, [^()]{{1,200}})?\)$")
"""As collect_env wrote it up to torch 1.0."""
_CONDA = re.compile(r"^\s{0,8}\[conda\]\s{0,4}(?P<row>\S.{0,200})$")
_ROW = re.compile(rf"^(?P<name>{_NAME})\s+(?P<version>[\w.+!-]{{1,60}})(?:\s+(?P<rest>\S.{{0,160}}))?$")
_EDITABLE = re.compile(rf"^\s{{0,8}}(?:\[pip\d?\]\s{{0,4}})?-e\s+git\+\S{{1,200}}?@(?P<commit>[0-9a-f]{{7,40}})#egg=(?P<name>{_NAME})")
_DIRECT = re.compile(
    rf"^\s{{0,8}}(?P<name>{_NAME}) @ "
    rf"(?:git\+\S{{1,200}}@(?P<commit>[0-9a-f]{{7,40}})|\S{{1,300}}?[-/](?P<version>\d[\w.+]{{0,40}})[-\w.]{{0,60}}\.whl)"
)
_UNPUBLISHED = re.compile(rf"^# Editable \S{{0,20}}\s?install with no [\w ]{{1,30}} \((?P<name>{_NAME})==(?P<version>[\w.+!-]{{1,60}})\)")
_IN_CONDA = {"pytorch": "torch", "py-xgboost": "xgboost"}
"""What conda calls otherwise than pip."""
_BUILT_FOR = re.compile(r"cuda(?P<cuda>\d{1,2}\.\d)|(?P<cpu>_cpu_|\bcpu\b)")

PIP_LIST = re.compile(r"^\s{0,8}Package\s+Version(?:\s+Editable project location|\s+Location)?\s*$")
CONDA_LIST = re.compile(r"^\s{0,8}#\s+Name\s+Version\s+Build\s+Channel\s*$|^# packages in environment at ")
ROW = re.compile(rf"^\s{{0,8}}(?:{_NAME}\s+[\w.+!-]{{1,60}}(?:\s+\S.{{0,160}})?|-{{3,80}}(?:\s-{{3,80}}){{1,3}}|#.{{0,200}})\s*$")
"""A line that belongs to one of these tables."""


def read_line(line: str) -> Iterator[Fact]:
    """Read what one line of `pip freeze` or one `[pip3]` or `[conda]` line of collect_env says."""
    if match := _PINNED.match(line) or _OLD.match(line):
        yield from _package(match["name"], match["version"])
    elif conda := _CONDA.match(line):
        yield from read_conda_list([conda["row"]])
    elif match := _EDITABLE.match(line):
        yield ("packages", normalise_name(match["name"]), "editable"), True
        yield ("packages", normalise_name(match["name"]), "commit"), match["commit"]
    elif match := _DIRECT.match(line):
        if match["commit"]:
            yield ("packages", normalise_name(match["name"]), "commit"), match["commit"]
        else:
            yield from _package(match["name"], match["version"])
    elif match := _UNPUBLISHED.match(line):
        yield ("packages", normalise_name(match["name"]), "editable"), True
        yield from _package(match["name"], match["version"])


def read_pip_list(lines: Sequence[str]) -> Iterator[Fact]:
    """Read the rows of `pip list`: name, version, and for an editable install its folder."""
    for line in lines[1:]:
        row = _ROW.match(line.strip())
        if row is not None and leading_version(row["version"]):
            yield from _package(row["name"], row["version"])
            if row["rest"] and re.match(r"[/\\~]|[A-Za-z]:\\", row["rest"]):
                yield ("packages", normalise_name(row["name"]), "editable"), True


def read_conda_list(lines: Sequence[str]) -> Iterator[Fact]:
    """Read the rows of `conda list`: name, version, build, channel. The build of torch says for which CUDA it was made."""
    for line in lines:
        row = _ROW.match(line.strip())
        if row is None or not leading_version(row["version"]):
            continue
        if row["name"] == "python":
            yield ("python", "version"), row["version"]
            yield ("python", "kind"), "conda"
            continue
        name = _IN_CONDA.get(row["name"].lower(), row["name"])
        yield from _package(name, row["version"])
        built = _BUILT_FOR.search(row["rest"] or "") if name == "torch" else None
        if built is not None:
            yield ("torch", "backend"), "cuda" if built["cuda"] else "cpu"
            if built["cuda"]:
                yield ("torch", "cuda"), built["cuda"]


def _package(name: str, version: str) -> Iterator[Fact]:
    yield ("packages", normalise_name(name), "version"), version[:60]
