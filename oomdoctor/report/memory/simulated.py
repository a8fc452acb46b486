"""What the simulated steps of a run show, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from oomdoctor.case.text import Text
from oomdoctor.report.document import Block, Facts, Heading, Paragraph, Row, Span
from oomdoctor.report.wording.wording import Wording
from oomdoctor.simulation.simulated_run import BlockGroup, FailedRequest, SimulatedPhase, SimulatedRun, Simulation
from oomdoctor.units import format_size

_TITLE = Text("Simulated: two steps through torch's allocator", "模拟：两步训练经过 torch 分配器的过程")
_RESERVED = Text("peak reserved", "预留峰值")
_ALLOCATED = Text("peak in tensors", "张量占用峰值")
_UNUSED = Text("unused at that peak", "当时未使用")
_FLUSHES = Text("cache released", "清空缓存次数")
_STEP = Text("step {}, {}", "第 {} 步，{}")
_PHASES = {
    "load": Text("loading", "加载模型"),
    "forward": Text("forward", "前向"),
    "backward": Text("backward", "反向"),
    "step": Text("optimizer", "优化器更新"),
}
_HELD = Text("{} reserved, {} in tensors", "预留 {}，张量占用 {}")
_FAILS = Text(
    "On this card the run fails at {}: {} requests {}. {} is reserved, {} of it in tensors; the card has {} left, and the "
    "largest free block is {}.",
    "在这张卡上，运行会在“{}”失败：{} 申请 {}。此时已预留 {}，其中张量占用 {}；显卡还剩 {}，最大的空闲块为 {}。",
)
_ENOUGH = Text(
    "On this card, every request of the two steps succeeds. Torch can use about {} of it.",
    "在这张卡上，两步中的所有申请都能满足。torch 大约可使用其中的 {}。",
)

_AT_THE_PEAK = Text("Tensors use the most in {}. They are:", "张量占用最多的时刻是{}，其中：")
_AT_THE_END = Text("In tensors when the request fails:", "申请失败时张量中的内容：")
_BLOCKS = Text("{} blocks", "{} 块")
_HOLDERS = {
    "parameter": Text("parameters", "参数"),
    "gradient": Text("gradients", "梯度"),
    "gradient shard": Text("own gradient shard", "本卡的梯度分片"),
    "optimizer state": Text("optimizer states", "优化器状态"),
    "optimizer step": Text("optimizer temporaries", "优化器临时空间"),
    "fp32 copy": Text("fp32 copy of the parameters", "参数的 fp32 副本"),
    "all-gather": Text("parameters gathered from other cards", "从其他卡收集的参数"),
    "reduce-scatter": Text("gradients being sent to other cards", "正在归约的梯度"),
    "bucket": Text("communication buckets", "通信桶"),
    "cuBLAS workspace": Text("cuBLAS workspace", "cuBLAS 工作区"),
}


def simulated_blocks(simulation: Simulation | None, wording: Wording) -> Sequence[Block]:
    """Return the blocks about a simulation; none where nobody asked for one."""
    return () if simulation is None else tuple(_blocks(simulation, wording))


def _blocks(simulation: Simulation, wording: Wording) -> Iterator[Block]:
    run = simulation.run
    yield Heading(text=wording.say(_TITLE))
    if run.failed is not None:
        yield Paragraph(spans=(Span(_failure(run.failed, wording)),))
    elif simulation.capacity is not None:
        yield Paragraph(spans=(Span(wording.say(_ENOUGH).format(format_size(simulation.capacity))),))
    yield Facts(rows=tuple(_rows(run, wording)))
    if run.holders:
        moment = _AT_THE_END if run.failed is not None else _AT_THE_PEAK
        yield Paragraph(spans=(Span(wording.say(moment).format(_name(run.fullest, wording))),))
        yield Facts(rows=tuple(_holder(each, wording) for each in run.holders))


def _rows(run: SimulatedRun, wording: Wording) -> Iterator[Row]:
    yield Row(label=wording.say(_RESERVED), value=format_size(run.reserved), note="max_memory_reserved")
    yield Row(label=wording.say(_ALLOCATED), value=format_size(run.allocated), note="max_memory_allocated")
    yield Row(label=wording.say(_UNUSED), value=format_size(run.unused))
    if run.flushes:
        yield Row(label=wording.say(_FLUSHES), value=str(run.flushes))
    for phase in run.phases:
        held = wording.say(_HELD).format(format_size(phase.reserved), format_size(phase.allocated))
        yield Row(label=_name(phase, wording), value=held)


def _holder(each: BlockGroup, wording: Wording) -> Row:
    known = _HOLDERS.get(each.name)
    label = each.name if known is None else wording.say(known)
    return Row(label=label, value=format_size(each.bytes), note=wording.say(_BLOCKS).format(each.blocks))


def _name(phase: SimulatedPhase, wording: Wording) -> str:
    name = wording.say(_PHASES[phase.name])
    return wording.say(_STEP).format(phase.step, name) if phase.step else name


def _failure(failed: FailedRequest, wording: Wording) -> str:
    sizes = (failed.size, failed.reserved, failed.allocated, failed.free, failed.largest_free)
    return wording.say(_FAILS).format(_name(failed.phase, wording), failed.place, *(format_size(size) for size in sizes))
