"""What `oomdoctor fix` would change, or changed: the difference, then each step in a line, then what is left for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from oomdoctor.case.diagnosis import Text
from oomdoctor.changes.change import Refused
from oomdoctor.changes.difference import difference
from oomdoctor.changes.proposal import Proposal
from oomdoctor.changes.settle import Settled, Step
from oomdoctor.report.phrases import blank, stopped
from oomdoctor.report.safe import clean_line
from oomdoctor.report.styled import Line
from oomdoctor.report.texts import say

_LINE = 400
_LOOKS = {"---": "bold", "+++": "bold", "@@": "cyan", "-": "red", "+": "green"}


def render(settled: Settled, before: Mapping[str, bytes], waiting: Sequence[Proposal], lang: str, *, color: bool) -> str:
    """The whole answer as text; `waiting` are proposals that were not asked for."""
    lines = [*_differences(settled, before), *_steps(settled, lang), *_waiting(waiting, lang)]
    if not lines:
        lines = [Line(_say("nothing", lang))]
    return "".join(line.render(color=color) + "\n" for line in lines)


def written(copies: Mapping[str, str], new: Sequence[str], lang: str) -> str:
    """What was written, and where the old files are."""
    lines = [_say("written", lang, path=path, copy=copy) for path, copy in copies.items()]
    lines += [_say("created", lang, path=path) for path in new]
    return "".join(f"{clean_line(line, _LINE)}\n" for line in lines)


def question(lang: str) -> str:
    """What is asked before anything is written."""
    return _say("ask", lang)


def declined(lang: str) -> str:
    """What is said where nobody agreed."""
    return _say("declined", lang)


def _differences(settled: Settled, before: Mapping[str, bytes]) -> Iterator[Line]:
    for path, data in settled.files.items():
        for line in difference(path, before.get(path), data):
            look = next((look for mark, look in _LOOKS.items() if line.startswith(mark)), "")
            # A diff is copied and applied: blanks stay, escapes go.
            yield Line(_harmless(line), look)
    if settled.files:
        yield Line()


def _harmless(line: str) -> str:
    return "".join(one if one == "\t" or one.isprintable() else "\ufffd" for one in line)


def _steps(settled: Settled, lang: str) -> Iterator[Line]:
    for step in settled.steps:
        if step.made or step.created:
            yield _title(step, "did", "green", lang)
            yield from (Line("    " + _say("launch", lang, command=command), "") for command in step.proposal.launch)
        elif step.already:
            yield _title(step, "already", "dim", lang)
            continue
        elif step.refused:
            yield _title(step, "refused", "yellow", lang)
        elif step.proposal.by_hand:
            yield _title(step, "by-hand", "yellow", lang)
        yield from _typed((*step.refused, *step.proposal.by_hand), lang)


def _title(step: Step, word: str, look: str, lang: str) -> Line:
    title = stopped(step.proposal.title.get(lang), lang)
    if step.made and step.proposal.fits is not None:
        title += blank(lang) + say(f"fits-{step.proposal.fits}", lang)
    line = Line(_say(word, lang), look).append("  ").append(clean_line(step.proposal.id, 100), "bold")
    return line.append("  ").append(clean_line(title, _LINE))


def _typed(left: Sequence[Refused], lang: str) -> Iterator[Line]:
    for one in left:
        why = clean_line(one.why.get(lang), _LINE)
        line = Line("    ").append(clean_line(one.by_hand, _LINE), "cyan")
        yield line.append(f"（{why}）" if lang == "zh" else f"  ({why})", "dim")


def _waiting(waiting: Sequence[Proposal], lang: str) -> Iterator[Line]:
    names = list(dict.fromkeys(one.id for one in waiting))
    if names:
        yield Line(_say("waiting", lang, names=("、" if lang == "zh" else ", ").join(names)), "dim")


def _say(key: str, lang: str, **values: str) -> str:
    text = _TEXTS[key].get(lang)
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


_TEXTS: Mapping[str, Text] = {
    "nothing": Text("Nothing to change.", "没有需要改动的地方。"),
    "did": Text("change ", "改动    "),
    "already": Text("is so  ", "已是如此"),
    "refused": Text("left   ", "未改动  "),
    "by-hand": Text("by hand", "需手动  "),
    "launch": Text("then run: {command}", "然后运行：{command}"),
    "waiting": Text(
        "For you to decide, not taken without --yes (or --yes --only ID): {names}.",
        "需要你来决定，没有 --yes（或 --yes --only ID）不会写入：{names}。",
    ),
    "written": Text("{path} is changed; the old file is {copy}", "已改写 {path}，原文件保存为 {copy}"),
    "created": Text("{path} is new", "已新建 {path}"),
    "ask": Text("Write these changes?", "写入这些改动？"),
    "declined": Text("Nothing was written.", "没有写入任何内容。"),
}
