"""The language of conditions: which words there are, and what is wrong with a condition that is not right.

`all`, `any`, `not` join; `event`, `program`, `kind` (with `where`) ask about events, `text` about their words, `fact` about
a named fact. What they mean is in findings/match.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OPERATORS = ("is", "not", "lt", "le", "gt", "ge", "in", "contains", "known")
_DEEPEST = 20


def check(when: Any, depth: int = 0) -> str | None:
    """What is wrong with a condition, None where it is right."""
    if depth > _DEEPEST:
        return "conditions inside conditions, too deep to follow"
    if not isinstance(when, Mapping) or not when:
        return "a condition is a mapping: all, any, not, event, program, kind, text or fact"
    for word in ("all", "any"):
        if word in when:
            inner = when[word]
            if len(when) > 1 or not isinstance(inner, list) or not inner:
                return f"'{word}' stands alone and holds a list of conditions"
            return next((why for one in inner if (why := check(one, depth + 1))), None)
    if "not" in when:
        return "'not' stands alone" if len(when) > 1 else check(when["not"], depth + 1)
    if "text" in when:
        return None if len(when) == 1 and isinstance(when["text"], str) else "'text' stands alone and holds a pattern"
    if "fact" in when:
        rest = set(when) - {"fact"}
        return None if len(rest) == 1 and rest <= set(OPERATORS) else f"'fact' needs one of {', '.join(OPERATORS)}"
    unknown = set(when) - {"event", "program", "kind", "where"}
    return f"unknown word '{sorted(unknown)[0]}' in a condition" if unknown else None
