"""The training rows of a table of measured peaks, asked as people ask: by options, or by a config of the row's framework.

With the least that people say: the model, what is trained, the rank, the batch, the length, checkpointing, packing, the optimizer, the type
of the passes, the cards and the ZeRO stage; rows that are spread in another way are left out. Or with all of the row that options and
configs can say besides: what has adapters, the type of the weights, the kernel of attention, the loss, micro batches of an update, how the
run is spread, what is on the host, that lengths differ, and whether the figure is one of torch. Otherwise the answer is what nvidia-smi
will show; for a counter of torch the parts that it does not see are taken off.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from measurements import GIB, Row, framework_of, spec_of

import oomdoctor
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.settings import Scalar
from oomdoctor.errors import UsageError
from oomdoctor.setups.spec import spec_settings

_NO_KEYS = ("counter", "weight_format", "trained_parameters", "freeze_vision")
"""What no config of a framework says: it is an option beside the config."""
Range = tuple[float, float, float]
"""Expected, least and most GiB."""
_STAGES = {"": None, "single": None, "ddp": None, "zero1": 1, "zero2": 2, "deepspeed zero2": 2, "zero3": 3, "deepspeed zero3": 3}
_METHODS = ("full", "lora", "qlora", "freeze")
_UNSEEN = {
    "max_allocated": ("context", "allocator"),
    "peak_active": ("context", "allocator"),
    "max_reserved": ("context",),
    "reserved_p99": ("context",),
}
_OPTIMIZERS = ("adamw", "adamw_torch", "adamw_8bit", "paged_adamw_8bit", "adafactor", "sgd", "adamw_bnb_8bit")


def by_options(row: Row, *, all_of_it: bool = False) -> Range | None:
    """Return the answer to a row's options; None where a person could not ask so."""
    told = _all_told(row) if all_of_it else _told(row)
    if told is None:
        return None
    with suppress(UsageError):
        run = oomdoctor.estimate(model=row["model"], framework=framework_of(row), gpus=int(row["gpus"] or 1), settings=told)
        return _seen(run.estimate, row)
    return None


def by_config(row: Row, *, all_of_it: bool = False) -> Range | None:
    """Return the answer to a config that says the same; None where the row names no framework of which one is written here."""
    told, framework = _all_told(row) if all_of_it else _told(row), framework_of(row)
    write = _CONFIGS.get(framework or "")
    if told is None or _told(row) is None or write is None or told["finetuning"] not in ("full", "lora", "qlora"):
        return None
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, text in write(row, told).items():
            path = Path(folder) / name
            path.write_text(text, encoding="utf-8")
            paths.append(str(path))
        model = row["model"] if framework == "torchtune" else None
        beside = {name: told[name] for name in _NO_KEYS if name in told}
        with suppress(UsageError):
            return _seen(oomdoctor.estimate(paths, model=model, gpus=int(row["gpus"] or 1), settings=beside).estimate, row)
    return None


def _all_told(row: Row) -> dict[str, Scalar] | None:
    """Return the settings that options and configs can give."""
    if row["task"] != "train":
        return None
    said = spec_settings(spec_of(row)).known()
    known = {name: value for name, value in said.items() if name not in ("model", "method", "framework_version")}
    stage = _STAGES.get(row["strategy"].lower())
    counter = {"peak_active": "max_allocated", "reserved_p99": "max_reserved"}.get(row["measured_kind"], row["measured_kind"])
    told = {**known, "counter": counter if counter in _UNSEEN else "nvidia-smi"}
    return told if stage is None else {**told, "zero_stage": stage}


def _told(row: Row) -> dict[str, Scalar] | None:
    """Return the settings that options give."""
    strategy, method = row["strategy"].lower(), row["method"].lower()
    if row["task"] != "train" or strategy not in _STAGES or method not in _METHODS or row["offload"] not in ("", "no", "none"):
        return None
    checkpointing, computed = row["grad_ckpt"].strip().lower(), row["compute_dtype"].lower()[:4]
    told: dict[str, Scalar] = {
        "finetuning": method,
        "micro_batch": int(row["micro_batch"]),
        "sequence_length": int(row["seq_len"]),
        "zero_stage": _STAGES[strategy],
        "lora_rank": int(row["lora_rank"]) if row["lora_rank"].isdigit() and method != "full" else None,
        "gradient_checkpointing": None if checkpointing.startswith("selective") else not checkpointing.startswith("no"),
        "packing": True if row["packing"].lower() in ("yes", "true") else None,
        "optimizer": row["optimizer"] if row["optimizer"].lower() in _OPTIMIZERS else None,
        "precision": computed if computed in ("bf16", "fp16") else None,
    }
    return {name: value for name, value in told.items() if value is not None}


def _seen(estimate: object, row: Row) -> Range:
    assert isinstance(estimate, Estimate)  # noqa: S101 - a run that trains is no server
    unseen = _UNSEEN.get(row["measured_kind"], ()) if estimate.setup.counter == "nvidia-smi" else ()
    hidden = sum(term.bytes for term in estimate.peak.terms if term.name in unseen)
    return (estimate.expected - hidden) / GIB, (estimate.low - hidden) / GIB, (estimate.high - hidden) / GIB


def _llamafactory(row: Row, told: Mapping[str, Scalar]) -> dict[str, str]:
    lines = {
        "model_name_or_path": row["model"],
        "stage": "sft",
        "do_train": True,
        "finetuning_type": "full" if told["finetuning"] == "full" else "lora",
        "dataset": "alpaca_en_demo",
        "template": "default",
        "output_dir": "out",
        **_trainer_lines(told),
        "cutoff_len": told["sequence_length"],
        "lora_rank": told.get("lora_rank"),
        "lora_target": told.get("lora_targets"),
        "additional_target": told.get("modules_to_save"),
        "flash_attn": _FLASH.get(str(told.get("attention"))),
        "enable_liger_kernel": told.get("fused_cross_entropy"),
        "packing": told.get("packing"),
        "quantization_bit": 4 if told["finetuning"] == "qlora" else None,
        "disable_gradient_checkpointing": not told["gradient_checkpointing"] if "gradient_checkpointing" in told else None,
    }
    return {"sft.yaml": _yaml(lines | _deepspeed_line(told)), **_deepspeed_file(told)}


def _axolotl(row: Row, told: Mapping[str, Scalar]) -> dict[str, str]:
    adapter = None if told["finetuning"] == "full" else told["finetuning"]
    lines = {
        "base_model": row["model"],
        "adapter": adapter,
        "load_in_4bit": True if adapter == "qlora" else None,
        "quantize_moe_experts": "quantised experts" in row["notes"] or None,
        "lora_r": told.get("lora_rank"),
        "lora_target_linear": True if adapter and "lora_targets" not in told else None,
        "lora_target_modules": told.get("lora_targets") if adapter else None,
        "flash_attention": True if told.get("attention") == "flash2" else None,
        "cut_cross_entropy": told.get("fused_cross_entropy"),
        "sequence_len": told["sequence_length"],
        "sample_packing": told.get("packing"),
        "micro_batch_size": told["micro_batch"],
        "gradient_accumulation_steps": told.get("accumulation", 1),
        "gradient_checkpointing": told.get("gradient_checkpointing"),
        "optimizer": told.get("optimizer"),
        "bf16": True if told.get("precision") == "bf16" else None,
    }
    return {"ax.yaml": _yaml(lines | _deepspeed_line(told)), **_deepspeed_file(told)}


def _swift(row: Row, told: Mapping[str, Scalar]) -> dict[str, str]:
    options = {
        "model": row["model"],
        "train_type": "full" if told["finetuning"] == "full" else "lora",
        "quant_bits": 4 if told["finetuning"] == "qlora" else None,
        "quant_method": "bnb" if told["finetuning"] == "qlora" else None,
        "lora_rank": told.get("lora_rank"),
        "target_modules": _one_word(told.get("lora_targets")),
        "modules_to_save": told.get("modules_to_save"),
        "attn_impl": _KERNELS.get(str(told.get("attention"))),
        "use_liger_kernel": told.get("fused_cross_entropy"),
        "gradient_accumulation_steps": told.get("accumulation"),
        "max_length": told["sequence_length"],
        "packing": told.get("packing"),
        "torch_dtype": "bfloat16" if told.get("precision") == "bf16" else None,
        "per_device_train_batch_size": told["micro_batch"],
        "gradient_checkpointing": told.get("gradient_checkpointing"),
        "optim": told.get("optimizer"),
        "deepspeed": "ds.json" if "zero_stage" in told else None,
        "output_dir": "out",
    }
    return {"run.sh": f"NPROC_PER_NODE={row['gpus'] or 1} swift sft {_options(options)}\n", **_deepspeed_file(told)}


def _trainer(script: str) -> Callable[[Row, Mapping[str, Scalar]], dict[str, str]]:
    def write(row: Row, told: Mapping[str, Scalar]) -> dict[str, str]:
        options = {
            "model_name_or_path": row["model"],
            "dataset_name": "tatsu-lab/alpaca",
            **_trainer_lines(told),
            "max_length": told["sequence_length"],
            "gradient_checkpointing": told.get("gradient_checkpointing"),
            # Trainer has no packing; scripts of peft and trl have.
            **({"group_by_length": told.get("packing")} if script == "run_clm.py" else {"packing": told.get("packing")}),
            "attn_implementation": _KERNELS.get(str(told.get("attention"))),
            "use_liger_kernel": told.get("fused_cross_entropy"),
            "use_peft": True if told["finetuning"] in ("lora", "qlora") else None,
            "lora_r": told.get("lora_rank"),
            "lora_target_modules": _one_word(told.get("lora_targets")),
            "load_in_4bit": True if told["finetuning"] == "qlora" else None,
            "deepspeed": "ds.json" if "zero_stage" in told else None,
            "output_dir": "out",
        }
        return {"run.sh": f"torchrun --nproc_per_node {row['gpus'] or 1} {script} {_options(options)}\n", **_deepspeed_file(told)}

    return write


def _torchtune(row: Row, told: Mapping[str, Scalar]) -> dict[str, str]:
    adapted = told["finetuning"] != "full"
    model: dict[str, Scalar] = {"_component_": "torchtune.models.llama2." + ("lora_llama2_7b" if adapted else "llama2_7b")}
    model |= {"lora_rank": told.get("lora_rank", 8)} if adapted else {}
    model |= {"quantize_base": True} if told["finetuning"] == "qlora" else {}
    lines = {
        "model": model,
        "tokenizer": {"max_seq_len": told["sequence_length"]},
        "dataset": {"packed": told.get("packing", False)},
        "batch_size": told["micro_batch"],
        "enable_activation_checkpointing": told.get("gradient_checkpointing"),
        "dtype": told.get("precision"),
        "optimizer": _TORCHTUNE.get(str(told.get("optimizer")).lower()),
        "gradient_accumulation_steps": told.get("accumulation", 1),
    }
    recipe = ("lora" if adapted else "full") + "_finetune_" + ("single_device" if row["gpus"] in ("", "1") else "distributed")
    command = f"tune run --nproc_per_node {row['gpus'] or 1} {recipe} --config tune.yaml\n"
    return {"tune.yaml": "".join(_nested(lines)), "run.sh": command}


_KERNELS = {"flash2": "flash_attention_2", "sdpa": "sdpa", "eager": "eager"}
_FLASH = {"flash2": "fa2", "sdpa": "sdpa", "eager": "disabled"}
_TORCHTUNE = {
    "adamw": {"_component_": "torch.optim.AdamW"},
    "pagedadamw": {"_component_": "bitsandbytes.optim.PagedAdamW"},
}
_CONFIGS: Mapping[str, Callable[[Row, Mapping[str, Scalar]], dict[str, str]]] = {
    "llamafactory": _llamafactory,
    "axolotl": _axolotl,
    "ms-swift": _swift,
    "hf-trainer": _trainer("run_clm.py"),
    "trl": _trainer("sft.py"),
    "torchtune": _torchtune,
}
"""By the framework of a row."""


def _trainer_lines(told: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {
        "per_device_train_batch_size": told["micro_batch"],
        "bf16": True if told.get("precision") == "bf16" else None,
        "fp16": True if told.get("precision") == "fp16" else None,
        "optim": told.get("optimizer"),
        "gradient_accumulation_steps": told.get("accumulation"),
    }


def _one_word(targets: Scalar) -> str | None:
    """Return modules as one word of a command line."""
    return None if targets is None else str(targets).replace(", ", ",").replace(" ", ",")


def _deepspeed_line(told: Mapping[str, Scalar]) -> dict[str, Scalar]:
    return {"deepspeed": "ds.json"} if "zero_stage" in told else {}


def _deepspeed_file(told: Mapping[str, Scalar]) -> dict[str, str]:
    if "zero_stage" not in told:
        return {}
    auto = {"train_batch_size": "auto", "train_micro_batch_size_per_gpu": "auto", "bf16": {"enabled": "auto"}}
    return {"ds.json": json.dumps({**auto, "zero_optimization": {"stage": told["zero_stage"]}})}


def _yaml(lines: Mapping[str, Scalar]) -> str:
    return "".join(f"{key}: {json.dumps(value)}\n" for key, value in lines.items() if value is not None)


def _nested(lines: Mapping[str, object]) -> Iterator[str]:
    for key, value in lines.items():
        if isinstance(value, dict):
            yield f"{key}:\n" + "".join(f"  {name}: {json.dumps(inner)}\n" for name, inner in value.items())
        elif value is not None:
            yield f"{key}: {json.dumps(value)}\n"


def _options(options: Mapping[str, Scalar]) -> str:
    return " ".join(
        f"--{key} {str(value).lower() if value is True or value is False else value}" for key, value in options.items() if value is not None
    )
