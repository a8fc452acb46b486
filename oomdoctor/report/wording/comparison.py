"""The texts of a comparison, in English and Chinese."""

from __future__ import annotations

from oomdoctor.case.text import Text
from oomdoctor.report.wording.wording import Counted

TITLE = Text("oomdoctor {version} · what changed", "oomdoctor {version} · 变化对比")
CARD_NAME = Text("card", "显卡")
BEFORE = Text("before", "之前")
AFTER = Text("after", "之后")
ONE = Text("{n} change leaves less headroom: {first}.", "有 {n} 处变化会减少余量：{first}。")
MANY = Text("{n} changes leave less headroom; the most suspicious is {first}.", "有 {n} 处变化会减少余量，最可疑的是：{first}。")
MAY = Text("Nothing clearly reduces headroom; some changes may matter.", "没有明显减少余量的变化；以下变化可能有影响。")
LOOSER = Text("The changes leave more headroom, not less.", "已知的变化只会增加余量。")
SERIES = Text("No relevant setting is known to have changed, but memory did.", "没有发现有影响的设置变化，但显存确实不同了。")
NOTHING = Counted(
    "No change known to affect memory; {n} fact was compared.",
    "No change known to affect memory; {n} facts were compared.",
    "没有发现会影响显存或内存的变化；共比较了 {n} 项。",
)
ESTIMATED = Text(
    "According to the memory model, each card needed {before} before and needs {after} now.",
    "按显存模型估算，每张卡之前需要 {before}，之后需要 {after}。",
)
ESTIMATED_MOSTLY = Text(
    "According to the memory model, each card needed {before} before and needs {after} now. Largest change: {part}, {was} → {now}.",
    "按显存模型估算，每张卡之前需要 {before}，之后需要 {after}。变化最大的是{part}：{was} → {now}。",
)
BOTH_EXPECTED = Text("Expected memory per card, according to the memory model", "显存模型对单卡的估计")
AXIS_STEP, AXIS_LINE = Text("step", "步"), Text("occurrence", "第几次")
CHANGES = Text("Changes, most suspicious first", "变化（最可疑的在前）")
ALSO = Text("Further changes ({n})", "其他变化（{n}）")
MOMENTS = Text("Memory at the same points", "同一时刻的显存")
STEP = Text("step {at}", "第 {at} 步")
LINE = Text("occurrence {at}", "第 {at} 次打印")
DIFFERENCES = Text("Other differences, with no known effect on memory ({n})", "其他差异，对显存没有已知影响（{n}）")
ONE_SIDED = Text("Known for only one side", "只有一方有的信息")
ONLY_BEFORE = Text("before: {value}; after: not stated", "之前为 {value}，之后未说明")
ONLY_AFTER = Text("before: not stated; after: {value}", "之前未说明，之后为 {value}")
WRONG_NOW = Text("a problem now; whether it was one before is not known", "现在有此问题，之前有没有不清楚")
MORE = Text("{n} more", "另有 {n} 项")
SOURCES = Text("Sources of these facts", "依据")
NOTHING_SAID = Text("no log, only a machine or settings", "没有日志，只有机器信息或配置")
