"""Cards by the names that people give them."""

from __future__ import annotations

import pytest

from oomdoctor.knowledge.tables.cards import card_named
from oomdoctor.units import GIB


@pytest.mark.parametrize(("written", "gigabytes"), [
    pytest.param("RTX 4090", 24, id="short"),
    pytest.param("4090", 24, id="a number alone"),
    pytest.param("NVIDIA GeForce RTX 4090", 24, id="as nvidia-smi writes it"),
    pytest.param("A100-80GB", 80, id="with its size"),
    pytest.param("Tesla T4", 16, id="an old one"),
    pytest.param("2080 Ti", 11, id="two words"),
    pytest.param("24GB", 24, id="a size alone"),
])  # fmt: skip
def test_a_card_is_found(written: str, gigabytes: int) -> None:
    found = card_named(written)
    assert found is not None
    assert 0.95 * gigabytes * GIB < found.bytes < gigabytes * GIB


@pytest.mark.parametrize("written", [
    pytest.param("A100", id="two sizes"),
    pytest.param("GTX 9999", id="no card"),
    pytest.param("", id="nothing"),
    pytest.param("A100-24GB", id="a size that this card does not have"),
])  # fmt: skip
def test_what_is_unknown_or_ambiguous_is_not_guessed(written: str) -> None:
    assert card_named(written) is None
