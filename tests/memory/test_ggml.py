"""What llama.cpp prints of its buffers, and where layers lie."""

from __future__ import annotations

from typing import Any

import pytest
from memory.runs import run
from msgspec.structs import replace

from oomdoctor.case.settings import RunSettings
from oomdoctor.case.setup import Setup
from oomdoctor.memory.estimate import estimate
from oomdoctor.setups.from_settings import setup_from_settings
from oomdoctor.units import MIB


def of(model: str = "Qwen/Qwen2.5-7B", framework: str = "llama.cpp", cards: int = 1, **settings: Any) -> Setup:
    known = RunSettings().with_values({"method": "serve", "model": f"{model}-Q4_K_M.gguf", "max_model_len": 32768, **settings})
    return setup_from_settings(known, run(model).shape, framework, cards)[0]


def terms(setup: Setup) -> dict[str, float]:
    return {term.name: term.bytes / MIB for term in estimate(setup).peak.terms}


def test_the_buffers_of_a_7b_model_in_four_bits() -> None:
    """llama.cpp prints 4168 MiB of weights, 1792 MiB of cache for 32,768 cells and 304 MiB for the graph."""
    found = terms(of())
    assert found["weights"] == pytest.approx(4168, rel=0.01)
    assert found["kv cache"] == 1792
    assert found["working set"] == pytest.approx(304, rel=0.03)


def test_without_flash_attention_the_graph_has_the_attention_of_a_chunk_to_the_whole_context() -> None:
    """512 tokens x 28 heads x 32,768 cells in fp32 are 1792 MiB, and two hidden states more."""
    graph = terms(of(attention="eager"))["working set"]
    assert graph == pytest.approx(1792 + 14)
    assert terms(of(attention="eager", max_model_len=1024))["working set"] == terms(of())["working set"]


@pytest.mark.parametrize(("whole", "cells"), [
    pytest.param(None, 52 * (1024 + 512) + 10 * 32768, id="a window keeps its tokens and those of a chunk"),
    pytest.param(True, 62 * 32768, id="or all of them, and no more"),
])  # fmt: skip
def test_the_cells_of_layers_with_a_window(whole: bool | None, cells: int) -> None:
    """Gemma 3 27B: 52 of 62 layers have a window of 1,024 tokens, 16 heads of 128."""
    assert terms(of("google/gemma-3-27b-it", whole_windows=whole))["kv cache"] == pytest.approx(cells * 2 * 16 * 128 * 2 / MIB)


@pytest.mark.parametrize(("settings", "cache"), [
    pytest.param({"kv_cache_dtype": "q8_0", "value_cache_dtype": "q8_0"}, 1792 * 34 / 64, id="both in eight bits"),
    pytest.param({"kv_cache_dtype": "q8_0"}, 1792 * (1 + 34 / 64) / 2, id="keys alone"),
    pytest.param({"kv_cache_dtype": "q4_0", "value_cache_dtype": "f16"}, 1792 * (1 + 18 / 64) / 2, id="keys in four bits"),
    pytest.param({"gpu_layers": 14}, 896, id="half of the layers on the card"),
    pytest.param({"gpu_layers": 0}, 0, id="none of them"),
    pytest.param({"max_num_seqs": 8}, 1792, id="requests share the cells"),
])  # fmt: skip
def test_what_the_cache_takes(settings: dict[str, Any], cache: float) -> None:
    assert terms(of(**settings))["kv cache"] == pytest.approx(cache, abs=1)


def experts(setup: Setup) -> float:
    """All experts of a model in a file of one type: 18 bytes for 32 values."""
    shape = setup.shape
    assert shape.experts is not None
    return 3 * shape.layers * shape.hidden * shape.experts.intermediate * shape.experts.routed * 18 / 32 / MIB


@pytest.mark.parametrize(("settings", "share"), [
    pytest.param({}, 0, id="nothing said"),
    pytest.param({"host_experts": 12}, 12 / 48, id="--n-cpu-moe 12"),
    pytest.param({"host_experts": 99}, 1, id="more than there are"),
    pytest.param({"host_experts": True}, 1, id="--cpu-moe"),
    pytest.param({"tensor_override": "exps=CPU"}, 1, id="a part of the name"),
    pytest.param({"tensor_override": r"\.ffn_.*_exps\.=CPU"}, 1, id="a pattern"),
    pytest.param({"tensor_override": r"blk\.(?:[0-9]|1[01])\.ffn_.*_exps=CPU"}, 12 / 48, id="twelve layers"),
    pytest.param({"tensor_override": r"ffn_down_exps=CPU"}, 1 / 3, id="one matrix of three"),
    pytest.param({"tensor_override": r"exps=CUDA0"}, 0, id="on another card"),
    pytest.param({"tensor_override": r"attn=CPU"}, 0, id="no experts"),
    pytest.param({"tensor_override": r"(ffn|exps)+=CPU"}, 0, id="a pattern that may never end"),
    pytest.param({"tensor_override": r"exps(=CPU"}, 0, id="no pattern at all"),
])  # fmt: skip
def test_experts_on_the_host(settings: dict[str, Any], share: float) -> None:
    every, some = (of("Qwen/Qwen3-30B-A3B", quantization="q4_0", **told) for told in ({}, settings))
    assert terms(every)["weights"] - terms(some)["weights"] == pytest.approx(share * experts(every), rel=0.01, abs=1)
    assert estimate(some).host - estimate(every).host == pytest.approx(share * experts(every) * MIB, rel=0.01, abs=MIB)


def test_ollama_gives_each_request_a_context() -> None:
    assert terms(of(framework="ollama", max_num_seqs=4))["kv cache"] == 4 * terms(of(max_num_seqs=4))["kv cache"]


def test_the_output_projection_is_one_more_layer_and_the_scores_go_with_it() -> None:
    every, without = terms(of(gpu_layers=29)), terms(of(gpu_layers=28))
    assert every == terms(of())
    assert every["weights"] - without["weights"] == pytest.approx(152064 * 3584 * 210 / 256 / MIB, rel=0.01)
    assert without["working set"] < every["working set"] / 2


def test_what_is_not_on_the_card_is_in_host_memory() -> None:
    some, every = estimate(of(gpu_layers=7)), estimate(of())
    moved = sum(every.phases[-1].terms[at].bytes - some.phases[-1].terms[at].bytes for at in (0, 1))
    assert some.host - every.host == pytest.approx(moved, rel=0.01)


def test_a_window_keeps_what_a_chunk_adds() -> None:
    short = replace(of(), shape=replace(of().shape, window=4096, windowed_layers=14))
    assert terms(short)["kv cache"] == pytest.approx(1792 * (0.5 + 0.5 * (4096 + 512) / 32768), abs=1)


def test_only_programs_of_its_kind_are_counted_so() -> None:
    assert of(framework="vllm").ggml is None
    assert of(framework="ollama").ggml is not None


def test_two_cards_share_the_layers() -> None:
    assert 896 <= terms(of(cards=2))["kv cache"] <= 0.6 * 1792
