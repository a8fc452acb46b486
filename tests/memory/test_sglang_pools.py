"""How SGLang divides its cache: figures worked out by hand from the sizes in the models' configs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory.runs import a_program, run
from msgspec.structs import replace

from oomdoctor.case.serving import ByteRange, CachePools, Server, StartupProfile
from oomdoctor.case.setup import Layout, Setup
from oomdoctor.memory.servers.engines import serve
from oomdoctor.memory.servers.sglang_pools import for_tokens, pool_token, request_table
from oomdoctor.units import GIB, MIB

REST = ByteRange(19 * GIB, 19 * GIB, 19 * GIB)
V4_KEYS = 21 * (585 + 132) / 4 + 20 * 864 / 128
"""DeepSeek-V4-Flash: 21 layers with a key of 4 tokens and an indexer, 20 with one of 128, in pages of 64 and of 2 keys."""
V4_WINDOW = 43 * 585
"""A token in the windows of all layers, less the states of compression: pages of 256 tokens are rounded up to 576 bytes."""


def server(**changes: Any) -> Server:
    made = Server(program=a_program("sglang"), memory_fraction=0.9, batched=8192, requests=256, length=32768)
    return replace(made, **changes)


def of(model: str, tensor: int = 1, replicas: int = 1, **changes: Any) -> Setup:
    return run(model, task="infer", layout=Layout(cards=tensor, tensor=tensor, replicas=replicas), **changes)


@pytest.mark.parametrize(("setup", "changes", "expected"), [
    pytest.param(of("Qwen/Qwen2.5-7B"), {}, 28 * 4 * 2 * 128 * 2, id="every layer keeps every token"),
    pytest.param(of("Qwen/Qwen2.5-7B", 4), {}, 28 * 2 * 128 * 2, id="four cards divide the four heads"),
    pytest.param(of("Qwen/Qwen2.5-7B", 4, 2), {}, 28 * 2 * 2 * 128 * 2, id="of two copies of the attention each has two cards"),
    pytest.param(of("Qwen/Qwen2.5-7B", cache_bytes=1.0), {}, 28 * 4 * 2 * 128, id="a cache of 8 bit"),
    pytest.param(of("deepseek-ai/DeepSeek-V3", 8), {}, 61 * 576 * 2, id="a latent is on every card"),
    pytest.param(of("deepseek-ai/DeepSeek-V3.2", 8), {}, 61 * (576 * 2 + 132), id="with the keys of an indexer in 8 bit"),
    pytest.param(of("deepseek-ai/DeepSeek-V3", 8), {"drafted": 3}, 62 * 576 * 2, id="and what proposes tokens keeps as much as a layer"),
    pytest.param(of("deepseek-ai/DeepSeek-V3", 8), {"drafted": 3, "profile": StartupProfile(drafts_inside=False)}, 61 * 576 * 2,
                 id="beside the share where it is loaded later"),
    pytest.param(of("openai/gpt-oss-120b"), {}, 36 * 2048, id="windows that nobody keeps apart have all tokens"),
    pytest.param(of("openai/gpt-oss-120b"), {"pools": CachePools(window_tokens=0.8)}, 18 * 2048 * 1.8, id="windows with four tokens of five"),
    pytest.param(of("google/gemma-3-27b-it"), {}, 62 * 16 * 2 * 128 * 2, id="Gemma 3 is kept whole"),
    pytest.param(of("Qwen/Qwen3-Next-80B-A3B-Instruct"), {}, 12 * 2 * 2 * 256 * 2, id="of four layers one keeps tokens"),
    pytest.param(of("deepseek-ai/DeepSeek-V4-Flash", 4), {}, V4_KEYS, id="compressed keys, windows by requests"),
    pytest.param(of("deepseek-ai/DeepSeek-V4-Flash", 4), {"pools": CachePools(window_tokens=0.1)},
                 V4_KEYS + 0.1 * (V4_WINDOW + 21 * 8 / 128 * (512 + 128) * 16), id="compressed keys, windows by tokens"),
    pytest.param(of("deepseek-ai/DeepSeek-V4-Flash", 4), {"pools": CachePools(window_tokens=0.1), "profile": StartupProfile(states_by_request=False)},
                 V4_KEYS + 0.1 * (V4_WINDOW + 21 * 8 / 128 * (512 + 128) * 16 + 20 * 2 * 512 * 4), id="and all states by tokens"),
])  # fmt: skip
def test_the_bytes_of_a_token(setup: Setup, changes: dict[str, Any], expected: float) -> None:
    assert pool_token(setup, server(**changes)) == pytest.approx(expected)


@pytest.mark.parametrize(("model", "pools", "expected"), [
    pytest.param("Qwen/Qwen2.5-7B", CachePools(), 19 * GIB, id="all of it"),
    pytest.param("Qwen/Qwen2.5-7B", CachePools(tokens=1000), 1000 * 57344, id="no more than somebody asked for"),
    pytest.param("Qwen/Qwen2.5-7B", CachePools(tokens=10**9), 19 * GIB, id="nor more than there is"),
    pytest.param("Qwen/Qwen3-Next-80B-A3B-Instruct", CachePools(), 10 * GIB, id="0.9 bytes of states for each byte of keys and values"),
    pytest.param("Qwen/Qwen3-Next-80B-A3B-Instruct", CachePools(state_bytes=0.25), 15.2 * GIB, id="or as many as somebody said"),
])  # fmt: skip
def test_what_of_the_rest_is_for_tokens(model: str, pools: CachePools, expected: float) -> None:
    assert for_tokens(of(model), server(pools=pools), REST).expected == pytest.approx(expected)


def test_each_state_that_somebody_asks_for_costs_tokens_and_one_is_kept_free() -> None:
    setup = of("Qwen/Qwen3-Next-80B-A3B-Instruct")
    few, more = (for_tokens(setup, server(pools=CachePools(state_slots=slots)), REST).expected for slots in (100, 199))
    state = sum(layer.state for layer in setup.shape.each)
    assert (REST.expected - few, REST.expected - more) == (101 * state, 200 * state)


@pytest.mark.parametrize(("model", "length", "running", "requests"), [
    pytest.param("Qwen/Qwen2.5-7B", 131072, None, 2048, id="2,048 requests where the cache holds a few"),
    pytest.param("Qwen/Qwen2.5-7B", 2048, None, 4096, id="4,096 where it holds many"),
    pytest.param("Qwen/Qwen2.5-7B", 32768, 64, 64, id="as many as somebody allows"),
    pytest.param("deepseek-ai/DeepSeek-V4-Flash", 32768, None, 256, id="256 with compressed keys"),
])  # fmt: skip
def test_the_table_of_requests_has_a_place_for_each_token(model: str, length: int, running: int | None, requests: int) -> None:
    told = server(length=length, pools=CachePools(running=running))
    assert request_table(of(model), told, 19 * GIB) == 4 * (requests + 1) * (length + 4)


def test_states_limit_the_requests_of_the_table() -> None:
    setup = of("Qwen/Qwen3-Next-80B-A3B-Instruct")
    state = sum(layer.state for layer in setup.shape.each)
    assert request_table(setup, server(length=100), 10 * GIB) == 4 * (int(9 * GIB / state / 3) + 1) * 104


@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-7B", "Qwen/Qwen3-Next-80B-A3B-Instruct", "deepseek-ai/DeepSeek-V4-Flash"])
def test_a_cache_without_room_has_the_table_of_an_empty_one(model: str) -> None:
    assert request_table(of(model), server(), -10 * GIB) == request_table(of(model), server(), 0) == 4 * (32768 + 4)


def test_keys_of_more_tokens_than_a_page_has_take_a_page_each() -> None:
    setup = of("deepseek-ai/DeepSeek-V4-Flash")
    wide = [replace(layer, compression=layer.compression and replace(layer.compression, ratio=512, index=0)) for layer in setup.shape.each]
    assert pool_token(replace(setup, shape=replace(setup.shape, each=tuple(wide))), server()) == len(wide) * 1152 / 512


def test_without_a_longest_request_there_is_no_table() -> None:
    assert request_table(of("Qwen/Qwen2.5-7B"), server(length=None), GIB) == 0


def test_a_draft_that_is_loaded_later_is_beside_the_share() -> None:
    setup = of("deepseek-ai/DeepSeek-V3", 8)
    early, late = (serve(setup, server(drafted=3, profile=StartupProfile(drafts_inside=inside)), 400 * GIB) for inside in (True, False))
    draft = next(part for part in late.beside if part.name == "draft")
    assert early.terms[0].bytes - late.terms[0].bytes == draft.bytes > 100 * MIB


@given(
    st.sampled_from(["Qwen/Qwen2.5-7B", "openai/gpt-oss-20b", "Qwen/Qwen3-Next-80B-A3B-Instruct", "deepseek-ai/DeepSeek-V4-Flash"]),
    st.sampled_from([1, 2, 4, 8]), st.integers(0, 600), st.integers(0, 600), st.floats(0.01, 1),
)  # fmt: skip
def test_more_memory_never_holds_fewer_tokens(model: str, tensor: int, one: int, other: int, ratio: float) -> None:
    setup, told = of(model, tensor), server(pools=CachePools(window_tokens=ratio))
    few, many = (for_tokens(setup, told, ByteRange(*3 * (size * GIB,))) for size in sorted((one, other)))
    assert few.expected <= many.expected <= max(one, other) * GIB


def test_scales_that_loading_leaves_are_weights_beside_compressed_keys() -> None:
    left = server(profile=StartupProfile(scale_bytes=0.125))

    def more(model: str, tensor: int) -> int:
        setup = of(model, tensor, weights="mxfp4")
        return serve(setup, left, 80 * GIB).terms[0].bytes - serve(setup, server(), 80 * GIB).terms[0].bytes

    experts = 43 * 256 * 3 * 4096 * 2048
    assert more("deepseek-ai/DeepSeek-V4-Flash", 1) == pytest.approx(experts / 8, abs=1)
    assert more("deepseek-ai/DeepSeek-V4-Flash", 4) == pytest.approx(experts / 32, abs=1)
    assert more("openai/gpt-oss-120b", 1) == 0
