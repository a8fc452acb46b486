"""A value as a file writes it: quoted as the old one was, and so that it is read as what was meant."""

from __future__ import annotations

import json
import re

import yaml

from oomdoctor.case.settings import Scalar
from oomdoctor.configs.edit.change import UnsafeEdit
from oomdoctor.configs.parsed_config import plain_value

_BLOCK = re.compile(r"[\[{]")
_BARE_WORD = re.compile(r"[\w@%+:,./-]{1,300}\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_JSON_WORDS = {"true": "true", "false": "false", "none": "null", "null": "null"}
_YAML_NULL = ("null", "Null", "NULL", "~")


def yaml_value(to: str, style: str, old: str, *, flow: bool) -> str:
    """`to` as YAML; `style` are the quotes that the old value `old` had."""
    _one_line(to)
    if _BLOCK.match(to):
        return to
    if style in ("'", '"') and _keeps_quotes(old, to):
        return _quoted(to, style)
    return to if _reads_back(to, flow=flow) else _quoted(to, '"' if style == '"' else "'")


def yaml_text(to: str, style: str, *, flow: bool) -> str:
    """`to` as a text of YAML, in the quotes `style` where it has some: what would be read as a number or truth is in quotes."""
    _one_line(to)
    if style in ("'", '"'):
        return _quoted(to, style)
    return to if _reads_back(to, flow=flow) and type_of_word(to) is str else _quoted(to, '"')


def json_value(to: str, style: str, old: str) -> str:
    """`to` as JSON: numbers, truth and null bare, all else in double quotes, the old number in quotes likewise."""
    _one_line(to)
    if _BLOCK.match(to):
        return _as_json(to)
    if style and _keeps_quotes(old, to):
        return _quoted(to, style)
    word = _JSON_WORDS.get(to.lower())
    if word is not None:
        return word
    return to if re.fullmatch(r"-?(?:0|[1-9]\d{0,17})(?:\.\d{1,18})?(?:[eE][-+]?\d{1,3})?", to) else _quoted(to, '"')


def shell_value(to: str, raw: str) -> str:
    """`to` as a word of a shell command, in the quotes of the old word `raw`."""
    _one_line(to)
    to = _as_json(to) if _BLOCK.match(to) else to
    quote = raw[0] if len(raw) > 1 and raw[0] in "'\"" and raw[-1] == raw[0] else ""
    if not quote and _BARE_WORD.match(to):
        return to
    if "'" in to or (any(mark in to for mark in '"$`\\!') and quote == '"'):
        raise UnsafeEdit("the value needs quoting that is easy to get wrong", "这个值的引号不容易写对")
    return f"{quote}{to}{quote}" if quote else f"'{to}'"


def type_of_word(text: str) -> type[Scalar]:
    """Return what a bare word is read as."""
    return type(plain_value(text))


def _as_json(to: str) -> str:
    """Return a block that is written as in YAML, `{offload: true}`, as JSON."""
    try:
        return json.dumps(yaml.safe_load(to), ensure_ascii=False)
    except (yaml.YAMLError, TypeError, ValueError) as why:
        raise UnsafeEdit("the value is not a block that JSON can represent", "这个值不能写成 JSON") from why


def _keeps_quotes(old: str, to: str) -> bool:
    """`"8"` becomes `"2"`, but `"auto"` becomes 2: quotes stay where the new value is what the old one was."""
    return type_of_word(old) is type_of_word(to) or type_of_word(to) is str


def _quoted(text: str, quote: str) -> str:
    if quote == "'":
        return "'" + text.replace("'", "''") + "'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _reads_back(to: str, *, flow: bool) -> bool:
    """Return whether YAML reads a bare `to` as the word that it is."""
    try:
        events = list(yaml.parse(f"[{to}]" if flow else f"k: {to}", Loader=yaml.SafeLoader))
    except yaml.YAMLError:
        return False
    scalars = [event.value for event in events if isinstance(event, yaml.ScalarEvent)]
    return scalars == ([to] if flow else ["k", to]) and (type_of_word(to) is not str or not _means_more(to))


def _means_more(to: str) -> bool:
    """Return whether YAML 1.1 takes a word for truth or for nothing, where the word itself is meant: `on`, `off`, `no`."""
    return to.lower() in ("yes", "no", "on", "off", "y", "n", "") or (to not in _YAML_NULL and to.lower() == "null")


def _one_line(to: str) -> None:
    if _CONTROL.search(to) or len(to) > 500:
        raise UnsafeEdit("the value is not one plain line", "这个值不是普通的一行文本")
