"""The language of conditions as rule files write it: what is wrong with one, and the plain condition that it stands for.

`all`, `any`, `not` join; `event`, `program`, `kind` (with `where`) ask about events, `text` about their words, `fact` about a named
fact, `condition` is a condition of rules/conditions.yaml. `{fact: x, known: true, gt: 1}` is short for both: known, and above one.
What they mean is in findings/conditions.py, which sees plain conditions only: without names, one operator for each fact.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

OPERATORS = ("is", "not", "lt", "le", "gt", "ge", "in", "contains", "known")
_OF_FACTS = tuple(word for word in OPERATORS if word != "not")
WORDS = ("all", "any", "not", "event", "program", "kind", "where", "text", "fact", "condition")
_DEEPEST = 20

WrittenCondition = Mapping[str, Any]


def parts(when: WrittenCondition, at: str) -> Iterator[tuple[str, WrittenCondition]]:
    """Yield a condition and all conditions inside it, each with its path in the file (`$.when.all[0]`)."""
    yield at, when
    for word in ("all", "any"):
        for number, inner in enumerate(when.get(word, ())):
            yield from parts(inner, f"{at}.{word}[{number}]")
    if "not" in when:
        yield from parts(when["not"], f"{at}.not")


def fault(when: Any, at: str = "$", depth: int = 0) -> tuple[str, str] | None:
    """Return the path and the reason of the first mistake in a condition; None where it is well formed."""
    if depth > _DEEPEST:
        return at, "conditions inside conditions, too deep to follow"
    if not isinstance(when, Mapping) or not when:
        return at, f"a condition is a mapping: {', '.join(WORDS)}"
    for word in ("all", "any"):
        if word in when:
            inner = when[word]
            if len(when) > 1 or not isinstance(inner, list) or not inner:
                return at, f"'{word}' stands alone and holds a list of conditions"
            return next((why for number, part in enumerate(inner) if (why := fault(part, f"{at}.{word}[{number}]", depth + 1))), None)
    if "not" in when:
        return (at, "'not' stands alone") if len(when) > 1 else fault(when["not"], f"{at}.not", depth + 1)
    if "fact" in when:
        return _fault_of_fact(when, at)
    for word in ("text", "condition"):
        if word in when:
            return None if len(when) == 1 and isinstance(when[word], str) else (at, f"'{word}' stands alone and holds a text")
    unknown = sorted(set(when) - {"event", "program", "kind", "where"})
    return (f"{at}.{unknown[0]}", f"unknown word '{unknown[0]}' in a condition") if unknown else None


def _fault_of_fact(when: WrittenCondition, at: str) -> tuple[str, str] | None:
    operators = [word for word in when if word != "fact"]
    strange = next((word for word in operators if word not in _OF_FACTS), None)
    if strange is not None:
        return f"{at}.{strange}", f"unknown operator '{strange}'; a fact is compared by one of {', '.join(_OF_FACTS)}"
    compared = [word for word in operators if word != "known"]
    if not operators or len(compared) > 1 or (compared and len(operators) > 1 and when["known"] is not True):
        return at, f"a fact is compared by one of {', '.join(_OF_FACTS)}, which `known: true` may go with"
    return None


def plain(when: WrittenCondition, named: Mapping[str, WrittenCondition]) -> dict[str, Any]:
    """Return a well-formed condition without names and with one operator for each fact; `named` has every name in it."""
    if "condition" in when:
        return dict(named[when["condition"]])
    if "all" in when:
        whole = [(part, plain(part, named)) for part in when["all"]]
        # What stands for several conditions joins those around it.
        return {"all": [inner for part, spelt in whole for inner in (spelt["all"] if "all" in spelt and "all" not in part else [spelt])]}
    if "any" in when:
        return {"any": [plain(part, named) for part in when["any"]]}
    if "not" in when:
        return {"not": plain(when["not"], named)}
    if "fact" in when and "known" in when:
        compared = [{"fact": when["fact"], word: when[word]} for word in when if word not in ("fact", "known")]
        if compared:
            return {"all": [{"fact": when["fact"], "known": True}, *compared]}
    return dict(when)
