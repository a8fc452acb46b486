"""The options of a training run, or of one that generates text: what can be changed, subject by subject."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from msgspec.structs import replace

from oomdoctor.case.setup import Adapters, Engine, Setup
from oomdoctor.knowledge.tables.memory import adapter_targets, known_format, known_optimizer
from oomdoctor.planning.options import CostedMeasure, Option, available, measure, option
from oomdoctor.setups.respread import respread

RunOption = Option[Setup]
_EVERY = 64
"""Below this every micro-batch is considered, above it halves of the current one."""
_FOUR_BITS = 0.6
"""Maximum number of bytes per 4-bit parameter including its scales: rules/tables/weight_formats.csv."""
_SHORTEST = 256
"""Tokens below which a shorter limit frees next to nothing and truncates nearly every sample; no GPU gets a smaller part of a sample."""
_BUCKET, _LIVE = 50_000_000, 100_000_000
"""Elements of ZeRO's bucket, and parameters that stage 3 keeps gathered, if the buffers are to be small."""
_KEPT_STEPS = 4
"""Evaluation steps after which logits are moved to the host: rules/fixes/eval-accumulation.yaml."""
_SHARES = (0.6, 0.5, 0.4, 0.3, 0.2)
"""Shares of a GPU for an engine next to a trainer; below the last there is hardly any cache."""
_PARTS = 8
"""The number of parts into which a model's layers are divided to find those that go to the host."""
_ENGINES_OF_TORCH = ("none", "ddp", "fsdp1", "fsdp2")
"""Those whose optimizer is torch's own, so that it can be any."""


def batches(setup: Setup) -> tuple[RunOption, ...]:
    """Return smaller micro-batches that keep the samples per update, the largest first."""
    if setup.task != "train":
        return ()
    samples = setup.batch * setup.accumulation
    halves = (setup.batch >> times for times in range(1, setup.batch.bit_length()))
    sizes = {size for size in (*halves, *range(1, min(setup.batch, _EVERY))) if samples % size == 0}
    return tuple(_smaller(size, samples // size) for size in sorted(sizes, reverse=True))


def subjects(setup: Setup, capability: tuple[int, ...], can: Callable[[str], bool]) -> tuple[tuple[RunOption, ...], ...]:
    """Return the options of all other subjects on GPUs of this compute capability, without those that truncate data (`lengths`).

    `can` says whether the run's framework has a fix.
    """
    return available(_training(setup) if setup.task == "train" else _generating(setup), capability, can)


def lengths(setup: Setup, can: Callable[[str], bool]) -> tuple[RunOption, ...]:
    """Return half and a quarter of the tokens: of a sample, or of the longest text."""
    fix, name = ("shorter-sequences", "sequence_length") if setup.task == "train" else ("serving-memory", "max_model_len")
    parts = [setup.length // part for part in (2, 4) if setup.length // part >= _SHORTEST]
    return tuple(_option(measure(fix, **{name: part}), length=part) for part in parts if can(fix))


def replicas(setup: Setup) -> int:
    """Return how many groups of GPUs have their own samples."""
    layout = setup.layout
    return max(1, layout.cards // (layout.tensor * layout.pipeline * layout.context))


def _training(setup: Setup) -> Iterator[Iterator[RunOption]]:
    yield _checkpointing(setup)
    yield _attention(setup)
    yield _loss(setup)
    yield _optimizer(setup)
    yield _trained(setup)
    yield _precision(setup)
    yield _tower(setup)
    yield _sharding(setup)
    yield _buffers(setup)
    yield _syncing(setup)
    yield _context(setup)
    yield _split(setup)
    yield _evaluation(setup)
    yield _rollouts(setup)


def _generating(setup: Setup) -> Iterator[Iterator[RunOption]]:
    yield _cache_type(setup)
    yield _host_layers(setup)
    yield _tensor_parallel(setup)


def _rollouts(setup: Setup) -> Iterator[RunOption]:
    """Yield what makes room next to an engine on the same GPUs: it sleeps while weights are updated, or uses a smaller share."""
    engine = setup.rollout
    if engine is None:
        return
    if not engine.sleeps:
        yield _option(measure("rollout-sleep", rollout_sleeps=True), rollout=replace(engine, sleeps=True))
    for share in _SHARES:
        if share < engine.share:
            yield _option(measure("rollout-share-down", memory_share=share), rollout=replace(engine, share=share))


def _checkpointing(setup: Setup) -> Iterator[RunOption]:
    on = measure("gradient-checkpointing", gradient_checkpointing=True)
    away = measure("activation-offload", activation_offload=True)
    if setup.checkpointing != "full" or setup.checkpointed_every > 1:
        yield _option(on, checkpointing="full", checkpointed_every=1, checkpointed_together=1)
        yield _option(on, away, checkpointing="full", checkpointed_every=1, checkpointed_together=1, offload_activations=True)
    elif not setup.offload_activations:
        yield _option(away, offload_activations=True)


def _attention(setup: Setup) -> Iterator[RunOption]:
    if setup.eager_attention:
        yield _option(measure("attention-kernel", attention="sdpa"), eager_attention=False)


def _loss(setup: Setup) -> Iterator[RunOption]:
    if not setup.fused_loss:
        yield _option(measure("fused-cross-entropy", fused_cross_entropy=True), fused_loss=True)


def _optimizer(setup: Setup) -> Iterator[RunOption]:
    optimizer = setup.optimizer
    if optimizer.foreach_temporary and optimizer.name == "adamw" and setup.layout.engine != "deepspeed":
        yield _option(measure("fused-optimizer", optimizer="adamw_torch_fused"), optimizer=known_optimizer("adamw-fused"))
    if optimizer.in_backward or optimizer.name not in ("adamw", "adamw-fused"):
        return
    yield _option(measure("optimizer-8bit-paged", optimizer="adamw_bnb_8bit"), optimizer=known_optimizer("adamw-8bit"))
    yield _option(measure("factored-optimizer", optimizer="adafactor"), optimizer=known_optimizer("adafactor"))
    if setup.layout.engine not in _ENGINES_OF_TORCH:
        return
    yield _option(measure("paged-optimizer", optimizer="paged_adamw_32bit"), optimizer=known_optimizer("adamw-paged"))
    if setup.adapters is None and setup.layout.engine == "none":
        inside, paged = measure("optimizer-in-backward", optimizer_in_backward=True), known_optimizer("adamw-8bit-paged")
        yield _option(inside, optimizer=replace(optimizer, in_backward=True))
        yield _option(measure("optimizer-8bit-paged", optimizer="paged_adamw_8bit"), inside, optimizer=replace(paged, in_backward=True))


def _trained(setup: Setup) -> Iterator[RunOption]:
    lora, packed = measure("lora-rank-targets", finetuning="lora"), measure("quantise-4bit-8bit", load_bits=4)
    if setup.adapters is None:
        adapters = Adapters(rank=setup.stack.rank, targets=adapter_targets("all"))
        yield _option(lora, adapters=adapters, weights=known_format(setup.stack.frozen_weights))
        yield _option(lora, packed, adapters=adapters, weights=known_format("nf4"))
        return
    without_copies = replace(setup.adapters, full=frozenset(), count=None)
    frozen = measure("frozen-embeddings", modules_to_save="none")
    if setup.adapters.full:
        yield _option(frozen, adapters=without_copies)
    if setup.weights.bytes_per_param > _FOUR_BITS and not setup.adapters.blocks:
        yield _option(packed, weights=known_format("nf4"))
        if setup.adapters.full:
            yield _option(frozen, packed, adapters=without_copies, weights=known_format("nf4"))


def _precision(setup: Setup) -> Iterator[RunOption]:
    if setup.weights.bytes_per_param > 2 and setup.layout.engine != "deepspeed":
        yield _option(measure("half-precision", weights="bf16"), weights=known_format("bf16"), given_weights="bf16")


def _tower(setup: Setup) -> Iterator[RunOption]:
    """Yield freezing, even if it is unknown whether gradients go through the tower: freezing settles that."""
    if setup.tower_trained is not False and setup.shape.vision is not None:
        yield _option(measure("freeze-vision-tower", freeze_vision=True), tower_trained=False)


def _sharding(setup: Setup) -> Iterator[RunOption]:
    """Yield ZeRO with and without offloading, and FSDP; anything already sharded stays sharded."""
    layout = setup.layout
    if layout.data < 2:
        return
    if layout.wide_gradients:
        yield from _megatron_sharding(setup)
        return
    ours = layout.engine == "deepspeed"
    stages = [2, 3] if layout.engine in ("ddp", "none", "device_map") else [stage for stage in (2, 3) if ours and stage > layout.stage]
    for stage in [*([layout.stage] if ours and layout.stage >= 1 else []), *stages]:
        zero = () if stage == layout.stage and ours else (measure("zero2-zero3", zero_stage=stage),)
        away = () if setup.offload_optimizer else (measure("offload-optimizer", offload_optimizer="cpu"),)
        if zero:
            yield _sharded("deepspeed", stage, *zero)
        if away and (ours or stage == 2):
            # Ready-made files offload the optimizer at stage 2 and everything at stage 3; a custom file can have both separately.
            yield _sharded("deepspeed", stage, *zero, *away, offload_optimizer=True)
        if stage == 3 and not setup.offload_params:
            whole = (*zero, *away, measure("offload-params", offload_params="cpu"))
            yield _sharded("deepspeed", stage, *whole, offload_optimizer=True, offload_params=True)
    host = measure("offload-params", fsdp_offload=True)
    if layout.engine in ("ddp", "none", "device_map"):
        shard = measure("fsdp-full-shard", fsdp=True)
        # Frameworks that do not give a version start the first, which keeps more between micro-batches.
        yield _sharded("fsdp1", 3, shard)
        yield _sharded("fsdp1", 3, shard, host, offload_params=True, offload_optimizer=True)
    if layout.engine in ("fsdp1", "fsdp2") and not setup.offload_params:
        yield _option(host, offload_params=True, offload_optimizer=True)


def _megatron_sharding(setup: Setup) -> Iterator[RunOption]:
    """Yield what Megatron's distributed optimizer does, the only one that can offload its states: arguments.py:1803 of core_v0.19.0."""
    divided = setup.layout.stage >= 1
    shard = () if divided else (measure("distributed-optimizer", shards_states=True),)
    if shard:
        yield _sharded(setup.layout.engine, 1, *shard)
    if not setup.offload_optimizer:
        away = measure("offload-optimizer", offload_optimizer="cpu")
        yield _sharded(setup.layout.engine, max(1, setup.layout.stage), *shard, away, offload_optimizer=True)


def _buffers(setup: Setup) -> Iterator[RunOption]:
    """Yield smaller DeepSpeed buffers, if its JSON leaves them large."""
    layout = setup.layout
    if layout.engine != "deepspeed":
        return
    smaller: dict[str, int] = {}
    if (layout.bucket or 0) > _BUCKET:
        smaller["bucket"] = _BUCKET
    if layout.stage == 3 and (layout.live is None or layout.live > _LIVE):
        smaller["live"] = _LIVE
    if smaller:
        yield _layout_option(measure("smaller-zero-buffers", **{f"zero_{name}": size for name, size in smaller.items()}), **smaller)


def _syncing(setup: Setup) -> Iterator[RunOption]:
    """Yield an exchange after every micro-batch, since FSDP keeps whole gradients between them; a smaller batch makes several from one."""
    if setup.layout.engine == "fsdp1" and setup.layout.data > 1 and setup.layout.pipeline == 1 and not setup.layout.syncs:
        yield _layout_option(measure("sync-each-batch", syncs_gradients=True), syncs=True)


def _context(setup: Setup) -> Iterator[RunOption]:
    """Yield each sample on several GPUs; each GPU's part of the key heads must be whole, as in ms-swift and DeepSpeed Ulysses."""
    now = setup.layout.context
    for size in _groups(setup, now):
        if setup.shape.kv_heads % size == 0 and setup.length // size >= _SHORTEST and not setup.eager_attention:
            yield _grouped(setup, "context-parallel", "context", size, size // now)


def _split(setup: Setup) -> Iterator[RunOption]:
    """Yield tensor and pipeline parallel training; programs that support it do not split adapters."""
    layout = setup.layout
    if setup.adapters is not None or layout.engine == "deepspeed":
        return
    for size in _groups(setup, layout.tensor):
        if setup.shape.kv_heads % size == 0:
            yield _grouped(setup, "tensor-parallel", "tensor", size, size // layout.tensor)
    for size in _groups(setup, layout.pipeline):
        if setup.shape.layers % size == 0:
            yield _grouped(setup, "pipeline-parallel", "pipeline", size, size // layout.pipeline)


def _groups(setup: Setup, now: int) -> Iterator[int]:
    """Yield group sizes beyond the current one, doubled each time, that divide the number of GPUs."""
    size = 2
    while size <= replicas(setup):
        if replicas(setup) % size == 0:
            yield now * size
        size *= 2


def _evaluation(setup: Setup) -> Iterator[RunOption]:
    """Yield a batch as in training, which fits if that does, or otherwise one sample.

    Collected logits are moved to the host, or are not collected.
    """
    batch = setup.eval_batch or 1
    if setup.eval_samples:
        kept = min(setup.eval_samples, _KEPT_STEPS * batch)
        yield _option(measure("eval-accumulation", eval_accumulation=_KEPT_STEPS), eval_samples=kept)
        yield _option(measure("evaluation", eval_batch=1, prediction_loss_only=True), eval_batch=1, eval_samples=None)
        return
    for size in sorted({min(setup.batch, batch), 1}, reverse=True):
        if size < batch:
            yield _option(measure("evaluation", eval_batch=size), eval_batch=size)


def _host_layers(setup: Setup) -> Iterator[RunOption]:
    """Yield fewer layers on the GPU for llama.cpp, an eighth at a time; for a mixture of experts the experts go first."""
    run, layers = setup.ggml, setup.shape.layers
    if run is None:
        return
    if setup.shape.experts is not None and run.layers is None:
        for part in range(1, _PARTS + 1):
            if (number := layers * part // _PARTS) > run.host_experts:
                yield _option(measure("host-layers", host_experts=number), ggml=replace(run, host_experts=float(number)))
    most = layers + 1 if run.layers is None else min(run.layers, layers + 1)
    for part in range(_PARTS - 1, 0, -1):
        if (number := (layers + 1) * part // _PARTS) < most:
            yield _option(measure("host-layers", gpu_layers=number), ggml=replace(run, layers=number))


def _cache_type(setup: Setup) -> Iterator[RunOption]:
    if setup.cache_bytes > 1:
        yield _option(measure("serving-memory", kv_cache_dtype="fp8"), cache_bytes=1.0)


def _tensor_parallel(setup: Setup) -> Iterator[RunOption]:
    """Yield powers of two up to the number of GPUs, since heads must divide evenly."""
    size = setup.layout.tensor * 2
    while size <= setup.layout.cards:
        if setup.shape.heads % size == 0:
            yield _layout_option(measure("tensor-parallel", tensor_parallel=size), tensor=size)
        size *= 2


def _option(*measures: CostedMeasure, **fields: Any) -> RunOption:
    return option(*measures, apply=lambda setup: replace(setup, **fields))


def _layout_option(*measures: CostedMeasure, **fields: Any) -> RunOption:
    return option(*measures, apply=lambda setup: replace(setup, layout=replace(setup.layout, **fields)))


def _sharded(engine: Engine, stage: int, *measures: CostedMeasure, **fields: Any) -> RunOption:
    def apply(setup: Setup) -> Setup:
        return respread(replace(setup, **fields), replace(setup.layout, engine=engine, stage=stage))

    return option(*measures, apply=apply)


def _smaller(size: int, accumulation: int) -> RunOption:
    return _option(measure("smaller-batch", micro_batch=size, accumulation=accumulation), batch=size, accumulation=accumulation)


def _grouped(setup: Setup, fix: str, name: str, size: int, times: int) -> RunOption:
    """Return the option of `times` as many GPUs on the same samples, with that many times more accumulation."""
    sets: dict[str, int] = {f"{name}_parallel": size, "accumulation": setup.accumulation * times}

    def apply(setup: Setup) -> Setup:
        return replace(setup, layout=replace(setup.layout, **{name: size}), accumulation=setup.accumulation * times)

    return option(measure(fix, **sets), apply=apply, together=times)
