"""The language of conditions as rule files write it: what is wrong with one, and the plain condition that it stands for.

`all`, `any`, `not` join; `tells`, `resource`, `program`, `kind`, `outcome`, `event` (with `where`) ask about events, `text` about their
words, `fact` about a named fact, `condition` is a condition of rules/conditions.yaml. A comparison does not hold where the fact is
unknown; with `open: true` its answer is open then, and the report names the fact. What they mean is in findings/conditions.py, which
sees plain conditions only: without names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from oomdoctor.knowledge.records.condition import EVENT_WORDS

OPERATORS = ("is", "not", "lt", "le", "gt", "ge", "in", "contains", "known")
_OF_FACTS = tuple(word for word in OPERATORS if word != "not")
_OF_EVENTS = (*EVENT_WORDS, "where")
WORDS = ("all", "any", "not", *_OF_EVENTS, "text", "fact", "condition")
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
        return at, "conditions are nested too deeply"
    if not isinstance(when, Mapping) or not when:
        return at, f"a condition is a mapping: {', '.join(WORDS)}"
    for word in ("all", "any"):
        if word in when:
            inner = when[word]
            if len(when) > 1 or not isinstance(inner, list) or not inner:
                return at, f"'{word}' must be alone and contain a list of conditions"
            return next((why for number, part in enumerate(inner) if (why := fault(part, f"{at}.{word}[{number}]", depth + 1))), None)
    if "not" in when:
        return (at, "'not' must be alone") if len(when) > 1 else fault(when["not"], f"{at}.not", depth + 1)
    if "fact" in when:
        return _fault_of_fact(when, at)
    for word in ("text", "condition"):
        if word in when:
            return None if len(when) == 1 and isinstance(when[word], str) else (at, f"'{word}' must be alone and contain a text")
    unknown = sorted(set(when) - set(_OF_EVENTS))
    return (f"{at}.{unknown[0]}", f"unknown word '{unknown[0]}' in a condition") if unknown else None


def _fault_of_fact(when: WrittenCondition, at: str) -> tuple[str, str] | None:
    operators = [word for word in when if word not in ("fact", "open")]
    strange = next((word for word in operators if word not in _OF_FACTS), None)
    if strange is not None:
        return f"{at}.{strange}", f"unknown operator '{strange}'; use one of {', '.join(_OF_FACTS)}"
    if "known" in operators and len(operators) > 1 and when["known"] is True:
        return f"{at}.known", "a comparison applies only to known facts: use `known: true` alone"
    if len(operators) != 1 or when.get("open", True) is not True:
        return at, f"a fact is compared by one of {', '.join(_OF_FACTS)}, optionally with `open: true`"
    return None


def plain(when: WrittenCondition, named: Mapping[str, WrittenCondition]) -> dict[str, Any]:
    """Return a well-formed condition without names; `named` has every name in it."""
    if "condition" in when:
        return dict(named[when["condition"]])
    if "all" in when:
        whole = [(part, plain(part, named)) for part in when["all"]]
        # A named condition that stands for several joins those around it.
        return {"all": [inner for part, spelt in whole for inner in (spelt["all"] if "all" in spelt and "all" not in part else [spelt])]}
    if "any" in when:
        return {"any": [plain(part, named) for part in when["any"]]}
    if "not" in when:
        return {"not": plain(when["not"], named)}
    return dict(when)
