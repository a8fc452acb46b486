"""Pictures, engines and options of a served command: what of them the start of vLLM tries, and what that leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oomdoctor.api.configs import read_settings
from oomdoctor.case.serving import Served
from oomdoctor.case.settings import RunSettings
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.server import SERVERS
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.setups.programs.engine import release_of_engine
from oomdoctor.setups.server import CardLookup, deploy
from oomdoctor.units import GIB
from oomdoctor.versions import at_least

_QWEN2, _QWEN3, _TEXT = "Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen3-VL-8B-Instruct", "Qwen/Qwen2.5-7B-Instruct"
_FRAME = 16384
"""Tokens of the largest picture, or of two frames."""


def of(model: str = _QWEN2, version: str | None = "0.33.0", card: float = 79.2, name: str = "", **settings: Any) -> Served:
    shape, record = model_shape(model), load_pack().record(SERVERS, "vllm")
    assert shape is not None
    assert record is not None
    told = RunSettings().with_values({"model": model, "max_model_len": 32768, **settings})
    return deploy(told, shape, record, CardLookup(name, int(card * GIB)), version=version).newest()


@pytest.mark.parametrize(("settings", "tokens"), [
    pytest.param({"max_model_len": 8192}, [_FRAME, _FRAME], id="a picture, and two frames at least"),
    pytest.param({"max_model_len": 40000}, [_FRAME, 2 * _FRAME], id="a video as long as a request"),
    pytest.param({"max_model_len": 128000}, [_FRAME, 7 * _FRAME], id="fourteen frames at most"),
    pytest.param({"version": "0.9.2", "max_model_len": 1 << 20}, [_FRAME, 8 * _FRAME], id="sixteen frames before 0.11"),
    pytest.param({"videos_per_prompt": 0}, [_FRAME], id="no videos"),
    pytest.param({"text_only": True}, [], id="a server of text"),
    pytest.param({"images_per_prompt": 0, "videos_per_prompt": 0}, [], id="no media at all"),
    pytest.param({"skips_pictures": True}, [], id="a start that does not try them"),
    pytest.param({"model": _TEXT}, [], id="a model that only reads text"),
    pytest.param({"model": "google/gemma-3-12b-it"}, [256], id="what the tower says of one picture"),
    pytest.param({"model": "OpenGVLab/InternVL3-8B"}, [3328, 32768], id="a frame is a tile, as many as a request holds"),
    pytest.param({"model": "OpenGVLab/InternVL3-8B", "version": "0.8.5"}, [3328], id="videos came later"),
    pytest.param({"model": "OpenGVLab/InternVL2_5-8B"}, [3328], id="a text model that has no word for videos"),
    pytest.param({"model": _QWEN3, "version": "0.12.0"}, [_FRAME, 153600], id="text between frames was counted with them"),
    pytest.param({"model": _QWEN3}, [_FRAME, 12288], id="and is no more"),
    pytest.param({"max_model_len": 8192, "picture_pixels": 800 * 784}, [800, 7 * 800], id="smaller pictures, and as many frames as there may be"),
    pytest.param({"model": _QWEN3, "picture_pixels": 800 * 1024}, [800, 400], id="two frames share what one picture may have"),
    pytest.param({"model": "OpenGVLab/InternVL2_5-8B", "picture_pixels": 800 * 784}, [3328], id="near miss: tiles are as large as ever"),
])  # fmt: skip
def test_the_items_that_a_start_tries(settings: dict[str, Any], tokens: list[int]) -> None:
    assert [item.tokens for item in of(**settings).server.media] == tokens


@pytest.mark.parametrize(("changes", "smaller"), [
    pytest.param({"videos_per_prompt": 0}, True, id="without videos"),
    pytest.param({"text_only": True}, True, id="without pictures"),
    pytest.param({"max_model_len": 8192}, True, id="shorter requests, so shorter videos"),
    pytest.param({"tensor_parallel": 2}, True, id="cards that divide the encoder"),
    pytest.param({"picture_pixels": 1 << 20}, True, id="smaller frames"),
    pytest.param({"images_per_prompt": 4}, False, id="near miss: V1 tries what its budget holds, whatever one request may bring"),
])  # fmt: skip
def test_what_the_trial_step_takes_for_a_long_video(changes: dict[str, Any], *, smaller: bool) -> None:
    peak, changed = (of(**{"max_model_len": 128000, **more}).terms[2].bytes for more in ({}, changes))
    assert of(max_model_len=128000).terms[2].name == "encoder"
    assert (changed < peak) is smaller


def test_the_video_of_early_v1_was_no_longer_than_a_step() -> None:
    early, late = (of(version=version, max_model_len=128000, max_num_seqs=16).server.media[1] for version in ("0.10.2", "0.11.0"))
    assert early.tokens == late.tokens
    assert late.patches == 7 * early.patches


@pytest.mark.parametrize(("settings", "version", "runs"), [
    pytest.param({}, "0.8.5", "0.8.5", id="the second engine by default"),
    pytest.param({"first_engine": True}, "0.8.5", "0.7.9", id="told the first"),
    pytest.param({"first_engine": True}, None, "0.7.9", id="told the first, whichever release"),
    pytest.param({"first_engine": True}, "0.12.0", "0.12.0", id="near miss: it is gone"),
    pytest.param({"card": "Tesla T4"}, "0.9.2", "0.7.9", id="a card before Ampere"),
    pytest.param({"card": "RTX 3090"}, "0.9.2", "0.9.2", id="near miss: an Ampere card"),
    pytest.param({"card": "Tesla T4", "first_engine": False}, "0.9.2", "0.9.2", id="told the second"),
    pytest.param({"kv_cache_dtype": "fp8", "card": "RTX 4090"}, "0.9.2", "0.7.9", id="a packed cache on Ada"),
    pytest.param({"kv_cache_dtype": "fp8", "card": "H100"}, "0.9.2", "0.9.2", id="near miss: on Hopper"),
    pytest.param({"kv_cache_dtype": "fp8", "card": "RTX 4090"}, "0.10.1", "0.10.1", id="near miss: a later release"),
    pytest.param({"removed_option": "--num-scheduler-steps"}, "0.9.2", "0.7.9", id="an option of the first engine"),
    pytest.param({"removed_option": "--swap-space"}, "0.9.2", "0.9.2", id="near miss: an option of both"),
    pytest.param({"cpu_offload_gb": 4}, "0.8.1", "0.7.9", id="weights on the host"),
    pytest.param({"served_adapters": True}, "0.8.1", "0.7.9", id="adapters"),
    pytest.param({"served_adapters": True}, "0.8.5", "0.8.5", id="near miss: adapters in a later release"),
    pytest.param({"pipeline_parallel": 2}, "0.8.1", "0.7.9", id="a pipeline"),
    pytest.param({"draft_method": "ngram"}, "0.8.5", "0.7.9", id="proposed tokens"),
    pytest.param({"draft_model": "Qwen/Qwen2.5-0.5B"}, "0.9.2", "0.7.9", id="a draft model"),
    pytest.param({"model": "meta-llama/Llama-3.2-11B-Vision-Instruct"}, "0.9.2", "0.7.9", id="an encoder beside the decoder"),
])  # fmt: skip
def test_which_engine_of_vllm_runs(settings: dict[str, Any], version: str | None, runs: str | None) -> None:
    record, told = load_pack().record(SERVERS, "vllm"), dict(settings)
    shape, card = model_shape(str(told.pop("model", _TEXT))), str(told.pop("card", ""))
    assert record is not None
    assert shape is not None
    assert release_of_engine(version, record, RunSettings().with_values(told), shape, card) == runs


@pytest.mark.parametrize(("settings", "batched"), [
    pytest.param({}, 32768, id="requests that are not long are read whole"),
    pytest.param({"max_model_len": 65536}, 2048, id="long ones in parts"),
    pytest.param({"max_model_len": 65536, "model": _QWEN2}, 65536, id="but for pictures"),
    pytest.param({"max_model_len": 65536, "served_adapters": True}, 65536, id="and adapters"),
    pytest.param({"max_model_len": 65536, "draft_method": "ngram"}, 65536, id="and proposed tokens"),
    pytest.param({"max_model_len": 65536, "chunked_prefill": False}, 65536, id="told to read them whole"),
    pytest.param({"chunked_prefill": True}, 2048, id="told to read them in parts"),
    pytest.param({"max_model_len": 4096, "model": _QWEN2}, 5120, id="pictures have a least step"),
    pytest.param({"version": "0.33.0", "chunked_prefill": False}, 32768, id="the second engine, told to read them whole"),
])  # fmt: skip
def test_how_many_tokens_a_step_of_the_first_engine_has(settings: dict[str, Any], batched: int) -> None:
    assert of(**{"model": _TEXT, "version": "0.7.3", "card": 24, **settings}).server.batched == batched


def test_prompts_of_the_first_engine_share_a_step_and_go_without_pictures_that_are_too_many() -> None:
    fits, dropped = (of(version="0.7.3", max_model_len=40000, images_per_prompt=many, videos_per_prompt=0).terms[2] for many in (1, 3))
    assert fits.bytes > dropped.bytes
    # Two short prompts in a step have a picture each.
    assert of(version="0.7.3", videos_per_prompt=0, max_batched_tokens=3 * _FRAME).terms[2].bytes > fits.bytes


def test_pictures_beside_the_text_are_as_many_as_requests() -> None:
    def peak(seqs: int, **more: Any) -> Any:
        return of("meta-llama/Llama-3.2-11B-Vision-Instruct", version="0.7.3", max_model_len=4096, max_num_seqs=seqs, **more).terms[2]

    assert peak(4).name == "encoder"
    assert peak(16).bytes == pytest.approx(4 * peak(4).bytes, rel=0.01)
    assert peak(16, images_per_prompt=0).name != "encoder"


@pytest.mark.parametrize(("settings", "tokens"), [
    pytest.param({"cache_memory": 7 * GIB}, 7 * GIB // 57344, id="bytes"),
    pytest.param({"cache_blocks": 1000}, 16000, id="blocks of 16 tokens"),
    pytest.param({"cache_memory": 7 * GIB, "cache_blocks": 1000}, 7 * GIB // 57344, id="bytes go before blocks"),
])  # fmt: skip
def test_a_cache_that_is_told_is_that_large(settings: dict[str, Any], tokens: int) -> None:
    found = of(_TEXT, **settings)
    assert found.tokens.low == found.tokens.expected == found.tokens.high == tokens
    assert found.starts == "no" if tokens < 32768 else "yes"
    assert of(_TEXT, cache_memory=70 * GIB).starts == "no"


def test_cards_that_divide_the_tokens_of_the_cache_hold_more_of_them() -> None:
    model = "deepseek-ai/DeepSeek-V2-Lite"
    whole, dealt = (of(model, tensor_parallel=4, decode_context_parallel=many) for many in (1, 4))
    assert dealt.tokens.expected == pytest.approx(4 * whole.tokens.expected, rel=1e-3)
    assert whole.request is not None
    assert dealt.request == pytest.approx(whole.request / 4, rel=0.01)


def test_copies_of_a_mixture_divide_its_experts_and_nothing_else() -> None:
    mixture, dense = "Qwen/Qwen3-30B-A3B", _TEXT
    one, four = (of(mixture, data_parallel=many).terms[0].bytes for many in (1, 4))
    assert one / 4 < four < one / 2
    assert of(dense, data_parallel=4).terms[0].bytes == of(dense).terms[0].bytes


def test_adapters_take_room_by_rank_and_number() -> None:
    none, one, four, wide = (of(_TEXT, **told).terms[0].bytes for told in (
        {}, {"served_adapters": True}, {"served_adapters": True, "adapter_slots": 4}, {"served_adapters": True, "adapter_rank": 64},
    ))  # fmt: skip
    assert four - none == pytest.approx(4 * (one - none), abs=4)
    assert wide - none == pytest.approx(four - none, abs=4)
    assert one - none == pytest.approx(2 * 16 * 28 * (3584 * 7 + 3584 * 2 + 512 * 2 + 18944 * 3), rel=0.001)


@pytest.mark.parametrize(("settings", "batched"), [
    pytest.param({"max_num_seqs": 1, "max_model_len": 4096}, 4096, id="one request of less than a step"),
    pytest.param({"max_num_seqs": 1, "max_model_len": 4096, "max_batched_tokens": 8192}, 8192, id="near miss: told how many tokens"),
    pytest.param({"max_num_seqs": 1, "max_model_len": 4096, "version": "0.11.0"}, 8192, id="near miss: an older release"),
    pytest.param({"max_num_seqs": 4, "max_model_len": 4096}, 8192, id="near miss: several requests"),
    pytest.param({"card": 119.0, "name": "NVIDIA GB10"}, 2048, id="a large card that counts as a small one"),
    pytest.param({"card": 119.0, "name": "NVIDIA GB10", "version": "0.32.0"}, 8192, id="near miss: it did not always"),
])  # fmt: skip
def test_how_many_tokens_a_step_has_by_default(settings: dict[str, Any], batched: int) -> None:
    assert of(**{"model": _TEXT, "name": "H100", **settings}).server.batched == batched


@pytest.mark.parametrize(("settings", "fails"), [
    pytest.param({"version": "0.15.0"}, "load", id="packed once all of it is there"),
    pytest.param({"version": "0.16.0"}, None, id="packed matrix by matrix"),
    pytest.param({"version": "0.15.0", "model": "org/Qwen2.5-7B-Instruct-FP8"}, None, id="near miss: packed in the checkpoint"),
])  # fmt: skip
def test_where_packing_needs_the_weights_in_16_bit_first(settings: dict[str, Any], fails: str | None) -> None:
    model = str(settings.get("model", _TEXT))
    shape, record = model_shape(_TEXT), load_pack().record(SERVERS, "vllm")
    assert shape is not None
    assert record is not None
    told = RunSettings(model=model, quantization="fp8", max_model_len=4096, max_num_seqs=8, max_batched_tokens=2048)
    failed = deploy(told, shape, record, CardLookup("", 14 * GIB), version=settings["version"]).newest().failed_check
    assert (failed and failed.passes == "no" and failed.name) == fails if fails else failed is None or failed.name != "load"


@pytest.mark.parametrize(("command", "before", "option"), [
    pytest.param("vllm serve a/b --swap-space 4", "0.18", "--swap-space", id="one that is gone"),
    pytest.param("vllm serve a/b --swap-space 4 --num-scheduler-steps 8", "0.10.1", "--num-scheduler-steps", id="the one that went first"),
    pytest.param("vllm serve a/b --max-num-seqs 4", None, None, id="near miss: one that every release has"),
    pytest.param("docker run vllm/vllm-openai:v0.9.1 --model a/b --swap-space 4", None, None, id="near miss: a release that is named"),
])  # fmt: skip
def test_an_option_that_is_gone_tells_the_release(tmp_path: Path, command: str, before: str | None, option: str | None) -> None:
    script = tmp_path / "serve.sh"
    script.write_text(command + "\n", encoding="utf-8")
    run, _ = read_settings([str(script)], load_pack(), all_needed=True)
    assert run is not None
    assert (run.settings.server_before, run.settings.removed_option) == (before, option)


def test_a_release_that_an_option_excludes_is_not_meant() -> None:
    shape, record = model_shape(_TEXT), load_pack().record(SERVERS, "vllm")
    assert shape is not None
    assert record is not None
    told = RunSettings(model=_TEXT, max_model_len=4096, server_before="0.18", removed_option="--swap-space")
    found = deploy(told, shape, record, CardLookup("", 24 * GIB))
    assert found.newest().server.memory_fraction == pytest.approx(0.9)
    assert not any(at_least(release, "0.18") for release, _ in found.older)
    assert "--swap-space" in next(each for each in found.assumptions if each.id == "server_version").text.en
