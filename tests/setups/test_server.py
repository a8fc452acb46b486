"""A server as its command says it, and what it takes where nothing is said."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from oomdoctor.case.serving import Served
from oomdoctor.case.settings import RunSettings
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.server import SERVERS, ServerRecord
from oomdoctor.knowledge.server_defaults import default_value
from oomdoctor.knowledge.tables.request_lengths import request_length
from oomdoctor.knowledge.tables.served_since import served_since
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.memory.servers.deployment import Deployment
from oomdoctor.setups.server import CardLookup, deploy, server_record
from oomdoctor.units import GIB


def record_of(program: str) -> ServerRecord:
    record = load_pack().record(SERVERS, program)
    assert record is not None
    return record


def deployed(
    program: Any = "vllm", card: float = 23.4, name: str = "", version: str | None = None, cards: int = 1, **settings: Any
) -> Deployment:
    known = model_shape(str(settings.get("model", "Qwen/Qwen2.5-7B")))
    assert known is not None
    return deploy(
        RunSettings().with_values(settings), known, record_of(program), CardLookup(name, int(card * GIB)), cards=cards, version=version
    )


def of(program: Any = "vllm", **given: Any) -> Served:
    """Return the newest release alone, or the one that is given."""
    return deployed(program, **given).newest()


@pytest.mark.parametrize(("name", "card", "card_name", "version", "value"), [
    pytest.param("memory_share", 24, "", "0.19.1", 0.9, id="the share before 0.20"),
    pytest.param("memory_share", 24, "", "0.20.0", 0.92, id="the share from 0.20 on"),
    pytest.param("memory_share", 24, "", None, 0.92, id="an unknown version is the newest"),
    pytest.param("memory_share", 24, "", "a branch", 0.92, id="what is no version is unknown"),
    pytest.param("max_num_seqs", 24, "", None, 256, id="requests on a small card"),
    pytest.param("max_num_seqs", 79, "NVIDIA H100 80GB HBM3", None, 1024, id="requests on a large one"),
    pytest.param("max_num_seqs", 79, "NVIDIA A100-SXM4-80GB", None, 256, id="an A100 counts as a small one"),
    pytest.param("max_batched_tokens", 180, "", "0.11.0", 8192, id="the largest cards had no value of their own"),
    pytest.param("max_batched_tokens", 180, "", "0.27.1", 8192, id="nor before 0.28"),
    pytest.param("max_batched_tokens", 180, "", "0.33.0", 16384, id="and have one now"),
    pytest.param("max_num_seqs", 24, "", "0.8.2", 1024, id="early V1 took a thousand requests on every card"),
    pytest.param("max_num_seqs", 79, "NVIDIA H100 80GB HBM3", "0.6.5", 256, id="V0 took 256"),
    pytest.param("logit_bytes", 24, "", "0.16.0", 38, id="a sampler that sorts"),
    pytest.param("logit_bytes", 24, "", "0.19.0", 14, id="and one that does not"),
    pytest.param("context_inside", 24, "", "0.8.5", True, id="early V1 counted the context"),
    pytest.param("context_inside", 24, "", "0.6.5", False, id="late V0 did not"),
    pytest.param("context_inside", 24, "", "0.6.4", True, id="one release of V0 counted the context"),
    pytest.param("whole_requests", 24, "", "0.4.2", 10**9, id="the first releases took every request whole"),
    pytest.param("whole_requests", 24, "", "0.7.3", 32768, id="late V0 took long ones in chunks"),
    pytest.param("whole_requests", 24, "", None, 0, id="V1 takes all in chunks"),
    pytest.param("checks_free", 24, "", "0.8.5", False, id="nothing looked at what is free"),
    pytest.param("outside_mb", 79, "", None, 256, id="one card has no buffers of NCCL"),
])  # fmt: skip
def test_what_vllm_takes_where_nothing_is_said(name: str, card: int, card_name: str, version: str | None, value: float) -> None:
    rows = getattr(record_of("vllm").defaults, name)
    assert default_value(rows, card=card * GIB, card_name=card_name, version=version) == value


@pytest.mark.parametrize(("card", "tensor", "step", "graphs"), [
    pytest.param(15.6, 1, 2048, 8, id="16 GB"),
    pytest.param(23.4, 1, 4096, 48, id="24 GB"),
    pytest.param(23.4, 4, 4096, 160, id="four of 24 GB"),
    pytest.param(46.8, 1, 4096, 32, id="48 GB"),
    pytest.param(79.0, 1, 8192, 256, id="80 GB"),
    pytest.param(79.0, 8, 8192, 512, id="eight of 80 GB"),
])  # fmt: skip
def test_what_sglang_takes_where_nothing_is_said(card: float, tensor: int, step: int, graphs: int) -> None:
    defaults = record_of("sglang").defaults
    found = [default_value(rows, card=int(card * GIB), tensor=tensor) for rows in (defaults.max_batched_tokens, defaults.max_num_seqs)]
    assert found == [step, graphs]


@pytest.mark.parametrize(("version", "card", "tensor", "fraction"), [
    pytest.param("0.4.6", 79.2, 8, 0.81, id="0.4.6 looked at the cards only"),
    pytest.param("0.5.2", 79.2, 1, (79.2 - 10) / 79.2, id="0.5.2 kept 9.5 GiB and a half for each card"),
    pytest.param("0.5.2", 23.6, 2, (23.6 - 3) / 23.6, id="and less of small ones"),
    pytest.param("0.4.7", 139.8, 8, 0.872, id="18 GiB of a larger card"),
    pytest.param("0.4.7", 178.4, 8, 0.79, id="and a fifth of the largest"),
    pytest.param("0.5.8", 79.2, 8, (79.2 - 14.5) / 79.2, id="then what a step and the graphs take"),
    pytest.param("0.5.3", 23.6, 1, (23.6 - 3.65625) / 23.6, id="0.5.3 had graphs for 16 requests on a small card"),
    pytest.param("0.5.10", 79.2, 8, (79.2 - 14.5 - 60 * 8 / 1024) / 79.2, id="and graphs of 60 sizes of prefills since 0.5.10"),
])  # fmt: skip
def test_the_share_of_sglang_by_version(version: str, card: float, tensor: int, fraction: float) -> None:
    found = of("sglang", card=card, version=version, cards=tensor, tensor_parallel=tensor)
    assert found.server.memory_fraction == pytest.approx(fraction, abs=1e-3)


H100_STEP = 512 + 8192 * 1.5 + 256 * 2 + 128
"""MiB beside the share of one card of 80 GB: 0.5 GiB, 1.5 MiB a token of a step, 2 MiB a request of a graph, 1/8 GiB a card."""
PREFILLS = 8 * 60
"""8 MiB for each size of prefills up to 8,192 tokens that has a graph (sglang cuda_graph_hook.py)."""


@pytest.mark.parametrize(("model", "card", "settings", "kept", "part"), [
    pytest.param("Qwen/Qwen2.5-7B", 23.4, {}, 512 + 4096 * 1.5 + 48 * 2 + 128 + 8 * 52, 1, id="24 GB"),
    pytest.param("Qwen/Qwen2.5-7B", 79.0, {}, H100_STEP + PREFILLS, 1, id="80 GB"),
    pytest.param("Qwen/Qwen2.5-7B", 79.0, {"enforce_eager": True}, 512 + 8192 * 1.5 + 128, 1, id="no graphs"),
    pytest.param("Qwen/Qwen2.5-7B", 79.0, {"max_num_seqs": 16}, H100_STEP - 240 * 2 + PREFILLS, 1, id="graphs for as many as run"),
    pytest.param("Qwen/Qwen2.5-7B", 79.0, {"graph_requests": 32, "max_num_seqs": 64}, H100_STEP - 224 * 2 + PREFILLS, 1, id="graphs for fewer than run"),
    pytest.param("Qwen/Qwen2.5-7B", 79.0, {"max_batched_tokens": 1024}, 10240, 1, id="10 GiB of a large card at least"),
    pytest.param("Qwen/Qwen2.5-7B", 79.0, {"pipeline_parallel": 2}, H100_STEP + 128, 1, id="a pipeline has no graphs of prefills"),
    pytest.param("deepseek-ai/DeepSeek-V2-Lite", 79.0, {}, H100_STEP + 1536, 1, id="latent attention: 1.5 GiB for them"),
    pytest.param("deepseek-ai/DeepSeek-V4-Flash", 79.0, {}, H100_STEP, 1, id="compressed keys have none"),
    pytest.param("Qwen/Qwen2.5-7B", 79.0, {"tensor_parallel": 2, "attention_copies": 2, "splits_attention": True},
                 H100_STEP + 128 + 256 * 2 * 3 + PREFILLS, 1, id="copies of the attention: 3 MiB more for each request and copy"),
    pytest.param("llava-hf/llava-1.5-7b-hf", 79.0, {}, H100_STEP, 0.95, id="images: a twentieth less for a tower like CLIP-L"),
    pytest.param("google/gemma-4-26B-A4B", 79.0, {}, H100_STEP, 0.95 * (1 - 0.1 * (27 * 1152**2 / (24 * 1024**2) - 1)), id="and less for a larger one"),
    pytest.param("Qwen/Qwen3-VL-8B-Instruct", 79.0, {}, H100_STEP, 0.95 * (1 - 0.1 * (1152**2 / 1024**2 - 1)), id="one with other words counts as 24 layers"),
])  # fmt: skip
def test_the_share_of_sglang_leaves_what_a_step_and_the_graphs_take(
    model: str, card: float, settings: dict[str, Any], kept: float, part: float
) -> None:
    found = of("sglang", card=card, model=model, **settings)
    assert found.server.memory_fraction == pytest.approx((card - kept / 1024) / card * part, abs=1e-3)


@pytest.mark.parametrize(("version", "settings", "less"), [
    pytest.param("0.5.2", {"draft_method": "EAGLE"}, 2, id="what proposes tokens: 2 GiB"),
    pytest.param("0.5.12", {"draft_method": "EAGLE"}, 4, id="then 4"),
    pytest.param("0.5.23", {"draft_method": "EAGLE"}, 0, id="now it is in the share"),
    pytest.param("0.5.2", {"tensor_parallel": 2, "attention_copies": 2, "splits_attention": True}, 4.5, id="copies of the attention: 4 GiB, and a card"),
])  # fmt: skip
def test_what_older_sglang_left_beside_its_share(version: str, settings: dict[str, Any], less: float) -> None:
    plain, found = (of("sglang", card=79.0, version=version, **more).server.memory_fraction for more in ({}, settings))
    assert (plain - found) * 79 == pytest.approx(less, abs=0.11)


@pytest.mark.parametrize(("model", "version", "ratio"), [
    pytest.param("openai/gpt-oss-120b", None, 0.8, id="gpt-oss keeps windows apart"),
    pytest.param("openai/gpt-oss-120b", "0.4.9", None, id="and did not before 0.4.10"),
    pytest.param("google/gemma-4-26B-A4B", "0.5.10", None, id="Gemma 4 before 0.5.11"),
    pytest.param("google/gemma-3-27b-it", None, None, id="Gemma 3 never"),
    pytest.param("deepseek-ai/DeepSeek-V4-Flash", "0.5.18", 0.1, id="a tenth for windows over compressed keys"),
    pytest.param("deepseek-ai/DeepSeek-V4-Flash", None, None, id="by requests now"),
])  # fmt: skip
def test_which_models_of_sglang_have_a_pool_for_windows(model: str, version: str | None, ratio: float | None) -> None:
    assert of("sglang", card=139.8, model=model, version=version).server.pools.window_tokens == ratio


def test_what_somebody_says_of_the_pools_counts() -> None:
    pools = of("sglang", model="openai/gpt-oss-120b", window_tokens=0.2, state_bytes=0.5, state_slots=40, cache_tokens=9000).server.pools
    assert (pools.window_tokens, pools.state_bytes, pools.state_slots, pools.tokens) == (0.2, 0.5, 40, 9000)
    assert of("sglang", window_tokens=0.2).server.pools.window_tokens is None


def test_a_model_that_is_published_in_fp8_is_loaded_in_fp8() -> None:
    """671 billion parameters on eight cards: 78 GiB each, and what every card has whole."""
    weights = of("sglang", card=139.8, model="deepseek-ai/DeepSeek-V3", tensor_parallel=8, cards=8).terms[0]
    assert weights.bytes == pytest.approx(79.5 * GIB, rel=0.01)


@pytest.mark.parametrize(("settings", "copies"), [
    pytest.param({"attention_copies": 4, "splits_attention": True}, 4, id="copies of the attention"),
    pytest.param({"attention_copies": 4}, 1, id="copies of the model are other cards"),
    pytest.param({"attention_copies": 3, "splits_attention": True}, 1, id="copies that do not come out even"),
])  # fmt: skip
def test_copies_of_the_attention(settings: dict[str, Any], copies: int) -> None:
    assert of("sglang", card=79.0, tensor_parallel=8, cards=8, **settings).setup.layout.replicas == copies


@pytest.mark.parametrize(("version", "card_margin", "cache_margin"), [
    pytest.param("2.0.4", 1.0, 0.95, id="2.0 kept a twentieth of the cache back"),
    pytest.param("3.0.1", 0.95, 1.0, id="3.0 a twentieth of the card"),
    pytest.param("3.2.0", 0.93, 1.0, id="3.1 and 3.2 a little more"),
    pytest.param(None, 0.9, 1.0, id="the newest a tenth"),
])  # fmt: skip
def test_what_tgi_keeps_back_by_version(version: str | None, card_margin: float, cache_margin: float) -> None:
    profile = of("text-generation-inference", card=48.0, version=version).server.profile
    assert (profile.card_margin, profile.cache_margin) == (card_margin, cache_margin)


@pytest.mark.parametrize(("kind", "each"), [
    pytest.param(None, 2.0, id="nothing said"),
    pytest.param("auto", 2.0, id="left to the server"),
    pytest.param("fp8_e5m2", 1.0, id="eight bits"),
    pytest.param("int8", 1 + 4 / 128, id="LMDeploy: a scale and a zero point for each head"),
    pytest.param("int4", 0.5 + 4 / 128, id="and in four bits"),
    pytest.param("nvfp4", 4.5 / 8, id="TensorRT-LLM in four bits"),
    pytest.param("u8", 2.0, id="a type that nobody knows"),
])  # fmt: skip
def test_the_type_of_the_cache(kind: str | None, each: float) -> None:
    assert of("lmdeploy", card=48.0, kv_cache_dtype=kind).setup.cache_bytes == pytest.approx(each)


@pytest.mark.parametrize(("settings", "stored"), [
    pytest.param({}, "bf16", id="nothing said"),
    pytest.param({"quantization": "awq_marlin"}, "awq-int4", id="an option"),
    pytest.param({"quantization": "fp8"}, "fp8", id="eight bits"),
    pytest.param({"quantization": "bitsandbytes"}, "nf4-dq", id="bitsandbytes packs to four bits, and its scales"),
    pytest.param({"model": "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8"}, "gptq-int8", id="the name of a checkpoint"),
    pytest.param({"model": "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4"}, "gptq-int4", id="the same in four bits"),
    pytest.param({"model": "Qwen/Qwen2.5-7B-Instruct"}, "bf16", id="a plain name"),
    pytest.param({"precision": "fp32"}, "fp32", id="a type"),
])  # fmt: skip
def test_how_the_weights_are_stored(settings: dict[str, Any], stored: str) -> None:
    assert of(**settings).setup.weights.name == stored


@pytest.mark.parametrize(("settings", "framework", "found"), [
    pytest.param({}, "vllm", "vllm", id="vLLM"),
    pytest.param({}, "sglang", "sglang", id="SGLang"),
    pytest.param({"method": "serve"}, None, "vllm", id="any server means vLLM"),
    pytest.param({}, "lmdeploy", "lmdeploy", id="LMDeploy"),
    pytest.param({"method": "serve"}, "llama.cpp", None, id="a server whose budget is not known here"),
    pytest.param({"method": "sft"}, "llamafactory", None, id="training"),
])  # fmt: skip
def test_which_server_it_is(settings: dict[str, Any], framework: str | None, found: str | None) -> None:
    record = server_record(RunSettings().with_values(settings), framework, load_pack())
    assert (record and record.server) == found


@pytest.mark.parametrize(("settings", "drafted"), [
    pytest.param({"draft_method": "mtp", "draft_tokens": 3}, 3, id="layers of the model itself"),
    pytest.param({"draft_method": "qwen3_next_mtp"}, 1, id="by the name of a family, and one token"),
    pytest.param({"draft_method": "NEXTN", "draft_tokens": 2}, 2, id="in SGLang's words"),
    pytest.param({"draft_method": "EAGLE", "draft_model": "org/eagle"}, 0, id="near miss: another model proposes"),
    pytest.param({"draft_method": "ngram", "draft_tokens": 4}, 0, id="near miss: the prompt proposes"),
    pytest.param({}, 0, id="nobody proposes: the layers are not loaded"),
])  # fmt: skip
def test_layers_that_propose_tokens_are_loaded_where_the_command_says_it(settings: dict[str, Any], drafted: int) -> None:
    plain, found = of(max_model_len=4096), of(max_model_len=4096, **settings)
    assert found.server.drafted == drafted
    assert (found.terms[0].bytes > plain.terms[0].bytes) is (drafted > 0)
    assert ((found.request or 0) > (plain.request or 0)) is (drafted > 0)


def test_what_is_not_said_is_named() -> None:
    said = {one.id for one in of().assumptions}
    assert said == {"memory_share", "max_model_len", "max_batched_tokens", "max_num_seqs", "cuda_graphs", "server_version"}
    told = of(memory_share=0.9, max_model_len=4096, max_batched_tokens=2048, max_num_seqs=16, enforce_eager=True, server_version="0.19.0")
    assert told.assumptions == ()
    assert [one.id for one in of(draft_model="org/small", max_model_len=4096, enforce_eager=True).assumptions if "draft" in one.id] == [
        "draft_model"
    ]


@pytest.mark.parametrize(("settings", "printed", "fraction"), [
    pytest.param({"server_version": "0.19.0"}, None, 0.9, id="what somebody names"),
    pytest.param({"server_version": "0.19.0"}, "0.21.0", 0.92, id="what the log prints goes first"),
    pytest.param({"server_version": "0.19"}, None, 0.9, id="a series is not the one after it"),
    pytest.param({}, None, 0.92, id="neither"),
])  # fmt: skip
def test_whose_version_counts(settings: dict[str, Any], printed: str | None, fraction: float) -> None:
    assert of(version=printed, **settings).server.memory_fraction == fraction


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="'nightly' is not valid"):
        of(server_version="nightly")


@pytest.mark.parametrize(("version", "length", "batched"), [
    pytest.param("0.6.6", 20_000, 20_000, id="V0 took a request whole"),
    pytest.param("0.6.6", 512, 2048, id="and never less than this"),
    pytest.param("0.6.6", 40_000, 2048, id="and a long one in chunks"),
    pytest.param("0.5.4", 40_000, 512, id="which were short at first"),
    pytest.param("0.5.3", 40_000, 40_000, id="before that it took it whole too"),
    pytest.param("0.8.1", 20_000, 2048, id="V1 has chunks"),
])  # fmt: skip
def test_tokens_of_a_step_by_version(version: str, length: int, batched: int) -> None:
    assert of(version=version, max_model_len=length).server.batched == batched


@pytest.mark.parametrize(("settings", "word"), [
    pytest.param({"model": "Qwen/Qwen2.5-14B", "tensor_parallel": 2, "enforce_eager": True, "max_model_len": 4096},
                 "before 0.8.4 it does not", id="a thousand requests"),
    pytest.param({"model": "Qwen/Qwen2.5-0.5B", "max_model_len": 4096}, None, id="a small model starts with each"),
    pytest.param({"model": "Qwen/Qwen2.5-14B", "max_model_len": 4096, "server_version": "0.19.0"}, None, id="nothing where it is known"),
])  # fmt: skip
def test_where_an_older_release_is_the_other_way(settings: dict[str, Any], word: str | None) -> None:
    served = deployed(card=20.0, **settings).served()
    found = [one.text.en for one in served.assumptions if one.id == "server_version" and "before" in one.text.en]
    assert (word in found[0]) if word else not found
    assert served.releases_differ == (word is not None and "does not" in word)


@pytest.mark.parametrize(("model", "holds"), [
    pytest.param("Qwen/Qwen2.5-7B", True, id="a release that loads the model"),
    pytest.param("Qwen/Qwen3-8B", False, id="none from before the model"),
])  # fmt: skip
def test_the_cache_is_as_wide_as_the_releases_since_the_model(model: str, holds: bool) -> None:
    asked: dict[str, Any] = {"model": model, "card": 23.6, "max_model_len": 30_000}
    served, old = deployed(**asked).served(), of(version="0.7.3", **asked)
    assert (served.tokens.low <= old.tokens.low) == holds
    assert served.tokens.expected == of(**asked).tokens.expected


@pytest.mark.parametrize(("server", "name", "since"), [
    pytest.param("vllm", "Qwen/Qwen3-8B", "0.8.4", id="a family"),
    pytest.param("vllm", "Qwen/Qwen3-30B-A3B-Instruct-2507", "0.9.2", id="a later one of it"),
    pytest.param("vllm", "RedHatAI/Meta-Llama-3.1-8B-Instruct-quantized.w4a16", "0.5.4", id="a quantised one"),
    pytest.param("vllm", "/models/qwen2.5-72b-awq/", "0.5.5", id="a folder"),
    pytest.param("sglang", "acme/Qwen3.5-9B-tuned", "0.5.9", id="each server has a release of its own"),
    pytest.param("sglang", "Qwen/Qwen3-8B", None, id="where the other server's release is not known"),
    pytest.param("vllm", "acme/assistant-7b", None, id="a name that is nobody's"),
])  # fmt: skip
def test_since_which_release_a_model_is_loaded(server: str, name: str, since: str | None) -> None:
    assert served_since(server, name) == since


def test_cards_and_host_memory() -> None:
    spread = of(tensor_parallel=2, cpu_offload_gb=2)
    assert spread.setup.layout.cards == 2
    assert spread.terms[0].bytes == pytest.approx(of().terms[0].bytes / 2 - 2 * GIB, abs=1 << 20)


@pytest.mark.parametrize(("written", "share"), [
    pytest.param(1, 1.0, id="all of the card as a whole number"),
    pytest.param(0.5, 0.5, id="half of it"),
    pytest.param(85, 0.92, id="percent is no share: check says so"),
    pytest.param(True, 0.92, id="neither is a word"),
])  # fmt: skip
def test_a_share_lies_between_nothing_and_everything(written: Any, share: float) -> None:
    assert of(memory_share=written).server.memory_fraction == share


_NAMES = ("memory_share", "max_model_len", "max_num_seqs", "max_batched_tokens", "kv_cache_dtype", "enforce_eager", "quantization", "cpu_offload_gb",
          "tensor_parallel", "pipeline_parallel", "precision", "draft_model")  # fmt: skip
_ANYTHING = st.one_of(st.none(), st.booleans(), st.integers(-(1 << 70), 1 << 70), st.floats(), st.text(max_size=20))


@given(
    st.sampled_from(["vllm", "sglang", "text-generation-inference", "lmdeploy", "tensorrt-llm"]),
    st.dictionaries(st.sampled_from(_NAMES), _ANYTHING),
    st.floats(0.1, 1000),
)
def test_any_setting_has_an_answer(of_program: str, settings: dict[str, Any], card: float) -> None:
    found = of(of_program, card=card, **settings)
    assert 0 < found.server.memory_fraction <= 1


@pytest.mark.parametrize(("model", "tokens"), [
    pytest.param("Qwen/Qwen2.5-7B", 131072, id="a base model"),
    pytest.param("Qwen/Qwen2.5-7B-Instruct", 32768, id="its chat model"),
    pytest.param("/models/Qwen2.5-72B-Instruct-AWQ/", 32768, id="a folder of a quantised one"),
    pytest.param("Qwen/Qwen2.5-3B", 32768, id="a small one of the same family"),
    pytest.param("meta-llama/Llama-2-13b-chat-hf", 4096, id="another family"),
    pytest.param("org/never-seen", None, id="a name that is not known"),
])  # fmt: skip
def test_how_long_requests_may_be_by_name(model: str, tokens: int | None) -> None:
    assert request_length(model) == tokens


def test_a_start_is_not_promised_where_the_longest_request_is_not_known() -> None:
    shape = replace(of(model="Qwen/Qwen2.5-0.5B").setup.shape, name="org/never-seen", longest=None)

    def starts(program: str, **settings: Any) -> str:
        now = deploy(RunSettings().with_values(settings), shape, record_of(program), CardLookup("", 24 * GIB))
        return now.newest().starts

    assert starts("vllm") == "close"
    assert starts("vllm", max_model_len=4096) == "yes"
    assert starts("sglang") == "yes"


@pytest.mark.parametrize(("settings", "held"), [
    pytest.param({"server_version": "0.27.0"}, False, id="states are not kept for others by default"),
    pytest.param({"server_version": "0.28.0"}, True, id="from this release they are"),
    pytest.param({"server_version": "0.27.0", "prefix_caching": True}, True, id="or where somebody says it"),
    pytest.param({"server_version": "0.28.0", "prefix_caching": False}, False, id="and not where somebody says so"),
])  # fmt: skip
def test_whether_prefixes_are_cached_is_of_the_release_or_said(settings: dict[str, Any], held: bool) -> None:  # noqa: FBT001 - a table
    assert of(**settings).server.caches_prefixes is held


@pytest.mark.parametrize(("settings", "whole"), [
    pytest.param({"server_version": "0.9.0"}, True, id="before windows are groups of their own"),
    pytest.param({"server_version": "0.9.1"}, False, id="from this release they are"),
    pytest.param({"server_version": "0.9.1", "whole_windows": True}, True, id="not where somebody turns that off"),
    pytest.param({"server_version": "0.20.0", "cache_connector": "LMCacheConnectorV1"}, True, id="nor where the cache is passed on"),
    pytest.param({"server_version": "0.22.0", "cache_connector": "LMCacheConnectorV1"}, False, id="until connectors know groups"),
    pytest.param({"server_version": "0.20.0", "cache_connector": "LMCacheConnectorV1", "whole_windows": False}, False, id="unless it is said"),
])  # fmt: skip
def test_whether_windows_keep_all_tokens(settings: dict[str, Any], whole: bool) -> None:  # noqa: FBT001 - a table
    assert of(**settings).server.whole_windows is whole


@pytest.mark.parametrize(("version", "card", "beside"), [
    pytest.param("0.5.15", "NVIDIA H200", 0.125, id="Hopper before they were deleted"),
    pytest.param("0.5.16", "NVIDIA H200", 0, id="Hopper since"),
    pytest.param("0.5.15", "NVIDIA B200", 0, id="a card that computes in 4 bit"),
])  # fmt: skip
def test_scales_stay_on_cards_without_4_bit_kernels(version: str, card: str, beside: float) -> None:
    shape = of(model="Qwen/Qwen2.5-0.5B").setup.shape
    settings = RunSettings().with_values({"server_version": version})
    made = deploy(settings, shape, record_of("sglang"), CardLookup(card, 140 * GIB))
    assert made.server.profile.scale_bytes == beside


@pytest.mark.parametrize(("settings", "card", "tokens"), [
    pytest.param({"server_version": "0.19.0"}, "RTX 4090", 2048, id="a server"),
    pytest.param({"server_version": "0.19.0", "offline": True}, "RTX 4090", 8192, id="the same without a server"),
    pytest.param({"server_version": "0.19.0", "offline": True}, "H100-80GB", 16384, id="on a large card"),
    pytest.param({"server_version": "0.19.0", "offline": True}, "A100-80GB", 8192, id="which an A100 does not count as"),
    pytest.param({"server_version": "0.8.5", "offline": True}, "A100-80GB", 16384, id="but did at first"),
    pytest.param({"server_version": "0.7.3", "offline": True, "max_model_len": 4096}, "RTX 4090", 4096, id="before chunks a step is a request"),
    pytest.param({"server_version": "0.19.0", "offline": True, "max_batched_tokens": 4096}, "RTX 4090", 4096, id="unless somebody says it"),
])  # fmt: skip
def test_a_step_has_more_tokens_where_no_server_answers(settings: dict[str, Any], card: str, tokens: int) -> None:
    shape = of(model="Qwen/Qwen2.5-0.5B").setup.shape
    size = 80 * GIB if "80GB" in card else 24 * GIB
    made = deploy(RunSettings().with_values(settings), shape, record_of("vllm"), CardLookup(card, size))
    assert made.server.batched == tokens
