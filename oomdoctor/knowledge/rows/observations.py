"""What is seen and not printed (rules/observations): the text that quotes an event."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec.structs import replace

from oomdoctor.case.text import Text
from oomdoctor.knowledge.records.signature import Example, SignatureRecord
from oomdoctor.units import format_figure

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
"""`[a|b]`: the first part of which every field is known, or nothing."""
FIELD = re.compile(r"\{(\w+)(?::([^{}]*))?\}")
"""`{field}`: its value. `{field:words}`: the words."""


def with_quotes(record: SignatureRecord) -> SignatureRecord:
    """Return a signature of what is seen with the texts of its examples; any other as it is."""
    if record.says is None:
        return record
    examples = [replace(example, text=quoted(record.says, example.fields).en) for example in record.examples or [Example()]]
    return replace(record, examples=examples)


def quoted(says: Text, fields: Mapping[str, object]) -> Text:
    """Return how an event with these fields is quoted."""
    return Text(_filled(says.en, fields, "unknown"), _filled(says.zh, fields, "未知"))


def _filled(text: str, fields: Mapping[str, object], unknown: str) -> str:
    def chosen(choice: re.Match[str]) -> str:
        return next((part for part in choice[1].split("|") if all(field[1] in fields for field in FIELD.finditer(part))), "")

    def shown(field: re.Match[str]) -> str:
        return field[2] or (format_figure(field[1], fields[field[1]]) if field[1] in fields else unknown)

    return FIELD.sub(shown, _CHOICE.sub(chosen, text))
