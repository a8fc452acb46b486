"""Configs -> one set of settings: which file decides, and what follows from several of them together."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.event import Event, Kind
from oomdoctor.case.settings import RunSettings, Scalar, WrittenSetting, fitting, is_number
from oomdoctor.configs.frameworks import Frameworks
from oomdoctor.configs.parsed_config import ParsedConfig, plain_value
from oomdoctor.configs.shipped_files import shipped_settings

AROUND = ("slurm", "kubernetes", "docker")
"""What a run is given its cards and its host memory by."""
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s?([kmgtKMGT]?)(i?)[bB]?\Z")
_TOKENS = ("max_model_len", "max_batched_tokens", "cache_memory")
_HUMAN = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)([kKmMgG])")
_LIMIT = re.compile(r"\b(image|video)\s{0,4}=\s{0,4}(\d{1,6})\b")
_BUILDER = re.compile(r"torchtune\.models\.\w{1,40}\.(?:(?P<method>q?lora|dora)_)?(?P<model>\w{2,60})")
"""Builders are named after their models: torchtune 0.6.1 models/llama3_1/_model_builders.py, lora_llama3_1_8b."""
_FLAVORED = "llama3"
"""What a flavor is of by default: Model.name of torchtitan 0.2.2 config/job_config.py:101."""
_BETWEEN = re.compile(r"[ .-]")
_NEEDED = {"num_hidden_layers", "hidden_size"}
"""Sizes without which a config that says some describes no model."""
_LOG_WORDS: Mapping[str, Scalar] = {"true": True, "false": False}


class MergedSettings(Struct, frozen=True):
    """The settings in force, where each stands, and what the others say of the same name."""

    settings: RunSettings
    places: dict[str, WrittenSetting]
    others: dict[str, list[tuple[Scalar, WrittenSetting]]]


def settings_in_log(events: Sequence[Event]) -> ParsedConfig:
    """Return what the log printed of the settings: the last value of each, at the line where it stands."""
    settings: dict[str, WrittenSetting] = {}
    for event in events:
        if event.kind is Kind.CONTEXT:
            for name, value in event.fields.items():
                if isinstance(value, (str, int, float)):
                    known = _LOG_WORDS.get(value.lower(), value) if isinstance(value, str) else value
                    settings[name] = WrittenSetting(
                        key=name, value=known, file=event.place.source, line=event.place.line or 1, framework="log"
                    )
    return ParsedConfig(file="log", form="log", written=tuple(settings.values()), framework="log" if settings else None)


def merge(configs: Sequence[ParsedConfig], frameworks: Frameworks) -> MergedSettings:
    """Return the settings of all configs: a command goes before the files that it names, files before the log."""
    values: dict[str, Scalar] = {}
    places: dict[str, WrittenSetting] = {}
    others: dict[str, list[tuple[Scalar, WrittenSetting]]] = {}
    for config in sorted(configs, key=lambda config: _turn(config, frameworks)):
        for name, given, at in frameworks.common_settings(config):
            value = _bytes(given, config) if name == "host_limit" else _typed(name, given)
            if value is None:
                continue
            if name in values:
                others.setdefault(name, []).append((value, at))
            else:
                values[name], places[name] = value, at
    settings = _with_worked_out(RunSettings().with_values(values), configs, frameworks)
    for helper in ("processes_per_node", "nodes"):
        places.pop(helper, None)
    return MergedSettings(replace(settings, processes_per_node=None, nodes=None), places, others)


def _turn(config: ParsedConfig, frameworks: Frameworks) -> tuple[bool, bool, bool, bool, bool]:
    """Return the place of a config among others: what a trainer says goes before the programs below it, a job comes last."""
    aside = config.framework in ("launcher", "environment")
    is_job = config.framework in AROUND
    return config.form == "log", is_job, aside, config.framework in frameworks.layers, config.form != "command"


def _bytes(value: Scalar, config: ParsedConfig) -> int | None:
    """Return the bytes of a limit: Slurm counts in MiB where no unit stands there, and `G` is 10^9 bytes in Kubernetes alone."""
    match = _SIZE.match(str(value).strip())
    if match is None:
        return None
    number, unit = float(match[1]), match[2].lower()
    if not unit:
        return int(number * (2**20 if config.framework == "slurm" else 1)) or None
    thousand = 1000.0 if config.framework == "kubernetes" and not match[3] else 1024.0
    return int(number * thousand ** (1 + "kmgt".index(unit))) or None


def _typed(name: str, value: Scalar) -> Scalar:
    """Return the value as its setting keeps it, None where it is something else."""
    if isinstance(value, str) and is_number(name):
        value = _thousands(value) if name in _TOKENS else plain_value(value.replace(",", ""))
    return fitting(name, value)


def _thousands(text: str) -> Scalar:
    """Return a number of tokens as vLLM reads it: `32k` is 32,000 and `32K` is 32,768 (vllm/engine/arg_utils.py, human_readable_int)."""
    match = _HUMAN.fullmatch(text.strip())
    if match is None:
        return plain_value(text.replace(",", ""))
    thousand: int = 1000 if match[2].islower() else 1024
    return round(float(match[1]) * float(thousand ** ("kmg".index(match[2].lower()) + 1)))


def _with_worked_out(settings: RunSettings, configs: Sequence[ParsedConfig], frameworks: Frameworks) -> RunSettings:
    """Return the settings with what follows: processes, the batch over all cards, the length of a GLM-4 sample, LoRA on four bits."""
    if settings.world_size is None and settings.processes_per_node is not None:
        nodes = 1 if settings.nodes is None else settings.nodes
        settings = replace(settings, world_size=settings.processes_per_node * nodes)
    if settings.cards is not None and settings.nodes is not None:
        settings = replace(settings, cards=settings.cards * settings.nodes)
    global_batch = (settings.micro_batch or 0) * (settings.accumulation or 0) * (settings.world_size or 0)
    if global_batch and settings.global_batch is None:
        settings = replace(settings, global_batch=global_batch)
    if settings.micro_batch is None and settings.micro_batch_tokens and settings.sequence_length:
        settings = replace(settings, micro_batch=max(1, settings.micro_batch_tokens // settings.sequence_length))
    if settings.zero_stage is None:
        settings = settings.with_values({**shipped_settings(configs, frameworks), **settings.known()})
    if settings.sequence_length is None:
        settings = replace(settings, sequence_length=max(_glm4_length(configs), default=None))
    settings = _with_media(_of_builder(_of_flavor(settings, configs, frameworks)))
    if settings.model is None:
        settings = replace(settings, model_sizes=_sizes(configs, frameworks))
    if settings.finetuning == "lora" and settings.load_bits == 4:
        settings = replace(settings, finetuning="qlora")
    return settings


def _with_media(settings: RunSettings) -> RunSettings:
    """Return the settings with the limits of `image=4,video=0`, as vLLM before 0.9 reads them (engine/arg_utils.py, nullable_kvs)."""
    limits = dict(_LIMIT.findall(settings.media_per_prompt or ""))
    pictures, videos = limits.get("image"), limits.get("video")
    return replace(
        settings,
        images_per_prompt=settings.images_per_prompt if pictures is None else int(pictures),
        videos_per_prompt=settings.videos_per_prompt if videos is None else int(videos),
    )


def _of_builder(settings: RunSettings) -> RunSettings:
    """Return the settings with what the name of a builder of torchtune says: the model, and how it is trained."""
    builder = _BUILDER.fullmatch(settings.model or "")
    if builder is None:
        return settings
    return replace(settings, model=builder["model"], finetuning=settings.finetuning or builder["method"] or "full")


def _of_flavor(settings: RunSettings, configs: Sequence[ParsedConfig], frameworks: Frameworks) -> RunSettings:
    """Return the settings with the model that a flavor of torchtitan is: `llama3 8B`; what kernel its attention has stands behind `_`."""
    record = frameworks.records.get("torchtitan")
    names = {setting.name: str(setting.value) for config in configs if config.framework == "torchtitan" for setting in config.written}
    if record is None or not names or settings.model not in (names.get("model.flavor"), names.get("config")) or settings.model is None:
        return settings
    if settings.model == names.get("config"):
        return replace(settings, model=record.flavors.get(settings.model, settings.model))
    name = f"{names.get('model.name', _FLAVORED)} {settings.model.partition('_')[0]}"
    return replace(settings, model=record.flavors.get(_BETWEEN.sub("_", name.lower()), name))


def _sizes(configs: Sequence[ParsedConfig], frameworks: Frameworks) -> str | None:
    """Return the sizes of the model that the first config says which says any, as the text of a config.json."""
    sizes = next(filter(None, (frameworks.model_sizes(config) for config in configs)), None)
    return json.dumps(sizes) if sizes and sizes.keys() >= _NEEDED else None


def _glm4_length(configs: Sequence[ParsedConfig]) -> Iterator[int]:
    """Yield the length of a sample of GLM-4, whose scripts cut it at the sum of two limits (finetune.py)."""
    for config in configs:
        parts = [setting.value for setting in config.written if setting.name in ("max_input_length", "max_output_length")]
        if config.framework == "glm4" and len(parts) == 2 and all(isinstance(value, int) for value in parts):
            yield sum(value for value in parts if isinstance(value, int))
