"""The words for memory over time."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.text import Text

OVER_TIME = Text("Memory over time", "显存变化")
CARD = Text("GPU {card}", "GPU {card}")
PROCESS = Text("process {pid}", "进程 {pid}")
SHAPES: Mapping[str, Text] = {
    "steady": Text("{whose} stayed between {lowest} and {highest}{over}.", "{whose} 一直在 {lowest} 到 {highest} 之间{over}。"),
    "saw-tooth": Text(
        "{whose} went up and down between {lowest} and {highest}{over}.", "{whose} 在 {lowest} 与 {highest} 之间来回升降{over}。"
    ),
    "staircase": Text(
        "{whose} climbed in {rises} steps and was level in between, from {first} to {last}{over}: typical of batches getting longer.",
        "{whose} 分 {rises} 级上升，级间持平，从 {first} 到 {last}{over}：批次越来越长时就是这样。",
    ),
    "leak": Text(
        "{whose} kept climbing to the end, from {first} to {last}{over}: typical of something being retained.",
        "{whose} 一直涨到最后，从 {first} 到 {last}{over}：有东西一直没释放时就是这样。",
    ),
    "climb": Text(
        "{whose} climbed from an empty card to {last}{over}: loading or growth; which one is unclear.",
        "{whose} 从空卡一路升到 {last}{over}：是加载还是增长，看不出来。",
    ),
    "unclear": Text(
        "{whose} moved between {lowest} and {highest}{over}, neither steady nor climbing throughout.",
        "{whose} 在 {lowest} 与 {highest} 之间变化{over}，既不平稳，也没有持续上升。",
    ),
}
STAYED = Text("{whose} stayed at {highest}{over}.", "{whose} 一直是 {highest}{over}。")
OF = Text(" of {total}", "共 {total}，")
OVER = Text("{of} ({samples} samples over {span})", "（{of}{span}内 {samples} 个采样）")
SAMPLES = Text("{of} ({samples} samples)", "（{of}{samples} 个采样）")
PACE = {
    "hour": Text("Calculated: {middle} per hour, between {low} and {high}.", "推算：每小时 {middle}，范围 {low} 到 {high}。"),
    "step": Text("Calculated: {middle} per step, between {low} and {high}.", "推算：每步 {middle}，范围 {low} 到 {high}。"),
}
FULL_IN = Text("At this rate the card is full {span} later.", "照此速度，再过 {span} 就会占满。")
LAST_CLIMB = Text("Its last samples are {size} above all earlier ones.", "最后几个采样比之前的最高值还多 {size}。")
CARD_SIZE = Text("the card", "整卡")
IN_USE_OVER_TIME = Text("In use, as recorded by the monitor", "监控记录的占用")
FAILURE = Text("failure", "失败")
MORE = Text("More series ({n})", "其余序列（{n}）")
SECONDS, MINUTES, HOURS = Text("{n} s", "{n} 秒"), Text("{n} min", "{n} 分钟"), Text("{n} h", "{n} 小时")

PRINTED = Text("Memory as printed in the log", "日志中打印的显存")
BY_STEP, BY_LINE = Text("step", "步"), Text("line", "行")
BY_TIME: Mapping[str, Text] = {"s": Text("s", "秒"), "min": Text("min", "分钟"), "h": Text("h", "小时"), "sample": Text("sample", "采样")}
RANK, NO_RANK = Text("rank {rank}", "rank {rank}"), Text("no rank", "无 rank")
PRINTED_FIGURES: Mapping[str, Text] = {
    "reserved_bytes": Text("reserved", "已预留"),
    "allocated_bytes": Text("allocated", "已分配"),
    "peak_reserved_bytes": Text("peak reserved so far", "已预留峰值"),
    "peak_allocated_bytes": Text("peak allocated so far", "已分配峰值"),
    "active_bytes": Text("active", "活跃"),
    "peak_active_bytes": Text("peak active so far", "活跃峰值"),
    "used_bytes": Text("in use", "占用"),
    "peak_used_bytes": Text("peak in use so far", "占用峰值"),
}
LOADING, WORK, GIVEN_BACK, AFTERWARDS = (
    Text("loading", "加载"),
    Text("work", "运行"),
    Text("released", "已释放"),
    Text("afterwards", "之后"),
)
