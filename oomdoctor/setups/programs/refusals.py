"""What programs check in their settings before they start, and the resulting message (`rules/tables/refusals.csv`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Union

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.refusal import StartupRefusal
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.shape import Shape
from oomdoctor.case.text import Text
from oomdoctor.knowledge.tables.cards import Card
from oomdoctor.knowledge.tables.csv_table import Row, table
from oomdoctor.knowledge.tables.request_lengths import request_length
from oomdoctor.setups.weights_said import weights_said
from oomdoctor.versions import within

_NEAREST = 3
_MOST_CARDS = 1024
Value = Union[int, str]


class LaunchedRun(Struct, frozen=True, kw_only=True):
    """The run to be started."""

    settings: RunSettings
    shape: Shape
    card: Card | None
    cards: int | None
    """GPUs of the machine; None if their number is unknown."""
    value: str = ""
    """The value for the check in its table row."""

    @property
    def tensor(self) -> int:
        """Return the number of GPUs that share each attention: its copies divide the tensor parallel GPUs among them."""
        size = positive(self.settings.tensor_parallel) or 1
        copies = positive(self.settings.attention_copies) or 1
        return max(1, size // copies) if self.settings.splits_attention else size

    @property
    def pipeline(self) -> int:
        """Return the number of GPUs that share the layers."""
        return positive(self.settings.pipeline_parallel) or 1

    @property
    def data(self) -> int | None:
        """Return the number of model copies that see different samples; None if the number of processes is unknown."""
        world = positive(self.settings.world_size) or self.cards
        context = positive(self.settings.context_parallel) or 1
        return None if world is None else max(1, world // (self.tensor * self.pipeline * context))


class _FailedCheck(Struct, frozen=True):
    """A check that fails: the values in its message, why, what to change, and what would pass."""

    values: Mapping[str, Value]
    why: Text
    setting: str
    instead: Sequence[int] = ()


def refusals(run: LaunchedRun, framework: str | None, title: str, version: str | None) -> tuple[StartupRefusal, ...]:
    """Return the checks of this program that the settings fail, in the order of the table."""
    return tuple(_refused(run, framework or "", title, version))


def _refused(run: LaunchedRun, framework: str, title: str, version: str | None) -> Iterator[StartupRefusal]:
    for row in table("refusals"):
        if framework not in row["programs"].split("|") or within(version, row["since"] or None, row["until"] or None) is False:
            continue
        failed = _CHECKS[row["check"]](replace(run, value=row["value"]))
        if failed is not None:
            yield _refusal(row, failed, title)


def _refusal(row: Row, failed: _FailedCheck, title: str) -> StartupRefusal:
    return StartupRefusal(
        id=row["check"],
        program=title,
        message=row["message"].format(**failed.values),
        why=failed.why,
        setting=failed.setting,
        instead=tuple(failed.instead)[:_NEAREST],
        source=row["source"],
    )


def _near(now: int, sizes: Iterator[int]) -> list[int]:
    return sorted(sizes, key=lambda size: (abs(size - now), size))


def _heads(run: LaunchedRun) -> _FailedCheck | None:
    heads, tensor = run.shape.heads, run.tensor
    if run.shape.guessed or not heads or heads % tensor == 0:
        return None
    why = Text(f"{heads} attention heads cannot be divided among {tensor} cards.", f"{heads} 个注意力头无法平均分到 {tensor} 张卡上。")
    return _FailedCheck({"heads": heads, "tensor": tensor}, why, "tensor_parallel", _near(tensor, _dividing(heads, run.cards)))


def _kv_heads(run: LaunchedRun) -> _FailedCheck | None:
    shape, tensor = run.shape, run.tensor
    groups = shape.kv_heads
    if shape.guessed or shape.latent is not None or not groups or shape.heads % tensor:
        return None
    if groups % tensor == 0 or tensor % groups == 0:
        return None
    why = Text(
        f"{groups} key-value heads can be neither divided among {tensor} cards nor replicated on them evenly.",
        f"{groups} 个 KV 头既无法平均分到 {tensor} 张卡上，也无法均匀复制。",
    )
    fitting = (size for size in _dividing(shape.heads, run.cards) if groups % size == 0 or size % groups == 0)
    return _FailedCheck({"kv_heads": groups, "tensor": tensor}, why, "tensor_parallel", _near(tensor, fitting))


def _dividing(heads: int, cards: int | None) -> Iterator[int]:
    return (size for size in range(1, min(heads, cards or _MOST_CARDS) + 1) if heads % size == 0)


def _length(run: LaunchedRun) -> _FailedCheck | None:
    told = positive(run.settings.max_model_len) or positive(run.settings.sequence_length)
    longest = run.shape.longest or request_length(run.settings.model, run.shape.name)
    if not told or not longest or run.shape.guessed or told <= longest:
        return None
    why = Text(
        f"the model accepts at most {longest:,} tokens, according to its config.json.", f"模型 config.json 写明最多 {longest:,} 个 token。"
    )
    return _FailedCheck({"length": told, "longest": longest}, why, "max_model_len", (longest,))


def _cards(run: LaunchedRun) -> _FailedCheck | None:
    settings, cards = run.settings, run.cards
    if cards is None or (positive(settings.nodes) or 1) > 1:
        return None
    if settings.method == "serve":
        processes, setting = (
            (positive(settings.tensor_parallel) or 1) * run.pipeline * (positive(settings.data_parallel) or 1),
            "tensor_parallel",
        )
    else:
        processes, setting = positive(settings.processes_per_node) or positive(settings.world_size) or 1, "processes_per_node"
    if processes <= cards:
        return None
    why = Text(
        f"{processes} processes need one card each, but there are {cards}.", f"{processes} 个进程各需要一张卡，而这里只有 {cards} 张。"
    )
    return _FailedCheck({"processes": processes, "cards": cards}, why, setting, (cards,))


def _step_requests(run: LaunchedRun) -> _FailedCheck | None:
    batched, requests = positive(run.settings.max_batched_tokens), positive(run.settings.max_num_seqs)
    if not batched or not requests or batched >= requests:
        return None
    why = Text("each request needs at least one token per step.", "每个请求在一步中至少有一个 token。")
    return _FailedCheck({"batched": batched, "requests": requests}, why, "max_batched_tokens", (requests,))


def _step_length(run: LaunchedRun) -> _FailedCheck | None:
    settings = run.settings
    batched, length = positive(settings.max_batched_tokens), positive(settings.max_model_len) or run.shape.longest
    if settings.chunked_prefill is not False or not batched or not length or batched >= length:
        return None
    why = Text(
        "without chunked prefill, one step processes the longest prompt as a whole.", "关闭分块预填充后，最长的提示词要在一步内读完。"
    )
    return _FailedCheck({"batched": batched, "length": length}, why, "max_batched_tokens", (length,))


def _kernel(run: LaunchedRun) -> _FailedCheck | None:
    form, least = run.value.split(" ")
    stored = weights_said(run.shape, run.settings.quantization, run.settings.model)
    capability = _capability(run.card)
    if stored is None or stored.name != form or capability is None or capability >= float(least):
        return None
    why = Text(
        f"its kernels need compute capability {least}, but the card has {capability:.1f}.",
        f"其内核要求计算能力 {least}，而这张卡是 {capability:.1f}。",
    )
    return _FailedCheck({"capability": round(10 * capability)}, why, "quantization")


def _bf16(run: LaunchedRun) -> _FailedCheck | None:
    capability = _capability(run.card)
    if run.settings.precision != "bf16" or run.card is None or capability is None or capability >= float(run.value):
        return None
    why = Text("bf16 needs an Ampere or newer card; use float16.", "bf16 需要 Ampere 或更新的卡；请改用 float16。")
    return _FailedCheck({"card": run.card.name, "compute": f"{capability:.1f}"}, why, "precision")


def _capability(card: Card | None) -> float | None:
    return float(card.capability) if card is not None and card.capability else None


def _world(run: LaunchedRun) -> _FailedCheck | None:
    world = positive(run.settings.world_size) or run.cards
    size = run.tensor * run.pipeline * (positive(run.settings.context_parallel) or 1)
    if world is None or world % size == 0:
        return None
    why = Text(
        f"{world} processes cannot be divided into groups of {size}, tensor x pipeline x context parallel.",
        f"{world} 个进程无法按张量 x 流水线 x 上下文并行的 {size} 个一组划分。",
    )
    nearest = sorted({size * max(1, world // size), size * (world // size + 1)}, key=lambda near: abs(near - world))
    return _FailedCheck({"processes": world, "model_size": size}, why, "world_size", nearest)


def _layers(run: LaunchedRun) -> _FailedCheck | None:
    layers, pipeline = run.shape.layers, run.pipeline
    if run.shape.guessed or layers % pipeline == 0:
        return None
    why = Text(f"{layers} layers cannot be divided evenly among {pipeline} stages.", f"{layers} 层无法平均分到 {pipeline} 级流水线。")
    return _FailedCheck({"layers": layers, "pipeline": pipeline}, why, "pipeline_parallel", _near(pipeline, _dividing(layers, run.cards)))


def _experts(run: LaunchedRun) -> _FailedCheck | None:
    experts, parallel = run.shape.experts, positive(run.settings.expert_parallel) or 1
    if experts is None or run.shape.guessed or experts.routed % parallel == 0:
        return None
    why = Text(
        f"{experts.routed} experts cannot be divided among {parallel} cards.", f"{experts.routed} 个专家无法平均分到 {parallel} 张卡上。"
    )
    return _FailedCheck({}, why, "expert_parallel", _near(parallel, _dividing(experts.routed, run.cards)))


def _global_batch(run: LaunchedRun) -> _FailedCheck | None:
    samples, batch, data = positive(run.settings.global_batch), positive(run.settings.micro_batch), run.data
    if not samples or not batch or data is None or samples % (batch * data) == 0:
        return None
    step = batch * data
    why = Text(f"the samples per update must be a multiple of {batch} x {data}.", f"每次更新的样本数必须是 {batch} x {data} 的倍数。")
    nearest = sorted({step * max(1, samples // step), step * (samples // step + 1)}, key=lambda near: abs(near - samples))
    return _FailedCheck({"samples": samples, "batch": batch, "data": data}, why, "global_batch", nearest)


def _zero_batch(run: LaunchedRun) -> _FailedCheck | None:
    settings = run.settings
    samples, batch, data = positive(settings.global_batch), positive(settings.micro_batch), run.data
    if settings.zero_stage is None or not samples or not batch or data is None:
        return None
    steps = positive(settings.accumulation)
    product = batch * (steps or 1) * data
    if samples == product if steps else samples % product == 0:
        return None
    why = Text(
        f"train_batch_size is {samples} samples, but {batch} x {steps or 1} x {data} is {product}.",
        f"train_batch_size 写的是 {samples}，而 {batch} x {steps or 1} x {data} 是 {product}。",
    )
    values = {"samples": samples, "batch": batch, "steps": steps or 1, "data": data, "product": product}
    return _FailedCheck(values, why, "global_batch", (product,))


def _packed_whole(run: LaunchedRun) -> _FailedCheck | None:
    bits = positive(run.settings.load_bits)
    if run.settings.finetuning not in ("full", "freeze") or bits not in (4, 8):
        return None
    return _FailedCheck(
        {}, Text("full-parameter training is not possible with quantized weights.", "量化的权重不能整体训练。"), "finetuning"
    )


_CHECKS: Mapping[str, Callable[[LaunchedRun], _FailedCheck | None]] = {
    "heads": _heads,
    "kv_heads": _kv_heads,
    "length": _length,
    "cards": _cards,
    "step_requests": _step_requests,
    "step_length": _step_length,
    "kernel": _kernel,
    "bf16": _bf16,
    "world": _world,
    "layers": _layers,
    "experts": _experts,
    "global_batch": _global_batch,
    "zero_batch": _zero_batch,
    "packed_whole": _packed_whole,
}
"""By the names of the table."""
