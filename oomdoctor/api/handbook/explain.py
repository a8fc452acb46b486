"""Which page of the handbook a text refers to: an id, a message it contains, or a few words."""

from __future__ import annotations

from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.book import Book

_FEW = 3
"""More words than this are part of a message."""


def found_pages(book: Book, text: str) -> list[str]:
    """Return the ids of the pages about a few words; none if the words are an id or a message."""
    if book.part_of(_spelled(text)) is not None or len(text.split()) > _FEW or _message(book, text) is not None:
        return []
    return book.search(text)


def page_id(book: Book, text: str) -> str:
    """Return the id that a text is, or that of the message it contains. Raise UsageError with similar ids if there is none."""
    spelled = _spelled(text)
    if book.part_of(spelled) is not None:
        return spelled
    message = _message(book, text) or book.with_example(text) or book.with_literal(text) or _message(book, text, general=True)
    if message is not None:
        return message
    near = book.near(text)
    raise UsageError(
        f"nothing is called '{text.strip()[:80]}'" + (f"; similar: {', '.join(near)}" if near else "; `oomdoctor explain` lists everything")
    )


def _spelled(text: str) -> str:
    return text.strip().lower().replace(" ", "-").replace("_", "-")


def _message(book: Book, text: str, *, general: bool = False) -> str | None:
    """Return the signature of the first message in a text, failures before mere context.

    A `general` sentence is one any program may print: a piece of a program's own message takes precedence.
    """
    events = diagnose_logs(["text"], book.pack, text=text.encode("utf-8", "replace")).case.events
    aside = set() if general else {signature.id for signature in book.pack.signatures if signature.general}
    events = tuple(event for event in events if event.signature not in aside and not _serves_only_bugs(book, event.signature))
    return next((event.signature for event in sorted(events, key=lambda event: event.kind.value == "context")), None)


def _serves_only_bugs(book: Book, signature: str) -> bool:
    """Return whether a signature only serves known bugs of releases: what a reporter writes, and versions."""
    return book.pack.path("signatures", signature).startswith(("bugs/", "reported."))
