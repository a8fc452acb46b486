"""What memory snapshots tell -> Document: why it failed, who held the memory, what grew, what is not known."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.api.runs.snapshot import SnapshotReport
from oomdoctor.case.text import Text
from oomdoctor.report.document import Block, Document, Facts, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.wording.wording import Wording
from oomdoctor.snapshots.explain import AT_OOM, AT_PEAK, DeviceExplanation
from oomdoctor.snapshots.facts import decisive, last_refusal
from oomdoctor.snapshots.refusal import Refusal
from oomdoctor.units import format_size

_SHOWN = 8
_TITLE = Text("oomdoctor {version}: memory snapshot", "oomdoctor {version}：显存快照")
_WHY = {
    "fragmentation": Text(
        "{requested} did not fit: {free} lay free in pieces, the largest {largest}.",
        "放不下 {requested}：空闲的 {free} 是碎片，最大一块 {largest}。",
    ),
    "too-much-live": Text(
        "{requested} did not fit: {live} were in use, {driver} free on the card.",
        "放不下 {requested}：已占用 {live}，显卡只剩 {driver}。",
    ),
    "one-large-request": Text(
        "One request of {requested} did not fit beside {live} in use.",
        "单次申请 {requested}，而已占用 {live}，放不下。",
    ),
    "other-pool": Text(
        "{requested} did not fit: {elsewhere} lay free in other streams and pools, which it may not use.",
        "放不下 {requested}：其他流和内存池里有 {elsewhere} 空闲，但不能借用。",
    ),
    "limit": Text(
        "{requested} were refused although the card had {driver} free: a limit is set.",
        "显卡还有 {driver} 空闲，申请 {requested} 仍被拒绝：设置了上限。",
    ),
    "others-on-the-card": Text(
        "{requested} did not fit: other programs hold much of the card.",
        "放不下 {requested}：其他程序占了大半显存。",
    ),
    "unknown": Text(
        "{requested} did not fit beside {live} in use; the trace does not tell why.",
        "放不下 {requested}（已占用 {live}）；记录看不出原因。",
    ),
}
_NO_FAILURE = Text("No request failed in this recording.", "这份记录里没有失败的申请。")
_SURVIVED = Text("The program caught it and went on.", "程序捕获了该错误并继续运行。")
_HOLDERS = {
    AT_OOM: Text("Who held the memory when it failed", "失败时谁占着显存"),
    AT_PEAK: Text("Who held the memory at its peak", "峰值时谁占着显存"),
}
_AT_END = Text("Who held the memory when the snapshot was taken", "保存快照时谁占着显存")
_GROWS = Text("What grows from step to step", "逐步增长的部分")
_PER_STEP = Text("{size} a step over {steps} steps, {held} by then", "每步 {size}，共 {steps} 步，累计 {held}")
_NO_HISTORY = Text(
    "Allocations were not recorded, so who holds what and what happened before is not known. To record: "
    'torch.cuda.memory._record_memory_history(stacks="python") before the model is made.',
    "没有记录分配过程，因此不知道谁占用、此前发生了什么。记录方法：在创建模型前调用 "
    'torch.cuda.memory._record_memory_history(stacks="python")。',
)
_BLOCKS = Text("{category}, {blocks} blocks", "{category}，{blocks} 块")
_NO_FRAME = Text("(no Python frame)", "（没有 Python 栈）")
_DEVICE = Text("GPU {index}", "GPU {index}")
_PEAK = Text("peak {peak} in use, {reserved} reserved", "峰值占用 {peak}，预留 {reserved}")
_GAPS = Text("Not read", "未能读取")


def compose(report: SnapshotReport, wording: Wording, version: str) -> Document:
    """Compose the answer, the failure first."""
    devices = [device for file in report.files for device in file.devices]
    device = decisive(devices)
    blocks = [
        *(_device(device, wording) if device is not None else ()),
        *(block for finding in report.findings for block in (Paragraph((Span(wording.say(finding.title), Style.STRONG),)),)),
        *_others([other for other in devices if other is not device], wording),
        *(Paragraph((Span(f"{wording.say(_GAPS)}: {gap.what}: {gap.why}", Style.WARN),)) for gap in report.gaps),
    ]
    return Document(wording.say(_TITLE, version=version), tuple(blocks), lang=wording.lang)


def _device(device: DeviceExplanation, wording: Wording) -> Iterator[Block]:
    refusal = last_refusal(device)
    if refusal is None:
        yield Paragraph((Span(wording.say(_NO_FAILURE), Style.STRONG),))
    else:
        yield Paragraph((Span(_why(refusal, wording), Style.BAD),))
        if refusal.survived:
            yield Paragraph((Span(wording.say(_SURVIVED)),))
    yield Facts((_totals(device, wording),))
    if not device.has_history:
        yield Paragraph((Span(wording.say(_NO_HISTORY), Style.WARN),))
    yield Heading(wording.say(_HOLDERS.get(device.holders_at, _AT_END)))
    yield Facts(tuple(_held(holder.size, holder.site, holder.category, holder.blocks, wording) for holder in device.holders[:_SHOWN]))
    if device.growth:
        yield Heading(wording.say(_GROWS))
        yield Facts(
            tuple(
                Row(
                    growth.site,
                    wording.say(_PER_STEP, size=format_size(growth.bytes_per_step), steps=growth.steps, held=format_size(growth.held)),
                )
                for growth in device.growth[:_SHOWN]
            )
        )


def _why(refusal: Refusal, wording: Wording) -> str:
    sizes = {
        "requested": refusal.requested,
        "free": refusal.free_in_pool,
        "largest": refusal.largest_free_block,
        "live": refusal.live_requested,
        "driver": refusal.device_free,
        "elsewhere": refusal.free_elsewhere,
    }
    return wording.say(_WHY[refusal.why], **{name: format_size(size) for name, size in sizes.items()})


def _held(size: int, site: str | None, category: str, blocks: int, wording: Wording) -> Row:
    return Row(format_size(size), site or wording.say(_NO_FRAME), wording.say(_BLOCKS, category=category, blocks=blocks))


def _totals(device: DeviceExplanation, wording: Wording) -> Row:
    sizes = {"peak": format_size(device.peak.requested), "reserved": format_size(device.peak.reserved)}
    return Row(wording.say(_DEVICE, index=device.index), wording.say(_PEAK, **sizes))


def _others(devices: list[DeviceExplanation], wording: Wording) -> Iterator[Block]:
    if devices:
        yield Facts(tuple(_totals(device, wording) for device in devices))
