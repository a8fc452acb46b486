"""Each form of config: settings with their values and lines, whatever else the text holds."""

from __future__ import annotations

import pytest
from config_files import read
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.case.settings import Scalar, WrittenSetting
from oomdoctor.configs.readers.read import read_config

SCRIPT = """#!/bin/bash
# --per_device_train_batch_size 99 in a comment
BATCH=3
export CUDA_VISIBLE_DEVICES=0,1
HF_TOKEN=secret torchrun --nproc_per_node=2 --nnodes 2 \\
    src/train.py --stage sft --finetuning_type lora \\
    --per_device_train_batch_size $BATCH \\
    --gradient_accumulation_steps ${STEPS:-5} --output_dir "a b" --bf16
"""

READ: list[tuple[str, str, str, dict[str, Scalar]]] = [
    ("LLaMA-Factory", "a.yaml", "stage: sft\nfinetuning_type: lora\nquantization_bit: 4\ncutoff_len: 900\nper_device_train_batch_size: 2\ngradient_accumulation_steps: 6\ndisable_gradient_checkpointing: true\nflash_attn: fa2\n",
     {"method": "sft", "finetuning": "qlora", "load_bits": 4, "sequence_length": 900, "micro_batch": 2, "accumulation": 6, "gradient_checkpointing": False, "attention": "flash_attention_2"}),
    ("GLM-4", "a.yaml", "data_config:\n  train_file: t\nmax_input_length: 300\nmax_output_length: 200\nfreezeV: true\ntraining_args:\n  per_device_train_batch_size: 1\n  bf16: true\npeft_config:\n  peft_type: LORA\n  r: 6\n",
     {"sequence_length": 500, "freeze_vision": True, "micro_batch": 1, "precision": "bf16", "finetuning": "lora", "lora_rank": 6}),
    ("TrainingArguments as JSON", "a.json", '{"per_device_train_batch_size": 3, "fp16": true, "optim": "adafactor", "eval_strategy": "no", "fsdp": []}',
     {"micro_batch": 3, "precision": "fp16", "optimizer": "adafactor", "eval_strategy": "no", "fsdp": False}),
    ("TrainingArguments as they are printed", "a.txt", "TrainingArguments(\n_n_gpu=1,\nbf16=True,\neval_strategy=IntervalStrategy.STEPS,\ngradient_checkpointing=False,\noptim=OptimizerNames.ADAMW_BNB,\nper_device_train_batch_size=7,\n)\n",
     {"precision": "bf16", "eval_strategy": "steps", "gradient_checkpointing": False, "optimizer": "adamw_bnb", "micro_batch": 7}),
    ("DeepSpeed", "d.json", '{"train_micro_batch_size_per_gpu": "auto", "gradient_accumulation_steps": 2, "zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}, "bf16": {"enabled": true}}',
     {"accumulation": 2, "zero_stage": 3, "offload_params": "cpu", "precision": "bf16"}),
    ("accelerate", "a.yaml", "compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nmixed_precision: bf16\nnum_processes: 6\nfsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD\n  fsdp_offload_params: true\n  fsdp_version: 2\n",
     {"fsdp": True, "precision": "bf16", "world_size": 6, "fsdp_sharding": "FULL_SHARD", "fsdp_offload": True, "fsdp_version": 2}),
    ("Axolotl", "a.yml", "base_model: org/m\nmicro_batch_size: 2\ngradient_accumulation_steps: 3\nsequence_len: 1500\nsample_packing: true\nadapter: lora\nload_in_8bit: true\nbf16: auto\noptimizer: adamw_bnb_8bit\n",
     {"model": "org/m", "micro_batch": 2, "accumulation": 3, "sequence_length": 1500, "packing": True, "finetuning": "lora", "load_bits": 8, "optimizer": "adamw_bnb_8bit"}),
    ("torchtune", "t.yaml", "model:\n  _component_: torchtune.models.llama3_2.lora_llama3_2_3b\n  lora_rank: 12\ntokenizer:\n  max_seq_len: 700\nbatch_size: 2\ndtype: bf16\nenable_activation_checkpointing: True\n",
     {"model": "llama3_2_3b", "finetuning": "lora", "lora_rank": 12, "sequence_length": 700, "micro_batch": 2, "precision": "bf16", "weights": "bf16", "gradient_checkpointing": True}),
    ("ms-swift", "r.sh", "NPROC_PER_NODE=2 swift sft --model org/m --tuner_type lora --dataset d --torch_dtype bfloat16 --deepspeed zero3_offload --max_length 1200 --attn_impl flash_attn\n",
     {"model": "org/m", "finetuning": "lora", "precision": "bf16", "weights": "bf16", "zero_stage": 3, "offload_params": "cpu", "offload_optimizer": "cpu", "sequence_length": 1200, "attention": "flash_attention_2", "world_size": 2}),
    ("TRL", "a.yaml", "model_name_or_path: org/m\ndataset_name: d\nuse_peft: true\nmax_length: 800\npacking: true\n",
     {"model": "org/m", "finetuning": "lora", "sequence_length": 800, "packing": True}),
    ("vLLM", "s.sh", "CUDA_VISIBLE_DEVICES=1 vllm serve org/m -tp 2 --gpu-memory-utilization=0.8 --max-model-len 4000 --enforce-eager --kv-cache-dtype fp8\n",
     {"tensor_parallel": 2, "model": "org/m", "memory_share": 0.8, "max_model_len": 4000, "enforce_eager": True, "kv_cache_dtype": "fp8", "method": "serve", "visible_devices": "1"}),
    ("SGLang", "s.sh", "python3 -m sglang.launch_server --model-path org/m --mem-fraction-static 0.7 --context-length 3000 --tp 2\n",
     {"model": "org/m", "memory_share": 0.7, "max_model_len": 3000, "tensor_parallel": 2, "method": "serve"}),
    ("Megatron in ms-swift", "r.sh", "megatron sft --model org/m --micro_batch_size 2 --tensor_model_parallel_size 4 --expert_model_parallel_size 2 --recompute_granularity full --max_length 900\n",
     {"model": "org/m", "micro_batch": 2, "tensor_parallel": 4, "expert_parallel": 2, "gradient_checkpointing": True, "sequence_length": 900, "finetuning": "full"}),
    ("Megatron in ms-swift with adapters", "r.sh", "megatron sft --model org/m --tuner_type lora --micro_batch_size 2 --recompute_granularity selective\n",
     {"model": "org/m", "micro_batch": 2, "gradient_checkpointing": False, "finetuning": "lora"}),
    ("Megatron-LM", "r.sh", "torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 2 --global-batch-size 64 --seq-length 900 --bf16 --use-distributed-optimizer "
     "--tensor-model-parallel-size 2 --sequence-parallel --recompute-granularity full --recompute-method block --recompute-num-layers 3 --exp-avg-dtype fp8 "
     "--use-precision-aware-optimizer --main-grads-dtype bf16 --optimizer-cpu-offload\n",
     {"finetuning": "full", "micro_batch": 2, "global_batch": 64, "sequence_length": 900, "precision": "bf16", "shards_states": True, "tensor_parallel": 2,
      "sequence_parallel": True, "gradient_checkpointing": True, "recompute_method": "block", "recompute_layers": 3, "first_moment": "fp8",
      "main_gradients": "bf16", "main_weights": "remainder", "offload_optimizer": "cpu", "world_size": 8}),
    ("Megatron-LM with what takes back what it says", "r.sh", "python pretrain_gpt.py --micro-batch-size 2 --fp16 --recompute-activations --recompute-granularity full "
     "--optimizer-cpu-offload --optimizer-offload-fraction 0.5 --use-precision-aware-optimizer\n",
     {"finetuning": "full", "micro_batch": 2, "precision": "fp16", "gradient_checkpointing": False, "offload_optimizer": "none", "main_weights": "fp32"}),
    ("Megatron-LM sharded by its FSDP", "r.sh", "python pretrain_gpt.py --micro-batch-size 2 --bf16 --use-megatron-fsdp\n",
     {"finetuning": "full", "micro_batch": 2, "precision": "bf16", "fsdp": True, "fsdp_version": 2, "main_gradients": "bf16"}),
    ("Megatron-LM sharded by its FSDP in part", "r.sh", "python pretrain_gpt.py --micro-batch-size 2 --bf16 --use-megatron-fsdp --data-parallel-sharding-strategy optim\n",
     {"finetuning": "full", "micro_batch": 2, "precision": "bf16", "fsdp": False, "fsdp_version": 2, "main_gradients": "bf16"}),
    ("Megatron-LM's file", "r.yaml", "language_model:\n  num_layers: 24\n  recompute_granularity: full\nmodel_parallel:\n  tensor_model_parallel_size: 4\n  bf16: True\nmicro_batch_size: 3\n",
     {"finetuning": "full", "gradient_checkpointing": True, "tensor_parallel": 4, "precision": "bf16", "micro_batch": 3}),
    ("a script of the name of GLM-4's that takes options", "r.sh", "torchrun --nproc_per_node 2 finetune.py --model_name_or_path org/m --per_device_train_batch_size 3 --output_dir o\n",
     {"model": "org/m", "micro_batch": 3, "world_size": 2}),
    ("FSDP among the options of a Trainer", "r.sh", "torchrun --nproc_per_node 4 t.py --fsdp \"full_shard auto_wrap\" --fsdp_transformer_layer_cls_to_wrap L --model_name_or_path org/m --per_device_train_batch_size 3\n",
     {"fsdp": True, "model": "org/m", "micro_batch": 3, "world_size": 4}),
    ("vLLM's image", "r.sh", "docker run --gpus all -v ~/c:/c -p 8000:8000 vllm/vllm-openai:latest --model org/m --max-model-len 3000\n",
     {"method": "serve", "model": "org/m", "max_model_len": 3000}),
    ("TGI's image", "r.sh", "docker run --gpus all --shm-size 1g -p 8080:80 -v $volume:/data ghcr.io/huggingface/text-generation-inference:3.3.4 "
     "--model-id org/m --max-total-tokens 3000 --num-shard 2 --cuda-memory-fraction 0.7\n",
     {"method": "serve", "model": "org/m", "max_model_len": 3000, "tensor_parallel": 2, "memory_share": 0.7, "server_version": "3.3.4"}),
    ("llama.cpp's image", "r.sh", "docker run ghcr.io/ggml-org/llama.cpp:server-cuda -m /models/m-Q4_K_M.gguf -c 3000 -ngl 30\n",
     {"method": "serve", "model": "/models/m-Q4_K_M.gguf", "max_model_len": 3000, "gpu_layers": 30}),
    ("Ollama with variables before it", "r.sh", "OLLAMA_CONTEXT_LENGTH=3000 OLLAMA_KV_CACHE_TYPE=q8_0 OLLAMA_NUM_PARALLEL=2 ollama run qwen3:8b\n",
     {"method": "serve", "model": "qwen3:8b", "max_model_len": 3000, "max_num_seqs": 2, "kv_cache_dtype": "q8_0", "value_cache_dtype": "q8_0"}),
    ("llama.cpp with experts on the host", "r.sh", "./build/bin/llama-server -hf org/m-GGUF:Q4_K_M --n-cpu-moe 20 -ot 'exps=CPU' -ctk q8_0 -fa on\n",
     {"method": "serve", "model": "org/m-GGUF:Q4_K_M", "host_experts": 20, "tensor_override": "exps=CPU", "kv_cache_dtype": "q8_0"}),
    ("LMDeploy with a cache of eight bits", "r.sh", "lmdeploy serve api_server org/m --cache-max-entry-count 0.6 --tp 2 --session-len 3000 --quant-policy 8\n",
     {"method": "serve", "model": "org/m", "max_model_len": 3000, "tensor_parallel": 2, "memory_share": 0.6, "kv_cache_dtype": "int8"}),
    ("LMDeploy told not to pack its cache", "r.sh", "lmdeploy serve api_server org/m --quant-policy 0\n",
     {"method": "serve", "model": "org/m", "kv_cache_dtype": "auto"}),
    ("TensorRT-LLM", "r.sh", "trtllm-serve org/m --tp_size 2 --max_num_tokens 4096 --kv_cache_free_gpu_memory_fraction 0.8\n",
     {"method": "serve", "model": "org/m", "tensor_parallel": 2, "max_batched_tokens": 4096, "memory_share": 0.8}),
    ("TensorRT-LLM with the subcommand in its image", "r.sh", "docker run --gpus all nvcr.io/nvidia/tensorrt-llm/release:1.0.0 trtllm-serve serve org/m --max_seq_len 3000\n",
     {"method": "serve", "model": "org/m", "max_model_len": 3000, "server_version": "1.0.0"}),
    ("a server that is told an option first", "r.sh", "trtllm-serve --max_seq_len 3000\n", {"method": "serve", "max_model_len": 3000}),
    ("a server in a container", "r.sh", "docker run --rm -e A=1 org/image:1 python3 -m sglang.launch_server --model-path org/m --context-length 3000\n",
     {"method": "serve", "model": "org/m", "max_model_len": 3000}),
    ("a script", "r.sh", SCRIPT,
     {"method": "sft", "finetuning": "lora", "micro_batch": 3, "accumulation": 5, "precision": "bf16", "visible_devices": "0,1", "world_size": 4, "global_batch": 60}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "wanted"), [pytest.param(*row[1:], id=row[0]) for row in READ])
def test_the_settings_of(name: str, text: str, wanted: dict[str, Scalar]) -> None:
    assert read({name: text}).settings.known() == wanted


@pytest.mark.parametrize(("written", "tokens"), [
    pytest.param("25.6k", 25600, id="a small letter is a thousand"),
    pytest.param("8K", 8192, id="a capital is 1024"),
    pytest.param("1M", 1 << 20, id="millions"),
    pytest.param("32,000", 32000, id="a comma"),
    pytest.param("auto", None, id="the server's choice is no number"),
    pytest.param("8kk", None, id="no number"),
])  # fmt: skip
def test_tokens_as_vllm_reads_them(written: str, tokens: int | None) -> None:
    assert read({"s.sh": f"vllm serve org/m --max-model-len {written}\n"}).settings.max_model_len == tokens


@pytest.mark.parametrize(
    ("framework", "row"),
    list(
        zip(
            [
                "llamafactory",
                "glm4",
                "transformers",
                "transformers",
                "deepspeed",
                "accelerate",
                "axolotl",
                "torchtune",
                "ms-swift",
                "trl",
                "vllm",
                "sglang",
                "ms-swift",
                "ms-swift",
                "megatron-lm",
                "megatron-lm",
                "megatron-lm",
                "megatron-lm",
                "megatron-lm",
                "transformers",
                "transformers",
                "vllm",
                "text-generation-inference",
                "llama.cpp",
                "ollama",
                "llama.cpp",
                "lmdeploy",
                "lmdeploy",
                "tensorrt-llm",
                "tensorrt-llm",
                "tensorrt-llm",
                "sglang",
                "llamafactory",
            ],
            READ,
        )
    ),
    ids=[row[0] for row in READ],
)
def test_the_framework_is_found_and_the_reason_said(framework: str, row: tuple[str, str, str, dict[str, Scalar]]) -> None:
    found = read({row[1]: row[2]})
    assert found.framework == framework
    assert found.reason


def test_a_framework_that_nothing_shows_stays_unknown() -> None:
    assert read({"a.yaml": "colour: red\nsize: 3\n"}).framework is None


LINES = [
    ("a nested key", "a.yaml", "# top\nmodel:\n\n  name: x\n", "model.name", 4),
    ("a list", "a.yaml", "a: 1\ntargets:\n  - q\n  - v\n", "targets", 2),
    ("a block in a list", "a.yaml", "datasets:\n  - path: d\n    type: t\n", "datasets.0.type", 3),
    ("after a Windows line end", "a.yaml", "a: 1\r\nb: 2\r\n", "b", 2),
    ("after a mistake", "a.yaml", "a: 1\nb: [1, 2\nc: 3\nd: 4\n", "d", 4),
    ("JSON", "a.json", '{\n "a": {\n  "b": 1\n }\n}', "a.b", 3),
    ("an option after a continuation", "r.sh", "python t.py \\\n  --a 1 \\\n  --b 2\n", "--b", 3),
    ("a variable", "r.sh", "\n\nexport CUDA_VISIBLE_DEVICES=0\n", "CUDA_VISIBLE_DEVICES", 3),
    ("a JSON inside an option", "r.sh", "python t.py \\\n --kwargs '{\"x\": 1}'\n", "--kwargs.x", 2),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "key", "line"), [pytest.param(*row[1:], id=row[0]) for row in LINES])
def test_every_setting_keeps_its_line(name: str, text: str, key: str, line: int) -> None:
    assert [one.line for one in everything(name, text.encode()) if one.key == key] == [line]


def test_secrets_of_a_script_are_not_kept() -> None:
    assert not [one for one in everything("r.sh", SCRIPT.encode()) if "secret" in str(one.value)]


def test_nothing_of_a_script_is_run_or_guessed() -> None:
    given = everything("r.sh", b"python t.py --a $(rm -rf x) --per_device_train_batch_size $UNKNOWN\n")
    assert [one.value for one in given if one.name == "per_device_train_batch_size"] == [None]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(f"{b}: &{b} [{','.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi")), id="a billion laughs"),
        pytest.param("[" * 100_000, id="brackets without end"),
        pytest.param("{" * 100_000, id="braces without end"),
        pytest.param("a: " * 20_000, id="one line of colons"),
        pytest.param("- " * 50_000, id="one line of dashes"),
        pytest.param("x: 1\n" * 200_000, id="a million bytes"),
        pytest.param("'" * 100_000, id="quotes"),
        pytest.param("--a=" * 100_000, id="options"),
        pytest.param("\\\n" * 100_000, id="continuations"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["a.yaml", "a.json", "a.sh", "a.txt"])
def test_a_hostile_file_costs_little(name: str, text: str) -> None:
    assert len(everything(name, text.encode())) <= 20_001


def everything(name: str, data: bytes) -> list[WrittenSetting]:
    return [one for sheet in read_config(name, data) or [] for one in sheet.written]


NAMES = st.sampled_from(["a.yaml", "a.json", "a.sh", "a.txt", "a"])
PIECES = st.sampled_from([
    "per_device_train_batch_size", "zero_optimization", "stage", "bf16", "deepspeed", "base_model", "training_args", ": ", ":", "\n", "\n  ", "- ",
    "{", "}", "[", "]", ",", '"', "'", "true", "3", "auto", "--", "=", " ", "\\\n", "$", "export ", "PYTORCH_CUDA_ALLOC_CONF=", "expandable_segments",
    "torchrun ", "vllm serve ", "&a ", "*a", "<<: *a", "#", "\t", "|", ">", "!", "\x00", "\x1b[31m", "显存", "\ufeff", "%", "---\n", "...",
])  # fmt: skip


@given(NAMES, st.one_of(st.binary(max_size=400), st.lists(PIECES, max_size=60).map(lambda parts: "".join(parts).encode())))
def test_any_bytes_are_a_result_and_places_are_inside_of_the_file(name: str, data: bytes) -> None:
    found = read({name: data})
    lines = 1 + data.count(b"\n") + data.count(b"\r")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return
    assert all(1 <= one.line <= lines for one in found.written)
    assert all(1 <= one.line <= lines for one in found.issues)
