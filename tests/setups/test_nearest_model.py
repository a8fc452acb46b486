"""A model of which only a name or a number of parameters is known."""

from __future__ import annotations

import pytest

from oomdoctor.memory.model import parameters as count
from oomdoctor.setups.nearest_model import nearest_model, size_in


@pytest.mark.parametrize(("name", "params"), [
    pytest.param("our/own-13b", 13_000_000_000, id="billions"),
    pytest.param("Small-360M-chat", 360_000_000, id="millions"),
    pytest.param("org/Model-1.1B-v2", 1_100_000_000, id="with a decimal"),
    pytest.param("org/Big-30B-A3B", 30_000_000_000, id="what is active is no size of the model"),
    pytest.param("org/8x7B", None, id="experts are counted one by one"),
    pytest.param("7b-models/own", None, id="a size of the folder"),
    pytest.param("distilled-70b-into-8b", None, id="two sizes"),
    pytest.param("v3.2beta", None, id="a version"),
    pytest.param("", None, id="nothing"),
])  # fmt: skip
def test_the_size_in_a_name(name: str, params: int | None) -> None:
    assert size_in(name) == params


def test_a_neighbour_has_as_many_parameters() -> None:
    found = nearest_model(3_000_000_000, "org/own-3b")
    assert found is not None
    assert found.guessed
    assert count.total(found) == pytest.approx(3e9, rel=0.001)
    assert nearest_model(1_000, "tiny") is None
