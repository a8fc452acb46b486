"""The head of each page of the handbook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.report.document import Block, Paragraph, Span, Style


def page_head(title: str, about: Sequence[str], url: str | None = None) -> Iterator[Block]:
    """Yield the head of a page: its title, what kind of page it is, its id."""
    yield Paragraph((Span(title, Style.STRONG),))
    yield Paragraph((Span(" · ".join(about), Style.DIM), *((Span(" "), Span(url, Style.LINK)) if url else ())))
