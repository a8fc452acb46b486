"""Explanations are weighed against each other, and say as much as their odds allow."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.case.event import Certainty
from oomdoctor.findings.explanations import Explanation, weigh

LARGE = Explanation("large-batch", "batch-too-large", 0.0)
MODEL = Explanation("large-model", "model-too-large", 0.0)
SURE = Explanation("printed-limit", "memory-limit-set", 4.5)
WEIGHTS = st.floats(-8, 8)
EXPLANATIONS = st.lists(
    st.builds(Explanation, st.text("abcdef", min_size=1, max_size=3), st.none() | st.sampled_from(["x", "y", "z"]), WEIGHTS),
    min_size=1,
    max_size=8,
    unique_by=lambda explanation: explanation.problem,
)


@pytest.mark.parametrize(("explanations", "evidence", "first", "certainty"), [
    pytest.param([SURE], {}, "printed-limit", Certainty.CERTAIN, id="what the log states stands alone"),
    pytest.param([LARGE], {}, "large-batch", Certainty.POSSIBLE, id="an even bet is only possible"),
    pytest.param([LARGE, MODEL], {"steps": {"model-too-large": -3.0}}, "large-batch", Certainty.POSSIBLE, id="steps speak against the weights"),
    pytest.param([LARGE, MODEL], {"loading": {"batch-too-large": -5.0}}, "large-model", Certainty.POSSIBLE, id="no batch while loading"),
    pytest.param(
        [Explanation("a", "x", 2.5), Explanation("b", "y", 2.5)], {}, "a", Certainty.POSSIBLE, id="two likely ones make none of them likely"
    ),
    pytest.param([LARGE, MODEL], {"frame": {"large-model": 3.0}}, "large-model", Certainty.LIKELY, id="evidence can name a problem"),
])  # fmt: skip
def test_the_best_explanation_comes_first(
    explanations: list[Explanation], evidence: dict[str, dict[str, float]], first: str, certainty: Certainty
) -> None:
    best = weigh(explanations, evidence)[0]
    assert (best.problem, Certainty.of(best.probability)) == (first, certainty)


def test_of_two_forms_of_one_cause_the_stronger_is_told() -> None:
    forms = [Explanation("general", "x", -0.2), Explanation("special", "x", 1.0), Explanation("other", "y", 0.0)]
    assert [explanation.problem for explanation in weigh(forms, {})] == ["special", "other"]


def test_evidence_that_speaks_of_cause_and_problem_of_one_name_counts_once() -> None:
    same = Explanation("fragmentation", "fragmentation", 0.0)
    assert weigh([same], {"seen": {"fragmentation": 1.0}})[0].signs == (("seen", 1.0),)


@given(
    EXPLANATIONS,
    st.dictionaries(st.text("st", min_size=1, max_size=2), st.dictionaries(st.sampled_from(["x", "y", "z"]), WEIGHTS), max_size=3),
)
def test_probabilities_never_exceed_one_and_fall(explanations: list[Explanation], evidence: dict[str, dict[str, float]]) -> None:
    probabilities = [explanation.probability for explanation in weigh(explanations, evidence)]
    assert probabilities == sorted(probabilities, reverse=True)
    assert 0 < sum(probabilities) < 1 or math.isclose(sum(probabilities), 1, abs_tol=1e-9)


@given(EXPLANATIONS)
def test_another_explanation_never_makes_one_surer(explanations: list[Explanation]) -> None:
    whole = {explanation.problem: explanation.probability for explanation in weigh(explanations, {})}
    for explanation in explanations:
        alone = weigh([explanation], {})[0].probability
        assert whole.get(explanation.problem, 0) <= alone + 1e-12
