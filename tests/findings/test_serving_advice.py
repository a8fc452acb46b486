"""What a server is told: values that follow from its log, in its own keys, and nothing that is for training."""

from __future__ import annotations

import pytest
from findings.situation import Situation, said_first

import oomdoctor
from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.findings.conditions import Fact
from oomdoctor.findings.serving_share import serving_share

GIB = 1 << 30


def full(total: float, free: str, asked: str, allocated: float) -> str:
    return (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of {total:.2f} GiB of which {free} is free. "
        f"Including non-PyTorch memory, this process has {total - 0.2:.2f} GiB memory in use. Of the allocated memory {allocated:.2f} GiB is allocated by "
        "PyTorch, and 210.00 MiB is reserved by PyTorch but unallocated.\n"
    )


ARGUMENTS = "[2026-03-02 09:01:12] server_args=ServerArgs(model_path='models/demo', host='0.0.0.0', port=30000, mem_fraction_static={share}, tp_size=1)\n"
LOADED = (
    "[2026-03-02 09:03:41 TP0] Load weight end. type=DemoForCausalLM, dtype=torch.bfloat16, avail mem=30.00 GB, mem usage={weights} GB.\n"
)
VLLM = "INFO 03-02 09:12:31 [gpu_model_runner.py:2602] Starting to load model models/demo...\n"
CAPTURE = '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 3446, in capture_model\n    self._capture_cudagraphs(\n'
RUN = '  File "/opt/venv/lib/python3.12/site-packages/vllm/v1/worker/gpu_model_runner.py", line 2100, in execute_model\n    model_output = self.model(\n'
STATS = "INFO 03-02 12:44:01 [loggers.py:127] Engine 000: Avg prompt throughput: 712.3 tokens/s, Avg generation throughput: 61.4 tokens/s, Running: 9 reqs\n"

SITUATIONS = [
    Situation("the share is set to what is free at the start", "ValueError: Free memory on device cuda:0 (26.11/39.39 GiB) on startup is less than desired GPU "
              "memory utilization (0.9, 35.45 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.\n",
              "card-occupied-at-start", "free-the-card"),
    Situation("a cache for one request: the length that the log itself estimates", "ValueError: To serve at least one request with the models's max seq len (65536), "
              "(9.00 GiB KV cache is needed, which is larger than the available KV cache memory (5.31 GiB). Based on the available memory, the estimated maximum "
              "model length is 38656. Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n",
              "kv-cache-too-small", "shorter-sequences", "--max-model-len 38656"),
    Situation("a cache for one request: the tokens that it holds", "ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can "
              "be stored in KV cache (22064). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.\n",
              "kv-cache-too-small", "shorter-sequences", "--max-model-len 22016"),
    Situation("not one block: a little more than the default", VLLM + "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
              "initializing the engine.\n", "kv-cache-too-small", "raise-serving-share", "--gpu-memory-utilization 0.95"),
    Situation("graphs after the cache: the share falls by what was lacking", VLLM + "non-default args: {'model': 'models/demo', 'gpu_memory_utilization': 0.95}\n" + CAPTURE +
              full(44.42, "51.31 MiB", "84.00 MiB", 43.10), "server-took-its-share-first", "lower-serving-share", "--gpu-memory-utilization 0.92"),
    Situation("a request after hours: the share falls by what was lacking", VLLM + "non-default args: {'model': 'models/demo', 'gpu_memory_utilization': 0.92}\n" + STATS +
              RUN + full(44.42, "1.02 GiB", "3.50 GiB", 40.10), "request-needs-more-than-is-left", "lower-serving-share", "--gpu-memory-utilization 0.85"),
    Situation("SGLang's graphs: the share falls by what was lacking", ARGUMENTS.format(share="0.9") + LOADED.format(weights="40.00") +
              "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 79.25 GiB of which 600.00 MiB is free.\n",
              "server-start-out-of-memory", "lower-serving-share", "--mem-fraction-static 0.87"),
    Situation("SGLang's graphs beside large weights: never below what they need", ARGUMENTS.format(share="0.95") + LOADED.format(weights="71.00") +
              "Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of 79.25 GiB of which 600.00 MiB is free.\n",
              "server-start-out-of-memory", "smaller-graphs", "--cuda-graph-max-bs 16"),
    Situation("the sampler's trial: half of the requests that the message names", VLLM + "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 "
              "dummy requests. Please try lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.\n",
              "server-start-out-of-memory", "fewer-slots", "--max-num-seqs 512"),
    Situation("SGLang takes requests back: more cache, not the allocator", ARGUMENTS.format(share="0.85") + "[2026-03-02 11:01:13 TP0] KV cache pool is full. Retract requests. "
              "#retracted_reqs: 12, #new_token_ratio: 0.6121 -> 1.0000\n", "requests-preempted", "raise-serving-share", "--mem-fraction-static 0.9"),
    Situation("vLLM puts requests back", VLLM + "WARNING 03-02 10:11:12 scheduler.py:1754] Sequence group 87 is preempted by PreemptionMode.RECOMPUTE mode because there is not "
              "enough KV cache space. This can affect the end-to-end performance. Increase gpu_memory_utilization or tensor_parallel_size to provide more KV cache memory. "
              "total_num_cumulative_preemption=51\n", "requests-preempted", "raise-serving-share", "--gpu-memory-utilization 0.95"),
    Situation("the prefill budget of Text Generation Inference is halved", "RuntimeError: Not enough memory to handle 6000 prefill tokens. You need to decrease "
              "`--max-batch-prefill-tokens`\n", "token-budget-does-not-fit", "smaller-token-budget", "--max-batch-prefill-tokens 2816"),
    Situation("a quantised model that accelerate sent to the CPU", "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit "
              "the quantized model.\n", "quantised-model-spills-to-the-cpu", "list-gpu-processes"),
    Situation("layers of llama.cpp do not fit", "llama_model_load: error loading model: unable to allocate CUDA0 buffer\n", "layers-do-not-fit", "part-of-model-in-host-memory",
              "-ngl fewer layers"),
    Situation("the context of llama.cpp does not fit", "llama_kv_cache_init: failed to allocate buffer for kv cache\n", "context-buffers-do-not-fit", "shorter-sequences", "-c"),
]  # fmt: skip


@pytest.mark.parametrize("case", SITUATIONS, ids=[case.says for case in SITUATIONS])
def test_what_comes_first(case: Situation) -> None:
    problem, fix, line = said_first(case.log)
    assert (problem, fix) == (case.problem, case.fix)
    assert case.line in (None, line)


@pytest.mark.parametrize("case", SITUATIONS, ids=[case.says for case in SITUATIONS])
def test_a_server_is_told_nothing_that_is_for_training(case: Situation) -> None:
    fixes = unique_fixes(oomdoctor.diagnose(case.log.encode()).findings)
    said = " ".join(setting.key for fix in fixes for setting in fix.settings)
    assert not [word for word in ("batch_size", "accumulation", "gradient", "loss", "expandable", "PYTORCH") if word in said]


SHARES = [
    ("what is free at the start, rounded down", {"event.utilization": "0.9", "event.free_bytes": 15 * GIB, "event.total_bytes": 24 * GIB}, None, 0.62),
    ("less by the request and some room", {"log.gpu_memory_utilization": 0.9, "event.requested_bytes": 3 * GIB, "event.free_bytes": GIB,
                                           "event.total_bytes": 50 * GIB}, None, 0.85),
    ("a small request still moves it", {"log.mem_fraction_static": "0.88", "event.requested_bytes": 1 << 20, "event.free_bytes": 0,
                                        "event.total_bytes": 80 * GIB}, None, 0.85),
    ("never below the weights and a cache", {"log.gpu_memory_utilization": 0.9, "event.requested_bytes": 9 * GIB, "event.free_bytes": GIB, "event.total_bytes": 50 * GIB,
                                             "log.weights_bytes": 40 * GIB}, None, 0.85),
    ("the server's own suggestion where nothing else is known", {"log.mem_fraction_static": 0.9, "log.suggested_share": "0.75"}, None, 0.75),
    ("a tenth less than its default", {}, 0.9, 0.8),
    ("nothing where its share is unknown", {}, None, None),
    ("nothing where the weights leave no choice", {"log.gpu_memory_utilization": 0.9, "event.total_bytes": 50 * GIB, "log.weights_bytes": 46 * GIB}, None, None),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "default", "share"), [pytest.param(*row[1:], id=row[0]) for row in SHARES])
def test_a_lower_share_lies_between_the_weights_and_what_was_lacking(
    facts: dict[str, object], default: float | None, share: float | None
) -> None:
    assert serving_share(facts, default).get("derived.lower_share") == share  # type: ignore[arg-type]


@pytest.mark.parametrize(("of_free", "above"), [
    pytest.param(False, True, id="a share of the whole card limits the weights too"),
    pytest.param(True, None, id="a share of what is free beside the weights does not"),
])  # fmt: skip
def test_a_process_is_above_a_share_that_limits_all_of_it(of_free: bool, above: bool | None) -> None:
    held: dict[str, Fact] = {"event.allocated_bytes": 23 * GIB, "event.total_bytes": 24 * GIB}
    assert serving_share(held, 0.8, of_free=of_free).get("derived.above_share") is above


RAISED = [
    ("by what one request lacks", {"log.gpu_memory_utilization": 0.9, "event.total_bytes": 40 * GIB, "event.kv_needed_bytes": 3 * GIB,
                                   "event.kv_available_bytes": 2 * GIB}, 0.94),
    ("never so far that nothing is left outside", {"log.gpu_memory_utilization": 0.9, "event.total_bytes": 40 * GIB, "event.kv_needed_bytes": 9 * GIB,
                                                   "event.kv_available_bytes": 2 * GIB}, None),
    ("a little where no figure says how far", {"log.mem_fraction_static": 0.9}, 0.94),
    ("to what servers take by default where somebody chose less", {"log.mem_fraction_static": 0.7}, 0.9),
    ("the server's own suggestion, as it is printed", {"log.gpu_memory_utilization": 0.85, "log.suggested_share": "0.8751"}, 0.8751),
    ("a suggestion above what is usual at most", {"log.gpu_memory_utilization": 0.93, "log.suggested_share": "0.9601"}, 0.9601),
    ("no suggestion of the whole card", {"log.gpu_memory_utilization": 0.97, "log.suggested_share": "1.0012"}, None),
    ("what one request lacks comes before a suggestion", {"log.gpu_memory_utilization": 0.9, "event.total_bytes": 40 * GIB, "event.kv_needed_bytes": 3 * GIB,
                                                          "event.kv_available_bytes": 2 * GIB, "log.suggested_share": "0.91"}, 0.94),
    ("by what was overdrawn, and a cache", {"log.gpu_memory_utilization": 0.8, "event.total_bytes": 40 * GIB, "event.kv_available_bytes": -GIB}, 0.88),
    ("not where the weights fill the card", {"log.mem_fraction_static": 0.9, "event.total_bytes": 24 * GIB, "log.weights_bytes": 23 * GIB}, None),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "share"), [pytest.param(*row[1:], id=row[0]) for row in RAISED])
def test_a_higher_share_holds_one_request(facts: dict[str, object], share: float | None) -> None:
    assert serving_share(facts, None).get("derived.higher_share") == share  # type: ignore[arg-type]


def _served(log: str) -> Diagnosis:
    return oomdoctor.diagnose(log.encode())


KNOWN = "non-default args: {'model': 'Qwen/Qwen2.5-7B-Instruct', 'gpu_memory_utilization': 0.9}\n" + VLLM


def test_a_server_that_had_answered_is_not_said_to_have_failed_at_its_start() -> None:
    served = _served(KNOWN + STATS + RUN + full(44.42, "1.02 GiB", "3.50 GiB", 38.10)).case.served
    assert served is not None and served.has_served


def test_advice_that_frees_nothing_is_left_out() -> None:
    for log in (
        KNOWN + STATS + RUN + full(44.42, "1.02 GiB", "3.50 GiB", 38.10),
        KNOWN + CAPTURE + full(44.42, "51.31 MiB", "84.00 MiB", 43.10),
    ):
        fixes = unique_fixes(_served(log).findings)
        assert fixes and all(fix.frees_bytes != 0 for fix in fixes)
