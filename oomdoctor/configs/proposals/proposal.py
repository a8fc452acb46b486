"""What a fix or an issue asks for, as changes and new files; what no tool can write is said as a line to type."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from oomdoctor.case.diagnosis import Fix
from oomdoctor.case.serving import AnyPlan
from oomdoctor.case.settings import ConfigIssue, ProposedSetting, RunSettings
from oomdoctor.case.text import Text
from oomdoctor.configs.edit.change import ConfigChange, RefusedChange
from oomdoctor.configs.edit.edit_targets import EditTarget, EditTargets
from oomdoctor.configs.proposals.new_file import NewFile, new_file
from oomdoctor.configs.proposals.replacement import replacement
from oomdoctor.knowledge.pack import Pack

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{2,80}\Z")
_KEY = re.compile(r"-{0,2}[A-Za-z_][\w.-]{0,150}\Z")


class Proposal(Struct, frozen=True, kw_only=True):
    """One thing to do to the files of a run. It is done as a whole or not at all."""

    id: str
    title: Text
    safe: bool
    issue: ConfigIssue | None = None
    """The issue that must be gone afterwards."""
    changes: tuple[ConfigChange, ...] = ()
    files: tuple[NewFile, ...] = ()
    by_hand: tuple[RefusedChange, ...] = ()
    launch: tuple[str, ...] = ()
    """Commands that make use of it."""
    fits: str | None = None
    """Whether the run would fit with it alone: `yes`, `no` or `close`; None where nobody can say."""
    plan: AnyPlan | None = None
    """The plan that it is, where it is one."""


def fix_proposal(fix: Fix, targets: EditTargets, run: RunSettings, pack: Pack, folder: str | None = None) -> Proposal:
    """Return a fix of the diagnosis as a proposal for these files; `run` are the settings of the run. New files go into `folder`."""
    safe = fix.safety == "safe"
    against = _sharded_otherwise(fix, run)
    if against is not None:
        return Proposal(
            id=fix.id,
            title=fix.title,
            safe=safe,
            by_hand=tuple(RefusedChange(against, typed_line(setting.key, setting.to)) for setting in fix.settings),
        )
    changes: list[ConfigChange] = []
    files: list[NewFile] = []
    by_hand: list[RefusedChange] = []
    for setting in fix.settings:
        if _has_another(setting, fix.settings):
            continue
        made = new_file(setting, targets, run, pack, folder)
        if isinstance(made, NewFile):
            files.append(made)
        change = made if isinstance(made, RefusedChange) else _change(setting, made, targets, changes)
        if isinstance(change, RefusedChange):
            by_hand.append(change)
        elif change is not None:
            changes.append(change)
    launch = tuple(file.launch for file in files if file.launch)
    return Proposal(
        id=fix.id,
        title=fix.title,
        safe=safe,
        changes=tuple(changes),
        files=tuple(files),
        by_hand=tuple(by_hand),
        launch=launch,
        fits=fix.fits,
    )


def issue_proposal(issue: ConfigIssue, targets: EditTargets) -> Proposal:
    """Return what an issue says to write instead. Notes are advice, and safe is what else does not run or has no effect."""
    changes, by_hand = replacement(issue, targets)
    return Proposal(
        id=issue.id,
        title=issue.what,
        safe=issue.severity != "note",
        issue=issue,
        changes=tuple(changes),
        by_hand=tuple(by_hand),
    )


def _change(
    setting: ProposedSetting, made: NewFile | None, targets: EditTargets, before: Sequence[ConfigChange]
) -> ConfigChange | RefusedChange | None:
    """Return the change of one setting; None where the new file is all of it."""
    key, to = setting.key, setting.to if made is None else made.named
    if made is not None and not _KEY.match(key):
        return None
    line = typed_line(key, to)
    if setting.dated and (setting.line is None or setting.sets is None):
        return RefusedChange(_dated(setting), line)
    if setting.example and made is None:
        return RefusedChange(Text("you have to choose the value", "具体取值要由你决定"), line)
    if not re.match(r"[\w./\[{'\"-]|\Z", to):
        return RefusedChange(Text("the current value is unknown", "当前的取值还不知道"), line)
    if _VARIABLE.match(key):
        script = targets.script_for(key)
        why = Text("it is an environment variable, and none of these files is a script", "这是环境变量，而给出的文件都不是启动脚本")
        return (
            RefusedChange(why, line)
            if script is None
            else ConfigChange(file=script.file, key=key, to=to, variable=True, program=script.program)
        )
    if not _KEY.match(key):
        return RefusedChange(Text("it belongs in code or in a command, not in a config", "它写在代码或命令里，不在配置文件中"), line)
    home = targets.find(setting.framework, key, setting.file, setting.line)
    if home is None:
        return RefusedChange(
            Text(f"none of these files belongs to {setting.framework}", f"给出的文件里没有 {setting.framework} 的配置"), line
        )
    value = to if to or home.is_option else "true"
    return ConfigChange(file=home.file, key=home.key, to=value, line=home.line, after=_after(home, before), program=home.program)


def _dated(setting: ProposedSetting) -> Text:
    """Return why a setting that only some versions have is not written."""
    en, zh = ("", "") if setting.note is None else (f" ({setting.note.en})", f"（{setting.note.zh}）")
    return Text(f"only some versions support it{en}, and the version used is unknown", f"只有部分版本支持{zh}，而运行的是哪个版本还不知道")


def _sharded_otherwise(fix: Fix, run: RunSettings) -> Text | None:
    """Return why a fix that shards is not for a run that another program shards: DeepSpeed and FSDP exclude one another."""
    sets = {setting.sets for setting in fix.settings}
    if "zero_stage" in sets and run.fsdp:
        return Text("FSDP already shards this run", "这次运行已经由 FSDP 切分")
    if "fsdp" in sets and run.zero_stage:
        return Text("DeepSpeed already shards this run", "这次运行已经由 DeepSpeed 切分")
    return None


def _has_another(setting: ProposedSetting, settings: Sequence[ProposedSetting]) -> bool:
    """Return whether the file has the key of other versions for the same thing, so that this one would be one too many."""
    same = (other for other in settings if other.dated and (other.framework, other.sets) == (setting.framework, setting.sets))
    return setting.dated and setting.line is None and setting.sets is not None and any(other.line is not None for other in same)


def _after(home: EditTarget, before: Sequence[ConfigChange]) -> str | None:
    """Return the change of the same fix below which a new key belongs."""
    block = home.key.rpartition(".")[0]
    return next((change.key for change in before if change.file == home.file and change.key.rpartition(".")[0] == block), None)


def typed_line(key: str, to: str) -> str:
    """Return a setting as a person types it."""
    if _VARIABLE.match(key):
        return f"export {key}={to}"
    if key.endswith(")"):
        return f"{key[:-1]}={to})"
    return f"{key} {to}".rstrip() if "-" in key[:1] or " " in key else f"{key}: {to}"


def with_conflicts(proposals: Sequence[Proposal]) -> Iterator[tuple[Proposal, str | None]]:
    """Yield the proposals, each with the earlier one that decides one of its settings otherwise."""
    first: dict[tuple[str, str], tuple[str, str]] = {}
    for proposal in proposals:
        decided = list(_decides(proposal))
        against = next((first[what][1] for what, to in decided if what in first and first[what][0] != to), None)
        yield proposal, against
        if against is None:
            for what, to in decided:
                first.setdefault(what, (to, proposal.id))


def _decides(proposal: Proposal) -> Iterator[tuple[tuple[str, str], str]]:
    for change in proposal.changes:
        yield (change.file, change.key), change.to
    for file in proposal.files:
        yield ("", file.role), file.path
