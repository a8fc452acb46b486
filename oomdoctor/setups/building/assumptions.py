"""The assumptions about a run that its settings do not cover: each default with its origin."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import FrameworkTraits, Layout, Setup
from oomdoctor.case.text import Text
from oomdoctor.knowledge.tables.likeness import nearest
from oomdoctor.knowledge.tables.memory import optimizer_named, optimizer_names, training_method, weight_format
from oomdoctor.knowledge.tables.shipped_files import shipped_file
from oomdoctor.memory import activations
from oomdoctor.memory.model.weights import has_experts_beside
from oomdoctor.setups import prompts
from oomdoctor.setups.assumed import assumed
from oomdoctor.setups.building import trained
from oomdoctor.units import GIB

_LONGEST = 100
_EVERY_LINEAR = ("all", "all-linear")
_OPTIMIZERS = {"adamw": "AdamW", "adamw-fused": "AdamW"}
"""As people write them."""
_ON_HOST = {
    (True, True): (" with parameters and optimizer on the host", "，参数和优化器放在主机内存"),
    (True, False): (" with the parameters on the host", "，参数放在主机内存"),
    (False, True): (" with the optimizer on the host", "，优化器放在主机内存"),
}
"""By whether parameters and optimizer are offloaded."""
_SPREAD = {
    "fsdp1": ("FSDP", "FSDP"),
    "fsdp2": ("FSDP 2", "FSDP 2"),
    "ddp": ("nothing sharded", "不分片"),
    "none": ("nothing sharded", "不分片"),
    "device_map": ("layers split across the cards", "各层分布在多张卡上"),
}
"""By the engine, if it is not DeepSpeed."""
_CHECKPOINTED = {"none": ("off", "未开启"), "selective": ("selective", "为选择性（selective）"), "full": ("on", "已开启")}


def run_assumptions(settings: RunSettings, made: Setup) -> Iterator[Assumption]:
    """Yield what a setup contains that no setting specifies."""
    if made.shape.guessed:
        yield assumed(
            "shape",
            f"only the number of parameters of {made.shape.name} is known; its layers are taken from a similar model",
            f"只知道 {made.shape.name} 的参数量，层结构取自相近的模型",
        )
    if made.task == "train" and settings.finetuning is None:
        yield _trained(made)
    elif made.task == "train" and made.adapters is not None and not made.adapters.blocks and positive(settings.lora_rank) is None:
        en, zh = (", the PEFT default", "，即 PEFT 的默认值") if made.stack.lora_rank is None else _default_of(made.stack)
        yield assumed("lora_rank", f"adapters of rank {made.adapters.rank}{en}", f"适配器的秩为 {made.adapters.rank}{zh}")
    if made.task == "train" and made.adapters is not None and made.adapters.targets and not settings.lora_targets:
        yield _adapted(made)
    if made.task == "train" and positive(settings.micro_batch) is None:
        en, zh = _default_of(made.stack)
        yield assumed("micro_batch", f"batch size {made.batch} per card{en}", f"每张卡的批大小为 {made.batch}{zh}")
    if made.task == "train":
        yield from _batch_stated_twice(settings, made.layout)
    if made.task == "train" and (made.written is not None or not made.shape.vocab):
        yield from _positions(settings, made)
    elif positive(settings.sequence_length) is None and positive(settings.max_model_len) is None:
        en, zh = _default_of(made.stack) if made.stack.length else ("", "")
        yield assumed("sequence_length", f"{made.length} tokens per sample{en}", f"每条样本 {made.length} 个 token{zh}")
    if _checkpointing_is_assumed(settings, made):
        en, zh = _CHECKPOINTED[made.checkpointing]
        yield assumed("gradient_checkpointing", f"gradient checkpointing is {en}", f"梯度检查点{zh}")
    if made.task == "train" and made.adapters is None and settings.optimizer is None:
        # Optimizer states of adapters are not decisive.
        en, zh = _default_of(made.stack)
        title = _OPTIMIZERS.get(made.optimizer.name, made.optimizer.name)
        yield assumed("optimizer", f"{title} as the optimizer{en}", f"优化器为 {title}{zh}")
    if made.task == "train" and settings.optimizer is not None and optimizer_named(settings.optimizer) is None:
        title = _OPTIMIZERS.get(made.optimizer.name, made.optimizer.name)
        meant = nearest(settings.optimizer.lower(), optimizer_names())
        en, zh = (f" (did you mean {', '.join(meant)}?)", f"（是否指 {'、'.join(meant)}？）") if meant else ("", "")
        yield assumed(
            "optimizer",
            f"{title}, because {settings.optimizer[:_LONGEST]} is not a known optimizer{en}",
            f"按 {title} 计算：不认识优化器 {settings.optimizer[:_LONGEST]}{zh}",
        )
    if made.task == "train" and _is_type_assumed(settings) and (made.adapters is None or made.weights.name == "fp32"):
        yield _weight_type(made)
    if has_experts_beside(made) and trained.packs_experts(settings) is None and (made.stack.wide_experts or not made.stack.title):
        yield _experts(made)
    if absent := settings.zero_file or settings.launch_file:
        yield _as_shipped(absent, made)
    tower = activations.tower(made)
    if made.task == "train" and made.tower_trained is None and tower is not None:
        most = f"{tower.high / GIB:.1f} GiB"
        yield assumed(
            "vision_tower",
            f"no gradients flow through the vision tower; if they do, up to {most} more",
            f"梯度不经过视觉塔；若经过，最多再需 {most}",
        )
    if made.task == "infer" and made.ggml is None and settings.method == "generate":
        yield from prompts.prompt_assumptions(made)
    if not training_method(settings.method or "").counted:
        yield rollouts(made)
    yield from scoring(settings, made)
    if made.task == "train" and made.even_lengths is None and not made.stack.longest_first:
        yield Assumption(
            id="lengths",
            text=Text(
                "samples may differ in length; blocks of shorter ones then stay reserved",
                "样本长度可能不一，此时较短样本留下的显存块不会归还",
            ),
        )


def _positions(settings: RunSettings, made: Setup) -> Iterator[Assumption]:
    """Yield the sample lengths of audio and vision models: stated tokens are those of the text alone."""
    if made.written is None:
        yield assumed("positions", f"{made.length} patches per image", f"每张图片 {made.length} 个 patch", is_question=False)
    elif positive(settings.sequence_length) is None:
        heard, written = made.shape.heard, made.written
        en = f"{heard} audio positions and {written} text tokens, {made.length} for an average layer"
        yield assumed("positions", en, f"音频 {heard} 个位置、文本 {written} 个 token，各层平均 {made.length}", is_question=False)


def scoring(settings: RunSettings, made: Setup) -> Iterator[Assumption]:
    """Yield what was assumed for the critic and the reward model of PPO, or that they are not on these GPUs."""
    if made.task != "train" or not training_method(settings.method or "").critic:
        return
    if made.critic is None and made.reward is None:
        yield assumed("critic", "critic and reward model use no memory on these cards", "critic 和奖励模型不占用这些显卡")
        return
    models = [(made.critic, "a critic", "critic"), (made.reward, "a reward model", "奖励模型")]
    there = [(f"{en} like {model.shape.name}", f"与 {model.shape.name} 同样大小的{zh}") for model, en, zh in models if model is not None]
    turns = (
        ("; critic and model take turns on the card", "；critic 与模型轮流占用显卡")
        if made.critic and made.critic.takes_turns
        else ("", "")
    )
    yield assumed(
        "critic",
        f"on the same cards: {' and '.join(en for en, _ in there)}{turns[0]}",
        f"同一批显卡上还有{'和'.join(zh for _, zh in there)}{turns[1]}",
        is_question=settings.critic_model is None and settings.reward_model is None,
    )


def rollouts(made: Setup) -> Assumption:
    """Return what is counted for the completions generated in training."""
    beside = made.critic is not None or made.reward is not None
    if made.rollout is None:
        return assumed(
            "rollouts",
            f"responses generated during training{'' if beside else ', and reward models,'} are not counted",
            f"未计入训练中生成的回答{'' if beside else '和奖励模型'}",
        )
    uncounted = ("", "") if beside else ("; reward models are not counted", "；未计入奖励模型")
    share = f"{made.rollout.share:g}"
    awake = ("asleep during weight updates", "更新权重时休眠") if made.rollout.sleeps else ("always awake", "训练时一直占用")
    return assumed(
        "rollouts",
        f"a rollout engine on the same cards uses {share} of each, {awake[0]}{uncounted[0]}",
        f"推理引擎与训练共用显卡，占每张卡的 {share}，{awake[1]}{uncounted[1]}",
    )


def _batch_stated_twice(settings: RunSettings, layout: Layout) -> Iterator[Assumption]:
    """Yield which of two batches counts if a DeepSpeed file states one that the others do not produce: batch_assertion of its config.py."""
    samples, batch, steps = (positive(number) for number in (settings.global_batch, settings.micro_batch, settings.accumulation))
    if layout.engine != "deepspeed" or not samples or not batch:
        return
    copies = max(1, (settings.world_size or layout.cards) // (layout.tensor * layout.pipeline * layout.context))
    if samples == batch * steps * copies if steps else samples % (batch * copies) == 0:
        return
    product = f"{batch} x {steps} x {copies}" if steps else f"{batch} x {copies}"
    yield assumed(
        "global_batch",
        f"batch size {batch} per card, although {product} does not equal the {samples} samples of train_batch_size; DeepSpeed stops there",
        f"每张卡的批大小为 {batch}：{product} 凑不成 train_batch_size 写的 {samples} 条，DeepSpeed 会因此报错退出",
    )


def _is_type_assumed(settings: RunSettings) -> bool:
    """Return whether nothing gives the type of the trained weights: under autocast, the precision of the passes does not."""
    if settings.weight_format is not None and weight_format(settings.weight_format) is not None:
        return False
    return settings.weights is None and settings.load_bits is None and (settings.zero_stage is None or settings.precision is None)


def _checkpointing_is_assumed(settings: RunSettings, made: Setup) -> bool:
    stated = settings.gradient_checkpointing is not None or settings.selective_checkpointing is not None
    return made.task == "train" and not stated and not made.stack.checkpoints_always


def _trained(made: Setup) -> Assumption:
    if made.adapters is None:
        return assumed("finetuning", "all weights are trained", "训练全部权重")
    en, zh = _default_of(made.stack)
    return assumed("finetuning", f"LoRA of rank {made.adapters.rank}{en}", f"训练 LoRA，秩为 {made.adapters.rank}{zh}")


def _adapted(made: Setup) -> Assumption:
    en, zh = _default_of(made.stack)
    named = made.stack.lora_targets.replace(",", ", ")
    if named in _EVERY_LINEAR:
        return assumed("lora_targets", f"adapters on every linear layer{en}", f"所有线性层都加适配器{zh}", is_question=False)
    return assumed("lora_targets", f"adapters on {named}{en}", f"适配器加在 {named} 上{zh}", is_question=False)


def _as_shipped(file: str, made: Setup) -> Assumption:
    """Return what a missing file is assumed to be: the one shipped under its name, or what its name implies, or nothing."""
    named, layout, row = file[:_LONGEST], made.layout, shipped_file(file)
    stage = f"ZeRO stage {layout.stage}"
    en, zh = (stage, stage) if layout.engine == "deepspeed" else _SPREAD[layout.engine]
    if row is None:
        return assumed("zero_stage", f"{en}: {named} is not available", f"{zh}：未提供 {named}")
    host_en, host_zh = _ON_HOST.get((made.offload_params, made.offload_optimizer), ("", ""))
    origin = row["source"].partition(" ")[0]
    return assumed("zero_stage", f"{en}{host_en}, as in the {named} shipped by {origin}", f"{zh}{host_zh}：按 {origin} 自带的 {named}")


def _weight_type(made: Setup) -> Assumption:
    """Return the type of the weights, which `bf16: true` does not give: trained ones, or those below adapters."""
    en, zh = _default_of(made.stack)
    name = made.weights.name
    if made.adapters is None:
        return assumed("weights", f"weights trained in {name}{en}", f"权重以 {name} 训练{zh}")
    return assumed("weights", f"frozen weights in {name}{en}", f"冻结的权重为 {name}{zh}")


def _experts(made: Setup) -> Assumption:
    """Return whether routed experts are packed with the rest."""
    if made.stack.wide_experts:
        return assumed(
            "experts",
            "the experts are not quantized: bitsandbytes packs linear layers, and Transformers 5 keeps a layer's experts in one parameter",
            "专家权重未量化：bitsandbytes 只量化线性层，而从 Transformers 5 起每层的专家是一个整体参数",
        )
    return assumed(
        "experts", "the experts are quantized too, which not every program supports", "专家权重也一并量化，并非所有程序都会这样做"
    )


def _default_of(traits: FrameworkTraits) -> tuple[str, str]:
    """Return whose default a figure is, in both languages; empty if the framework is unknown."""
    named = f"{traits.title} {traits.version}".strip()
    return (f", the {named} default", f"，即 {named} 的默认值") if traits.title else ("", "")
