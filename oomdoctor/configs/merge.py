"""Sheets -> one set of settings: which file decides, and what follows from several of them together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from oomdoctor.case.event import Event, Kind
from oomdoctor.case.settings import Scalar, WrittenSetting
from oomdoctor.configs.frameworks import Frameworks
from oomdoctor.configs.parsed_config import ParsedConfig, plain_value
from oomdoctor.knowledge.tables.csv_table import table

NUMBERS = frozenset({
    "micro_batch", "accumulation", "world_size", "global_batch", "eval_batch", "sequence_length", "load_bits", "lora_rank", "zero_stage",
    "fsdp_version", "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "eval_accumulation",
    "dataloader_workers", "memory_share", "max_model_len", "max_num_seqs", "max_batched_tokens", "cpu_offload_gb", "gpu_layers",
    "max_steps", "epochs", "eval_steps", "save_steps", "processes_per_node", "nodes",
})  # fmt: skip
_FLAGS = frozenset({
    "packing", "group_by_length", "freeze_vision", "gradient_checkpointing", "fused_cross_entropy", "activation_offload", "fsdp",
    "fsdp_offload", "syncs_gradients", "prediction_loss_only", "optimizer_in_backward",
    "predict_with_generate", "pin_memory", "enforce_eager",
})  # fmt: skip
_TOKENS = ("max_model_len", "max_batched_tokens")
_HUMAN = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([kKmMgG])")
_BELOW = ("deepspeed", "accelerate", "fsdp")
"""Programs under a trainer: what the trainer says goes first."""
_NAMES_DEEPSPEED: Mapping[str, str] = {"glm4": "training_args.deepspeed"}
"""The key that names a DeepSpeed file, where it is not `deepspeed`; under another block nobody reads it."""
_SHIPPED = ("zero_stage", "offload_optimizer", "offload_params")
"""What rules/tables/shipped_files.csv says of a file."""
_STAGE = re.compile(r"(?i)(?:z|zero|stage)[-_]?([0-3])(?![0-9])")
_LOG_WORDS: Mapping[str, Scalar] = {"true": True, "false": False}


class MergedSettings(Struct, frozen=True):
    """The settings in force, where each stands, and what the others say of the same name."""

    settings: dict[str, Scalar]
    places: dict[str, WrittenSetting]
    others: dict[str, list[tuple[Scalar, WrittenSetting]]]


def log_sheet(events: Sequence[Event]) -> ParsedConfig:
    """What the log printed of the settings: the last value of each, at the line where it stands."""
    found: dict[str, WrittenSetting] = {}
    for event in events:
        if event.kind is Kind.CONTEXT:
            for name, value in event.fields.items():
                if isinstance(value, (str, int, float)):
                    own = _LOG_WORDS.get(value.lower(), value) if isinstance(value, str) else value
                    found[name] = WrittenSetting(key=name, value=own, file=event.place.source, line=event.place.line or 1, framework="log")
    return ParsedConfig(file="log", form="log", given=tuple(found.values()), framework="log" if found else None)


def merge(sheets: Sequence[ParsedConfig], frameworks: Frameworks) -> MergedSettings:
    """The settings of all sheets: a command goes before the files that it names, files before the log."""
    settings: dict[str, Scalar] = {}
    places: dict[str, WrittenSetting] = {}
    others: dict[str, list[tuple[Scalar, WrittenSetting]]] = {}
    for sheet in sorted(sheets, key=_turn):
        for name, written, at in frameworks.settings(sheet):
            value = _typed(name, written)
            if value is None:
                continue
            if name in settings:
                others.setdefault(name, []).append((value, at))
            else:
                settings[name], places[name] = value, at
    _work_out(settings, sheets)
    for helper in ("processes_per_node", "nodes"):
        settings.pop(helper, None)
        places.pop(helper, None)
    return MergedSettings(settings, places, others)


def _turn(sheet: ParsedConfig) -> tuple[bool, bool, bool, bool]:
    aside = sheet.framework in ("launcher", "environment")
    return sheet.form == "log", aside, sheet.framework in _BELOW, sheet.form != "command"


def _typed(name: str, value: Scalar) -> Scalar:
    """The value as its name promises, None where it is something else."""
    if name in NUMBERS:
        if isinstance(value, str):
            value = _thousands(value) if name in _TOKENS else plain_value(value.replace(",", ""))
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
    if name in _FLAGS:
        return value if isinstance(value, bool) else None
    return value


def _thousands(text: str) -> Scalar:
    """A number of tokens as vLLM reads it: `32k` is 32,000 and `32K` is 32,768 (vllm/engine/arg_utils.py, human_readable_int)."""
    found = _HUMAN.fullmatch(text.strip())
    if found is None:
        return plain_value(text.replace(",", ""))
    thousand: int = 1000 if found[2].islower() else 1024
    return round(float(found[1]) * float(thousand ** ("kmg".index(found[2].lower()) + 1)))


def _work_out(settings: dict[str, Scalar], sheets: Sequence[ParsedConfig]) -> None:
    """What follows: processes, the batch over all cards, the length of a GLM-4 sample, LoRA on four bits."""
    per_node, nodes = settings.get("processes_per_node"), settings.get("nodes", 1)
    if "world_size" not in settings and isinstance(per_node, int) and isinstance(nodes, int):
        settings["world_size"] = per_node * nodes
    product = 1
    for name in ("micro_batch", "accumulation", "world_size"):
        value = settings.get(name)
        product *= value if isinstance(value, int) else 0
    if product and "global_batch" not in settings:
        settings["global_batch"] = product
    if "zero_stage" not in settings:
        settings.update(one for one in _shipped(sheets) if one[0] not in settings)
    if "sequence_length" not in settings:
        settings.update(("sequence_length", total) for total in _glm4_length(sheets))
    if settings.get("finetuning") == "lora" and settings.get("load_bits") == 4:
        settings["finetuning"] = "qlora"


def _shipped(sheets: Sequence[ParsedConfig]) -> Iterator[tuple[str, Scalar]]:
    """What a DeepSpeed file says that is named and not at hand: as a framework ships it under this name, or as the name itself says."""
    if any(sheet.framework == "deepspeed" for sheet in sheets):
        return
    given = (one for sheet in sheets for one in sheet.given if one.name == _NAMES_DEEPSPEED.get(sheet.framework or "", "deepspeed"))
    named = next((str(one.value).replace("\\", "/").rpartition("/")[2] for one in given if str(one.value).endswith(".json")), None)
    if named is None:
        return
    yield "zero_file", named
    row = next((row for row in table("shipped_files") if row["name"] == named), None)
    if row is None:
        said = _STAGE.search(named)
        yield from [("zero_stage", int(said[1]))] if said else []
        return
    yield from ((name, int(row[name]) if name in NUMBERS else row[name]) for name in _SHIPPED if row[name])


def _glm4_length(sheets: Sequence[ParsedConfig]) -> Iterator[int]:
    """GLM-4's scripts cut a sample at the sum of two limits (finetune.py)."""
    for sheet in sheets:
        parts = [one.value for one in sheet.given if one.name in ("max_input_length", "max_output_length")]
        if sheet.framework == "glm4" and len(parts) == 2 and all(isinstance(one, int) for one in parts):
            yield sum(one for one in parts if isinstance(one, int))
