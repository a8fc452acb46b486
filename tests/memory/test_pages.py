"""Pages of one size, counted by hand: what a request takes where layers keep different things."""

from __future__ import annotations

from typing import Any

import pytest
from memory.runs import a_program, run
from msgspec.structs import replace

from oomdoctor.case.serving import Server, StartupProfile
from oomdoctor.case.setup import Layout
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config
from oomdoctor.memory.servers.engines import serve
from oomdoctor.memory.servers.pages import request_bytes, states_bytes
from oomdoctor.units import GIB

PLAIN: dict[str, Any] = {
    "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 128,
    "intermediate_size": 4096, "vocab_size": 32000,
}  # fmt: skip
TOKEN = 2 * 2 * 128 * 2
PAGE = 16 * TOKEN
DELTA = {
    "model_type": "qwen3_next", "full_attention_interval": 4, "linear_num_key_heads": 4, "linear_num_value_heads": 8, "linear_key_head_dim": 64,
    "linear_value_head_dim": 64,
}  # fmt: skip
STATE = 3 * (2 * 4 * 64 + 8 * 64) * 2 + 8 * 64 * 64 * 4
WIDE = -(-STATE // PAGE)
"""Pages of 16 tokens that one state needs."""
LAYERS = ["sliding_attention", "sliding_attention", "sliding_attention", "full_attention"]
WINDOW = {"sliding_window": 100, "layer_types": LAYERS * 2}
SPREAD = ["sliding_attention"] * 5 + ["full_attention"] * 3


def request(config: dict[str, Any], tensor: int = 1, length: int = 4096, **server: Any) -> int:
    found = shape_from_config({**PLAIN, **config})
    assert found is not None
    setup = replace(run(task="infer"), shape=found, layout=Layout(cards=tensor, tensor=tensor))
    made = Server(program=a_program("vllm"), memory_fraction=0.9, batched=512, requests=8, length=length)
    counted = request_bytes(setup, replace(made, **server))
    assert counted is not None
    return counted


@pytest.mark.parametrize(("config", "expected"), [
    pytest.param({}, 8 * 256 * PAGE, id="all layers alike: whole blocks"),
    pytest.param({"sliding_window": 100}, 8 * (-(-611 // 16) + 1) * PAGE, id="a window in every layer, what one step adds, and one block more"),
    pytest.param(WINDOW, 2 * (256 + 3 * 40) * PAGE, id="two full layers and three groups of two with a window"),
    pytest.param({"sliding_window": 100, "layer_types": SPREAD}, 3 * (256 + 2 * 40) * PAGE, id="five layers with a window fill two groups of three"),
    pytest.param({"sliding_window": 100, "layer_types": ["sliding_attention"] * 4 + ["full_attention"] * 4}, 4 * (256 + 40) * PAGE, id="as many of each"),
    pytest.param(DELTA, 2 * (-(-4096 // (16 * WIDE)) + 3) * WIDE * PAGE, id="a state takes a page as large as that of attention"),
    pytest.param({"model_type": "gemma4_text", "global_head_dim": 256, **WINDOW}, 2 * (256 + 3 * (-(-611 // 32) + 1)) * 2 * PAGE,
                 id="twice as wide in full layers: blocks of a window have twice the tokens"),
])  # fmt: skip
def test_a_request_is_whole_pages_of_groups_of_layers(config: dict[str, Any], expected: int) -> None:
    assert request(config) == expected


def test_steps_under_way_stay_in_a_window_and_not_beyond_the_length() -> None:
    ahead = StartupProfile(steps_ahead=2)
    assert request(WINDOW, profile=ahead) == 2 * (256 + 3 * (-(-1123 // 16) + 1)) * PAGE
    assert request(WINDOW, length=160, profile=ahead) == 2 * (10 + 3 * 11) * PAGE


def test_a_request_with_cached_prefixes_holds_the_state_that_it_came_from() -> None:
    assert request(DELTA, caches_prefixes=True) - request(DELTA) == 2 * 3 * WIDE * PAGE
    assert request(WINDOW, caches_prefixes=True) == request(WINDOW)


def test_cards_share_heads_and_states() -> None:
    assert request(DELTA, tensor=2) == 2 * (-(-4096 // (16 * WIDE)) + 3) * WIDE * PAGE // 2


def test_tokens_of_windows_and_states_are_requests_of_full_length() -> None:
    found = shape_from_config({**PLAIN, **DELTA})
    assert found is not None
    server = Server(program=a_program("vllm"), memory_fraction=0.9, batched=512, requests=8, length=4096)
    hybrid = serve(replace(run(task="infer"), shape=found), server, 24 * GIB)
    assert hybrid.token * 4096 == hybrid.request
    plain = serve(run(task="infer"), server, 24 * GIB)
    assert plain.token * 4096 == plain.request


def test_layers_with_a_window_keep_all_tokens_where_nothing_groups_them_apart() -> None:
    assert request(WINDOW, whole_windows=True) == request({})
    assert request({"sliding_window": 100}, whole_windows=True) == request({"sliding_window": 100})


@pytest.mark.parametrize(("config", "layers"), [
    pytest.param({}, 8, id="layers that are alike: each token in all of them"),
    pytest.param(WINDOW, 2 * 4, id="four groups of two, as if each kept every token"),
    pytest.param({"sliding_window": 100, "layer_types": SPREAD}, 3 * 3, id="the last group is filled up"),
    pytest.param(DELTA, 2 * 4, id="groups of states count like those of attention"),
])  # fmt: skip
def test_older_releases_print_the_tokens_of_one_group(config: dict[str, Any], layers: int) -> None:
    found = shape_from_config({**PLAIN, **config})
    assert found is not None
    server = Server(program=a_program("vllm"), memory_fraction=0.9, batched=512, requests=8, length=4096)
    made = serve(replace(run(task="infer"), shape=found), replace(server, profile=StartupProfile(prints_requests=False)), 24 * GIB)
    assert made.token == layers * TOKEN
    assert made.request == request(config)


@pytest.mark.parametrize(
    "model", ["google/gemma-3-27b-it", "openai/gpt-oss-20b", "mistralai/Mistral-7B-v0.1", "Qwen/Qwen3-Next-80B-A3B-Instruct"]
)
def test_newer_releases_print_the_tokens_of_requests_of_full_length(model: str) -> None:
    server = Server(program=a_program("vllm"), memory_fraction=0.9, batched=512, requests=8, length=32768)
    made = serve(run(model, task="infer"), server, 80 * GIB)
    assert made.request is not None
    assert made.token == made.request / 32768


def test_sglang_leaves_room_for_states_in_a_pool_of_their_own() -> None:
    found = shape_from_config({**PLAIN, **DELTA})
    assert found is not None
    server = Server(program=a_program("sglang"), memory_fraction=0.9, batched=512, requests=8, length=4096)
    hybrid = serve(replace(run(task="infer"), shape=found), server, 24 * GIB)
    rest = hybrid.taken - hybrid.terms[0].bytes
    assert hybrid.cache.expected == pytest.approx(rest / 1.9, rel=1e-6)
    assert hybrid.request == 2 * 4096 * TOKEN


COMPRESSED = {
    "model_type": "deepseek_v4", "head_dim": 512, "q_lora_rank": 64, "o_lora_rank": 64, "o_groups": 2, "num_key_value_heads": 1,
    "qk_rope_head_dim": 64, "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "sliding_window": 128,
    "index_head_dim": 128, "index_n_heads": 4,
}  # fmt: skip


@pytest.mark.parametrize(("ratios", "expected"), [
    # Pages of 64 keys of 584 bytes, of two, and of 64 of an indexer of 132 bytes, each a multiple of 576.
    pytest.param([0, 0, 4, 128, 4, 128, 4, 128], 3 * (37440 + 1728 + 8640) * (16 + 3 * 11 + (-(-519 // 4) + 1) + (-(-639 // 8) + 1)),
                 id="three layers of each ratio, and eight windows in three groups of three at most"),
    pytest.param([4] * 8, 8 * (37440 + 8640) * (16 + 11 + (-(-519 // 4) + 1)), id="one ratio everywhere"),
    pytest.param([128] * 8, 8 * 1728 * (16 + 11 + (-(-639 // 8) + 1)), id="no indexer at the long ratio"),
])  # fmt: skip
def test_compressed_keys_windows_and_states_share_pages(ratios: list[int], expected: int) -> None:
    assert request({**COMPRESSED, "compress_ratios": ratios}) == expected
    assert request({**COMPRESSED, "compress_ratios": ratios}, tensor=4) == expected


@pytest.mark.parametrize(("config", "expected"), [
    pytest.param(DELTA, 8 * 2 * WIDE * PAGE, id="a block for every request's state, in each layer of a group"),
    pytest.param(WINDOW, 0, id="windows are no states"),
])  # fmt: skip
def test_every_request_needs_a_block_for_its_state(config: dict[str, Any], expected: int) -> None:
    found = shape_from_config({**PLAIN, **config})
    assert found is not None
    server = Server(program=a_program("vllm"), memory_fraction=0.9, batched=512, requests=8, length=4096)
    assert states_bytes(replace(run(task="infer"), shape=found, layout=Layout(cards=1, tensor=1)), server) == expected
