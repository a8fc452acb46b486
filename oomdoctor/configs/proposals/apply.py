"""Proposals one after the other: each is made as a whole, looked at with the rules for configs, and left out where it breaks something."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from oomdoctor.case.settings import ConfigIssue
from oomdoctor.case.text import Text
from oomdoctor.configs.edit.change import ConfigChange, RefusedChange
from oomdoctor.configs.edit.patch import is_applied, manual_line, patch, values_of
from oomdoctor.configs.proposals.new_file import NewFile
from oomdoctor.configs.proposals.proposal import Proposal, with_conflicts

Files = Mapping[str, bytes]
IssueFinder = Callable[[Files], Sequence[ConfigIssue]]
"""What is wrong with the config files of a run, given their content."""


class AppliedStep(Struct, frozen=True, kw_only=True):
    """A proposal and what became of it."""

    proposal: Proposal
    made: tuple[ConfigChange, ...] = ()
    created: tuple[NewFile, ...] = ()
    already: bool = False
    """Whether the files say all of it already."""
    refusals: tuple[RefusedChange, ...] = ()
    """Why it was left out, each reason with the line to type."""
    brings: ConfigIssue | None = None
    """What would be wrong with the files then, where that is the reason."""

    @property
    def left(self) -> bool:
        """Whether something of it is for a person to do."""
        return bool(self.refusals or self.proposal.by_hand) and not self.already


class AppliedProposals(Struct, frozen=True, kw_only=True):
    """The files as they would be, and every step to them."""

    files: dict[str, bytes]
    """The changed and the new ones, by path."""
    steps: tuple[AppliedStep, ...]


def apply_proposals(
    files: Files, proposals: Sequence[Proposal], find_issues: IssueFinder, read: Callable[[str], bytes | None], older: Files | None = None
) -> AppliedProposals:
    """Return what becomes of `files` (path -> content). `read` reads a file that may exist; none that does is replaced by a new one.

    `older` are the files as they were when the run died, where they were changed since: what a fix was worked out from.
    """
    now = dict(files)
    steps: list[AppliedStep] = []
    before = find_issues(now)
    for proposal, against in with_conflicts(proposals):
        if against is not None:
            steps.append(AppliedStep(proposal=proposal, refusals=_all(proposal, _set_already(against))))
            continue
        stale = [] if proposal.issue is not None else [change for change in proposal.changes if _moved_on(change, files, older or {})]
        if stale:
            steps.append(AppliedStep(proposal=proposal, refusals=_all(proposal, _MOVED_ON)))
            continue
        after, step = _step(now, proposal, read)
        if step.made or step.created:
            issues = find_issues(after)
            brings = _new_issue(before, issues)
            why = _NOT_GONE if _remains(proposal, issues) else None if brings is None else _complaint(brings)
            if why is not None:
                steps.append(AppliedStep(proposal=proposal, refusals=_all(proposal, why), brings=brings))
                continue
            now, before = after, issues
        steps.append(step)
    changed = {path: data for path, data in now.items() if files.get(path) != data}
    return AppliedProposals(files=changed, steps=tuple(steps))


def _moved_on(change: ConfigChange, files: Files, older: Files) -> bool:
    """Return whether somebody gave the setting a third value since the run died."""
    file, then = change.file, older.get(change.file)
    if then is None or is_applied(file, files[file], change):
        return False
    return values_of(file, files[file], change.key) != values_of(file, then, change.key)


def _step(files: Files, proposal: Proposal, read: Callable[[str], bytes | None]) -> tuple[dict[str, bytes], AppliedStep]:
    """Return the files after one proposal: all of its changes, or none."""
    after = dict(files)
    made: list[ConfigChange] = []
    refusals: list[RefusedChange] = []
    for file in dict.fromkeys(change.file for change in proposal.changes):
        done = patch(file, after[file], [change for change in proposal.changes if change.file == file])
        after[file] = done.data
        made += done.made
        refusals += [why for _, why in done.refusals]
    created, clashes = _created(after, proposal, read)
    refusals += clashes
    if refusals:
        return dict(files), AppliedStep(proposal=proposal, refusals=tuple(refusals))
    after.update((new_file.path, new_file.text.encode()) for new_file in created)
    has_work = bool(proposal.changes or proposal.files)
    return after, AppliedStep(proposal=proposal, made=tuple(made), created=tuple(created), already=has_work and not made and not created)


def _created(files: Files, proposal: Proposal, read: Callable[[str], bytes | None]) -> tuple[list[NewFile], list[RefusedChange]]:
    """Return the new files that are not there yet, and those whose name is taken."""
    created: list[NewFile] = []
    clashes: list[RefusedChange] = []
    for file in proposal.files:
        old = files.get(file.path, read(file.path))
        if old is None:
            created.append(file)
        elif old != file.text.encode():
            clashes.append(RefusedChange(_TAKEN, file.path))
    return created, clashes


def _remains(proposal: Proposal, after: Sequence[ConfigIssue]) -> bool:
    """Return whether the issue that a proposal is to mend is still there."""
    return proposal.issue is not None and any(_same(issue, proposal.issue) for issue in after)


def _new_issue(before: Sequence[ConfigIssue], after: Sequence[ConfigIssue]) -> ConfigIssue | None:
    """Return the first thing that is wrong now and was not."""
    return next((issue for issue in after if issue.severity != "note" and not any(_same(issue, old) for old in before)), None)


def _complaint(issue: ConfigIssue) -> Text:
    return Text(f"it would cause another problem: {issue.what.en}", f"改完会带来新的问题：{issue.what.zh}")


def _same(issue: ConfigIssue, other: ConfigIssue) -> bool:
    """Lines move; the subject stays."""
    return (issue.id, issue.key, issue.file) == (other.id, other.key, other.file)


def _all(proposal: Proposal, why: Text) -> tuple[RefusedChange, ...]:
    return (
        *(RefusedChange(why, manual_line(change)) for change in proposal.changes),
        *(RefusedChange(why, file.path) for file in proposal.files),
    )


def _set_already(owner: str) -> Text:
    return Text(f"{owner} sets this to another value", f"{owner} 已把这一项改成另一个值")


_MOVED_ON = Text("it was changed after the run died", "出错之后这一项已被改过")
_TAKEN = Text("a file with this name already exists with different content; it is not overwritten", "同名文件已存在且内容不同，不会覆盖")
_NOT_GONE = Text("the problem would still be there", "改完之后这个问题仍然存在")
