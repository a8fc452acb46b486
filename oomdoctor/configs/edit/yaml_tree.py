"""A YAML text -> the places of its keys and values. Nothing is constructed; depth and size have limits."""

from __future__ import annotations

import re
from typing import Any

import yaml

from oomdoctor.configs.edit.change import UnsafeEdit
from oomdoctor.configs.edit.tree import Open, Spot, hang
from oomdoctor.configs.parsed_config import DEEPEST, MOST_KEYS

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_OPENING = ("MappingStartEvent", "SequenceStartEvent")
_CLOSING = ("MappingEndEvent", "SequenceEndEvent")


def yaml_documents(text: str) -> list[Spot]:
    """The value of each document. Raises Unsafe where the text is not YAML, or too deep or large for a config."""
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents: list[Spot] = []
    stack: list[Open] = []
    count = 0
    try:
        # One character for one, so that the places stay.
        for event in yaml.parse(_FORBIDDEN.sub("\ufffd", text), Loader=loader):
            count += 1
            if len(stack) > DEEPEST or count > 4 * MOST_KEYS:
                raise UnsafeEdit("this file is larger or more deeply nested than a config", "文件过大或嵌套过深，不像配置文件")
            _take(event, stack, documents)
    except yaml.YAMLError as why:
        mark = getattr(why, "problem_mark", None)
        line = 1 if mark is None else mark.line + 1
        raise UnsafeEdit(f"line {line} is not valid YAML", f"第 {line} 行不是合法的 YAML") from why
    return documents


def _take(event: Any, stack: list[Open], documents: list[Spot]) -> None:
    name = type(event).__name__
    if name in _CLOSING:
        closed = stack.pop().spot
        closed.end = event.end_mark.index
        return
    if name in _OPENING or name in ("ScalarEvent", "AliasEvent"):
        spot = _spot(event, name)
        hang(spot, stack, documents)
        if name in _OPENING:
            stack.append(Open(spot))


def _spot(event: Any, name: str) -> Spot:
    start, end, line = event.start_mark.index, event.end_mark.index, event.start_mark.line + 1
    if name == "AliasEvent":
        return Spot("alias", start, end, line, shared=True)
    shared = event.anchor is not None or event.tag is not None
    if name == "ScalarEvent":
        return Spot("scalar", start, end, line, event.style or "", event.value, shared=shared)
    return Spot("mapping" if name.startswith("M") else "sequence", start, end, line, "{" if event.flow_style else "", shared=shared)
