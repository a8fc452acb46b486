"""The tools that read on: pages of the handbook, and answers as a whole."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from oomdoctor import __version__
from oomdoctor.api.handbook.explain import found_pages, page_id
from oomdoctor.knowledge.book import Book
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.mcp.answers import PageAnswer, ToolAnswer
from oomdoctor.mcp.kept_answers import AnswerForm
from oomdoctor.mcp.toolbox import Toolbox
from oomdoctor.redaction.redact_secrets import redact_secrets
from oomdoctor.report.handbook.page import contents_page, found_page, rule_page
from oomdoctor.report.wire.explain import convert_pages

_LONGEST = 20_000
_SHOWN = 80


class ReadingTools:
    """Each public method is a tool."""

    def __init__(self, box: Toolbox) -> None:
        self._box = box

    def explain_topic(
        self,
        topic: Annotated[
            str, Field(description="An ID (of a problem, a fix, a source), a message, or a few words.", max_length=_LONGEST)
        ] = "",
    ) -> ToolAnswer:
        """Explain a problem, a fix or a message: why it happens, what to do, what does not help. Without a topic: the contents."""
        book, wording, text = Book(load_pack()), self._box.wording, redact_secrets(topic).strip()
        pages = found_pages(book, text) if text else []
        name = page_id(book, text) if text and not pages else None
        if pages:
            document = found_page(book, pages, text[:_SHOWN], wording, __version__)
        else:
            document = contents_page(book, wording, __version__) if name is None else rule_page(book, name, wording, __version__)
        return ToolAnswer(**self._box.tell(document, lambda: convert_pages(book, name, __version__), only_keys=True)._asdict())

    def read_answer(
        self,
        answer_id: Annotated[str, Field(description="The ID returned by another tool.")],
        form: Annotated[AnswerForm, Field(description="markdown: for people; json: follows a published schema.")] = "markdown",
        offset: Annotated[int, Field(description="The first character to return.", ge=0)] = 0,
        limit: Annotated[int, Field(description="Characters to return.", ge=200, le=40_000)] = 8000,
    ) -> PageAnswer:
        """Read a full answer in pieces, including everything folded or cut on its screen. The last sixteen answers are kept."""
        text = self._box.kept.whole(answer_id, form)
        end = offset + limit
        return PageAnswer(text=text[offset:end], next_offset=end if end < len(text) else None, characters=len(text))
