"""What the first estimate would load, loaded while nobody asks: in pieces, as a question may have to wait for one of them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.json import decode, encode

from bridge.answer import Silent
from bridge.forms import shown
from bridge.kinds import KINDS
from bridge.request import Question, Request
from oomdoctor.api.models import find_card, find_shape
from oomdoctor.case.settings import RunSettings, Scalar
from oomdoctor.knowledge.tables.training_defaults import framework_records

_CARD, _MODEL = "24GB", "Qwen3-8B"
_SETTINGS: dict[str, Scalar] = {"finetuning": "lora", "micro_batch": 1, "sequence_length": 2048}
_QUESTION = Question(model=_MODEL, gpu=_CARD, settings=_SETTINGS)


def pieces() -> Iterator[bool]:
    """Load one piece after the other."""
    yield bool(find_card(_CARD))
    yield bool(framework_records())
    yield bool(find_shape(_MODEL, RunSettings()))
    request = decode(encode(Request(type="estimate", id=0, question=_QUESTION)), type=Request)
    given = KINDS["estimate"](request, "", Silent())
    yield True
    yield bool(shown(given, request))
