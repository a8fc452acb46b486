"""Known bugs of releases as the first thing to fix: another release, or a workaround until there is one."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from oomdoctor.case.diagnosis import Finding, Fix, KnownBug
from oomdoctor.case.text import Text
from oomdoctor.findings.bugs import certainty_of


def bugs_first(findings: Sequence[Finding], bugs: Sequence[KnownBug]) -> tuple[Finding, ...]:
    """Return the findings with the steps against known bugs before all others; if there is no finding, the first bug becomes one."""
    if not bugs:
        return tuple(findings)
    steps = tuple(map(bug_step, bugs))
    if not findings:
        return (_finding(bugs[0], steps),)
    return (replace(findings[0], fixes=(*steps, *findings[0].fixes)), *findings[1:])


def bug_step(bug: KnownBug) -> Fix:
    """Return what to do about a known bug."""
    return Fix(id=bug.id, title=_title(bug), how=_how(bug), harm="effort", safety="review")


def bug_heading(bug: KnownBug) -> Text:
    """Return a short name for the bug: `Known bug in vLLM 0.16.0`."""
    name = f"{bug.program} {bug.version}" if bug.version is not None else bug.program
    if bug.state == "intended":
        return Text(f"Changed default of {name}", f"{name} 的默认行为变化")
    return Text(f"Known bug in {name}", f"{name} 的已知缺陷")


def _finding(bug: KnownBug, steps: tuple[Fix, ...]) -> Finding:
    return Finding(
        id=bug.id,
        cause=None,
        severity="error",
        confidence=certainty_of(bug),
        title=bug_heading(bug),
        why=bug.symptom,
        fixes=steps,
    )


def _title(bug: KnownBug) -> Text:
    """Return the instruction: the release without the bug, or otherwise the workaround."""
    order = _upgrade(bug) if bug.fixed_in is not None and bug.state == "fixed" else bug.workaround or _newer(bug)
    if bug.version is None:
        return Text(
            f"If this is {bug.program} {bug.affected.en}: {order.en}",
            f"如果是 {bug.program} {bug.affected.zh}：{order.zh}",
        )
    return order


def _upgrade(bug: KnownBug) -> Text:
    return Text(f"Upgrade {bug.program} to {bug.fixed_in} or later", f"将 {bug.program} 升级到 {bug.fixed_in} 或更高版本")


def _newer(bug: KnownBug) -> Text:
    return Text(f"Upgrade {bug.program} to its newest release", f"将 {bug.program} 升级到最新版本")


_NOT_CONFIRMED = Text("Reported by users; no maintainer has confirmed it", "这是用户的报告，维护者尚未确认")


def _how(bug: KnownBug) -> Text:
    """Return a description of the bug, the releases that have it, other remedies, and where it is reported."""
    heading = bug_heading(bug)
    about = Text(f"{heading.en} ({bug.affected.en}): {bug.symptom.en}", f"{heading.zh}（{bug.affected.zh}）：{bug.symptom.zh}")
    parts = [about, *_meanwhile(bug), *([_NOT_CONFIRMED] if bug.evidence == "reporter" else [])]
    return Text(
        " ".join(_sentence(part.en, ".") for part in parts) + f" See {bug.source}",
        "".join(_sentence(part.zh, "。") for part in parts) + f"参见 {bug.source}",
    )


def _meanwhile(bug: KnownBug) -> list[Text]:
    """Return the workarounds on the same release, if the title does not give them."""
    if bug.workaround is None or bug.fixed_in is None or bug.state != "fixed":
        return []
    return [Text(f"Until then: {bug.workaround.en}", f"在此之前：{bug.workaround.zh}")]


def _sentence(text: str, stop: str) -> str:
    """Return a text with one period."""
    return text.rstrip(" .。") + stop
