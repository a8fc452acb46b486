"""The assumptions about a prompt: its share of the length, and for how many of its tokens there are logits."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.setup import Setup
from oomdoctor.case.text import Text
from oomdoctor.memory.inference import all_logits, prompted
from oomdoctor.units import GIB

_LAST_ONLY = (4, 45)
"""The version of transformers from which generate() requests only the last token's logits (num_logits_to_keep, generation/utils.py)."""


def has_all_logits(version: str | None) -> bool | None:
    """Return whether this version of transformers computes logits for every token of a prompt; None if the version is unknown."""
    numbers = (version or "").split(".")[:2]
    if len(numbers) < 2 or not all(value.isascii() and value.isdigit() and len(value) < 4 for value in numbers):
        return None
    return (int(numbers[0]), int(numbers[1])) < _LAST_ONLY


def prompt_assumptions(made: Setup) -> Iterator[Assumption]:
    """Yield what had to be assumed about the prompt of a run that generates."""
    tokens = round(prompted(made))
    yield Assumption(
        id="prompt",
        text=Text(
            f"{tokens:,} of the {made.length:,} tokens are the prompt, the rest is generated",
            f"{made.length:,} 个 token 中有 {tokens:,} 个是提示词，其余为生成内容",
        ),
    )
    if made.prompt_logits is None:
        size = all_logits(made) / GIB
        yield Assumption(
            id="prompt_logits",
            text=Text(
                f"logits of the last token only; transformers before 4.45 computes those of the whole prompt, {size:.1f} GiB here",
                f"只计算最后一个 token 的 logits；4.45 之前的 transformers 会算出整个提示词的 logits，此处约 {size:.1f} GiB",
            ),
        )
