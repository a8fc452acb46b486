"""A run as its config says it (the names that all frameworks share), as a setup; what is not said is taken from defaults and named."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from msgspec.structs import replace

from oomdoctor.case.estimate import Assumption
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.setup import Adapters, Checkpointing, Engine, FrameworkTraits, Layout, Optimizer, Setup, WeightFormat
from oomdoctor.case.shape import Shape
from oomdoctor.case.text import Text
from oomdoctor.knowledge.tables.likeness import nearest
from oomdoctor.knowledge.tables.memory import (
    adapter_targets,
    cache_bytes,
    framework_traits,
    known_format,
    known_optimizer,
    optimizer_named,
    optimizer_names,
    training_method,
    weight_format,
)
from oomdoctor.knowledge.tables.shipped_files import shipped_file
from oomdoctor.knowledge.tables.training_defaults import DefaultsQuery
from oomdoctor.memory import activations
from oomdoctor.memory.model.weights import SHARDS_ALL
from oomdoctor.memory.optimizer import ZERO_BUCKET
from oomdoctor.setups.assumed import assumed
from oomdoctor.setups.programs.ggml import ggml_assumptions, on_ggml
from oomdoctor.units import GIB

NO_VERSIONS: Mapping[str, str] = MappingProxyType({})
_LENGTH = 2048
_BLOCKS = 2
"""Layers that freeze tuning trains by default: freeze_trainable_layers of LLaMA-Factory hparams/finetuning_args.py."""
_EVAL_BATCH = 8
"""per_device_eval_batch_size of transformers/training_args.py."""
_STAGE = 2
"""ZeRO stage of a DeepSpeed file of which only the name is known, and that says nothing."""
_LONGEST = 100
_MODULE = re.compile(r"[A-Za-z][\w-]{0,60}")
_EVERYWHERE = frozenset({"all-linear"})
_HALVES = ("bf16", "fp16")
_BYTES = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1, "remainder": 2}
_PACKED = {4: "nf4", 8: "int8"}
_OPTIMIZERS = {"adamw": "AdamW", "adamw-fused": "AdamW"}
"""As people write them."""
_ADAPTED = ("lora", "qlora", "dora", "adalora", "loha", "lokr", "oft")


_ON_HOST = {
    (True, True): (" with parameters and optimizer on the host", "，参数和优化器放在主机内存"),
    (True, False): (" with the parameters on the host", "，参数放在主机内存"),
    (False, True): (" with the optimizer on the host", "，优化器放在主机内存"),
}
"""By whether parameters and optimizer are offloaded."""
_OPERATIONS = "op"
"""The word for chosen operations: torchtitan's selective_ac_option."""
_SPREAD = {
    "fsdp1": ("FSDP", "FSDP"),
    "fsdp2": ("FSDP 2", "FSDP 2"),
    "ddp": ("nothing sharded", "不分片"),
    "none": ("nothing sharded", "不分片"),
    "device_map": ("layers spread over the cards", "各层分布在多张卡上"),
}
"""By the engine, where it is not DeepSpeed."""
_CHECKPOINTED = {"none": ("off", "未开启"), "selective": ("selective", "为选择性（selective）"), "full": ("on", "已开启")}


def setup_from_settings(
    settings: RunSettings, shape: Shape, framework: str | None, cards: int, versions: Mapping[str, str] = NO_VERSIONS
) -> tuple[Setup, tuple[Assumption, ...]]:
    """Return the setup of a run on `cards` cards, as nvidia-smi will show it, and what had to be assumed.

    `versions` are those that are known, by framework; of others the newest that was read counts.
    """
    layout = _layout(settings, shape, cards)
    traits = framework_traits(framework, _query(settings, layout, versions))
    training = settings.method != "serve"
    if training and traits.shards and layout.engine == "ddp" and settings.fsdp is not False:
        layout = replace(layout, engine="fsdp2", stage=3)
        traits = framework_traits(framework, _query(settings, layout, versions))
    adapters = _adapters(settings, traits, shape) if training else None
    compared = training_method(settings.method or "")
    made = Setup(
        shape=shape,
        task="train" if training else "infer",
        stack=traits,
        weights=_weights(settings, traits, adapters, training=training),
        optimizer=_as_stored(_optimizer(settings, traits), settings),
        given_weights=settings.weights,
        adapters=adapters,
        layout=_as_megatron(layout, settings) if traits.wide_gradients and training else layout,
        batch=positive(settings.micro_batch) or (traits.batch if training else 1),
        length=_length(settings, traits),
        sequences=compared.sequences,
        reference=compared.reference,
        accumulation=_accumulation(settings, layout),
        checkpointing=_checkpointing(settings, traits),
        checkpointed_every=_checkpointed_every(settings) or _beside_block(settings, shape, layout),
        checkpointed_together=(positive(settings.recompute_layers) or 1) if settings.recompute_method == "uniform" else 1,
        eager_attention=settings.attention == "eager",
        fused_loss=traits.fused_loss if settings.fused_cross_entropy is None else settings.fused_cross_entropy,
        offload_params=_offloaded(settings.offload_params) or settings.fsdp_offload is True,
        offload_optimizer=_offloaded(settings.offload_optimizer),
        offload_activations=traits.offloads_checkpoints or settings.activation_offload is True,
        even_lengths=_even(settings),
        tower_trained=_tower(settings, traits, shape) if training else False,
        counter="nvidia-smi",
        cache_bytes=cache_bytes(settings.kv_cache_dtype, shape),
        eval_batch=_eval_batch(settings) if training else None,
        saves_whole=_saves_whole(settings),
        merges=training and settings.merge_adapters is True,
    )
    made = on_ggml(made, settings, framework)
    return made, (*_assumptions(settings, made), *ggml_assumptions(made, settings))


def _weights(settings: RunSettings, traits: FrameworkTraits, adapters: Adapters | None, *, training: bool) -> WeightFormat:
    bits = positive(settings.load_bits)
    if bits in _PACKED:
        return known_format(_PACKED[bits])
    if settings.finetuning == "qlora" and bits is None:
        return known_format("nf4")
    stated = (settings.precision or "").lower()
    if not training:
        return weight_format(stated) or known_format("bf16")
    # `bf16: true` alone means autocast over weights of the type in which a Trainer loads or casts them.
    kept = traits.full_weights if adapters is None else traits.frozen_weights
    if kept in _HALVES:
        return known_format(stated if stated in _HALVES else kept)
    return known_format(kept)


def _query(settings: RunSettings, layout: Layout, versions: Mapping[str, str]) -> DefaultsQuery:
    precision = (settings.precision or "").lower()
    return DefaultsQuery(
        engine=layout.engine,
        method=(settings.method or "sft").lower(),
        weights=settings.weights,
        attention=settings.attention or "sdpa",
        packed=positive(settings.load_bits) is not None or settings.finetuning == "qlora",
        computes_wide=precision == "fp32",
        versions=tuple(sorted(versions.items())),
    )


def _optimizer(settings: RunSettings, traits: FrameworkTraits) -> Optimizer:
    optimizer = optimizer_named(settings.optimizer or traits.optimizer) or known_optimizer(traits.optimizer)
    return replace(optimizer, in_backward=True) if settings.optimizer_in_backward is True else optimizer


def _adapters(settings: RunSettings, traits: FrameworkTraits, shape: Shape) -> Adapters | None:
    kind = (settings.finetuning or traits.finetuning).lower()
    if kind == "freeze":
        return Adapters(rank=0, targets=frozenset(), blocks=min(_BLOCKS, shape.layers))
    if kind not in _ADAPTED:
        return None
    targets = adapter_targets(settings.lora_targets or "all") or adapter_targets("all")
    targets |= adapter_targets("mlp") if settings.adapts_mlp else frozenset()
    targets |= adapter_targets("head") if settings.adapts_head else frozenset()
    copies = adapter_targets(settings.modules_to_save or "") & {"embed", "head"}
    return Adapters(rank=positive(settings.lora_rank) or traits.rank, targets=targets - copies, full=copies)


def _layout(settings: RunSettings, shape: Shape, cards: int) -> Layout:
    stage = settings.zero_stage and positive(settings.zero_stage)
    engine: Engine = "ddp" if cards > 1 else "none"
    depth = 0
    if stage is not None or settings.zero_file:
        engine, depth = "deepspeed", _STAGE if stage is None else min(3, stage)
    elif settings.fsdp:
        engine, depth = ("fsdp2" if settings.fsdp_version == 2 else "fsdp1"), 3
    return Layout(
        engine=engine,
        cards=cards,
        stage=depth,
        tensor=positive(settings.tensor_parallel) or 1,
        pipeline=positive(settings.pipeline_parallel) or 1,
        context=positive(settings.context_parallel) or 1,
        expert=positive(settings.expert_parallel) or 1,
        bucket=_bucket(settings, shape) if engine == "deepspeed" else None,
        overlaps=_overlaps(settings, depth) if engine == "deepspeed" else None,
        live=positive(settings.zero_live),
        syncs=settings.syncs_gradients is True,
        meta_init=settings.fsdp_meta_init,
        copies=positive(settings.sharded_copies) or 1,
        sequence_parallel=settings.sequence_parallel is not False,
    )


def _bucket(settings: RunSettings, shape: Shape) -> int | None:
    """Return the elements of ZeRO's bucket: as the file says, else DeepSpeed's default; None where the file is not at hand."""
    if settings.zero_bucket_auto is True:
        return shape.hidden**2
    return positive(settings.zero_bucket) or (ZERO_BUCKET if settings.zero_file is None else None)


def _overlaps(settings: RunSettings, stage: int) -> bool | None:
    """Return whether ZeRO overlaps communication: overlap_comm_valid of deepspeed/runtime/zero/config.py, where the file says nothing."""
    is_told = settings.zero_overlap is not None or settings.zero_file is not None
    return settings.zero_overlap if is_told else stage == SHARDS_ALL


def _as_megatron(layout: Layout, settings: RunSettings) -> Layout:
    """Return the layout with gradients of a type of their own, and states that its distributed optimizer divides where that is on.

    Without a word bf16 is summed in fp32 and fp16 as it is: megatron/training/arguments.py:1171 to 1194 of core_v0.19.0. Without
    --sequence-parallel each card has hidden states and norms whole.
    """
    summed = settings.main_gradients or ("fp16" if settings.precision == "fp16" else "fp32")
    return replace(
        layout,
        wide_gradients=True,
        gradient_bytes=_BYTES.get(summed, 4),
        sequence_parallel=settings.sequence_parallel is True,
        stage=max(layout.stage, 1) if settings.shards_states is True else layout.stage,
    )


def _as_stored(optimizer: Optimizer, settings: RunSettings) -> Optimizer:
    """Return the optimizer with the types that the config gives its copy of the weights and its moments."""
    types = [settings.first_moment, settings.second_moment]
    if any(types) and optimizer.bytes_per_param is None:
        optimizer = replace(optimizer, bytes_per_param=sum(_BYTES.get(name or "fp32", 4) for name in types))
    return replace(optimizer, copy_bytes=_BYTES[settings.main_weights]) if settings.main_weights in _BYTES else optimizer


def _accumulation(settings: RunSettings, layout: Layout) -> int:
    """Return the micro batches of an update: as they are told, else as many as the samples of an update make."""
    told, samples, batch = positive(settings.accumulation), positive(settings.global_batch), positive(settings.micro_batch)
    if told or not samples or not batch:
        return told or 1
    return max(1, samples // (batch * max(1, layout.data // layout.context)))


def _saves_whole(settings: RunSettings) -> bool | None:
    """Return whether a checkpoint of a sharded model is written as one."""
    kind = settings.fsdp_state_dict
    return settings.zero_saves_whole if kind is None else kind.upper() == "FULL_STATE_DICT"


def _even(settings: RunSettings) -> bool | None:
    """Return whether batches have one length: packed or grouped; None where nothing is said."""
    stated = (settings.packing, settings.group_by_length)
    return True if True in stated else False if False in stated else None


def _checkpointing(settings: RunSettings, traits: FrameworkTraits) -> Checkpointing:
    stated, chosen = settings.gradient_checkpointing, settings.selective_checkpointing
    if chosen == _OPERATIONS:
        return "selective"
    if traits.checkpoints_always or stated or _checkpointed_every(settings) is not None:
        return "full"
    if stated is False or not traits.checkpointing:
        return "none"
    return "selective" if traits.selective else "full"


def _checkpointed_every(settings: RunSettings) -> int | None:
    """Return of how many layers one is checkpointed, where somebody says it."""
    chosen = str(settings.selective_checkpointing)
    return positive(int(chosen)) if chosen.isdigit() else None


def _beside_block(settings: RunSettings, shape: Shape, layout: Layout) -> float:
    """Return of how many layers one is checkpointed, where so many of those on a card are: `block` of Megatron."""
    layers, chosen = shape.layers / layout.pipeline, positive(settings.recompute_layers)
    return max(1.0, layers / chosen) if settings.recompute_method == "block" and chosen else 1


def _length(settings: RunSettings, traits: FrameworkTraits) -> int:
    return positive(settings.sequence_length) or positive(settings.max_model_len) or traits.length or _LENGTH


def _eval_batch(settings: RunSettings) -> int | None:
    """Return the batch of an evaluation; None where none runs."""
    if settings.eval_strategy in (None, "no", False):
        return None
    return positive(settings.eval_batch) or _EVAL_BATCH


def _tower(settings: RunSettings, traits: FrameworkTraits, shape: Shape) -> bool | None:
    """Return whether gradients go through a vision tower; None where nothing says it.

    What the config says goes first, then the framework's default. Adapters go to every matrix of the names that are their targets,
    those of the tower too (peft/tuners/tuners_utils.py, check_target_module_exists).
    """
    if settings.freeze_vision is not None or traits.freezes_tower:
        return settings.freeze_vision is False
    modules = shape.vision.modules if shape.vision else frozenset()
    named = frozenset(_MODULE.findall(settings.lora_targets or ""))
    if not modules or not named or settings.finetuning not in _ADAPTED:
        return None
    return bool(named & (modules | _EVERYWHERE))


def _offloaded(device: str | bool | None) -> bool:
    return device in ("cpu", "nvme", True)


def _assumptions(settings: RunSettings, made: Setup) -> Iterator[Assumption]:
    if made.shape.guessed:
        yield assumed(
            "shape",
            f"only the size of {made.shape.name} is known; its layers are a neighbour's",
            f"只知道 {made.shape.name} 的参数量，层结构取自相近的模型",
        )
    if made.task == "train" and settings.finetuning is None:
        yield _trained(made)
    elif made.task == "train" and made.adapters is not None and not made.adapters.blocks and positive(settings.lora_rank) is None:
        en, zh = (", the default of PEFT", "，即 PEFT 的默认值") if made.stack.lora_rank is None else _default_of(made.stack)
        yield assumed("lora_rank", f"adapters of rank {made.adapters.rank}{en}", f"适配器的秩为 {made.adapters.rank}{zh}")
    if made.task == "train" and positive(settings.micro_batch) is None:
        en, zh = _default_of(made.stack)
        yield assumed("micro_batch", f"batch size {made.batch} on each card{en}", f"每张卡的批大小为 {made.batch}{zh}")
    if made.task == "train":
        yield from _batch_stated_twice(settings, made.layout)
    if positive(settings.sequence_length) is None and positive(settings.max_model_len) is None:
        en, zh = _default_of(made.stack) if made.stack.length else ("", "")
        yield assumed("sequence_length", f"{made.length} tokens for each sample{en}", f"每条样本 {made.length} 个 token{zh}")
    if _checkpointing_is_assumed(settings, made):
        en, zh = _CHECKPOINTED[made.checkpointing]
        yield assumed("gradient_checkpointing", f"gradient checkpointing is {en}", f"梯度检查点{zh}")
    if made.task == "train" and made.adapters is None and settings.optimizer is None:
        # The states of adapters decide nothing.
        en, zh = _default_of(made.stack)
        title = _OPTIMIZERS.get(made.optimizer.name, made.optimizer.name)
        yield assumed("optimizer", f"{title} as the optimizer{en}", f"优化器为 {title}{zh}")
    if made.task == "train" and settings.optimizer is not None and optimizer_named(settings.optimizer) is None:
        title = _OPTIMIZERS.get(made.optimizer.name, made.optimizer.name)
        meant = nearest(settings.optimizer.lower(), optimizer_names())
        en, zh = (f" (did you mean {', '.join(meant)}?)", f"（是否指 {'、'.join(meant)}？）") if meant else ("", "")
        yield assumed(
            "optimizer",
            f"{title}, as {settings.optimizer[:_LONGEST]} is no optimizer that is known here{en}",
            f"按 {title} 计算：不认识优化器 {settings.optimizer[:_LONGEST]}{zh}",
        )
    if made.task == "train" and _type_is_assumed(settings) and (made.adapters is None or made.weights.name == "fp32"):
        yield _kept_as(made)
    if absent := settings.zero_file or settings.launch_file:
        yield _as_shipped(absent, made)
    tower = activations.tower(made)
    if made.task == "train" and made.tower_trained is None and tower is not None:
        most = f"{tower.high / GIB:.1f} GiB"
        yield assumed(
            "vision_tower",
            f"no gradients go through the vision tower; where they do, up to {most} more",
            f"梯度不经过视觉塔；若经过，最多再需 {most}",
        )
    if not training_method(settings.method or "").counted:
        yield assumed(
            "rollouts",
            "answers that are generated in training, and reward models, are not counted",
            "未计入训练中生成的回答和奖励模型",
        )
    if made.task == "train" and made.even_lengths is None and not made.stack.longest_first:
        yield Assumption(
            id="lengths",
            text=Text(
                "samples may differ in length; then blocks of shorter ones stay reserved",
                "样本长度可能不一，此时较短样本留下的显存块不会归还",
            ),
        )


def _batch_stated_twice(settings: RunSettings, layout: Layout) -> Iterator[Assumption]:
    """Say which of two batches counts where a DeepSpeed file states one that the others do not make: batch_assertion of its config.py."""
    samples, batch, steps = (positive(number) for number in (settings.global_batch, settings.micro_batch, settings.accumulation))
    if layout.engine != "deepspeed" or not samples or not batch:
        return
    copies = max(1, (settings.world_size or layout.cards) // (layout.tensor * layout.pipeline * layout.context))
    if samples == batch * steps * copies if steps else samples % (batch * copies) == 0:
        return
    product = f"{batch} x {steps} x {copies}" if steps else f"{batch} x {copies}"
    yield assumed(
        "global_batch",
        f"batch size {batch} on each card, though {product} does not make the {samples} samples that train_batch_size states; "
        "DeepSpeed stops there",
        f"每张卡的批大小为 {batch}：{product} 凑不成 train_batch_size 写的 {samples} 条，DeepSpeed 会因此报错退出",
    )


def _type_is_assumed(settings: RunSettings) -> bool:
    """Return whether nothing says in which type weights are trained: under autocast the precision of the passes does not."""
    return settings.weights is None and settings.load_bits is None and (settings.zero_stage is None or settings.precision is None)


def _checkpointing_is_assumed(settings: RunSettings, made: Setup) -> bool:
    stated = settings.gradient_checkpointing is not None or settings.selective_checkpointing is not None
    return made.task == "train" and not stated and not made.stack.checkpoints_always


def _trained(made: Setup) -> Assumption:
    if made.adapters is None:
        return assumed("finetuning", "all weights are trained", "训练全部权重")
    en, zh = _default_of(made.stack)
    return assumed("finetuning", f"LoRA of rank {made.adapters.rank}{en}", f"训练 LoRA，秩为 {made.adapters.rank}{zh}")


def _as_shipped(file: str, made: Setup) -> Assumption:
    """Say what a file that is not at hand is taken for: what is shipped under its name, else what the name says, else nothing."""
    named, layout, row = file[:_LONGEST], made.layout, shipped_file(file)
    stage = f"ZeRO stage {layout.stage}"
    en, zh = (stage, stage) if layout.engine == "deepspeed" else _SPREAD[layout.engine]
    if row is None:
        return assumed("zero_stage", f"{en}: {named} is not at hand", f"{zh}：未提供 {named}")
    host_en, host_zh = _ON_HOST.get((made.offload_params, made.offload_optimizer), ("", ""))
    origin = row["source"].partition(" ")[0]
    return assumed("zero_stage", f"{en}{host_en}, as {named} is shipped by {origin}", f"{zh}{host_zh}：按 {origin} 自带的 {named}")


def _kept_as(made: Setup) -> Assumption:
    """Say in which type the weights are, as no `bf16: true` does: trained ones, or those below adapters."""
    en, zh = _default_of(made.stack)
    name = made.weights.name
    if made.adapters is None:
        return assumed("weights", f"weights trained in {name}{en}", f"权重以 {name} 训练{zh}")
    return assumed("weights", f"frozen weights in {name}{en}", f"冻结的权重为 {name}{zh}")


def _default_of(traits: FrameworkTraits) -> tuple[str, str]:
    """Whose default a figure is, in both languages; nothing where nobody knows the framework."""
    named = f"{traits.title} {traits.version}".strip()
    return (f", the default of {named}", f"，即 {named} 的默认值") if traits.title else ("", "")
