"""The frameworks installed alongside oomdoctor: their versions count if neither a file nor a log names one."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from functools import cache

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.event import Value
from oomdoctor.case.settings import RunConfig
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.framework import FRAMEWORKS
from oomdoctor.setups.assumed import assumed
from oomdoctor.versions import parse_version

_ENDING = ".dist-info"


def installed_frameworks(pack: Pack) -> Mapping[str, str]:
    """Return the versions of frameworks in this interpreter, by their names."""
    packages = _packages(tuple(sys.path))
    return {name: version for name in pack.names("frameworks") if (version := packages.get(name)) and parse_version(version) is not None}


def installed_facts(run: RunConfig | None, pack: Pack) -> dict[str, Value]:
    """Return the installed versions as facts, as if printed in a log; excluded are those that the run's files name themselves."""
    known = run.framework if run is not None and (run.version or run.settings.server_version) else None
    versions = installed_frameworks(pack)
    return {f"log.{name.replace('-', '_')}_version": version for name, version in versions.items() if name != known}


def as_installed(framework: str | None, pack: Pack) -> tuple[Assumption, ...]:
    """Return that a framework's installed version is assumed; empty if it is not installed."""
    version = installed_frameworks(pack).get(framework or "")
    record = None if version is None or framework is None else pack.record(FRAMEWORKS, framework)
    if record is None:
        return ()
    release = f"{record.title} {version}"
    return (assumed("framework_version", f"{release}, as installed alongside oomdoctor", f"{release}，即与 oomdoctor 装在一起的版本"),)


@cache
def _packages(folders: tuple[str, ...]) -> dict[str, str]:
    """Return the versions of packages by their folder names; importlib.metadata reads the same, and is slow to import."""
    versions: dict[str, str] = {}
    for folder in folders:
        with suppress(OSError):
            for entry in os.listdir(folder or "."):
                if entry.endswith(_ENDING):
                    name, _, version = entry.removesuffix(_ENDING).partition("-")
                    versions.setdefault(name.lower().replace("_", "-").replace(".", "-"), version)
    return versions
