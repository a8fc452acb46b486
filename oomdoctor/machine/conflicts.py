"""Packages that do not go together: what their published metadata ask for, against what is installed (rules/tables/requirements.csv)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from oomdoctor.case.environment import Package
from oomdoctor.knowledge.tables.csv_table import Row, table
from oomdoctor.versions import parse_version, satisfies, within

_CUDA = "CUDA"
"""What a row names that asks for the CUDA of torch and not for a package."""


class Conflict(Struct, frozen=True):
    """A package, and another of a version that it does not go with."""

    package: str
    version: str
    needs: str
    specifier: str
    """What it asks for, `==2.5.1`."""
    installed: str
    binds: bool
    """Whether it is compiled for the other or checks it at its import, so that a run does not start."""

    def __str__(self) -> str:
        return f"{self.package} {self.version}: {self.needs}{self.specifier} ≠ {self.installed}"


def find_conflicts(packages: Mapping[str, Package], cuda: str | None = None) -> list[Conflict]:
    """Return the pairs of installed packages that do not go together, those that stop a run first; `cuda` is what torch is built for.

    Versions that the table does not know, and builds before a release, say nothing.
    """
    present = {**packages, _CUDA: Package(version=cuda)} if cuda else packages
    rows_of: dict[tuple[str, str], list[Row]] = {}
    for row in table("requirements"):
        if row["package"] in present and row["needs"] in present:
            rows_of.setdefault((row["package"], row["needs"]), []).append(row)
    pairs = [_conflict(rows, present[package].version, present[needed].version) for (package, needed), rows in rows_of.items()]
    return sorted((conflict for conflict in pairs if conflict is not None), key=lambda conflict: not conflict.binds)


def _conflict(rows: Sequence[Row], version: str, installed: str) -> Conflict | None:
    """Return how a version does not go with another, by the rows of such a pair; None where it does or nobody looked."""
    if any(parsed is None or parsed.is_prerelease for parsed in map(parse_version, (version, installed))):
        return None
    exact = [row for row in rows if within(version, row["since"], row["until"])]
    for row in reversed(exact):
        if not satisfies(installed, row["specifier"]):
            # A patch release of what a package was compiled for nearly always serves.
            binds = row["binds"] == "yes" and not satisfies(installed, _loosened(row["specifier"]))
            return Conflict(row["package"], version, row["needs"], row["specifier"], installed, binds)
    # A patch that nobody looked at asks for what its neighbours do, but for the patch.
    near = [] if exact else [row for row in rows if row["binds"] == "yes" and _is_beside(version, row)]
    if near and not any(satisfies(installed, _loosened(row["specifier"])) for row in near):
        return Conflict(near[-1]["package"], version, near[-1]["needs"], _loosened(near[-1]["specifier"]), installed, binds=True)
    return None


def _is_beside(version: str, row: Row) -> bool:
    """Return whether a version is of the minor release of which a row speaks."""
    parsed = parse_version(version)
    minor = "" if parsed is None else f"{parsed.major}.{parsed.minor}"
    return bool(within(row["since"], minor, minor) or within(row["until"], minor, minor))


def _loosened(specifier: str) -> str:
    """Return a pin without its patch: `==2.5.*` of `==2.5.1`; any other specifier as it is."""
    pin = specifier.removeprefix("==")
    return f"=={pin.rpartition('.')[0]}.*" if pin != specifier and pin.count(".") == 2 and "," not in pin else specifier
