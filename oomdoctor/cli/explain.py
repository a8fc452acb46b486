"""`oomdoctor explain`: one problem, fix, message or source as a page of a handbook."""

from __future__ import annotations

import os

import click

from oomdoctor import __version__
from oomdoctor.api.handbook.explain import found_pages, page_id
from oomdoctor.cli.options import RULES, format_option, language_option, output_option
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.redaction.redact_secrets import redact_secrets
from oomdoctor.report.handbook.page import contents_page, found_page, rule_page
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.explain import convert_pages
from oomdoctor.report.wording.wording import Wording

_LONGEST = 20_000
_SHOWN = 80


@click.command()
@click.argument("terms", metavar="[ID|TEXT]", nargs=-1)
@format_option(["terminal", "markdown", "json"], "page")
@output_option("page")
@language_option(" of the page")
@RULES
def explain(terms: tuple[str, ...], format_: str, output: str | None, lang: str | None, rules: str | None) -> None:
    """Explain a problem, a fix, a cause, a message or a source: what it is, why it happens, what to do, what does not help.

    ID is an ID from a report or from `oomdoctor rules list`, an area such as `device`, or `fixes`, `signatures`, `sources`, `bugs`.
    TEXT is part of a message, which shows the page for that message, or a few words, which list the pages that mention them.
    Without either, the areas are listed.

    \b
    Examples:
      oomdoctor explain
      oomdoctor explain fragmentation
      oomdoctor explain smaller-batch --lang zh
      oomdoctor explain 'CUDA out of memory'
      oomdoctor explain 显存碎片 --lang zh
      oomdoctor explain article-nvml-assert --format markdown

    Exit status: 0, or 2 if nothing has that name.
    """
    book = Book(load_pack(over=rules))
    text = redact_secrets(" ".join(terms)[:_LONGEST]).strip()
    wording = Wording(lang or locale_language(os.environ))
    pages = [] if format_ == "json" or not text else found_pages(book, text)
    if pages:
        write(show(found_page(book, pages, text[:_SHOWN], wording, __version__), format_, to_terminal=output is None, full=True), output)
        return
    write(_page(book, page_id(book, text) if text else None, format_, wording, to_terminal=output is None), output)


def _page(book: Book, name: str | None, format_: str, wording: Wording, *, to_terminal: bool) -> str:
    if format_ == "json":
        return json_text(convert_pages(book, name, __version__))
    document = contents_page(book, wording, __version__) if name is None else rule_page(book, name, wording, __version__)
    return show(document, format_, to_terminal=to_terminal, full=True)
