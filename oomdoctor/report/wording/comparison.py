"""The texts of a comparison, in English and Chinese."""

from __future__ import annotations

from oomdoctor.case.text import Text

TITLE = Text("oomdoctor {version} · what changed", "oomdoctor {version} · 变化对比")
CARD_NAME = Text("card", "显卡")
BEFORE = Text("before", "之前")
AFTER = Text("after", "之后")
ONE = Text("{n} change leaves less room: {first}.", "有 {n} 处变化会减少余量：{first}。")
MANY = Text("{n} changes leave less room; the most suspicious is {first}.", "有 {n} 处变化会减少余量，最可疑的是：{first}。")
MAY = Text("Nothing clearly leaves less room; what changed may matter.", "没有明显减少余量的变化；以下变化可能有影响。")
LOOSER = Text("What changed leaves more room, not less.", "已知的变化只会增加余量。")
SERIES = Text("No setting that matters is known to have changed, but memory did.", "没有发现有影响的设置变化，但显存确实不同了。")
NOTHING = Text(
    "Nothing changed of which it is known that it matters for memory; {n} facts were compared.",
    "没有发现会影响显存或内存的变化；共比较了 {n} 项。",
)
ESTIMATED = Text(
    "By the memory model a card needs {before} before and {after} after.",
    "按显存模型估算，每张卡之前需要 {before}，之后需要 {after}。",
)
ESTIMATED_MOSTLY = Text(
    "By the memory model a card needs {before} before and {after} after. What moves most: {part}, {was} → {now}.",
    "按显存模型估算，每张卡之前需要 {before}，之后需要 {after}。变化最大的是{part}：{was} → {now}。",
)
CHANGES = Text("What changed, the most suspicious first", "变化（最可疑的在前）")
ALSO = Text("Further changes ({n})", "其他变化（{n}）")
MOMENTS = Text("Memory at the same moments", "同一时刻的显存")
STEP = Text("step {at}", "第 {at} 步")
LINE = Text("line {at} of its kind", "第 {at} 次打印")
DIFFERENCES = Text("Other differences, with no known effect on memory ({n})", "其他差异，未知对显存有影响（{n}）")
ONE_SIDED = Text("Known of one of them only", "只有一方有的信息")
ONLY_BEFORE = Text("before: {value}; after: not said", "之前为 {value}，之后未说明")
ONLY_AFTER = Text("before: not said; after: {value}", "之前未说明，之后为 {value}")
WRONG_NOW = Text("wrong now; whether it was before is not known", "现在有此问题，之前是否存在未知")
MORE = Text("{n} more", "另有 {n} 项")
SOURCES = Text("Where this is known from", "依据")
NOTHING_SAID = Text("no log, a machine or settings only", "没有日志，只有机器信息或配置")
