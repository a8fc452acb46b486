"""A cause that stays open ends with the one command whose evidence decides it, and nobody is asked for what is there."""

from __future__ import annotations

import pytest

from oomdoctor.case.diagnosis import Finding
from oomdoctor.case.event import Certainty
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import Fact, KnownFacts
from oomdoctor.findings.open_cause import open_cause
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.problem import CAUSES

CONFIG = "oomdoctor diagnose LOG --config CONFIG"
RUN, LINES = "oomdoctor run -- COMMAND", "oomdoctor run --level 1 -- COMMAND"
WATCHED: dict[str, Fact] = {"log.watched_level": 0}


def possible(cause: str) -> Finding:
    text = Text("title", "标题")
    return Finding(id="one", cause=cause, severity="error", confidence=Certainty.POSSIBLE, probability=0.3, title=text, why=text)


def command(cause: str, facts: dict[str, Fact]) -> str | None:
    found = open_cause([possible(cause)], load_pack(), KnownFacts(facts, ()))
    return None if found is None else found.command


@pytest.mark.parametrize(("cause", "facts", "expected"), [
    pytest.param("batch-too-large", {}, CONFIG, id="what fills the card follows from the config"),
    pytest.param("batch-too-large", {"log.framework": "transformers"}, CONFIG, id="a program with a config that is read"),
    pytest.param("batch-too-large", {"log.framework": "comfyui"}, LINES, id="nobody is asked for the config of a program that has none"),
    pytest.param("batch-too-large", {"estimate.fits": "yes"}, LINES, id="where it should have fitted, from who holds it"),
    pytest.param("batch-too-large", {"estimate.fits": "no", "estimate.explains": True}, None, id="where it cannot fit, nothing is open"),
    pytest.param("batch-too-large", {"estimate.fits": "yes", **WATCHED}, LINES, id="counters alone do not name a line"),
    pytest.param("batch-too-large", {"estimate.fits": "yes", "snapshot.holder_site": "fit.py:3:main"}, None, id="both are known"),
    pytest.param("memory-leak", {}, LINES, id="a leak shows from step to step"),
    pytest.param("memory-leak", {"snapshot.growth_site": "fit.py:3:main"}, None, id="the line that grows was recorded"),
    pytest.param("memory-leak", {"log.memory_series": "flat"}, None, id="the course is known"),
    pytest.param("eval-accumulates-logits", WATCHED, LINES, id="counters do not tell what an evaluation keeps"),
    pytest.param("eval-accumulates-logits", {"snapshot.left_blocks": 3}, None, id="what it left was recorded"),
    pytest.param("no-torch-no-grad", {}, LINES, id="gradients show by what layers leave"),
    pytest.param("no-torch-no-grad", {"snapshot.left_blocks": 3}, None, id="what layers left was recorded"),
    pytest.param("other-process-on-gpu", {}, RUN, id="a neighbour is seen from outside"),
    pytest.param("other-process-on-gpu", WATCHED, None, id="the card was watched"),
    pytest.param("outlier-sample", {}, RUN, id="one sample stands out of the steps before"),
    pytest.param("fragmentation", {"snapshot.why": "too-much-live"}, None, id="why the request did not fit was recorded"),
    pytest.param("kv-cache-too-small", {}, LINES, id="a cache shows among what is held"),
    pytest.param("kv-cache-too-small", {"snapshot.kv_cache_share": 0.1}, None, id="its share was measured"),
])  # fmt: skip
def test_the_command_that_settles_an_open_cause(cause: str, facts: dict[str, Fact], expected: str | None) -> None:
    assert command(cause, facts) == expected


def test_the_command_of_the_run_stands_in_it_where_the_log_shows_it() -> None:
    assert command("memory-leak", {"log.launch_command": "torchrun fit.py"}) == "oomdoctor run --level 1 -- torchrun fit.py"


def test_whoever_is_told_to_run_again_gets_the_lines_by_level_1() -> None:
    commands = {settled.command for cause in load_pack().records(CAUSES) for settled in cause.settled_by if settled.command}
    assert {text for text in commands if text.startswith("oomdoctor run")} == {RUN, LINES}
