"""Merge the facts that texts state about a machine into one Environment.

A fact has the path of the field that it is for (`("driver", "version")`, `("gpus", "0", "name")`): the paths of `Environment.origins`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Union

import msgspec
from msgspec import Struct

from oomdoctor.case.environment import Environment, GpuProcess, MigSlice
from oomdoctor.case.gap import Gap

Path = tuple[str, ...]
FactValue = Union[str, int, bool, Sequence[GpuProcess], Sequence[MigSlice]]
Fact = tuple[Path, FactValue]
"""A path and its value."""

MOST_GPUS = 256
_MOST_FACTS = 20_000
_OF_THE_MOMENT = frozenset({"used_bytes", "free_bytes", "processes", "processes_known", "slices"})
"""Fields that change while a run goes on: the text that comes last holds."""
_SHARE = 0.03
"""Tools count a card with or without what the driver keeps: 1 to 3 % apart."""
_MAKER = re.compile(r"^(?:nvidia|amd|intel(?:\(r\))?)\s+|geforce\s+|tesla\s+", re.IGNORECASE)


class ReportedFact(Struct, frozen=True):
    """One fact and the tool that printed it."""

    path: Path
    value: FactValue
    origin: str


def merge_facts(reported: Iterable[ReportedFact]) -> Environment:
    """Return the environment that facts describe. Where two of them contradict each other the field stays unknown, and a Gap says so."""
    kept: dict[Path, ReportedFact] = {}
    disputed: dict[Path, tuple[ReportedFact, ReportedFact]] = {}
    for fact in reported:
        before = kept.get(fact.path)
        if before is None:
            if len(kept) < _MOST_FACTS:
                kept[fact.path] = fact
            continue
        agreed = _agreed(before, fact)
        if agreed is None:
            disputed.setdefault(fact.path, (before, fact))
        else:
            kept[fact.path] = agreed
    for path in disputed:
        del kept[path]
    for fact in (*_torch(kept), *_windows(kept)):
        if fact.path not in disputed:
            kept.setdefault(fact.path, fact)
    origins = {".".join(path): fact.origin for path, fact in kept.items()}
    gaps = [_gap(path, pair) for path, pair in disputed.items()]
    return msgspec.convert({**_tree(kept), "origins": origins, "gaps": gaps}, Environment, from_attributes=True)


def _agreed(first: ReportedFact, second: ReportedFact) -> ReportedFact | None:
    """Return the more exact of two facts about a field; None where both cannot be true."""
    if first.path[-1] in _OF_THE_MOMENT:
        return second
    if first.value == second.value:
        return first
    if isinstance(first.value, str) and isinstance(second.value, str):
        extends = partial(_extends, is_name=first.path[-1] == "name")
        if len(first.value) <= len(second.value):
            return second if extends(second.value, first.value) else None
        return first if extends(first.value, second.value) else None
    if first.path[-1].endswith("_bytes") and isinstance(first.value, int) and isinstance(second.value, int):
        least, most = sorted((first.value, second.value))
        return (first if first.value == most else second) if most * (1 - _SHARE) <= least else None
    return None


def _extends(long: str, short: str, *, is_name: bool) -> bool:
    """Return whether a text says as much or more: `2.3.0+cu121` after `2.3.0`, not `2.10` after `2.1` or `RTX 3090 Ti` after `RTX 3090`."""
    long, short = _plain(long), _plain(short)
    rest = long[len(short) :]
    return long.startswith(short) and (not rest or not (rest[0].isalnum() or (is_name and rest[0] == " ")))


def _plain(text: str) -> str:
    return _MAKER.sub("", text).lower()


def _gap(path: Path, pair: tuple[ReportedFact, ReportedFact]) -> Gap:
    # Without a sentence around the values, so that it reads in any language.
    return Gap(what=".".join(path), why="; ".join(f"{fact.origin}: {str(fact.value)[:80]}" for fact in pair))


def _text(kept: Mapping[Path, ReportedFact], *path: str) -> tuple[str, str]:
    """Return the text at a path and who printed it; empty where there is none."""
    fact = kept.get(path)
    return (fact.value, fact.origin) if fact is not None and isinstance(fact.value, str) else ("", "")


_BUILD = re.compile(r"\+(?P<kind>cu|rocm|cpu|xpu)(?P<number>[\d.]{0,8})")


def _torch(kept: Mapping[Path, ReportedFact]) -> Iterator[ReportedFact]:
    """Derive what the package says of the build: the local version says for which CUDA: `2.3.1+cu121`."""
    version, origin = _text(kept, "packages", "torch", "version")
    if not version:
        return
    yield ReportedFact(("torch", "version"), version, origin)
    local = _BUILD.search(version)
    if local is None:
        return
    backend = {"cu": "cuda"}.get(local["kind"], local["kind"])
    yield ReportedFact(("torch", "backend"), backend, origin)
    if backend == "cuda" and local["number"].isdecimal() and len(local["number"]) > 1:
        yield ReportedFact(("torch", "cuda"), f"{local['number'][:-1]}.{local['number'][-1]}", origin)


def _windows(kept: Mapping[Path, ReportedFact]) -> Iterator[ReportedFact]:
    """Windows by its build where nobody named it: from 22000 on it is 11 (learn.microsoft.com, Windows 11 release information)."""
    kernel, origin = _text(kept, "host", "kernel")
    if kernel and _text(kept, "host", "system")[0] == "windows":
        build = kernel.rpartition(".")[2]
        name = f"Windows {'11' if build.isdecimal() and int(build[:6]) >= 22000 else '10'} ({kernel})"
        yield ReportedFact(("host", "os"), name, origin)


def _tree(kept: Mapping[Path, ReportedFact]) -> dict[str, object]:
    """Nest the facts as an Environment is written in JSON."""
    values = {path: fact.value for path, fact in kept.items()}
    tree = _nested({path: value for path, value in values.items() if path[0] not in ("packages", "gpus")})
    _, groups = _grouped(values)
    _, packages = _grouped(groups.get("packages", {}))
    _, gpus = _grouped(groups.get("gpus", {}))
    # A package without a version is none: only its commit was printed.
    installed = {name: _nested(package) for name, package in packages.items() if ("version",) in package}
    cards = [{"index": int(number), **_nested(gpus[number])} for number in sorted(gpus, key=int)]
    return {**tree, "packages": installed, "gpus": cards}


def _nested(values: Mapping[Path, FactValue]) -> dict[str, object]:
    leaves, groups = _grouped(values)
    return {**leaves, **{name: _nested(group) for name, group in groups.items()}}


def _grouped(values: Mapping[Path, FactValue]) -> tuple[dict[str, FactValue], dict[str, dict[Path, FactValue]]]:
    """Group the values by the first name of their paths: those that end there, and those that go on below it."""
    leaves: dict[str, FactValue] = {}
    groups: dict[str, dict[Path, FactValue]] = {}
    for (name, *rest), value in values.items():
        if rest:
            groups.setdefault(name, {})[tuple(rest)] = value
        else:
            leaves[name] = value
    return leaves, groups
