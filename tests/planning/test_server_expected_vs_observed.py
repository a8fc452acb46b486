"""What a diagnosis says of a server that names its model: its budget beside what it printed, and what each fix would change."""

from __future__ import annotations

import json
from html import unescape

import pytest
from report.published import validate

import oomdoctor
from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.diagnosis import Diagnosis, Fix
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.render.markdown import render
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB

ENGINE = (
    "INFO 08-05 11:20:31 [core.py:77] Initializing a V1 LLM engine (v{version}) with config: model='{model}', speculative_config=None, "
    "tokenizer='{model}', dtype=torch.bfloat16, max_seq_len={length}, tensor_parallel_size=1, pipeline_parallel_size=1, quantization=None, "
    "enforce_eager=False, kv_cache_dtype=auto\n"
)
LOADED = "INFO 08-05 11:20:52 [gpu_model_runner.py:2653] Model loading took 15.27 GiB and 9.31 seconds\n"
CACHE = "INFO 08-05 11:21:20 [gpu_worker.py:298] Available KV cache memory: {cache} GiB\n"
REQUEST = (
    "ValueError: To serve at least one request with the models's max seq len ({length}), ({needed:.2f} GiB KV cache is needed, which is larger "
    "than the available KV cache memory ({cache} GiB). Based on the available memory, the estimated maximum model length is {fitting}. Try "
    "increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n"
)
NOTHING = "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"
PROFILE = (
    "INFO 02-11 09:14:02 worker.py:267] the current vLLM instance can use total_gpu_memory (23.55GiB) x gpu_memory_utilization (0.90) = 21.20GiB\n"
    "INFO 02-11 09:14:02 worker.py:267] model weights take 15.27GiB; non_torch_memory takes 0.11GiB; PyTorch activation peak memory takes 1.48GiB; "
    "the rest of the memory reserved for KV Cache is 4.34GiB.\n"
)


def of(log: str) -> Diagnosis:
    return diagnose_logs(["serve.log"], load_pack(), text=log.encode())


def short_of_a_request(length: int = 40960, cache: float = 4.34, more: str = "", version: str = "0.11.0") -> str:
    engine = ENGINE.format(version=version, model="Qwen/Qwen3-8B", length=length)
    needed = length * 36 * 2 * 8 * 128 * 2 / GIB
    said = REQUEST.format(length=length, needed=needed, cache=cache, fitting=int(cache / needed * length) // 16 * 16)
    return engine + LOADED + CACHE.format(cache=cache) + more + said


def fixes(diagnosis: Diagnosis) -> dict[str, Fix]:
    return {fix.id: fix for finding in diagnosis.findings for fix in finding.fixes}


def test_the_engine_names_the_model_and_the_request_is_what_vllm_says() -> None:
    served = of(short_of_a_request()).case.served
    assert served is not None
    assert served.expected.setup.shape.name == "Qwen/Qwen3-8B"
    assert served.expected.request == pytest.approx(5.625 * GIB, rel=1e-3)
    assert served.served.failed_check is not None
    assert served.served.failed_check.name == "request"
    assert served.seen["kv cache"] == pytest.approx(4.34 * GIB, rel=1e-3)


def test_a_card_that_is_not_named_is_worked_out_from_the_cache() -> None:
    served = of(short_of_a_request()).case.served
    assert served is not None
    assert not served.total_is_known
    assert 20 * GIB < served.expected.total < 25 * GIB
    assert served.expected.server.memory_fraction == 0.9


def test_the_card_of_the_profile_goes_first_and_its_parts_stand_beside_ours() -> None:
    served = of(short_of_a_request(more=PROFILE, version="0.7.2")).case.served
    assert served is not None
    assert served.total_is_known
    assert served.expected.total == pytest.approx(23.55 * GIB, rel=1e-3)
    assert {name: round(size / GIB, 2) for name, size in served.seen.items()} == {
        "weights": 15.27, "outside torch": 0.11, "working set": 1.48, "kv cache": 4.34,
    }  # fmt: skip
    weights, step = served.expected.terms[0], served.expected.terms[2]
    assert weights.low <= served.seen["weights"] <= weights.high
    assert step.low <= served.seen["working set"] <= step.high * 1.05


def test_a_shorter_request_is_promised_and_a_longer_list_of_changes_is_weighed() -> None:
    by_id = fixes(of(short_of_a_request()))
    assert by_id["shorter-sequences"].fits == "yes"
    assert by_id["shorter-sequences"].frees_bytes
    assert by_id["quantise-4bit-8bit"].fits == "yes"


def test_a_slightly_larger_share_is_not_promised_where_it_is_not_enough() -> None:
    by_id = fixes(of(short_of_a_request(cache=1.10)))
    assert by_id["shorter-sequences"].fits == "yes"
    assert "raise-serving-share" not in by_id or by_id["raise-serving-share"].fits != "yes"


@pytest.mark.parametrize("log", [
    pytest.param(NOTHING, id="no engine, no model"),
    pytest.param(ENGINE.format(version="0.11.0", model="models/ours", length=4096) + NOTHING, id="a model that nobody knows"),
    pytest.param(ENGINE.format(version="0.11.0", model="Qwen/Qwen3-8B", length=4096) + NOTHING, id="neither the card nor the cache"),
    pytest.param("INFO: Application startup complete.\n", id="a server that printed nothing of its memory"),
])  # fmt: skip
def test_what_is_not_known_is_not_weighed(log: str) -> None:
    assert of(log).case.served is None


def test_a_server_that_started_is_compared_as_well() -> None:
    started = of(short_of_a_request().rsplit("ValueError", 1)[0] + "INFO: Application startup complete.\n")
    assert started.case.served is not None and not started.case.incidents
    report = render(compose(started, Wording("en"), "0"))
    assert "Memory figures printed by the server" in report and "By these figures" not in report


def test_json_has_the_budget_and_what_was_seen() -> None:
    report = json.loads(json_text(convert_diagnosis(of(short_of_a_request()), Wording("en"), "0"), redact=True))
    validate(report)
    estimate = report["estimate"]
    assert (estimate["schema"], estimate["server"]["program"], estimate["fits"]) == ("oomdoctor/estimate/v1", "vllm", "no")
    assert set(estimate["seen_bytes"]) == {"weights", "kv cache"}


@pytest.mark.parametrize(("lang", "words"), [
    pytest.param("en", ["the log shows 15.27 GiB", "By these figures it fails because", "With it the run should fit."], id="English"),
    pytest.param("zh", ["服务的显存预算", "日志显示 15.27 GiB", "按这些数字，会卡在这里", "这样改之后应该放得下。"], id="Chinese"),
])  # fmt: skip
def test_the_report_says_it(lang: str, words: list[str]) -> None:
    report = unescape(render(compose(of(short_of_a_request()), Wording(lang), "0")).replace("\\", ""))
    assert [word for word in words if word not in report] == []


def test_sglang_is_read_from_its_arguments() -> None:
    log = (
        "[2026-03-02 08:15:40] server_args=ServerArgs(model_path='Qwen/Qwen3-8B', tokenizer_path='Qwen/Qwen3-8B', context_length=None, "
        "mem_fraction_static=0.55, max_running_requests=None, chunked_prefill_size=4096, tp_size=1, random_seed=7)\n"
        "[2026-03-02 08:15:59 TP0] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=8.01 GB, mem usage=15.31 GB.\n"
        "NVIDIA GeForce RTX 4090\nRuntimeError: Not enough memory. Please try to increase --mem-fraction-static.\n"
    )
    settings = of(log).case.training
    assert settings is not None
    assert {name: settings.settings.known().get(name) for name in ("model", "memory_share", "max_batched_tokens")} == {
        "model": "Qwen/Qwen3-8B", "memory_share": 0.55, "max_batched_tokens": 4096,
    }  # fmt: skip


def test_a_server_of_a_model_that_only_reads_is_diagnosed_without_a_budget() -> None:
    log = (
        "INFO 06-01 10:00:01 llm_engine.py:237] Initializing an LLM engine (v0.6.3) with config: model='google-bert/bert-base-uncased', "
        "dtype=torch.float16, max_seq_len=512\n"
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. "
        "GPU 0 has a total capacity of 39.39 GiB of which 1.12 GiB is free.\n"
    )
    assert oomdoctor.diagnose(log).case.verdict.memory_failure == "yes"
