"""The budgets of servers: what they printed, and what must hold whatever the figures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory.runs import a_program, run
from msgspec.structs import replace

from oomdoctor.case.serving import ByteRange, CachePools, Served, Server, StartupCheck, StartupProfile
from oomdoctor.case.setup import Layout, Setup
from oomdoctor.memory.servers.engines import serve
from oomdoctor.memory.servers.sglang import graph_sizes
from oomdoctor.units import GIB, MIB


def server(program: str = "vllm", **changes: Any) -> Server:
    made = Server(program=a_program("vllm"), memory_fraction=0.9, batched=2048, requests=64, length=8192)
    return replace(made, program=a_program(program), **changes)


def of(setup: Setup | None = None, card: float = 24.0, **changes: Any) -> Served:
    return serve(setup or run(task="infer"), server(**changes), int(card * GIB))


@pytest.mark.parametrize(("card", "batched", "requests", "work", "cache"), [
    pytest.param(79.22, 8192, 256, 1.26, 53.29 + 1.79, id="A100, 256 requests (vllm pull request 10511; what is outside of torch was counted otherwise)"),
    pytest.param(22.07, 2048, 2, 0.22, 4.60, id="A10, chunks of 2048 tokens"),
])  # fmt: skip
def test_what_vllm_printed_for_llama_3_8b_lies_within_the_range(
    card: float, batched: int, requests: int, work: float, cache: float
) -> None:
    sorting = StartupProfile(logit_bytes=38)
    found = of(run("meta-llama/Meta-Llama-3-8B", task="infer"), card, batched=batched, requests=requests, profile=sorting)
    step = found.terms[2]
    assert step.low <= work * GIB <= step.high * 1.05
    assert found.cache.low <= cache * GIB <= found.cache.high


@pytest.mark.parametrize(("changes", "failed"), [
    pytest.param({}, None, id="room to spare"),
    pytest.param({"memory_fraction": 1.0}, "start", id="the context is in the way of the whole card"),
    pytest.param({"card": 13.0}, "load", id="the weights are larger than the card"),
    pytest.param({"card": 16.0, "batched": 32768}, "profile", id="a long step beside the weights"),
    pytest.param({"card": 16.0, "requests": 1024}, "sampler", id="a thousand rows of scores beside the weights"),
    pytest.param({"memory_fraction": 0.55}, "blocks", id="the share holds no cache"),
    pytest.param({"length": 1 << 20}, "request", id="one request is longer than the cache"),
    pytest.param({"card": 4.0, "memory_fraction": 0.93, "setup": run("Qwen/Qwen2.5-0.5B", task="infer"), "requests": 256,
                  "profile": StartupProfile(graph_layer=round(0.31 * MIB))}, "graphs", id="no room beside the share"),
    pytest.param({"program": "sglang", "memory_fraction": 0.5}, "blocks", id="SGLang: the share is smaller than the weights"),
    pytest.param({"program": "sglang", "memory_fraction": 0.99}, "graphs", id="SGLang: the rest is too small"),
    pytest.param({"program": "sglang", "memory_fraction": 0.99, "graphs": False}, "rest", id="SGLang without graphs: a step still needs the rest"),
    pytest.param({"program": "sglang", "length": 1 << 20, "pools": CachePools(running=16)}, None, id="SGLang refuses long requests, not to start"),
    pytest.param({"program": "sglang", "length": 1 << 20}, "graphs", id="SGLang: the table of all requests' tokens finds no place beside the share"),
    pytest.param({"program": "text-generation-inference"}, None, id="TGI"),
    pytest.param({"program": "text-generation-inference", "card": 16.0, "batched": 65536}, "profile", id="TGI: a long warmup beside the weights"),
    pytest.param({"program": "text-generation-inference", "length": 1 << 20}, "request", id="TGI: one request is longer than the cache"),
    pytest.param({"program": "lmdeploy", "length": 1 << 20, "profile": StartupProfile(of_free=True)}, None, id="LMDeploy cuts long requests"),
    pytest.param({"program": "lmdeploy", "memory_fraction": 0.99, "batched": 65536, "profile": StartupProfile(of_free=True, measures_step=False)},
                 "rest", id="LMDeploy: a step finds no place beside the cache"),
    pytest.param({"program": "lmdeploy", "card": 13.0, "profile": StartupProfile(of_free=True)}, "load", id="LMDeploy: the weights are larger"),
])  # fmt: skip
def test_where_a_start_ends(changes: dict[str, Any], failed: str | None) -> None:
    found = of(**changes)
    assert (found.failed_check.name if found.failed_check else None) == failed


@pytest.mark.parametrize(("profile", "fraction", "share"), [
    pytest.param(StartupProfile(of_free=True), 0.5, lambda card, used: 0.5 * (card - used), id="half of what is free"),
    pytest.param(StartupProfile(), 0.5, lambda card, used: 0.5 * card - used, id="what half of the card leaves"),
    pytest.param(StartupProfile(card_margin=0.9), 1.0, lambda card, used: 0.9 * card - used, id="a tenth of the card is kept back"),
    pytest.param(StartupProfile(cache_margin=0.9), 1.0, lambda card, used: 0.9 * (card - used), id="a tenth of what is left is"),
])  # fmt: skip
def test_what_a_share_is_of(profile: StartupProfile, fraction: float, share: Callable[[float, float], float]) -> None:
    found = of(card=48.0, program="lmdeploy", memory_fraction=fraction, profile=profile)
    used = sum(term.bytes for term in found.terms)
    assert found.cache.expected == pytest.approx(share(found.total, used), abs=1)
    assert found.taken == used + found.cache.expected


def test_a_step_that_is_not_measured_takes_nothing_of_the_cache() -> None:
    before, after = (of(card=48.0, program="lmdeploy", profile=StartupProfile(of_free=True, measures_step=it)) for it in (True, False))
    step = next(term for term in after.beside if term.name == "working set")
    assert after.cache.expected - before.cache.expected == pytest.approx(0.9 * step.bytes, abs=1)


def test_graphs_inside_the_share_cost_cache_and_nothing_beside_it() -> None:
    before, after = of(requests=256), of(requests=256, graphs_inside=True)
    graphs = next(one for one in before.beside if one.name == "cuda graphs")
    assert before.cache.expected - after.cache.expected == graphs.bytes
    assert [one.name for one in after.beside] == ["context"]


def test_latent_attention_is_kept_on_every_card_and_one_head_is_the_least() -> None:
    latent, grouped = run("deepseek-ai/DeepSeek-V3", task="infer"), run("Qwen/Qwen2.5-7B", task="infer")
    assert of(spread(latent, 8)).token == of(latent).token
    assert of(spread(grouped, 4)).token * 4 == of(grouped).token
    assert of(spread(grouped, 28)).token == of(spread(grouped, 4)).token


@pytest.mark.parametrize(("model", "cards", "activation"), [
    pytest.param("mistralai/Mixtral-8x7B-v0.1", 2, 1.21, id="experts in two buffers beside a small vocabulary"),
    pytest.param("Qwen/Qwen2.5-72B", 2, 2.29, id="scores of a large one"),
    pytest.param("Qwen/Qwen2.5-72B", 4, 2.29, id="which no tensor parallel card divides"),
    pytest.param("meta-llama/Llama-2-7b-hf", 1, 0.77, id="a layer that takes more than the scores"),
])  # fmt: skip
def test_the_profile_of_vllm_0_19_on_an_h100(model: str, cards: int, activation: float) -> None:
    """What 0.19 printed with steps of 8,192 tokens and 1,024 requests (llm-d-planner, accuracy/results/v0.19.0)."""
    found = of(spread(run(model, task="infer"), cards), 79.19, batched=8192, requests=1024, memory_fraction=0.95)
    assert found.terms[2].bytes == pytest.approx(activation * GIB, rel=0.05)


@pytest.mark.parametrize(("largest", "sizes"), [
    pytest.param(8, 4, id="1, 2, 4 and 8"),
    pytest.param(10, 5, id="the largest too"),
    pytest.param(48, 10, id="every eighth"),
    pytest.param(512, 52, id="fewer of large ones"),
])  # fmt: skip
def test_how_many_graphs_sglang_captures(largest: int, sizes: int) -> None:
    assert graph_sizes(largest) == sizes


def test_the_context_is_counted_once_wherever_it_is() -> None:
    outside, inside = (of(profile=StartupProfile(context_inside=within)) for within in (False, True))
    context = next(one for one in outside.beside if one.name == "context")
    assert outside.cache.expected - inside.cache.expected == context.bytes
    assert "start" in [check.name for check in of(profile=StartupProfile()).checks]
    assert "start" not in [check.name for check in of(profile=StartupProfile(checks_free=False)).checks]


def test_a_cache_of_whole_heads_holds_far_fewer_tokens_than_one_of_the_latent() -> None:
    latent = run("deepseek-ai/DeepSeek-V3", task="infer")
    whole = of(latent, profile=StartupProfile(caches_latent=False))
    assert whole.token == 61 * 128 * 2 * 256 * 2
    assert whole.token > 20 * of(latent).token
    assert of(profile=StartupProfile(caches_latent=False)).token == of().token


def spread(setup: Setup, cards: int) -> Setup:
    return replace(setup, layout=Layout(cards=cards, tensor=cards))


@pytest.mark.parametrize(("spare", "passes"), [
    pytest.param(ByteRange(5, 0, 9), "yes", id="even the least is enough"),
    pytest.param(ByteRange(5, -1, 9), "close", id="the least is not"),
    pytest.param(ByteRange(-5, -9, 0), "close", id="the most is just enough"),
    pytest.param(ByteRange(-5, -9, -1), "no", id="even the most is not"),
])  # fmt: skip
def test_a_startup_check_is_judged_by_its_range(spare: ByteRange, passes: str) -> None:
    assert StartupCheck("blocks", spare).passes == passes


programs = st.sampled_from(["vllm", "sglang"])
shares = st.floats(0.05, 1.0)
cards = st.floats(4, 192)


@given(programs, shares, shares, cards)
def test_a_larger_share_never_holds_fewer_tokens(program: str, one: float, other: float, card: float) -> None:
    small, large = (of(card=card, program=program, memory_fraction=share) for share in sorted((one, other)))
    assert small.tokens.expected <= large.tokens.expected
    assert small.taken <= large.taken


@given(programs, cards, st.integers(0, 1 << 36))
def test_weights_that_stay_in_the_host_never_cost_tokens(program: str, card: float, offload: int) -> None:
    assert of(card=card, program=program).tokens.expected <= of(card=card, program=program, offload=offload).tokens.expected


@given(programs, st.sampled_from(["Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-7B", "deepseek-ai/DeepSeek-V3"]), st.sampled_from([1, 2, 4, 8]))
def test_more_cards_never_carry_more_weights_each(program: str, model: str, cards: int) -> None:
    few, many = (of(spread(run(model, task="infer"), number), program=program).terms[0].bytes for number in (cards, 2 * cards))
    assert many <= few


@given(programs, cards, st.integers(256, 1 << 17), st.integers(256, 1 << 17))
def test_longer_steps_never_leave_more(program: str, card: float, one: int, other: int) -> None:
    short, long = (of(card=card, program=program, batched=size) for size in sorted((one, other)))
    assert long.cache.expected <= short.cache.expected
    assert long.checks[-1].spare.expected <= short.checks[-1].spare.expected


@given(programs, shares, cards, st.integers(1, 2048), st.booleans())
def test_every_range_holds_its_figure(program: str, share: float, card: float, requests: int, graphs: bool) -> None:
    found = of(card=card, program=program, memory_fraction=share, requests=requests, graphs=graphs)
    for one in (found.cache, found.tokens, *(check.spare for check in found.checks)):
        assert one.low <= one.expected <= one.high
    assert all(term.low <= term.bytes <= term.high for term in (*found.terms, *found.beside))


@pytest.mark.parametrize(("model", "exact", "share"), [
    pytest.param("Qwen/Qwen2.5-7B", True, 0.06, id="a dense model whose release prints it"),
    pytest.param("Qwen/Qwen2.5-7B", False, 0.3, id="a release that prints less"),
    pytest.param("Qwen/Qwen3-30B-A3B", True, 0.06, id="experts, whose release prints it"),
    pytest.param("Qwen/Qwen3-VL-30B-A3B-Instruct", True, 0.3, id="a model that reads pictures"),
])  # fmt: skip
def test_how_far_the_sampler_may_be_from_what_is_counted(model: str, exact: bool, share: float) -> None:
    profile = StartupProfile(logit_bytes=38, exact_sampler=exact)
    sampler = next(
        term for term in of(card=79.0, setup=run(model, task="infer"), requests=1024, profile=profile).terms if term.name == "sampler"
    )
    assert sampler.high / sampler.bytes - 1 == pytest.approx(share, abs=1e-3)
