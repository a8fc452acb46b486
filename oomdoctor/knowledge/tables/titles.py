"""The names of frameworks as people write them."""

from __future__ import annotations

from functools import cache

from oomdoctor.knowledge.pack import load_pack


def framework_title(framework: str) -> str:
    """Return the name of a framework as people write it; the id itself where the rules do not have the framework."""
    return _titles().get(framework, framework)


@cache
def _titles() -> dict[str, str]:
    return {record.framework: record.title for record in load_pack().frameworks}
