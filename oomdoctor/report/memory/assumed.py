"""What was assumed and decides, in words: it stands in the first lines, with the answer that the other way gives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.plan import Otherwise
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.expected import range_of
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.wording.wording import Wording

_ALWAYS = frozenset({"gpu_layers", "global_batch"})
"""Assumptions that are told in the first lines whatever follows from them."""
_MOST = 3
"""Other ways that are told in the first lines; JSON has them all."""
_ASSUMED = Text("Not specified, so assumed: {}.", "以下未说明，按此假设：{}。")
_STYLES = {"yes": Style.GOOD, "close": Style.WARN, "no": Style.BAD, None: Style.PLAIN}
_LIMIT = Text("{} it fits; with more it may not.", "{}放得下，再多就不一定。")
_THEN = {
    "yes": Text("{} it needs {} and fits.", "{}需要 {}，放得下。"),
    "close": Text("{} it needs {}: too close to call.", "{}需要 {}，余量太小，难以断定。"),
    "no": Text("{} it needs {} and does not fit.", "{}需要 {}，放不下。"),
    None: Text("{} it needs {}.", "{}需要 {}。"),
}


def can_turn(otherwise: Sequence[Otherwise]) -> bool:
    """Whether a run fits where something that nobody said is otherwise than assumed."""
    return any(other.turns and other.fits == "yes" and not other.is_limit for other in otherwise)


def deciding(assumptions: Sequence[Assumption], otherwise: Sequence[Otherwise], wording: Wording) -> Iterator[Block]:
    """Yield one paragraph: what was assumed and decides, and what the other way comes to where that turns the verdict.

    Without a card there is no verdict; then the other ways that move the figure the most are told.
    """
    decides = {other.assumption for other in otherwise} | _ALWAYS
    named = [assumption for assumption in assumptions if assumption.id in decides]
    told = [other for other in otherwise if other.turns or other.fits is None][:_MOST]
    if not named and not any(other.turns for other in told):
        return
    first = [Span(taken(named, wording))] if named else []
    sentences = (
        Span((wording.blank if first or at else "") + _sentence(other, wording), _STYLES[other.fits]) for at, other in enumerate(told)
    )
    yield Paragraph((*first, *sentences))


def taken(assumptions: Iterable[Assumption], wording: Wording) -> str:
    """Say what was assumed in one sentence."""
    return wording.say(_ASSUMED).format(wording.semicolon.join(wording.say(assumption.text) for assumption in assumptions))


def _sentence(other: Otherwise, wording: Wording) -> str:
    clause = wording.say(other.text)
    clause = clause[:1].upper() + clause[1:]
    if other.is_limit:
        return wording.say(_LIMIT).format(clause)
    need = other.needed
    return wording.say(_THEN[other.fits]).format(clause, range_of(need.expected, need.low, need.high, wording))


def assumed(assumptions: Sequence[Assumption], wording: Wording) -> Iterator[Block]:
    """Yield all assumptions."""
    if assumptions:
        yield Heading(wording.say(Text("Not stated, so assumed", "以下未说明，按此假设")))
        yield Facts(tuple(Row(assumption.id, wording.say(assumption.text)) for assumption in assumptions))
