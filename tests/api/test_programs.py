"""The program that ran is known by what only it shows, its own keys are advised, and a name alone names nothing."""

from __future__ import annotations

from functools import cache

import pytest

import oomdoctor
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.pack import Pack, load_pack

NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 23.65 GiB of which 310.06 MiB is "
    "free. Including non-PyTorch memory, this process has 23.33 GiB memory in use. Of the allocated memory 22.61 GiB is allocated by "
    "PyTorch, and 214.11 MiB is reserved by PyTorch but unallocated."
)
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 23.65 GiB total capacity; 22.61 GiB already allocated; "
    "310.06 MiB free; 22.82 GiB reserved in total by PyTorch)"
)
NPU = (
    "RuntimeError: NPU out of memory. Tried to allocate 1.50 GiB (NPU 0; 60.97 GiB total capacity; 58.61 GiB already allocated; "
    "58.61 GiB current active; 310.06 MiB free; 59.82 GiB reserved in total by PyTorch)"
)
XLA = "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 6442450944 bytes."
LINEAR = '  File "/opt/py/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 125, in forward\n    return F.linear(input, self.weight)'


def frame(path: str, function: str = "forward", line: int = 211) -> str:
    return f'Traceback (most recent call last):\n  File "{path}", line {line}, in {function}\n{LINEAR}'


SITE = "/opt/py/lib/python3.11/site-packages"
PROGRAMS = [
    # (what is shown, the message, the framework, a key that is among the first three measures)
    ("megatron-lm", "a frame", frame("/opt/Megatron-LM/megatron/core/transformer/mlp.py"), NEW, "--micro-batch-size"),
    ("megatron-lm", "a command", "torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 4 --seq-length 8192 --bf16", OLD, "--micro-batch-size"),
    ("megatron-lm", "its own line", "[before the start of training step] datetime: 2026-03-01 08:00:00", NEW, "--micro-batch-size"),
    ("torchtitan", "a frame", frame(f"{SITE}/torchtitan/models/llama3/model.py"), NEW, "training.local_batch_size"),
    ("torchtitan", "its own line", "[titan] 2026-03-01 08:00:00,122 - root - INFO - Training starts at step 1", NEW, "training.local_batch_size"),
    ("torchtune", "a frame", frame(f"{SITE}/torchtune/modules/transformer.py"), NEW, "batch_size"),
    ("torchtune", "a command", "$ tune run lora_finetune_single_device --config llama3_1/8B_lora_single_device", OLD, "batch_size"),
    ("verl", "a frame", frame("/root/verl/verl/workers/fsdp_workers.py", "update_actor"), NEW, "actor_rollout_ref."),
    ("verl", "a command", "python3 -m verl.trainer.main_ppo data.train_batch_size=256 actor_rollout_ref.model.path=local/model", NEW, "actor_rollout_ref."),
    ("verl", "a worker", f"(WorkerDict pid=3121) {NEW}", "", "actor_rollout_ref."),
    ("openrlhf", "a frame", frame(f"{SITE}/openrlhf/trainer/sft_trainer.py", "fit"), NEW, "--micro_train_batch_size"),
    ("openrlhf", "a command", "deepspeed --module openrlhf.cli.train_sft\npython -m openrlhf.cli.train_sft --micro_train_batch_size 4", NEW, "--micro_train_batch_size"),
    ("nemo", "a frame", frame("/opt/NeMo/nemo/collections/nlp/models/language_modeling/megatron_gpt_model.py"), NEW, "model.micro_batch_size"),
    ("nemo", "its own line", "[NeMo I 2026-03-01 08:00:00 exp_manager:396] Experiments will be logged at /results", OLD, "model.micro_batch_size"),
    ("kohya", "a frame on Windows", frame(r"C:\ai\kohya_ss\sd-scripts\library\sdxl_original_unet.py"), NEW, "--train_batch_size"),
    ("kohya", "a command", "accelerate launch --num_cpu_threads_per_process 2 flux_train_network.py --network_dim 32", OLD, "--train_batch_size"),
    ("kohya", "its own line", "running training / 学習開始\n  num epochs / epoch数: 10", NEW, "--train_batch_size"),
    ("diffusers-train", "a command", "accelerate launch train_dreambooth_lora_sdxl.py --instance_data_dir dog --resolution 1024", NEW, "--train_batch_size"),
    ("diffusers-train", "a frame", frame("/root/diffusers/examples/text_to_image/train_text_to_image_lora.py", "main"), OLD, "--train_batch_size"),
    ("ultralytics", "a frame", frame(f"{SITE}/ultralytics/nn/modules/conv.py"), NEW, "batch"),
    ("ultralytics", "its banner", "Ultralytics 8.4.12 🚀 Python-3.11.9 torch-2.6.0+cu124 CUDA:0 (NVIDIA GeForce RTX 4090, 24210MiB)", NEW, "batch"),
    ("detectron2", "a frame", frame("/home/u/detectron2/detectron2/modeling/backbone/fpn.py"), OLD, "SOLVER.IMS_PER_BATCH"),
    ("detectron2", "its own line", "[03/01 08:00:00 d2.engine.train_loop]: Starting training from iteration 0", NEW, "SOLVER.IMS_PER_BATCH"),
    ("mmengine", "a frame", frame(f"{SITE}/mmdet/models/detectors/two_stage.py", "loss"), OLD, "train_dataloader.batch_size"),
    ("mmengine", "its own line", "03/01 08:00:00 - mmengine - INFO - Epoch(train)  [1][50/1200]", NEW, "train_dataloader.batch_size"),
    ("xtuner", "a command", "$ xtuner train internlm2_chat_7b_qlora_oasst1_e3 --deepspeed deepspeed_zero2", NEW, "batch_size"),
    ("xtuner", "a frame", frame(f"{SITE}/xtuner/model/sft.py"), OLD, "batch_size"),
    ("lightning", "a frame", frame(f"{SITE}/pytorch_lightning/trainer/trainer.py", "fit"), OLD, "DataLoader(batch_size"),
    ("lightning", "its own line", "LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0]", NEW, "DataLoader(batch_size"),
    ("keras", "a frame", frame(f"{SITE}/keras/src/layers/core/dense.py", "call"), "ResourceExhaustedError: {{function_node x}} OOM when allocating tensor with shape[64,512,128,128] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc [Op:Conv2D]", "Model.fit(batch_size"),
    ("maxtext", "a command", "python3 -m MaxText.train MaxText/configs/base.yml run_name=x per_device_batch_size=8", XLA, "per_device_batch_size"),
    ("maxtext", "its own line", "Config param per_device_batch_size: 8.0", XLA, "per_device_batch_size"),
    ("vllm-ascend", "a frame", frame(f"{SITE}/vllm_ascend/worker/model_runner_v1.py", "profile_run"), NPU, "--max-num-seqs"),
    ("text-generation-inference", "a command", "text-generation-launcher --model-id local/model --port 8080", NEW, "--max-batch-prefill-tokens"),
    ("text-generation-inference", "a frame", frame(f"{SITE}/text_generation_server/models/flash_causal_lm.py", "warmup"), NEW, "--max-batch-prefill-tokens"),
    ("tensorrt-llm", "a command", "trtllm-serve local/model --max_batch_size 256 --tp_size 2", NEW, "--kv_cache_free_gpu_memory_fraction"),
    ("tensorrt-llm", "its own line", "[03/01/2026-08:00:00] [TRT-LLM] [I] Rank 0 run model", NEW, "--kv_cache_free_gpu_memory_fraction"),
    ("lmdeploy", "a command", "lmdeploy serve api_server local/model --tp 2", NEW, "--cache-max-entry-count"),
    ("lmdeploy", "a frame", frame(f"{SITE}/lmdeploy/pytorch/engine/model_agent.py", "warmup"), NEW, "--cache-max-entry-count"),
    ("ollama", "its own line", 'time=2026-03-01T08:00:00.1Z level=INFO source=sched.go:714 msg="new model will fit"', "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 7605.33 MiB on device 0: cudaMalloc failed: out of memory", "OLLAMA_CONTEXT_LENGTH"),
    ("comfyui", "a frame on Windows", frame(r"D:\ComfyUI_windows_portable\ComfyUI\comfy\ldm\flux\model.py"), NEW, "--lowvram"),
    ("stable-diffusion-webui", "its own line", "Launching Web UI with arguments: --xformers --no-half-vae", OLD, "--medvram"),
    ("sd-webui-forge", "its own line", "[Memory Management] Target: KModel, Free GPU: 7012.15 MB, Model Require: 6246.84 MB", NEW, "--always-low-vram"),
    ("mlx", "a command", "python -m mlx_lm.lora --model local/model --train --data data", "libc++abi: terminating due to uncaught exception of type std::runtime_error: [METAL] Command buffer execution failed: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", "--batch-size"),
    ("whisper", "a frame", frame(f"{SITE}/whisper/transcribe.py", "transcribe"), NEW, "--model"),
    ("trl", "a frame", frame(f"{SITE}/trl/trainer/sft_trainer.py", "compute_loss"), NEW, "per_device_train_batch_size"),
    ("transformers", "a frame", frame(f"{SITE}/transformers/trainer.py", "training_step"), NEW, "per_device_train_batch_size"),
    ("transformers", "its progress", "{'loss': 1.21, 'grad_norm': 0.44, 'learning_rate': 9.1e-05, 'epoch': 0.31}", NEW, "per_device_train_batch_size"),
    ("llama-cookbook", "a command", "torchrun --nnodes 1 --nproc_per_node 4 finetuning.py --enable_fsdp --use_peft --peft_method lora --batch_size_training 4", NEW, "--batch_size_training"),
    ("llama-cookbook", "a frame", frame("/root/llama-recipes/src/llama_recipes/utils/train_utils.py", "train"), OLD, "--batch_size_training"),
    ("llama-cookbook", "its own line", "Max CUDA memory allocated was 21 GB\nMax CUDA memory reserved was 23 GB", NEW, "--batch_size_training"),
    ("glm4", "a command", "OMP_NUM_THREADS=1 torchrun --standalone --nproc_per_node 4 finetune_hf.py data/ THUDM/glm-4-9b-chat configs/lora.yaml", NEW, "training_args.per_device_train_batch_size"),
    ("ms-swift", "a frame", frame(f"{SITE}/swift/llm/train/sft.py", "train"), NEW, "--per_device_train_batch_size"),
    ("ms-swift", "a command", "swift sft --model local/model --train_type lora --dataset a.jsonl", NEW, "--per_device_train_batch_size"),
    ("unsloth", "its own line", "Unsloth: Will smartly offload gradients to save VRAM!", NEW, "SFTConfig(per_device_train_batch_size"),
    ("axolotl", "a frame", frame(f"{SITE}/axolotl/train.py", "train"), NEW, "micro_batch_size"),
    ("axolotl", "a command", "axolotl train config.yaml", OLD, "micro_batch_size"),
    ("llamafactory", "a command", "llamafactory-cli train examples/train_lora/llama3_lora_sft.yaml", NEW, "per_device_train_batch_size"),
    ("llamafactory", "a frame", frame("/root/LLaMA-Factory/src/llamafactory/train/sft/trainer.py", "compute_loss"), NEW, "per_device_train_batch_size"),
    ("fastchat", "a command", "torchrun --nproc_per_node=4 fastchat/train/train_mem.py --model_name_or_path local/model --bf16 True", OLD, "--per_device_train_batch_size"),
    ("alpaca-lora", "its own line", "Training Alpaca-LoRA model with params:\nbase_model: local/llama-7b", OLD, "--micro_batch_size"),
    ("deepspeed-chat", "a frame", frame("/root/DeepSpeedExamples/applications/DeepSpeed-Chat/training/utils/model/reward_model.py"), OLD, "--per_device_train_batch_size"),
    ("litgpt", "a command", "litgpt finetune_lora checkpoints/x --train.micro_batch_size 4", NEW, "--train.micro_batch_size"),
    ("litgpt", "a frame", frame(f"{SITE}/litgpt/model.py"), NEW, "--train.micro_batch_size"),
    ("nanogpt", "its own line", "tokens per iteration will be: 491,520", NEW, "--batch_size"),
    ("fairseq", "its own line", "2026-03-01 08:00:00 | INFO | fairseq_cli.train | training on 1 devices (GPUs/TPUs)", OLD, "--max-tokens"),
    ("fairseq", "a command", "fairseq-train data-bin --arch transformer --max-tokens 8192", OLD, "--max-tokens"),
    ("stable-audio-tools", "a frame", frame(f"{SITE}/stable_audio_tools/models/dit.py"), NEW, "--batch-size"),
    ("paddlenlp", "a frame", frame(f"{SITE}/paddlenlp/trainer/trainer.py", "training_step"), "SystemError: ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 1.500000GB memory on GPU 0, 22.610000GB memory has been allocated and available memory is only 310.000000MB.", "per_device_train_batch_size"),
    ("mindformers", "a frame", frame(f"{SITE}/mindformers/models/llama/llama.py", "construct"), "RuntimeError: Device(id:0) memory isn't enough and alloc failed, kernel name: Default/MatMul-op12, alloc size: 1073741824B.", "runner_config.batch_size"),
]  # fmt: skip


@cache
def pack() -> Pack:
    return load_pack()


def diagnosed(log: str) -> Diagnosis:
    return oomdoctor.diagnose(log)


def own(framework: str) -> set[str]:
    """The frameworks whose keys a run of this one knows: its own, those that it takes over, layers below it and the environment."""
    record = next(record for record in pack().frameworks if record.framework == framework)
    layers = {below.framework for below in pack().frameworks if below.layer or below.always}
    return {framework, *record.falls_back_to, *layers}


@pytest.mark.parametrize(
    ("name", "shown", "message", "key"),
    [pytest.param(name, text, message, key, id=f"{name}: {what}") for name, what, text, message, key in PROGRAMS],
)
def test_a_program_is_known_and_its_keys_come_first(name: str, shown: str, message: str, key: str) -> None:
    found = diagnosed(f"{shown}\n{message}\n")
    settings = [setting for finding in found.findings for fix in finding.fixes for setting in fix.settings]
    assert found.case.facts.get("log.framework") == name
    assert {setting.framework for setting in settings} <= own(name)
    assert any(setting.key.startswith(key) for finding in found.findings for fix in finding.fixes[:4] for setting in fix.settings)


@pytest.mark.parametrize("words", [
    pytest.param("Has anybody tried this with Megatron-LM, verl, torchtitan or OpenRLHF instead?", id="prose"),
    pytest.param("kohya, ComfyUI and the Stable Diffusion web UI need less memory, people say.", id="prose on pictures"),
    pytest.param("torchtune                 0.6.1\nlitgpt                    0.5.13\nverl                      0.5.0\nunsloth                   2026.1.1", id="a list of packages"),
    pytest.param("Requirement already satisfied: axolotl in /opt/py/lib/python3.11/site-packages (0.9.2)", id="pip"),
    pytest.param("Collecting unsloth==2026.1.1\n  Downloading unsloth-2026.1.1-py3-none-any.whl", id="a download"),
    pytest.param('  File "/home/u/verl-notes/torchtune_try/train.py", line 12, in <module>\n    main()', id="folders of a user"),
    pytest.param('  File "/data/vllm-env/lib/python3.11/site-packages/torch/nn/functional.py", line 12, in linear', id="an environment named after a server"),
    pytest.param('  File "/home/u/envs/llamafactory/lib/python3.11/site-packages/torch/nn/functional.py", line 12, in linear', id="an environment named after a trainer"),
    pytest.param("cd /opt/LLaMA-Factory && ls", id="a folder that is listed"),
    pytest.param("Cloning into 'Megatron-LM'...", id="git"),
    pytest.param("see https://github.com/kohya-ss/sd-scripts/issues and https://docs.vllm.ai/en/latest/", id="addresses"),
    pytest.param("loading /models/unsloth/Llama-3.2-1B-Instruct-bnb-4bit", id="the name of a model"),
    pytest.param("wandb: Syncing run torchtitan-llama3-try", id="the name of a run"),
])  # fmt: skip
@pytest.mark.parametrize("message", [NEW, OLD], ids=["newer torch", "older torch"])
def test_a_name_alone_names_no_program_and_no_key_is_shown(words: str, message: str) -> None:
    found = diagnosed(f"{words}\n{message}\n")
    shown = {setting.framework for finding in found.findings for fix in finding.fixes for setting in fix.settings}
    assert found.case.facts.get("log.framework") is None
    assert shown <= {record.framework for record in pack().frameworks if record.layer or record.always}


@pytest.mark.parametrize(("shown", "name"), [
    pytest.param(frame(f"{SITE}/verl/workers/actor/dp_actor.py") + f'\n  File "{SITE}/vllm/v1/engine/core.py", line 9, in run', "verl", id="a trainer with a server inside"),
    pytest.param(frame(f"{SITE}/trl/trainer/grpo_trainer.py") + f'\n  File "{SITE}/transformers/trainer.py", line 9, in train', "trl", id="a trainer on the Trainer"),
    pytest.param(frame("/root/LLaMA-Factory/src/llamafactory/train/sft/workflow.py") + f'\n  File "{SITE}/transformers/trainer.py", line 9, in train', "llamafactory", id="LLaMA-Factory on the Trainer"),
    pytest.param(frame(f"{SITE}/swift/llm/train/sft.py") + f'\n  File "{SITE}/trl/trainer/sft_trainer.py", line 9, in train', "ms-swift", id="ms-swift on TRL"),
    pytest.param(frame(f"{SITE}/vllm_ascend/worker/worker.py") + f'\n  File "{SITE}/vllm/v1/engine/core.py", line 9, in run', "vllm-ascend", id="vLLM on Ascend"),
    pytest.param(frame("/opt/NeMo/nemo/lightning/run.py") + '\n  File "/opt/Megatron-LM/megatron/core/transformer/mlp.py", line 9, in forward', "nemo", id="NeMo on Megatron"),
    pytest.param(frame("/root/unsloth_compiled_cache/UnslothSFTTrainer.py") + f'\n  File "{SITE}/trl/trainer/sft_trainer.py", line 9, in train', "unsloth", id="Unsloth on TRL"),
])  # fmt: skip
def test_of_several_programs_the_outermost_is_the_one_that_a_person_edits(shown: str, name: str) -> None:
    assert diagnosed(f"{shown}\n{NEW}\n").case.facts.get("log.framework") == name


SERVERS = (
    "vllm-ascend",
    "text-generation-inference",
    "tensorrt-llm",
    "lmdeploy",
    "ollama",
    "comfyui",
    "stable-diffusion-webui",
    "sd-webui-forge",
    "whisper",
)
TRAINING = {
    "micro_batch",
    "accumulation",
    "gradient_checkpointing",
    "fused_cross_entropy",
    "zero_stage",
    "optimizer",
    "lora_rank",
    "eval_batch",
}


@pytest.mark.parametrize(("shown", "message"), [
    pytest.param(text, message, id=f"{name}: {what}") for name, what, text, message, _ in PROGRAMS if name in SERVERS
])  # fmt: skip
def test_a_program_that_only_answers_gets_no_advice_for_training(shown: str, message: str) -> None:
    found = diagnosed(f"{shown}\n{message}\n")
    assert not {setting.sets for finding in found.findings for fix in finding.fixes for setting in fix.settings} & TRAINING


@pytest.mark.parametrize(("shown", "message"), [
    pytest.param(text, message, id=f"{name}: {what}") for name, what, text, message, _ in PROGRAMS if name in ("kohya", "diffusers-train", "ultralytics", "detectron2", "mmengine")
])  # fmt: skip
def test_a_trainer_of_pictures_gets_no_advice_on_tokens(shown: str, message: str) -> None:
    found = diagnosed(f"{shown}\n{message}\n")
    fixes = {fix.id for finding in found.findings for fix in finding.fixes}
    assert not fixes & {"shorter-sequences", "fused-cross-entropy", "packing-and-length-grouping", "quantise-4bit-8bit"}
    assert "smaller-training-pictures" in fixes


SAVING = f'  File "{SITE}/transformers/trainer.py", line 3820, in save_model\n'


@pytest.mark.parametrize(("shown", "keys"), [
    pytest.param(SAVING + f'  File "{SITE}/torch/distributed/fsdp/_state_dict_utils.py", line 716, in _post_state_dict_hook', {"FullStateDictConfig(offload_to_cpu)", "FullStateDictConfig(rank0_only)"}, id="FSDP gathers the whole state"),
    pytest.param(SAVING + f'  File "{SITE}/deepspeed/runtime/engine.py", line 3550, in _zero3_consolidated_16bit_state_dict', {"zero_optimization.stage3_gather_16bit_weights_on_model_save"}, id="ZeRO-3 gathers it with a key of its own"),
    pytest.param(f'  File "/root/LLaMA-Factory/src/llamafactory/train/tuner.py", line 155, in export_model\n    model.save_pretrained(\n  File "{SITE}/peft/tuners/lora/layer.py", line 620, in merge', {"export_device"}, id="an adapter is merged"),
])  # fmt: skip
def test_what_saves_is_told_in_its_own_keys(shown: str, keys: set[str]) -> None:
    found = diagnosed(f"{shown}\n{NEW}\n")
    assert {setting.key for setting in found.findings[0].fixes[0].settings} == keys


LOADS = "Loading checkpoint shards:  40%|####      | 2/5 [00:09<00:13,  4.61s/it]\n" + frame(
    f"{SITE}/transformers/modeling_utils.py", "from_pretrained"
)


@pytest.mark.parametrize("shown", [
    pytest.param("llamafactory-cli train --model_name_or_path local/base-14b --quantization_bit 4 --finetuning_type lora", id="4 bit are set"),
    pytest.param("llamafactory-cli train --model_name_or_path local/base-14b-GPTQ-Int4 --finetuning_type lora", id="the name says GPTQ"),
    pytest.param("llamafactory-cli train --model_name_or_path local/base-14b-AWQ --finetuning_type lora", id="the name says AWQ"),
])  # fmt: skip
def test_what_is_quantised_is_told_neither_four_bit_nor_sixteen(shown: str) -> None:
    found = diagnosed(f"{shown}\n{LOADS}\n{NEW}\n")
    assert not {fix.id for finding in found.findings for fix in finding.fixes} & {"quantise-4bit-8bit", "half-precision"}


def test_what_is_in_sixteen_bit_is_told_four() -> None:
    found = diagnosed(f"llamafactory-cli train --model_name_or_path local/base-14b --finetuning_type lora\n{LOADS}\n{NEW}\n")
    assert "quantise-4bit-8bit" in {fix.id for finding in found.findings for fix in finding.fixes}


@pytest.mark.parametrize(("model", "leads"), [
    pytest.param("glm-4v-9b", True, id="a model with a tower, the frame in the language model"),
    pytest.param("glm-4-9b-chat", False, id="the same frame of a text model"),
])  # fmt: skip
def test_a_tower_counts_wherever_the_frame_is(model: str, leads: bool) -> None:
    run = f"torchrun --nproc_per_node=1 finetune.py data/fix /models/{model} configs/lora.yaml\n***** Running training *****\n"
    found = diagnosed(run + frame(f"/root/.cache/huggingface/modules/transformers_modules/{model}/modeling_chatglm.py") + f"\n{NEW}\n")
    assert (found.findings[0].id == "vision-tower-in-memory") is leads
    assert {setting.framework for fix in found.findings[0].fixes for setting in fix.settings} <= own("glm4")
