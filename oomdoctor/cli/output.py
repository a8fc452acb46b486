"""Where a command's text goes and how it looks there: the language, the format, the width, a file or standard output."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import partial

import click

from oomdoctor.case.text import Text
from oomdoctor.errors import UsageError
from oomdoctor.report.document import Areas, Curves, Document
from oomdoctor.report.safety.redact import redact as hide
from oomdoctor.report.safety.redact import redact_text
from oomdoctor.report.safety.sanitize import clean_line

_OPENED = Text("--full opens ▸", "加 --full 展开 ▸")
_PLAIN = dict(zip("│▸▾▲…·≈≥≤×✓✗–—“”‘’█▓▒░▞▚▤▥▦▧▨▩▁▂▃▄▅▆▇", "|>v^.-~><x+x--\"\"''#=+:%xo&@*$^__.-=oO")) | {"→": "->"}
"""For terminals whose encoding lacks them; the fills of a bar stay apart."""
SCREEN = 40
"""Lines that a report on a terminal may have, its charts included."""
_CHART = 9
"""Lines of a chart where there is room."""
_PICTURE = 100
_WIDE = 80
"""Cells from which on a chart tells anything."""


def show(
    document: Document, format_: str, *, to_terminal: bool, full: bool | None = None, redact: bool = False, only_keys: bool = False
) -> str:
    """Return a document as `terminal`, `markdown`, `html` or `svg`, a picture of the terminal.

    `redact` takes names and secrets out, `only_keys` keys and passwords alone. `full` opens what a terminal folds; where it is False
    and not None, the report ends with the option that does.
    """
    if redact or only_keys:
        document = hide(document, only_keys=only_keys and not redact)
    if format_ in ("markdown", "html"):
        from oomdoctor.report.render import html, markdown  # noqa: PLC0415 - a tenth of the start of a terminal's answer

        return markdown.render(document) if format_ == "markdown" else html.render(document)
    if format_ == "svg":
        from oomdoctor.report.render import terminal_picture  # noqa: PLC0415 - few ask for it

        return terminal_picture.render(document, width=_PICTURE)
    from oomdoctor.report.render.terminal import render as terminal  # noqa: PLC0415 - loads rich

    opened_by = "" if full is None else _OPENED.get(document.lang)
    draw = partial(terminal, document, width=_width(), color=to_terminal and is_coloured(), full=bool(full), opened_by=opened_by)
    text = draw()
    charts = sum(isinstance(block, (Areas, Curves)) for block in document.blocks) if to_terminal and _draws() else 0
    if not charts:
        return text
    height = _CHART if full else min(_CHART, (SCREEN - text.count("\n")) // charts)
    return draw(chart=height) if height > 0 else text


def _draws() -> bool:
    """Return whether standard output is a terminal that is wide enough for charts and has the characters."""
    if sys.stdout is None or not sys.stdout.isatty() or os.environ.get("TERM") == "dumb" or _width() < _WIDE:
        return False
    try:
        "⣿".encode(sys.stdout.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def is_coloured() -> bool:
    """Return whether standard output shows colours, and nobody asked for none."""
    return sys.stdout is not None and sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write(text: str, output: str | None, inputs: Iterable[str] = ()) -> None:
    """Write a text to its file in UTF-8, or to standard output in its encoding.

    Raise UsageError where the file cannot be written, or is one of the inputs or of the files that the command line names.
    """
    if output is None:
        if sys.stdout is None:
            raise UsageError("standard output is closed; --output FILE writes to a file")
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode(_encoding(text), "nearest"))
        sys.stdout.buffer.flush()
        return
    from oomdoctor.configs.edit.store import write_whole  # noqa: PLC0415 - most reports go to standard output

    if any(_is_same_file(output, name) for name in (*_named(), *inputs)):
        raise UsageError(f"--output {output}: this file is one of the inputs and is not overwritten")
    try:
        write_whole(output, text.encode("utf-8", "replace"))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write {output}: {(getattr(error, 'strerror', None) or str(error)).lower()}") from error


def _named() -> Iterator[str]:
    """Yield what the command line names besides the output, files among them."""
    context = click.get_current_context(silent=True)
    for name, value in context.params.items() if context is not None else ():
        if name != "output":
            yield from (text for text in (value if isinstance(value, tuple) else (value,)) if isinstance(text, str))


def _is_same_file(output: str, name: str) -> bool:
    """Return whether two names mean one plain file, whatever links lead to it."""
    try:
        return os.path.isfile(output) and os.path.samefile(output, name)
    except (OSError, ValueError):
        return False


def _encoding(text: str) -> str:
    """Return the encoding of standard output; a text for programs (JSON, HTML, SVG) is UTF-8 wherever it goes."""
    return "utf-8" if text.startswith(("{", "<!", "<svg")) else sys.stdout.encoding or "utf-8"


def _nearest(error: UnicodeError) -> tuple[str, int]:
    """Return what is written instead of characters that an encoding lacks, each as wide as they are."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(char, "?") for char in error.object[error.start : error.end]), error.end


codecs.register_error("nearest", _nearest)


def complain(lines: Iterable[str]) -> None:
    """Say on standard error what went wrong, line by line, without the keys that a line quotes."""
    for line in lines:
        click.echo(f"oomdoctor: {redact_text(clean_line(line, 600), only_keys=True)}", err=True)


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
        columns = 0
    # A terminal that does not know its width says 0.
    return max(40, min(columns or 80, 120))
