"""What comes after the first step: the next one up in harm, and variants of a step last."""

from __future__ import annotations

import pytest

from oomdoctor.advice.ladder import ladder
from oomdoctor.case.diagnosis import Fix
from oomdoctor.case.settings import ProposedSetting
from oomdoctor.case.text import Text


def fix(name: str, harm: str, *terms: str, key: str | None = None) -> Fix:
    settings = () if key is None else (ProposedSetting(framework="transformers", key=key, to="1"),)
    return Fix(id=name, title=Text(name, name), how=Text(name, name), harm=harm, terms=terms, settings=settings)


@pytest.mark.parametrize(("fixes", "expected"), [
    pytest.param([fix("segments", "none", "slack"), fix("packing", "none", "slack"), fix("batch", "slower", "activations")],
                 ["segments", "batch", "packing"], id="the same memory at the same cost comes last"),
    pytest.param([fix("segments", "none", "slack"), fix("flush", "slower", "slack")], ["segments", "flush"], id="at another cost it stays"),
    pytest.param([fix("batch", "slower", "activations", "logits"), fix("checkpoints", "slower", "activations"), fix("length", "quality", "logits")],
                 ["batch", "checkpoints", "length"], id="less of the same memory is another way"),
    pytest.param([fix("a", "slower", "weights"), fix("b", "slower", "weights", key="x"), fix("c", "quality", "logits")], ["a", "b", "c"],
                 id="a setting of the run is no mere variant"),
    pytest.param([fix("look", "none"), fix("ask", "none"), fix("free", "effort", "other")], ["look", "ask", "free"],
                 id="what frees nothing is no variant of anything"),
])  # fmt: skip
def test_variants_come_after_the_other_steps(fixes: list[Fix], expected: list[str]) -> None:
    assert [step.id for step in ladder(fixes)] == expected
