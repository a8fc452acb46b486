"""Known memory bugs and changed defaults of releases, by package and version or from a package list."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from msgspec import Struct

from oomdoctor.api.inputs import Path, path_text, read_beginning
from oomdoctor.case.diagnosis import KnownBug
from oomdoctor.errors import UsageError
from oomdoctor.findings.bugs import bugs_of_packages, describe
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.bug import BUGS, ProgramBug
from oomdoctor.machine.collect.packages import normalise_name
from oomdoctor.machine.reports.read import read_report
from oomdoctor.versions import parse_version

_PINNED = re.compile(r"(?P<name>[A-Za-z][\w.-]{0,60})(?:\[[\w,.-]{0,60}\])?(?:={2,3}|@)v?(?P<version>\S{1,60})\Z")


class KnownBugs(Struct, frozen=True, kw_only=True):
    """The requested bugs, and what they were requested for."""

    bugs: tuple[KnownBug, ...]
    programs: Mapping[str, int]
    """Title of each program that the rules know -> how many of its bugs they contain."""
    named: tuple[str, ...] = ()
    """What was requested; empty for all."""
    has_versions: bool = False
    """Whether releases were named, so that the bugs are those of these releases."""


def bugs(named: Sequence[Path] = (), *, rules: Path | None = None) -> KnownBugs:
    """Return the known memory bugs of what is named.

    Each of `named` is a package with its version (`vllm==0.16.0`), a package or program alone (all its bugs), a bug id, or a file that
    lists packages (pip freeze, conda list, collect_env; `-` is standard input). Without any, all bugs are returned. `rules` is a folder of
    rules that are added on top of the built-in ones.

    Raise UsageError if the rules know no program of that name, a version is invalid, or a file lists no packages.

    >>> import oomdoctor
    >>> [bug.id for bug in oomdoctor.bugs(["deepspeed==0.16.7"]).bugs][:1]
    ['deepspeed-offload-copy-of-another-type']
    """
    known = list(load_pack(over=path_text(rules)).records(BUGS))
    programs: dict[str, int] = {}
    for bug in known:
        programs[bug.title] = programs.get(bug.title, 0) + 1
    texts = tuple(os.fspath(name) for name in named)
    if not texts:
        return KnownBugs(bugs=tuple(describe(bug, None) for bug in known), programs=programs)
    packages: dict[str, str] = {}
    alone: list[ProgramBug] = []
    for text in texts:
        pinned = _PINNED.match(text)
        if os.path.isfile(text) or text == "-":
            packages.update(_listed(text))
        elif pinned is not None:
            packages.update(_release(pinned["name"], pinned["version"], known))
        else:
            alone += _named(text, known)
    listing = (*bugs_of_packages(known, packages), *(describe(bug, None) for bug in alone))
    return KnownBugs(bugs=listing, programs=programs, named=texts, has_versions=not alone)


def _listed(path: str) -> Mapping[str, str]:
    """Return the packages listed in a file. Raise UsageError if it lists none."""
    packages = read_report(read_beginning(path, "bugs"), path).packages
    if not packages:
        raise UsageError(f"{path}: it lists no packages; supported: the output of pip freeze, pip list, conda list and collect_env")
    return {name: package.version for name, package in packages.items()}


def _release(name: str, version: str, known: Sequence[ProgramBug]) -> Mapping[str, str]:
    """Return a package with its version. Raise UsageError if the rules do not know it, or the version is invalid."""
    (bug, *_) = _named(name, known)
    plain = version.removeprefix(bug.build) if bug.build else version
    if parse_version(plain) is None:
        raise UsageError(f"{name}=={version}: '{version}' is not a version")
    return {(*bug.packages, bug.program)[0]: plain}


def _named(text: str, known: Sequence[ProgramBug]) -> list[ProgramBug]:
    """Return the bugs of a program, or the bug with an id. Raise UsageError if there is neither."""
    name = normalise_name(text)
    listing = [bug for bug in known if name in _names(bug) or text == bug.id]
    if not listing:
        near = get_close_matches(name, sorted({name for bug in known for name in (*_names(bug), bug.id)}), n=1, cutoff=0.6)
        meant = f"; did you mean '{near[0]}'?" if near else ""
        raise UsageError(f"{text}: no such file, and the rules know no memory bug of it{meant}; `oomdoctor bugs` lists the programs")
    return listing


def _names(bug: ProgramBug) -> Iterable[str]:
    """Return the names that can refer to a program."""
    return {normalise_name(name) for name in (bug.program, bug.title, *bug.packages)}
