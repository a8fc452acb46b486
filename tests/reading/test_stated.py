"""Which lines are looked at for a refusal: every word of the lexicon that can state one brings its line."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from oomdoctor.knowledge.load import load_rules
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.phrases import spelt_out
from oomdoctor.reading.stated import RefusalReader

ROOT = Path(__file__).parents[2]
LOOKED_FOR = ("lack", "lacking", "out-of-memory", "fail", "failed", "exceed", "need")


@cache
def reader() -> RefusalReader:
    return RefusalReader(load_pack().lexicon)


@cache
def phrases() -> tuple[str, ...]:
    concepts = [concept for _, concept in load_rules(ROOT / "rules").concepts if concept.id in LOOKED_FOR]
    entries = (entry for concept in concepts for language in ("en", "zh") for entry in concept.words.get(language, []))
    return tuple(phrase.replace("*", "") for entry in entries for phrase in spelt_out(entry))


def test_every_word_that_can_refuse_is_looked_for() -> None:
    assert len(phrases()) > 150
    missed = [phrase for phrase in phrases() if not reader().telling_lines(f"memory: {phrase} now")]
    assert missed == []


@pytest.mark.parametrize("text", ["İ\nKV cache is TOO SMALL\n", "a\n\nDevice memory İ: Not Enough memory"], ids=["above", "on the line"])
def test_a_letter_that_grows_when_it_is_made_small_moves_no_line(text: str) -> None:
    lines = [text[start:end] for start, end in reader().telling_lines(text)]
    assert [line for line in text.split("\n") if "too small" in line.lower() or "not enough" in line.lower()] == lines


def weights(text: str, *, is_end: bool = False) -> Iterator[tuple[str, str]]:
    return ((refusal.whose, refusal.weight) for refusal in reader().read(text, is_end=is_end))


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("ERROR: failed to allocate 2.00 GiB on device 0", [("device", "stated")], id="an error with its size"),
    pytest.param("WARNING: GPU memory is low: 1.00 GiB left, 2.00 GiB needed", [("device", "warned")], id="a warning"),
    pytest.param("failed to allocate 2.00 GiB on device 0, retrying with 1.00 GiB\nstep 2 loss 0.1", [("device", "warned")], id="tried again"),
    pytest.param("INFO failed to allocate 2.00 GiB on device 0", [], id="a remark"),
    pytest.param("if the GPU runs out of memory, lower the batch", [], id="a supposition"),
    pytest.param("ERROR: disk quota exceeded", [], id="a disk"),
    pytest.param("WARNING: shared memory is nearly exhausted", [], id="a warning of shared memory"),
])  # fmt: skip
def test_how_a_line_speaks_weighs_it(text: str, expected: list[tuple[str, str]]) -> None:
    assert list(weights(text)) == expected


def test_what_is_only_named_counts_where_a_log_ends_with_it() -> None:
    text = "the job went out of memory on the GPU again this night"
    assert list(weights(text)) == []
    assert list(weights(text, is_end=True)) == [("device", "named")]
