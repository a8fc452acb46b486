"""What a program refuses before it takes any memory, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.case.refusal import StartupRefusal
from oomdoctor.case.text import Text
from oomdoctor.report.document import Block, Paragraph, Span, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording.wording import Wording

MEMORY_ALONE = Text("Its memory alone:", "仅就显存而言：")
_REFUSES = Text("{} does not start with these settings:", "{} 不接受这些设置，无法启动：")
_ENDS = Text(" {} The log then ends with “{}”.", "{}日志会以“{}”结束。")
_INSTEAD = Text(" It needs {} {}.", "{} 可取 {}。")
_LONGEST = 400


def refusal_blocks(refusals: Sequence[StartupRefusal], wording: Wording) -> Iterator[Block]:
    """Yield one paragraph for each check that fails, with what the log will end with and what would pass."""
    for refusal in refusals:
        spans = [Span(wording.say(_REFUSES).format(refusal.program or "?"), Style.BAD)]
        why = wording.say(refusal.why)
        spans.append(Span(wording.say(_ENDS).format(why[:1].upper() + why[1:], clean_line(refusal.message, _LONGEST))))
        if refusal.instead:
            values = wording.item_comma.join(f"{value:,}" for value in refusal.instead)
            spans.append(Span(wording.say(_INSTEAD).format(refusal.setting, values)))
        yield Paragraph(tuple(spans))
