"""Secrets of every maker in every place, drawn anew in each run: none leaves, in any report of any command."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from redaction.drawn_secrets import BY_FORM, BY_PLACE, MAKERS, drawn_password, drawn_token
from redaction.every_command import answers
from redaction.leaks import shown

from oomdoctor.redaction.redact_secrets import redact_secrets, redact_secrets_in
from oomdoctor.report.document import Document, Paragraph, Quote, Span
from oomdoctor.report.safety.redact import redact, redact_text, redact_values

SEED = Random().getrandbits(32)
"""Said by each test that fails: `Random(SEED)` draws the same again."""
PLACES = {**BY_FORM, **BY_PLACE}
_PASSWORDS = 20
_IN_A_LOG = 16
"""Secrets in one text that all commands read, in places that are drawn as well: reading it takes half a minute."""


def redacted(text: str) -> Iterator[str]:
    """A text without secrets, in all ways in which a text goes out."""
    quote, line = redact(Document("x", (Quote("log", text), Paragraph((Span(text),))))).blocks
    assert isinstance(quote, Quote) and isinstance(line, Paragraph)
    yield from (quote.text, line.spans[0].text, redact_text(text), redact_text(text, only_keys=True), redact_secrets(text))
    yield from (str(redact_values({"text": [text]})), str(redact_secrets_in({"text": [text]})))


def test_there_are_enough_makers_and_places() -> None:
    assert len({row["maker"] for row in MAKERS}) >= 60
    assert len(PLACES) >= 16


@pytest.mark.parametrize("place", PLACES)
def test_no_token_of_any_maker_is_left(place: str) -> None:
    random = Random(f"{SEED} {place}")
    for row in MAKERS:
        token = drawn_token(row, random)
        text = PLACES[place].replace("§", token)
        assert [safe for safe in redacted(text) if shown(token, safe)] == [], f"seed {SEED}, {row['maker']}: {text}"


@pytest.mark.parametrize("place", BY_PLACE)
def test_no_password_is_left(place: str) -> None:
    random = Random(f"{SEED} {place}")
    for password in [drawn_password(random) for _ in range(_PASSWORDS)]:
        text = BY_PLACE[place].replace("§", password)
        assert [safe for safe in redacted(text) if shown(password, safe)] == [], f"seed {SEED}: {text}"


def test_no_command_shows_any_of_them(tmp_path: Path) -> None:
    random = Random(SEED)
    drawn = [(form, drawn_token(random.choice(MAKERS), random)) for form in random.sample(list(PLACES.values()), _IN_A_LOG)]
    text = "\n".join(form.replace("§", token) for form, token in drawn)
    left = {name: token for name, answer in answers(text, tmp_path) for _, token in drawn if shown(token, answer)}
    assert left == {}, f"seed {SEED}"


def test_the_commands_answer(tmp_path: Path) -> None:
    """Or the test above would show nothing."""
    assert [name for name, answer in answers("plain words", tmp_path) if len(answer) < 40] == ["triage report, html"]
