"""Files that a fix needs and that are not there, from rules/templates."""

from __future__ import annotations

import os
import re
from shlex import quote

from msgspec import Struct

from oomdoctor.case.settings import ProposedSetting, RunSettings
from oomdoctor.case.text import Text
from oomdoctor.configs.edit.change import RefusedChange
from oomdoctor.configs.edit.edit_targets import EditTargets
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.template import TEMPLATES, ServedRecord, TemplateRecord

_FILLED = re.compile(r"\{(cards|precision)\}")
_VALUE = re.compile(r"\w[\w.-]{0,20}\Z")


class NewFile(Struct, frozen=True, kw_only=True):
    """A file to create beside a config."""

    path: str
    named: str
    """How the config names it."""
    text: str
    role: str
    """What it decides about a run: sharding."""
    launch: str | None = None
    """The command that uses it."""


def new_file(
    setting: ProposedSetting, targets: EditTargets, run: RunSettings, pack: Pack, folder: str | None = None
) -> NewFile | RefusedChange | None:
    """Return the file that the value of a setting names; None where it names none, or one that is there.

    It goes into `folder`, by default that of the config.
    """
    template = _template(setting, pack)
    home = targets.find(setting.framework, setting.key, setting.file, setting.line) if template is not None else None
    if template is None or home is None:
        return None
    beside = os.path.dirname(home.file)
    if any(os.path.isfile(os.path.join(place, setting.to)) for place in ("", beside)):
        return None
    path = os.path.join(beside if folder is None else folder, template.file)
    filled = {"cards": str(run.world_size or ""), "precision": run.precision or ""}
    open_value = next((name for name in _FILLED.findall(template.text) if not _VALUE.match(filled[name])), None)
    if open_value is not None:
        return RefusedChange(_UNKNOWN[open_value], f"{setting.key} {path}")
    named = path.replace(os.sep, "/")
    return NewFile(
        path=path,
        named=named,
        text=_FILLED.sub(lambda match: filled[match[1]], template.text),
        role=template.role,
        launch=_launch(template.launch.get(setting.framework), named, home.file),
    )


def _launch(command: str | None, file: str, config: str) -> str | None:
    """Return the command with its files, as a shell takes them."""
    if command is None:
        return None
    return command.replace("{file}", quote(file)).replace("{config}", quote(config.replace(os.sep, "/")))


def _template(setting: ProposedSetting, pack: Pack) -> TemplateRecord | None:
    served = ServedRecord(framework=setting.framework, key=setting.key, to=setting.to)
    return next((record for record in pack.records(TEMPLATES) if served in record.serves), None)


_UNKNOWN = {
    "cards": Text("the number of cards is unknown", "显卡数量还不知道"),
    "precision": Text("the run's precision is unknown", "训练精度还不知道"),
}
