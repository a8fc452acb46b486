"""What makes a server start: each plan does, none of its changes can go, and it is written in the server's options."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from memory.runs import a_program
from memory.runs import run as a_model
from msgspec.structs import replace
from planning.runs import a_card, anything

from oomdoctor.case.plan import RISKS, Plan, Plans
from oomdoctor.case.serving import Served, Server
from oomdoctor.case.setup import Layout
from oomdoctor.cli.main import cli
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.memory.servers.deployment import Deployment
from oomdoctor.planning import plans as planning
from oomdoctor.planning.server_options import subjects
from oomdoctor.planning.server_space import ServerSpace
from oomdoctor.units import GIB


def a_server(model: str = "Qwen/Qwen2.5-7B", cards: int = 1, card: float = 23.4, **changes: Any) -> Deployment:
    server = replace(
        Server(program=a_program("vllm"), memory_fraction=0.92, batched=2048, requests=64, length=32768, graphs_inside=True), **changes
    )
    setup = replace(a_model(model, task="infer"), layout=Layout(cards=cards))
    return Deployment(setup, server, int(card * GIB))


def plans(now: Deployment, top: int = 5) -> Plans[Served]:
    return planning.plans(ServerSpace(now=now, budget=a_card(), can=anything), top=top)


def measures_of(now: Deployment) -> set[str]:
    options = (option for subject in subjects(now, (), anything) for option in subject)
    return {name for option in options for measure in option.measures for name, _ in measure.sets}


def settings_of(now: Deployment) -> list[set[str]]:
    return [{name for measure in plan.measures for name, _ in measure.sets} for plan in plans(now, top=20).plans]


@pytest.mark.parametrize(("now", "offered"), [
    pytest.param(a_server(memory_fraction=1.0), {"memory_share"}, id="a share that is never free"),
    pytest.param(a_server(memory_fraction=0.7), {"memory_share"}, id="a share that holds too little"),
    pytest.param(a_server(length=131072), {"max_model_len"}, id="a length that the cache does not hold"),
    pytest.param(a_server(length=131072), {"kv_cache_dtype"}, id="or a cache of half the size"),
    pytest.param(a_server("Qwen/Qwen2.5-14B", cards=2), {"tensor_parallel"}, id="a second card that stands idle"),
    pytest.param(a_server("Qwen/Qwen2.5-14B"), {"quantization"}, id="weights that are larger than the card"),
    pytest.param(a_server(card=15.6, requests=1024), {"quantization"}, id="hardly room beside the weights"),
])  # fmt: skip
def test_what_helps_alone(now: Deployment, offered: set[str]) -> None:
    assert offered in settings_of(now)


def test_a_server_that_starts_is_left_alone() -> None:
    result = plans(a_server())
    assert (result.now.starts, result.plans, result.obstacle) == ("yes", (), None)


def test_one_card_is_not_spread_and_a_packed_model_is_not_packed_again() -> None:
    offered = measures_of(a_server("Qwen/Qwen2.5-14B"))
    assert "tensor_parallel" not in offered
    assert "quantization" in offered


def test_where_nothing_helps_a_card_and_a_number_are_named() -> None:
    result = plans(a_server("Qwen/Qwen2.5-72B", card=11.7))
    assert result.plans == ()
    assert result.obstacle is not None
    assert result.obstacle.cards is not None
    more = a_server("Qwen/Qwen2.5-72B", card=11.7, cards=result.obstacle.cards)
    assert plans(more).plans


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-7B", "Qwen/Qwen2.5-14B"]),
    st.sampled_from(["vllm", "sglang"]),
    st.floats(0.2, 1.0),
    st.floats(6, 80),
    st.integers(1024, 1 << 18),
)
def test_every_plan_starts_and_needs_all_of_its_changes(model: str, program: str, share: float, card: float, length: int) -> None:
    now = a_server(model, card=card, program=a_program(program), memory_fraction=share, length=length)
    result = plans(now, top=50)
    sets = [{(name, value) for measure in plan.measures for name, value in measure.sets} for plan in result.plans]
    assert all(plan.outcome.starts == "yes" for plan in result.plans)
    assert not any(plan < other for plan, other in combinations(sets, 2))
    assert result.now.starts == "yes" or bool(result.plans) is (result.obstacle is None)


def of_two_releases() -> Plans[Served]:
    """Return the plans where the older release that can be meant takes 4 GiB more outside torch."""
    now = a_server(length=131072, requests=256)
    older = replace(now.server, profile=replace(now.server.profile, outside=4 * GIB))
    return plans(replace(now, older=(("0.9", older),)), top=50)


def named(plan: Plan[Served]) -> frozenset[str]:
    return frozenset(name for measure in plan.measures for name, _ in measure.sets)


def test_a_plan_that_surely_starts_stands_before_those_that_an_older_release_does_not_start() -> None:
    first, *others = of_two_releases().plans
    assert first.outcome.starts == "yes"
    ranks = [(len(plan.measures), plan.outcome.starts != "yes") for plan in others]
    assert ranks == sorted(ranks)
    assert (1, True) in ranks


def test_more_is_changed_where_less_may_start() -> None:
    every = of_two_releases().plans
    unsure = [named(plan) for plan in every if plan.outcome.starts == "close"]
    assert len(unsure) == len(set(unsure)), "of one setting one value is enough, unless another surely starts"
    assert any(less < named(plan) for plan in every if plan.outcome.starts == "yes" for less in unsure)


def test_a_release_that_does_not_start_has_no_cache_that_would_widen_the_answer() -> None:
    now = a_server(length=16384)
    small, smaller = replace(now.server, memory_fraction=0.88), replace(now.server, memory_fraction=0.5)
    made = replace(now, older=(("0.9", smaller),)).served()
    assert (made.starts, made.cache) == ("close", now.newest().cache)
    assert replace(now, older=(("0.9", small),)).served().cache.low < now.newest().cache.low


def test_every_measure_of_a_server_is_offered_to_some_server() -> None:
    rows = [row for row in table("measures") if row["measure"].startswith("server-")]
    offered = subjects(a_server(memory_fraction=0.9, cards=2, batched=8192), (), anything)
    costs = {(cost.fix, RISKS[cost.risk], str(cost.effort)) for subject in offered for option in subject for cost in option.costs}
    assert costs == {(row["fix"], row["risk"], row["effort"]) for row in rows}


COMMAND = "vllm serve Qwen/Qwen2.5-7B-Instruct --max-model-len 128000 --gpu-memory-utilization 0.9\n"


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "serve.sh"
    path.write_text(COMMAND)
    return str(path)


def planned(*args: str) -> Any:
    return CliRunner().invoke(cli, ["plan", *args])


def test_a_plan_is_written_in_the_options_of_the_command(script: str) -> None:
    done = planned(script, "--gpu", "RTX 4090", "--server-version", "0.33.0", "--format", "json")
    answer = json.loads(done.output)
    assert (done.exit_code, answer["schema"], answer["fits"]) == (0, "oomdoctor/plan/v1", "no")
    written = {setting["key"]: setting for plan in answer["plans"] for measure in plan["measures"] for setting in measure["settings"]}
    length = written["--max-model-len"]
    assert (length["line"], length["from"]) == (1, "128000")
    assert int(length["to"]) % 256 == 0
    assert written["--kv-cache-dtype"]["to"] == "fp8"
    assert all(plan["server"]["starts"] == "yes" for plan in answer["plans"])


@pytest.mark.parametrize(("lang", "words"), [
    pytest.param("en", ["It does not start.", "What to change", "Shorter maximum request length.", "longer requests are rejected"], id="English"),
    pytest.param("zh", ["无法启动。", "怎么改", "缩短单个请求的最大长度。", "更长的请求会被拒绝"], id="Chinese"),
])  # fmt: skip
@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_it_is_said_in_words(script: str, lang: str, words: list[str], form: str) -> None:
    done = planned(script, "--gpu", "RTX 4090", "--lang", lang, "--format", form)
    assert [word for word in words if word not in done.output] == []


@pytest.mark.parametrize(
    ("lang", "words"), [pytest.param("en", "A card like", id="English"), pytest.param("zh", "这样的卡就够用", id="Chinese")]
)
def test_a_card_that_is_too_small_for_anything(script: str, lang: str, words: str) -> None:
    done = planned(script, "--gpu", "2GB", "--lang", lang)
    assert done.exit_code == 1
    assert words in done.output
