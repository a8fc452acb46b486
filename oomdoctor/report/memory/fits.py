"""Whether a run fits, in words: the same for every command, as all of them judge by the same figure."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import Fit
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.expected import range_of
from oomdoctor.report.document import Paragraph, Span, Style
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB

_FITS = {
    "yes": (Text("It fits.", "放得下。"), Style.GOOD),
    "close": (Text("Whether it fits is too close to call.", "余量太小，难以断定放不放得下。"), Style.WARN),
    "no": (Text("It does not fit.", "放不下。"), Style.BAD),
}
_DEPENDS = (Text("It depends on the settings: with these assumptions, it does not fit.", "取决于设置：按下面的假设放不下。"), Style.WARN)
_SIDES = {
    True: Text(" It more likely does.", "更可能放得下。"),
    False: Text(" It more likely does not.", "更可能放不下。"),
}
"""By whether what is expected fits, where the range straddles the room."""
_JUDGED = (
    Text(
        "A run counts as fitting if the upper end of its range is below 97 % of the card's memory: cards with the same name "
        "differ by one to three percent.",
        "估计区间的上限不超过可用显存的 97% 才算放得下：同型号的卡之间会有 1% 到 3% 的差别。",
    ),
    Text(
        "Memory that torch holds but no tensor uses is not counted, because torch releases it before a request fails; "
        "nvidia-smi shows more.",
        "torch 缓存着、但没有张量占用的部分不计入：申请失败之前 torch 会先把它释放。nvidia-smi 显示的数值会更大。",
    ),
)


def fits_line(fit: Fit, wording: Wording, *, depends: bool = False) -> Iterator[Span]:
    """Yield the verdict, what the run needs, and what the card has; `depends`: it fits where something that was assumed is otherwise."""
    text, style = _DEPENDS if depends and fit.fits == "no" else _FITS[fit.fits]
    need, name = fit.needed, fit.budget.card
    side = wording.say(_SIDES[need.expected <= fit.budget.usable]) if fit.fits == "close" else ""
    yield Span(wording.say(text) + side, style)
    sizes, usable = range_of(need.expected, need.low, need.high, wording), f"{fit.budget.usable / GIB:.1f} GiB"
    if wording.is_chinese:
        card = f"{name} " if name else "日志中的显卡"
        yield Span(f"这次运行需要 {sizes}{each_card(need, wording)}；{card}可规划的显存为 {usable}。")
    else:
        yield Span(f" The run needs {sizes}{each_card(need, wording)}; {name or 'the card in the log'} has {usable} usable.")


def needs_line(need: Estimate, wording: Wording) -> Iterator[Span]:
    """Yield what a run needs where no card was named."""
    sizes = range_of(need.expected, need.low, need.high, wording)
    text = wording.say(Text("The run needs {}{}.", "这次运行需要 {}{}。"))
    yield Span(text.format(sizes, each_card(need, wording)), Style.STRONG)


def how_judged(wording: Wording) -> tuple[Paragraph, ...]:
    """Return how the verdict is reached."""
    return tuple(Paragraph((Span(wording.say(text)),)) for text in _JUDGED)


def each_card(estimate: Estimate, wording: Wording) -> str:
    """Say which of several cards a figure is about."""
    cards = estimate.setup.layout.cards
    if cards == 1:
        return ""
    if estimate.ranks:
        return f"，指 {cards} 张卡中最满的一张" if wording.is_chinese else f" on the fullest of {cards} cards"
    return f"，共 {cards} 张卡，每张都要" if wording.is_chinese else f" on each of {cards} cards"
