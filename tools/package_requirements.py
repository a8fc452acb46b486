"""Writes rules/tables/requirements.csv: what published packages ask of one another, by their own metadata (Requires-Dist).

    python tools/package_requirements.py torchvision torchaudio transformers:minor peft ...

Rows of the packages that are named are made anew; all others stay, and so do those from another source, which are written by hand.
pip (23.3 or newer) tells the metadata in a dry run, without installing anything. Neighbouring versions that ask for the same share a row;
with `:minor` the newest patch of each minor release speaks for all of it.
"""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.version import InvalidVersion, Version

TABLE = Path(__file__).parents[1] / "rules" / "tables" / "requirements.csv"
COLUMNS = ("package", "since", "until", "needs", "specifier", "binds", "source")
SOURCE = "Requires-Dist of the wheels on PyPI"
NEEDED = {
    "torch",
    "torchvision",
    "torchaudio",
    "triton",
    "transformers",
    "accelerate",
    "peft",
    "trl",
    "bitsandbytes",
    "xformers",
    "tokenizers",
}
"""Packages that a run imports and whose version decides whether it starts."""
BINDS = {("torchvision", "torch"), ("torchaudio", "torch"), ("xformers", "torch"), ("vllm", "torch"), ("transformers", "tokenizers")}
"""Pairs of which the first is compiled for the second, or looks at its version at its import (transformers' dependency_versions_check)."""
LINUX = {"platform_system": "Linux", "platform_machine": "x86_64", "sys_platform": "linux", "os_name": "posix", "extra": ""}
PYTHONS = ("3.11", "3.10", "3.12", "3.9", "3.8")
PIP = [sys.executable, "-m", "pip"]


def main(asked: list[str]) -> None:
    """Make the rows of some packages anew."""
    names = [name.partition(":")[0] for name in asked]
    kept = [row for row in _written() if row["package"] not in names or row["source"] != SOURCE]
    rows = [*kept, *(row for name in asked for row in _rows(*name.partition(":")[::2]))]
    rows.sort(key=lambda row: (row["package"], row["needs"], Version(row["since"])))
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _written() -> list[dict[str, str]]:
    if not TABLE.exists():
        return []
    with TABLE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _rows(name: str, which: str) -> Iterator[dict[str, str]]:
    """Yield the rows of a package: spans of versions that ask for the same."""
    versions = _versions(name)
    if which == "minor":
        versions = list({Version(version).release[:2]: version for version in versions}.values())
    asked = [(version, _requirements(name, version)) for version in versions]
    known = [(version, needs) for version, needs in asked if needs is not None]
    for needed in sorted(NEEDED - {name}):
        span: list[str] = []
        before: str | None = None
        for version, needs in [*known, ("", {})]:
            specifier = needs.get(needed)
            if specifier != before and before and span:
                binds = "yes" if (name, needed) in BINDS else "no"
                first = f"{Version(span[0]).major}.{Version(span[0]).minor}" if which == "minor" else span[0]
                yield dict(zip(COLUMNS, (name, first, span[-1], needed, before, binds, SOURCE)))
            span = [*span, version] if specifier == before else [version]
            before = specifier


def _versions(name: str) -> list[str]:
    """Return the final releases of a package, the oldest first."""
    done = subprocess.run([*PIP, "index", "versions", name], capture_output=True, text=True, check=True)
    listed = re.search(r"Available versions: (.*)", done.stdout)
    return sorted((text for text in (listed[1].split(", ") if listed else []) if _is_final(text)), key=Version)


def _is_final(text: str) -> bool:
    try:
        return not (Version(text).is_prerelease or Version(text).is_postrelease)
    except InvalidVersion:
        return False


def _requirements(name: str, version: str) -> dict[str, str] | None:
    """Return what a version asks for, by package; None where it has no wheel for any Python."""
    for python in PYTHONS:
        flags = ["--dry-run", "--ignore-installed", "--no-deps", "--quiet", "--no-cache-dir", "--only-binary", ":all:", "--report", "-"]
        done = subprocess.run([*PIP, "install", *flags, "--python-version", python, f"{name}=={version}"], capture_output=True, text=True)
        if done.returncode == 0:
            lines = json.loads(done.stdout)["install"][0]["metadata"].get("requires_dist", [])
            environment = {**LINUX, "python_version": python, "python_full_version": f"{python}.0"}
            return {parsed.name: str(parsed.specifier) for line in lines if (parsed := _asked(line, environment)) is not None}
    return None


def _asked(line: str, environment: dict[str, str]) -> Requirement | None:
    """Return what a line asks for on Linux without extras; None where it asks for nothing there, or for any version."""
    try:
        parsed = Requirement(line)
    except InvalidRequirement:
        return None
    holds = parsed.marker is None or parsed.marker.evaluate(environment)
    return parsed if holds and parsed.name in NEEDED and str(parsed.specifier) else None


if __name__ == "__main__":
    main(sys.argv[1:])
