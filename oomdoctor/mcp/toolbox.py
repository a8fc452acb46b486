"""What all tools share: the folders that may be read, the language, and the answers that are kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from oomdoctor.mcp.answers import screen
from oomdoctor.mcp.kept_answers import AnswerForm, KeptAnswers
from oomdoctor.mcp.roots import Roots
from oomdoctor.report.document import Document
from oomdoctor.report.render.markdown import render as markdown
from oomdoctor.report.safety.redact import redact
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording


class KeptScreen(NamedTuple):
    """What every answer begins with."""

    answer_id: str
    text: str


class Toolbox(Struct, frozen=True):
    """What a tool is given besides its arguments."""

    roots: Roots
    kept: KeptAnswers
    wording: Wording

    def tell(
        self,
        document: Document,
        convert: Callable[[], object],
        *,
        only_keys: bool = False,
    ) -> KeptScreen:
        """Keep an answer whole, without names and secrets (`only_keys`: without keys and passwords), and return its first screen.

        `convert` makes the structure of its JSON.
        """

        def write(form: AnswerForm) -> str:
            if form == "json":
                return json_text(convert(), redact=not only_keys, only_keys=only_keys)
            return markdown(redact(document, only_keys=only_keys))

        return KeptScreen(self.kept.keep(write), screen(redact(document, only_keys=only_keys)))
