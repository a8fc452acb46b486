"""Where a command's text goes and how it looks there: the language, the format, the width, a file or standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from oomdoctor.errors import UsageError

if TYPE_CHECKING:
    from oomdoctor.report.document import Document


def show(document: Document, format_: str, *, to_terminal: bool, full: bool = False) -> str:
    """A document as `terminal`, `markdown` or `html`; `full` opens what a terminal folds."""
    # Each format loads only what it needs.
    if format_ == "markdown":
        from oomdoctor.report.render.markdown import render as markdown  # noqa: PLC0415

        return markdown(document)
    if format_ == "html":
        from oomdoctor.report.render.html import render as html  # noqa: PLC0415

        return html(document)
    from oomdoctor.report.render.terminal import render as terminal  # noqa: PLC0415

    return terminal(document, width=_width(), color=to_terminal and coloured(), full=full)


def coloured() -> bool:
    """Whether standard output shows colours, and nobody asked for none."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def json_text(report: Mapping[str, object]) -> str:
    """A report as JSON, indented by one blank."""
    from msgspec.json import encode  # noqa: PLC0415 - only for this format
    from msgspec.json import format as indented  # noqa: PLC0415

    try:
        return indented(encode(report), indent=1).decode() + "\n"
    except UnicodeEncodeError:  # the name of a file can hold bytes that are no text
        import json  # noqa: PLC0415 - indents in Python, ten times as slowly

        return json.dumps(report, ensure_ascii=False, indent=1) + "\n"


def write(text: str, output: str | None) -> None:
    """The text to its file, whole or not at all, or to standard output."""
    if output is None:
        data = text.encode("utf-8", "replace")
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as why:
        raise UsageError(f"cannot write {output}: {(why.strerror or str(why)).lower()}") from why


def locale_language(environ: Mapping[str, str]) -> str:
    """zh where the locale says so, else en."""
    named = next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := environ.get(name))), "")
    return "zh" if named.lower().startswith("zh") else "en"


def _width() -> int:
    # shutil says the same, and loads every compressor to say it.
    named = os.environ.get("COLUMNS", "")
    try:
        columns = int(named) if named.isdecimal() and int(named) else os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError, AttributeError):
        columns = 80
    return max(40, min(columns, 120))
