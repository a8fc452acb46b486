"""What a run needs if something unstated differs from what was assumed: only decisive assumptions are worth a line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import Fits, MemoryBudget, Otherwise
from oomdoctor.case.settings import Scalar
from oomdoctor.case.setup import Adapters, Setup
from oomdoctor.case.text import Text
from oomdoctor.knowledge.tables.memory import adapter_targets, known_format, known_optimizer
from oomdoctor.memory.estimate import needed as needed_of
from oomdoctor.planning.memory_budget import fits, needed
from oomdoctor.planning.sizing.largest import largest

_MOVES = 0.1
"""Of what the run needs: an assumption that moves it by less decides nothing."""
_FAR = 8
"""Times as long or as many as assumed: a limit farther away than that is not a realistic next step."""


class _OtherWay(Struct, frozen=True):
    """One assumption taken the other way."""

    text: Text
    setting: tuple[str, Scalar]
    setup: Setup
    is_limit: bool = False


def otherwise(estimate: Estimate, now: Estimate, budget: MemoryBudget | None) -> tuple[Otherwise, ...]:
    """Return the result of each decisive assumption taken the other way: those that change the verdict first, for the better before others.

    `estimate` names the assumptions, `now` is what the run needs, `budget` the GPU; without one no verdict can change. A traced
    run has none: its trace is of these settings.
    """
    if estimate.setup.traced is not None:
        return ()
    verdict = None if budget is None else fits(now, budget)
    assumed = tuple(dict.fromkeys(assumption.id for assumption in estimate.assumptions))
    weighed = [_weighed(name, way, verdict, budget) for name in assumed if (way := _other_way(name, estimate.setup, verdict, budget))]
    deciding = [other for other in weighed if other.turns or _moved(other, now) >= _MOVES]
    return tuple(sorted(deciding, key=lambda other: (not other.turns, other.fits != "yes", -_moved(other, now))))


def _moved(other: Otherwise, now: Estimate) -> float:
    return abs(other.needed.expected - now.expected) / max(1, now.expected)


def _weighed(assumption: str, way: _OtherWay, verdict: Fits | None, budget: MemoryBudget | None) -> Otherwise:
    need = needed_of(way.setup) if budget is None else needed(way.setup, budget)
    then = None if budget is None else fits(need, budget)
    turns = verdict is not None and (way.is_limit or then != verdict)
    return Otherwise(assumption=assumption, text=way.text, sets=(way.setting,), needed=need, fits=then, turns=turns, is_limit=way.is_limit)


def _other_way(assumption: str, setup: Setup, verdict: Fits | None, budget: MemoryBudget | None) -> _OtherWay | None:
    """Return the other way of an assumption; None if there is none, or it is unknown what else it could be."""
    if assumption in _CHOICES and (setup.task == "train" or setup.pictures is not None):
        return _CHOICES[assumption](setup)
    if assumption not in _SIZES:
        return None
    size = _SIZES[assumption]
    now = size.of(setup)
    if budget is None:
        return size.changed(setup, 2 * now)
    reached = _largest_fitting(size, setup, now * _FAR if verdict == "yes" else now, budget)
    if reached == now:
        return size.changed(setup, 2 * now)
    is_near = reached is not None and now / _FAR <= reached <= now * _FAR
    return replace(size.changed(setup, reached), is_limit=True) if reached is not None and is_near else None


def _largest_fitting(size: _Size, setup: Setup, most: int, budget: MemoryBudget) -> int | None:
    """Return the largest size that certainly fits, or one above `most` if more does too; the current one if no step is between."""

    def surely_fits(number: int) -> bool:
        return fits(needed(size.changed(setup, number).setup, budget), budget) == "yes"

    reached = largest(surely_fits, size.step, most + size.step)
    now = size.of(setup)
    return now if surely_fits(now) and (reached or 0) < now else reached


def _checkpointing(setup: Setup) -> _OtherWay | None:
    if setup.stack.checkpoints_always:
        return None
    if setup.checkpointing == "none":
        text = Text("with gradient checkpointing on", "开启梯度检查点后")
        return _OtherWay(text, ("gradient_checkpointing", True), replace(setup, checkpointing="full"))
    text = Text("with gradient checkpointing off", "不开启梯度检查点时")
    return _OtherWay(text, ("gradient_checkpointing", False), replace(setup, checkpointing="none"))


def _method(setup: Setup) -> _OtherWay | None:
    if setup.adapters is None:
        adapters = Adapters(rank=setup.stack.rank, targets=adapter_targets("all"))
        text = Text(f"with LoRA of rank {adapters.rank}", f"只训练 LoRA（秩 {adapters.rank}）时")
        return _OtherWay(text, ("finetuning", "lora"), replace(setup, adapters=adapters, weights=known_format(setup.stack.frozen_weights)))
    weights = known_format("bf16" if setup.layout.engine == "deepspeed" else setup.stack.full_weights)
    text = Text("with all weights trained", "训练全部权重时")
    return _OtherWay(text, ("finetuning", "full"), replace(setup, adapters=None, weights=weights))


def _optimizer(setup: Setup) -> _OtherWay | None:
    if setup.optimizer.name not in ("adamw", "adamw-fused") or setup.optimizer.in_backward:
        return None
    text = Text("with 8-bit AdamW", "改用 8 位 AdamW 后")
    return _OtherWay(text, ("optimizer", "adamw_bnb_8bit"), replace(setup, optimizer=known_optimizer("adamw-8bit")))


def _weights(setup: Setup) -> _OtherWay | None:
    other = "bf16" if setup.weights.name == "fp32" else "fp32"
    text = Text(f"with weights trained in {other}", f"权重以 {other} 训练时")
    if setup.adapters is not None:
        text = Text(f"with frozen weights in {other}", f"冻结的权重为 {other} 时")
    return _OtherWay(text, ("weights", other), replace(setup, weights=known_format(other)))


def _targets(setup: Setup) -> _OtherWay | None:
    every = adapter_targets("all")
    if setup.adapters is None or setup.adapters.targets >= every:
        return None
    text = Text("with adapters on every linear layer", "所有线性层都加适配器时")
    return _OtherWay(text, ("lora_targets", "all"), replace(setup, adapters=replace(setup.adapters, targets=every)))


def _experts(setup: Setup) -> _OtherWay | None:
    packs = setup.stack.wide_experts
    text = Text("with the experts quantized too", "专家权重也量化时") if packs else Text("with unquantized experts", "专家权重不量化时")
    return _OtherWay(text, ("packs_experts", packs), replace(setup, stack=replace(setup.stack, wide_experts=not packs)))


def _stage(setup: Setup) -> _OtherWay | None:
    stage = 2 if setup.layout.stage == 3 else 3
    text = Text(f"with ZeRO stage {stage}", f"ZeRO stage {stage} 时")
    return _OtherWay(text, ("zero_stage", stage), replace(setup, layout=replace(setup.layout, stage=stage)))


def _tower(setup: Setup) -> _OtherWay | None:
    text = Text("with gradients through the vision tower", "梯度经过视觉塔时")
    return _OtherWay(text, ("freeze_vision", False), replace(setup, tower_trained=True))


def _by_parts(setup: Setup) -> _OtherWay | None:
    run = setup.pictures
    if run is None or run.by_parts:
        return None
    text = Text("with each part on the card only while in use", "各部分只在工作时放在显卡上时")
    return _OtherWay(text, ("offload_params", True), replace(setup, pictures=replace(run, by_parts=True)))


def _caches_text(setup: Setup) -> _OtherWay | None:
    run = setup.pictures
    if run is None:
        return None
    text = Text("with text embeddings precomputed before training", "训练前缓存文本编码时")
    if run.caches_text:
        text = Text("with the text encoders on the card", "文本编码器在显卡上时")
    return _OtherWay(text, ("caches_text", not run.caches_text), replace(setup, pictures=replace(run, caches_text=not run.caches_text)))


def _one_frame(setup: Setup) -> _OtherWay | None:
    run = setup.pictures
    if run is None or setup.task != "train" or run.frames == 1:
        return None
    text = Text("trained on images of this size instead of videos", "只用同样大小的图片而不用视频训练时")
    return _OtherWay(text, ("video_frames", 1), replace(setup, pictures=replace(run, frames=1)))


def _longer(setup: Setup, tokens: int) -> _OtherWay:
    text = Text(f"with {tokens:,} tokens per sample", f"每条样本 {tokens:,} 个 token 时")
    return _OtherWay(text, ("sequence_length", tokens), replace(setup, length=tokens))


def _larger(setup: Setup, samples: int) -> _OtherWay:
    text = Text(f"with a batch size of {samples} per card", f"每张卡的批大小为 {samples} 时")
    return _OtherWay(text, ("micro_batch", samples), replace(setup, batch=samples))


class _Size(Struct, frozen=True):
    """An assumption that is a number."""

    of: Callable[[Setup], int]
    changed: Callable[[Setup, int], _OtherWay]
    step: int


_CHOICES: Mapping[str, Callable[[Setup], _OtherWay | None]] = {
    "gradient_checkpointing": _checkpointing,
    "finetuning": _method,
    "weights": _weights,
    "optimizer": _optimizer,
    "experts": _experts,
    "lora_targets": _targets,
    "zero_stage": _stage,
    "vision_tower": _tower,
    "by_parts": _by_parts,
    "picture_size": _one_frame,
    "caches_text": _caches_text,
}
"""By the ids of assumptions."""
_SIZES: Mapping[str, _Size] = {
    "sequence_length": _Size(lambda setup: setup.length, _longer, 256),
    "micro_batch": _Size(lambda setup: setup.batch, _larger, 1),
}
"""The same for numbers; a limit is rounded down to a multiple of the step."""
