"""Where a command's text goes and how it looks there: the language, the format, the width, a file or standard output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping

import click

from oomdoctor.errors import UsageError
from oomdoctor.report.document import Document
from oomdoctor.report.safety.redact import redact as hide
from oomdoctor.report.safety.sanitize import clean_line


def show(document: Document, format_: str, *, to_terminal: bool, full: bool = False, redact: bool = False) -> str:
    """Return a document as `terminal`, `markdown` or `html`; `full` opens what a terminal folds, `redact` takes names and secrets out."""
    if redact:
        document = hide(document)
    if format_ in ("markdown", "html"):
        from oomdoctor.report.render import html, markdown  # noqa: PLC0415 - a tenth of the start of a terminal's answer

        return markdown.render(document) if format_ == "markdown" else html.render(document)
    from oomdoctor.report.render.terminal import render as terminal  # noqa: PLC0415 - loads rich

    return terminal(document, width=_width(), color=to_terminal and is_coloured(), full=full)


def is_coloured() -> bool:
    """Return whether standard output shows colours, and nobody asked for none."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write(text: str, output: str | None) -> None:
    """Write a text to its file, or to standard output. Raise UsageError where the file cannot be written."""
    if output is None:
        data = text.encode("utf-8", "replace")
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
        return
    try:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {output}: {(error.strerror or str(error)).lower()}") from error


def complain(lines: Iterable[str]) -> None:
    """Say on standard error what went wrong, line by line."""
    for line in lines:
        click.echo(f"oomdoctor: {clean_line(line, 600)}", err=True)


def locale_language(environ: Mapping[str, str]) -> str:
    """Return `zh` where the locale says so, else `en`."""
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
