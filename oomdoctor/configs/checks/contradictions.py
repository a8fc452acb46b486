"""Where two files, or a file and the log, say different things of one setting."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.settings import ConfigIssue, Scalar, WrittenSetting, positive
from oomdoctor.case.text import Text
from oomdoctor.configs.merge import MergedSettings

_COMPARED = (
    "micro_batch",
    "accumulation",
    "eval_batch",
    "sequence_length",
    "zero_stage",
    "load_bits",
    "lora_rank",
    "max_model_len",
    "memory_share",
)
_TRAINER = ("micro_batch", "accumulation", "precision")
"""What transformers compares between its own arguments and the DeepSpeed JSON (integrations/deepspeed.py)."""


def find_contradictions(merged: MergedSettings) -> Iterator[ConfigIssue]:
    """Yield issues about settings that do not fit together, whichever of them is meant."""
    values = merged.settings.known()
    for name in _COMPARED:
        place = merged.places.get(name)
        for value, at in merged.others.get(name, ()):
            if place is not None and place.framework != "log" and at.framework == "log" and _differ(value, values[name]):
                yield _not_in_force(place, values[name], at, value)
                break
    for name in _TRAINER:
        place = merged.places.get(name)
        for value, at in merged.others.get(name, ()):
            if place is not None and place.framework not in ("log", "deepspeed", "accelerate") and at.framework == "deepspeed":
                if _differ(value, values[name]):
                    yield _two_answers(place, values[name], at, value)
    yield from _product(merged)


def _differ(value: Scalar, other: Scalar) -> bool:
    try:
        return float(str(value)) != float(str(other))
    except ValueError:
        return value != other


def _not_in_force(place: WrittenSetting, value: Scalar, at: WrittenSetting, printed: Scalar) -> ConfigIssue:
    return ConfigIssue(
        id="another-file-in-force",
        severity="warning",
        key=place.key,
        file=place.file,
        line=place.line,
        what=Text(f"the log shows {printed}, this file has {value}", f"日志里是 {printed}，这个文件里写的是 {value}"),
        why=Text(
            f"Another file or a command line was in effect when this log was written ({at.file}:{at.line}, `{at.key}`).",
            f"写这份日志时生效的是另一个文件或命令行参数（{at.file}:{at.line}，`{at.key}`）。",
        ),
    )


def _two_answers(place: WrittenSetting, value: Scalar, at: WrittenSetting, other: Scalar) -> ConfigIssue:
    return ConfigIssue(
        id="deepspeed-mismatch",
        severity="error",
        key=at.key,
        file=at.file,
        line=at.line,
        what=Text(
            f"the DeepSpeed JSON has {other}, the trainer has {value} (`{place.key}`)",
            f"DeepSpeed JSON 里是 {other}，训练参数里是 {value}（`{place.key}`）",
        ),
        why=Text("transformers compares the two and stops if they differ.", "transformers 会核对两处的值，不一致就报错退出。"),
        replacement=f'"{at.key.rpartition(".")[2]}": "auto"',
        cites=("deepspeed-config",),
    )


def _product(merged: MergedSettings) -> Iterator[ConfigIssue]:
    """DeepSpeed wants train_batch_size to be micro batch x accumulation x processes."""
    settings, at = merged.settings, merged.places.get("global_batch")
    total = settings.global_batch
    if at is None or at.framework != "deepspeed" or total is None:
        return
    micro, accumulation, world = (positive(number) for number in (settings.micro_batch, settings.accumulation, settings.world_size))
    if micro is None:
        return
    computed = micro * (accumulation or 1) * (world or 1)
    if accumulation is not None and world is not None and computed != total:
        result = f"{micro} x {accumulation} x {world} = {computed}"
    elif total % computed:
        result = f"{total} / {computed}"
    else:
        return
    yield ConfigIssue(
        id="deepspeed-batch-product",
        severity="error",
        key=at.key,
        file=at.file,
        line=at.line,
        what=Text(
            f"`train_batch_size` is {total}, but micro batch x accumulation x cards is {result}",
            f"`train_batch_size` 写的是 {total}，而单卡批大小、梯度累积和卡数给出的是 {result}",
        ),
        why=Text("DeepSpeed stops unless it equals their product exactly.", "DeepSpeed 要求它正好等于三者的乘积，否则直接报错。"),
        replacement='"train_batch_size": "auto"',
        cites=("deepspeed-config",),
    )
