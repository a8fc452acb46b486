"""Which of the packages that matter are installed, from the names of their metadata folders: nothing is imported or executed."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from oomdoctor.case.environment import Package
from oomdoctor.case.gap import Gap
from oomdoctor.machine.collect.collected import Collected
from oomdoctor.machine.collect.root import Root

_FOLDER = re.compile(r"(?P<name>[A-Za-z0-9._-]{1,80}?)-(?P<version>\d[^-]{0,80})(?:-py\d[\d.]{0,6})?\.(?P<kind>dist-info|egg-info)")
_COMMIT = re.compile(r'"commit_id"\s{0,5}:\s{0,5}"([0-9a-f]{7,64})"')
_EDITABLE = re.compile(r'"editable"\s{0,5}:\s{0,5}true')


def collect_packages(folders: Sequence[str], names: Sequence[str]) -> Collected[dict[str, Package]]:
    """Find packages (`names`, which may end in `*`) in the folders of an interpreter, which are searched in order as Python does."""
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    root, seen = Root(), dict[str, list[Package]]()
    gaps = []
    for folder in dict.fromkeys(folders):
        entries = root.names(folder)
        if not entries and os.path.isdir(folder) and not os.access(folder, os.R_OK):
            gaps.append(Gap("installed packages", "a folder of the interpreter cannot be read"))
        for entry in entries:
            metadata = _FOLDER.fullmatch(entry)
            if metadata is None:
                continue
            name = normalise_name(metadata["name"])
            if name in exact or (prefixes and name.startswith(prefixes)):
                seen.setdefault(name, []).append(_package(root, folder, entry, metadata["version"]))
    out = {name: _first(copies) for name, copies in sorted(seen.items())}
    return Collected(out, {f"packages.{name}": "package metadata" for name in out}, tuple(dict.fromkeys(gaps)))


def normalise_name(name: str) -> str:
    """Return a distribution's name as PyPI compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _package(root: Root, folder: str, entry: str, version: str) -> Package:
    direct = root.read(os.path.join(folder, entry, "direct_url.json"), 4096)
    if direct is None:
        return Package(version=version, location=folder)
    commit = _COMMIT.search(direct)
    return Package(version=version, location=folder, editable=bool(_EDITABLE.search(direct)), commit=commit[1] if commit else None)


def _first(copies: Sequence[Package]) -> Package:
    """Return the one that Python imports, and the versions behind it."""
    first, *rest = copies
    others = tuple(copy.version for copy in rest)
    if not others:
        return first
    return Package(version=first.version, location=first.location, editable=first.editable, commit=first.commit, shadowed=others)
