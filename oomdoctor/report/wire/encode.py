"""Write the structure of a report as the text of its JSON."""

from __future__ import annotations

from typing import cast

from msgspec import to_builtins
from msgspec.json import encode
from msgspec.json import format as indented

from oomdoctor.report.safety.redact import redact_values


def json_text(report: object, *, redact: bool = False, only_keys: bool = False, line: bool = False) -> str:
    """Return a report as JSON, indented by one blank, or with `line` on one line.

    `redact` takes the secrets out of it, with `only_keys` keys and passwords alone.
    """
    indent = 0 if line else 1
    value = report
    if redact or only_keys:
        value = redact_values(cast(dict[str, object], to_builtins(report)), only_keys=only_keys and not redact)
    try:
        return indented(encode(value), indent=indent).decode() + "\n"
    except UnicodeEncodeError:  # the name of a file can hold bytes that are no text
        import json  # noqa: PLC0415 - indents in Python, ten times as slowly

        return json.dumps(to_builtins(value), ensure_ascii=False, indent=indent or None) + "\n"
