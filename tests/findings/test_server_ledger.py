"""What servers print at their start, added up for each card: of the last start, with the figures of each program as it means them."""

from __future__ import annotations

from typing import Any

import pytest

import oomdoctor
from oomdoctor.case.server_ledger import ServerLedger
from oomdoctor.findings.fitting import fitting
from oomdoctor.findings.server_ledger import first_card, ledger_of
from oomdoctor.units import GIB, MIB

VLLM = """\
(Worker_TP0 pid=11) INFO 03-02 10:00:01 [gpu_model_runner.py:2653] Model loading took 14.50 GiB and 4.07 seconds
(Worker_TP1 pid=12) INFO 03-02 10:00:01 [gpu_model_runner.py:2653] Model loading took 14.25 GiB and 4.10 seconds
(Worker_TP0 pid=11) INFO 03-02 10:00:09 [gpu_worker.py:298] Available KV cache memory: 20.50 GiB
(Worker_TP1 pid=12) INFO 03-02 10:00:09 [gpu_worker.py:298] Available KV cache memory: 20.75 GiB
(EngineCore_DP0 pid=10) INFO 03-02 10:00:10 [kv_cache_utils.py:1087] GPU KV cache size: 73,984 tokens
(EngineCore_DP0 pid=10) INFO 03-02 10:00:10 [kv_cache_utils.py:1091] Maximum concurrency for 8,192 tokens per request: 9.03x
(Worker_TP0 pid=11) INFO 03-02 10:00:19 [gpu_model_runner.py:3480] Graph capturing finished in 8 secs, took 0.75 GiB
"""
SGLANG = """\
[2026-03-02 09:00:01 TP0] Init torch distributed ends. mem usage=0.25 GB
[2026-03-02 09:00:02 TP0] Load weight begin. avail mem=78.00 GB
[2026-03-02 09:00:09 TP0] Load weight end. type=DemoForCausalLM, dtype=torch.bfloat16, avail mem=48.00 GB, mem usage=30.00 GB.
[2026-03-02 09:00:10 TP0] KV Cache is allocated. #tokens: 200000, K size: 12.00 GB, V size: 12.00 GB
[2026-03-02 09:00:10 TP0] Memory pool end. avail mem=24.00 GB
[2026-03-02 09:00:12 TP0] Load weight begin. avail mem=24.00 GB
[2026-03-02 09:00:13 TP0] Load weight end. type=DraftForCausalLM, dtype=torch.bfloat16, avail mem=23.00 GB, mem usage=1.00 GB.
[2026-03-02 09:00:13 TP0] KV Cache is allocated. #tokens: 200000, K size: 0.50 GB, V size: 0.50 GB
[2026-03-02 09:00:20 TP0] Capture cuda graph end. Time elapsed: 6.01 s. mem usage=1.50 GB. avail mem=20.50 GB.
"""
LLAMA_CPP = """\
llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 3060) - 11500 MiB free
load_tensors: offloaded 41/41 layers to GPU
load_tensors:        CUDA0 model buffer size =  8200.00 MiB
load_tensors:   CPU_Mapped model buffer size =   400.00 MiB
load_tensors:   CPU_Mapped model buffer size =    10.00 MiB
llama_kv_cache_unified:      CUDA0 KV buffer size =  2048.00 MiB
llama_kv_cache_unified:      CUDA0 KV buffer size =   512.00 MiB
llama_kv_cache_unified: size = 2048.00 MiB ( 16384 cells,  40 layers,  1/ 1 seqs), K (f16): 1024.00 MiB, V (f16): 1024.00 MiB
"""
OLLAMA = """\
time=2026-03-02T10:00:00.100Z level=INFO source=device.go:240 msg="model weights" device=CUDA0 size="8.5 GiB"
time=2026-03-02T10:00:00.100Z level=INFO source=device.go:245 msg="model weights" device=CPU size="512.0 MiB"
time=2026-03-02T10:00:00.100Z level=INFO source=device.go:251 msg="kv cache" device=CUDA0 size="1.5 GiB"
time=2026-03-02T10:00:00.100Z level=INFO source=device.go:262 msg="compute graph" device=CUDA0 size="256.0 MiB"
"""
TRT = """\
[TRT-LLM] [I] Memory used after loading model weights (inside torch) in memory usage profiling: 15.25 GiB
[TRT-LLM] [I] Memory used after loading model weights (outside torch) in memory usage profiling: 1.50 GiB
[TRT-LLM] [I] Memory dynamically allocated during inference (inside torch) in memory usage profiling: 0.75 GiB
[TensorRT-LLM][INFO] [MemUsageChange] Allocated 50.25 GiB for max tokens in paged KV cache (411648).
"""


def ledgers(log: str) -> dict[str, ServerLedger]:
    return {ledger.of: ledger for ledger in oomdoctor.diagnose(log.encode()).case.ledgers}


@pytest.mark.parametrize(("log", "of", "figures"), [
    pytest.param(VLLM, "rank 0", {"weights": 14.5 * GIB, "cache": 20.5 * GIB, "graphs": 0.75 * GIB, "tokens": 73984, "requests": 9.03},
                 id="vLLM: a worker has its own figures, and those that the engine prints for all"),
    pytest.param(VLLM, "rank 1", {"weights": 14.25 * GIB, "cache": 20.75 * GIB, "length": 8192}, id="vLLM: of another worker"),
    pytest.param(SGLANG, "rank 0", {"initial_free": 78 * GIB, "weights": 31 * GIB, "cache": 25 * GIB, "outside": 0.25 * GIB,
                                    "graphs": 1.5 * GIB, "free": 20.5 * GIB, "tokens": 200000}, id="SGLang: a draft's weights and cache are added"),
    pytest.param(LLAMA_CPP, "CUDA0", {"initial_free": 11500 * MIB, "weights": 8200 * MIB, "cache": 2560 * MIB, "tokens": 16384},
                 id="llama.cpp: two caches of one card are added"),
    pytest.param(LLAMA_CPP, "host", {"weights": 410 * MIB, "cache": None, "initial_free": None}, id="llama.cpp: mapped files lie in the host"),
    pytest.param(OLLAMA, "CUDA0", {"weights": 8.5 * GIB, "cache": 1.5 * GIB, "activations": 256 * MIB}, id="Ollama: its own engine"),
    pytest.param(OLLAMA, "host", {"weights": 512 * MIB, "activations": None}, id="Ollama: what stays in the host"),
    pytest.param(TRT, "", {"weights": 15.25 * GIB, "outside": 1.5 * GIB, "activations": 0.75 * GIB, "cache": 50.25 * GIB, "tokens": 411648},
                 id="TensorRT-LLM: the trial step and the cache"),
    pytest.param("[TM][INFO] [BlockManager] block_size = 8.000 MB\n[TM][INFO] [BlockManager] max_block_count = 2000\n", "",
                 {"cache": 16000 * MIB, "tokens": None}, id="LMDeploy: blocks and their size"),
    pytest.param("worker_v1.py:257] Available memory: 21474836480, total memory: 65464696832\n", "", {"cache": 20 * GIB, "total": 65464696832},
                 id="vllm-ascend: bytes"),
])  # fmt: skip
def test_the_figures_of_one_card_stand_together(log: str, of: str, figures: dict[str, Any]) -> None:
    ledger = ledgers(log)[of]
    assert {name: getattr(ledger, name) for name in figures} == figures


def test_the_last_start_of_a_log_counts() -> None:
    start = "INFO 03-02 10:00:00 [core.py:77] Initializing a V1 LLM engine (v0.11.0) with config: model='models/demo', speculative_config=None\n"
    first, second = VLLM.replace("(Worker_TP0 pid=11) ", ""), SGLANG
    again = f"{start}{first}{start}INFO 03-02 10:09:01 [gpu_model_runner.py:2653] Model loading took 7.50 GiB and 4.07 seconds\n"
    assert {of: ledger.weights for of, ledger in ledgers(again).items()} == {"": 7.5 * GIB}
    assert second


@pytest.mark.parametrize("log", [
    pytest.param("INFO 03-02 10:00:01 [config.py:1] KV cache size: unknown\n", id="no figure"),
    pytest.param("GPU memory: 24 GB, the model needs 14 GB\n", id="no line of a server"),
    pytest.param("GPU KV cache size: 73,984 tokens\n", id="tokens alone are no memory"),
])  # fmt: skip
def test_no_ledger_without_a_part(log: str) -> None:
    assert ledgers(log) == {}


def test_where_several_cards_print_a_message_without_a_card_belongs_to_none() -> None:
    case = oomdoctor.diagnose((VLLM + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB.\n").encode()).case
    assert ledger_of(case.incidents[0].root, case.ledgers) is None
    first = first_card(case.ledgers)
    assert first is not None and first.of == "rank 0"


FAILED = "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 1258291200\n"


@pytest.mark.parametrize(("log", "layers", "length"), [
    pytest.param(LLAMA_CPP + FAILED, 38, 11801, id="716 MiB lack: three layers of 262 MiB, or as much of the cache"),
    pytest.param(LLAMA_CPP.replace("11500", "12500") + FAILED, None, None, id="there was room, so the log does not tell"),
    pytest.param(LLAMA_CPP.replace(" - 11500 MiB free", "") + FAILED, None, None, id="what was free is not printed"),
    pytest.param(LLAMA_CPP + LLAMA_CPP.replace("CUDA0", "CUDA1") + FAILED, None, None, id="two cards: nobody knows how many layers lie on which"),
])  # fmt: skip
def test_what_fits_follows_from_the_buffers(log: str, layers: int | None, length: int | None) -> None:
    case = oomdoctor.diagnose(log.encode()).case
    facts = fitting(case.incidents[0].root, case.ledgers, case.facts)
    assert (facts.get("derived.fitting_layers"), facts.get("derived.fitting_length")) == (layers, length)
