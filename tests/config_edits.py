"""Config files as text -> what is proposed for them and what becomes of it, for tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from config_files import pack

from oomdoctor.case.diagnosis import Fix
from oomdoctor.case.settings import ConfigIssue, ProposedSetting
from oomdoctor.case.text import Text
from oomdoctor.configs.edit.edit_targets import EditTargets
from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.configs.proposals.apply import IssueFinder
from oomdoctor.configs.readers.read import read_config
from oomdoctor.configs.resolve import resolve_config


def sheets(files: Mapping[str, bytes]) -> list[ParsedConfig]:
    return [sheet for name, data in files.items() for sheet in read_config(name, data) or []]


def targets(files: Mapping[str, bytes]) -> EditTargets:
    return EditTargets(sheets(files), pack())


def judge(known: Mapping[str, str | int | float | bool | None]) -> IssueFinder:
    """What the rules say of configs in a run of which `known` is known."""

    def ask(files: Mapping[str, bytes]) -> Sequence[ConfigIssue]:
        found = resolve_config(sheets(files), [], dict(known), pack())
        return () if found is None else found.issues

    return ask


def nothing_there(path: str) -> bytes | None:  # noqa: ARG001 - the shape of a reader
    return None


def holding(**files: bytes) -> Callable[[str], bytes | None]:
    return lambda path: files.get(path.replace(".", "_"))


def fix(*settings: ProposedSetting, id: str = "a-fix", safety: str = "safe") -> Fix:
    return Fix(id=id, title=Text("A fix", "一项改动"), how=Text("So.", "这样。"), settings=settings, safety=safety)


def setting(framework: str, key: str, to: str, **more: object) -> ProposedSetting:
    return ProposedSetting(framework=framework, key=key, to=to, **more)  # type: ignore[arg-type]
