"""What `oomdoctor fix` would change, or changed: the difference, then each step in a line, then what is left for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import MemoryBudget
from oomdoctor.case.serving import AnyPlan, AnyPlans, Served
from oomdoctor.case.text import Text
from oomdoctor.configs.edit.change import RefusedChange
from oomdoctor.configs.edit.difference import diff_lines
from oomdoctor.configs.edit.patch import manual_line
from oomdoctor.configs.proposals.apply import AppliedProposals
from oomdoctor.configs.proposals.choice import Choice
from oomdoctor.configs.proposals.proposal import Proposal
from oomdoctor.report.diagnosis.expected import range_of
from oomdoctor.report.render.styled_line import StyledLine
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording.phrases import blank, stopped
from oomdoctor.report.wording.texts import say
from oomdoctor.units import GIB

_LINE = 400
_LOOKS = {"---": "bold", "+++": "bold", "@@": "cyan", "-": "red", "+": "green"}


def render(
    settled: AppliedProposals,
    before: Mapping[str, bytes],
    choice: Choice,
    plans: AnyPlans | None,
    lang: str,
    *,
    color: bool,
) -> str:
    """The whole answer as text; `plans` are those that were looked for."""
    lines = [*_differences(settled, before), *_steps(settled, plans, lang), *_waiting(choice, plans, lang), *_nothing_planned(plans, lang)]
    if not lines:
        lines = [StyledLine(_say("nothing", lang))]
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


def _differences(settled: AppliedProposals, before: Mapping[str, bytes]) -> Iterator[StyledLine]:
    for path, data in settled.files.items():
        for line in diff_lines(path, before.get(path), data):
            look = next((look for mark, look in _LOOKS.items() if line.startswith(mark)), "")
            # A diff is copied and applied: blanks stay, escapes go.
            yield StyledLine(_harmless(line), look)
    if settled.files:
        yield StyledLine()


def _harmless(line: str) -> str:
    return "".join(one if one == "\t" or one.isprintable() else "\ufffd" for one in line)


def _steps(settled: AppliedProposals, plans: AnyPlans | None, lang: str) -> Iterator[StyledLine]:
    for step in settled.steps:
        proposal = step.proposal
        if step.made or step.created:
            yield from _titled(proposal, "did", "green", plans, lang, fits=bool(step.made))
            yield from (StyledLine("    " + _say("launch", lang, command=command), "") for command in proposal.launch)
            yield from _typed(proposal.by_hand, "still", lang)
        elif step.already:
            yield from _titled(proposal, "already", "dim", None, lang)
        elif step.left:
            yield from _titled(proposal, "refused" if step.refused else "by-hand", "yellow", None, lang)
            yield from _typed((*step.refused, *proposal.by_hand), "line", lang)


def _titled(proposal: Proposal, word: str, look: str, plans: AnyPlans | None, lang: str, *, fits: bool = False) -> Iterator[StyledLine]:
    """A proposal in a line; with `fits` also whether it is enough, if the files can hold all of it."""
    title = stopped(proposal.title.get(lang), lang)
    if fits and proposal.fits is not None and not proposal.by_hand:
        title += blank(lang) + say(f"fits-{proposal.fits}", lang)
    line = StyledLine(_say(word, lang), look).append("  ").append(clean_line(proposal.id, 100), "bold")
    yield line.append("  ").append(clean_line(title, _LINE))
    if plans is not None and proposal.plan is not None:
        yield StyledLine("    " + _then(proposal.plan, plans.budget, lang), "")


def _typed(left: Sequence[RefusedChange], word: str, lang: str) -> Iterator[StyledLine]:
    for one in left:
        why = clean_line(one.why.get(lang), _LINE)
        line = StyledLine("    ").append(_say(word, lang, line=clean_line(one.by_hand, _LINE)), "cyan")
        yield line.append(f"（{why}）" if lang == "zh" else f"  ({why})", "dim")


def _waiting(choice: Choice, plans: AnyPlans | None, lang: str) -> Iterator[StyledLine]:
    """What is for a person to decide, with its lines; what else there is, by name."""
    for one in choice.undecided:
        yield from _titled(one, "undecided", "yellow", plans, lang, fits=True)
        yield from (StyledLine("    " + clean_line(manual_line(change), _LINE), "cyan") for change in one.changes)
        yield from (StyledLine("    " + _say("new-file", lang, path=clean_line(file.path, _LINE)), "") for file in one.files)
        yield from _typed(one.by_hand, "still", lang)
    if choice.undecided:
        yield StyledLine(_say("yes", lang), "dim")
    names = list(dict.fromkeys(one.id for one in choice.others))
    if names:
        yield StyledLine(_say("others", lang, names=("、" if lang == "zh" else ", ").join(names)), "dim")


def _nothing_planned(plans: AnyPlans | None, lang: str) -> Iterator[StyledLine]:
    """Why there is no plan, where one was looked for."""
    if plans is None or plans.plans:
        return
    closest = None if plans.obstacle is None else plans.obstacle.closest.outcome
    if isinstance(plans.now, Served):
        yield StyledLine(_say("starts" if closest is None else "starts-not", lang), "" if closest is None else "yellow")
    elif isinstance(closest, Estimate):
        yield StyledLine(_needs("wall", closest, plans.budget, lang), "yellow")
    else:
        yield StyledLine(_needs("fits", plans.now, plans.budget, lang))


def _then(plan: AnyPlan, budget: MemoryBudget, lang: str) -> str:
    """What a plan comes to."""
    if isinstance(plan.outcome, Estimate):
        return _needs("then", plan.outcome, budget, lang)
    tokens = plan.outcome.tokens
    return _say("holds", lang, tokens=f"{tokens.expected:,}", low=f"{tokens.low:,}", high=f"{tokens.high:,}")


def _needs(key: str, found: Estimate, budget: MemoryBudget, lang: str) -> str:
    card = clean_line(budget.card, 100) or _say("card", lang)
    return _say(key, lang, range=range_of(found.expected, found.low, found.high, lang), card=card, usable=f"{budget.usable / GIB:.1f} GiB")


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
    "line": Text("{line}", "{line}"),
    "still": Text("by hand: {line}", "需手动：{line}"),
    "undecided": Text("decide ", "待决定  "),
    "new-file": Text("a new file: {path}", "新文件：{path}"),
    "yes": Text("What is for you to decide is written only with --yes.", "待决定的改动加上 --yes 才会写入。"),
    "others": Text(
        "Also possible, written only by name (--only ID --yes): {names}.", "还有其他办法，指明才会写入（--only ID --yes）：{names}。"
    ),
    "then": Text("it then needs {range}; {card} has {usable} to plan with", "之后需要 {range}；{card} 可规划的显存为 {usable}"),
    "fits": Text(
        "The run fits as it is: it needs {range}; {card} has {usable} to plan with.",
        "现在就放得下：需要 {range}；{card} 可规划的显存为 {usable}。",
    ),
    "wall": Text(
        "No combination of settings fits: the smallest needs {range}, and {card} has {usable} to plan with. "
        "`oomdoctor plan` says what would be enough.",
        "没有哪种设置组合放得下：需求最小的一种也要 {range}，而 {card} 可规划的显存为 {usable}。`oomdoctor plan` 会说明要多少才够。",
    ),
    "holds": Text("the cache then holds {tokens} tokens ({low} to {high})", "之后缓存可容纳 {tokens} 个 token（{low} 至 {high}）"),
    "starts": Text("The server starts as it is.", "服务现在就能启动。"),
    "starts-not": Text(
        "No combination of settings makes the server start. `oomdoctor plan` says what would be enough.",
        "没有哪种设置组合能让服务启动。`oomdoctor plan` 会说明要多少才够。",
    ),
    "card": Text("the card of the log", "日志中的显卡"),
    "written": Text("{path} is changed; the old file is {copy}", "已改写 {path}，原文件保存为 {copy}"),
    "created": Text("{path} is new", "已新建 {path}"),
    "ask": Text("Write these changes?", "写入这些改动？"),
    "declined": Text("Nothing was written.", "没有写入任何内容。"),
}
