"""What texts say of an environment, fact by fact, and these facts as one Environment.

A fact has the path of the field that it is for (`("driver", "version")`, `("gpus", "0", "name")`): the paths of `Environment.origins`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from oomdoctor.case.environment import Environment
from oomdoctor.case.gap import Gap

Path = tuple[str, ...]
Fact = tuple[Path, Any]
"""A path and its value: a scalar, or a list of dicts for processes and slices."""

MOST_GPUS = 256
_MOST_FACTS = 20_000
_OF_THE_MOMENT = frozenset({"used_bytes", "free_bytes", "processes", "processes_known", "slices"})
"""Fields that change while a run goes on: the text that comes last holds."""
_SHARE = 0.03
"""Tools count a card with or without what the driver keeps: 1 to 3 % apart."""
_MAKER = re.compile(r"^(?:nvidia|amd|intel(?:\(r\))?)\s+|geforce\s+|tesla\s+", re.IGNORECASE)


class ReportedFacts(Struct, frozen=True):
    """One fact and the tool that printed it."""

    path: Path
    value: Any
    origin: str


def environment(said: Iterable[ReportedFacts]) -> Environment:
    """The environment that facts describe. Where two of them contradict each other the field stays unknown, and a Gap says so."""
    kept: dict[Path, ReportedFacts] = {}
    disputed: dict[Path, tuple[ReportedFacts, ReportedFacts]] = {}
    for one in said:
        before = kept.get(one.path)
        if before is None:
            if len(kept) < _MOST_FACTS:
                kept[one.path] = one
            continue
        agreed = _agreed(before, one)
        if agreed is None:
            disputed.setdefault(one.path, (before, one))
        else:
            kept[one.path] = agreed
    for path in disputed:
        del kept[path]
    for one in (*_torch(kept), *_windows(kept)):
        if one.path not in disputed:
            kept.setdefault(one.path, one)
    tree = _tree(kept)
    origins = {".".join(path): one.origin for path, one in kept.items()}
    return msgspec.convert({**tree, "origins": origins, "gaps": [_gap(path, pair) for path, pair in disputed.items()]}, Environment)


def _agreed(one: ReportedFacts, other: ReportedFacts) -> ReportedFacts | None:
    """The more exact of two facts about a field; None where both cannot be true."""
    if one.path[-1] in _OF_THE_MOMENT:
        return other
    if one.value == other.value:
        return one
    if isinstance(one.value, str) and isinstance(other.value, str):
        short, long = sorted((one, other), key=lambda said: len(said.value))
        return long if _extends(_plain(long.value), _plain(short.value), one.path[-1] == "name") else None
    if _is_size(one) and max(one.value, other.value) * (1 - _SHARE) <= min(one.value, other.value):
        return max(one, other, key=lambda said: int(said.value))
    return None


def _extends(long: str, short: str, name: bool) -> bool:
    """Whether a text says the same and more: `2.3.0+cu121` after `2.3.0`, never `2.10` after `2.1` or `RTX 3090 Ti` after `RTX 3090`."""
    rest = long[len(short) :]
    return long.startswith(short) and (not rest or not (rest[0].isalnum() or (name and rest[0] == " ")))


def _plain(text: str) -> str:
    return _MAKER.sub("", text).lower()


def _is_size(one: ReportedFacts) -> bool:
    return one.path[-1].endswith("_bytes") and isinstance(one.value, int)


def _gap(path: Path, pair: tuple[ReportedFacts, ReportedFacts]) -> dict[str, str]:
    first, second = pair
    # Without words of its own, so that it reads in any language.
    why = f"{first.origin}: {_shown(first.value)}; {second.origin}: {_shown(second.value)}"
    return msgspec.to_builtins(Gap(what=".".join(path), why=why))  # type: ignore[no-any-return]


def _shown(value: Any) -> str:
    return str(value)[:80]


_BUILD = re.compile(r"\+(?P<kind>cu|rocm|cpu|xpu)(?P<number>[\d.]{0,8})")


def _torch(kept: Mapping[Path, ReportedFacts]) -> Iterator[ReportedFacts]:
    """torch is a package and a build, and its local version says for which CUDA: `2.3.1+cu121`."""
    named = kept.get(("packages", "torch", "version"))
    if named is None:
        return
    yield ReportedFacts(("torch", "version"), named.value, named.origin)
    local = _BUILD.search(named.value)
    if local is None:
        return
    backend = {"cu": "cuda"}.get(local["kind"], local["kind"])
    yield ReportedFacts(("torch", "backend"), backend, named.origin)
    if backend == "cuda" and local["number"].isdecimal() and len(local["number"]) > 1:
        yield ReportedFacts(("torch", "cuda"), f"{local['number'][:-1]}.{local['number'][-1]}", named.origin)


def _windows(kept: Mapping[Path, ReportedFacts]) -> Iterator[ReportedFacts]:
    """Windows by its build where nobody named it: from 22000 on it is 11 (learn.microsoft.com, Windows 11 release information)."""
    system, kernel = kept.get(("host", "system")), kept.get(("host", "kernel"))
    if system is not None and system.value == "windows" and kernel is not None:
        build = kernel.value.rpartition(".")[2]
        name = f"Windows {'11' if build.isdecimal() and int(build[:6]) >= 22000 else '10'} ({kernel.value})"
        yield ReportedFacts(("host", "os"), name, kernel.origin)


def _tree(kept: Mapping[Path, ReportedFacts]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, one in kept.items():
        at = tree
        for name in path[:-1]:
            at = at.setdefault(name, {})
        at[path[-1]] = one.value
    # A package without a version is none: only its commit was printed.
    tree["packages"] = {name: one for name, one in tree.get("packages", {}).items() if "version" in one}
    gpus = sorted(tree.get("gpus", {}).items(), key=lambda pair: int(pair[0]))
    tree["gpus"] = [{"index": int(number), **one} for number, one in gpus]
    return tree
