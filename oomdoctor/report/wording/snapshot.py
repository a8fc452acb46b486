"""The words for what memory snapshots tell."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.text import Text
from oomdoctor.report.wording.wording import Counted

TITLE = Text("oomdoctor {version} · memory snapshot", "oomdoctor {version} · 显存快照")
FAILED = Text("{device} could not serve a request of {size}", "{device} 无法满足 {size} 的申请")
FAILED_AT = Text(", requested by {site}", "，来自 {site}")
SURVIVED = Text(
    "A request of {size} failed on {device}, and the program continued.", "{device} 上有一次 {size} 的申请失败，但程序继续运行了。"
)
NOTHING = Text(
    "It contains no GPU memory: PyTorch had reserved none when it was written.",
    "里面没有显存：写出时 PyTorch 还没有保留任何显存。",
)
CUT = Text(
    "The file ends, or is damaged, before the end of its trace: whether a request failed is unknown.",
    "文件在记录结束之前就中断或损坏了：是否有申请失败，无从得知。",
)
HELD_AT: Mapping[str, Text] = {
    "oom": Text("{size} was in use when it failed: {parts}.", "失败时占用 {size}：{parts}。"),
    "peak": Text("{size} was in use at the peak: {parts}.", "峰值时占用 {size}：{parts}。"),
    "end": Text("{size} was in use when the snapshot was taken: {parts}.", "保存快照时占用 {size}：{parts}。"),
}
HELD_PART = Text("{share} {name}", "{name} {share}")
NO_FAILURE = Text("No request failed in this recording.", "这份记录里没有失败的申请。")
WHY: Mapping[str, Text] = {
    "fragmentation": Text(
        "{free} was free in fragments, the largest {largest}: enough in total, but each one too small.",
        "空闲的 {free} 是碎片，最大一块 {largest}：加起来够，单块都不够。",
    ),
    "too-much-live": Text("{live} was in use, and the driver had {driver} left.", "已占用 {live}，驱动只剩 {driver}。"),
    "one-large-request": Text(
        "It is a large part of the card by itself, and {live} was in use.", "这一次申请就占了显卡的一大部分，而已占用 {live}。"
    ),
    "other-pool": Text(
        "{elsewhere} was free in other streams and pools, which it cannot use.", "其他流和内存池里有 {elsewhere} 空闲，但不能借用。"
    ),
    "limit": Text(
        "The driver had {driver} free, which is enough: a limit is set, or something used it briefly.",
        "驱动还有 {driver}，本来足够：要么设置了上限，要么当时被别人短暂占用。",
    ),
    "others-on-the-card": Text("Much of the card is used by other processes.", "显卡有很大一部分被别人占着。"),
    "unknown": Text("The trace does not show why; {live} was in use.", "记录看不出原因；已占用 {live}。"),
}
CAUSES = Text("What it is", "原因")
DEVICE = Text("GPU {index}", "GPU {index}")
IN_FILE = Text("{file}, GPU {index}", "{file}，GPU {index}")
PEAK = Text("peak {peak} in use, {reserved} reserved", "峰值占用 {peak}，预留 {reserved}")
NOT_KNOWN = Text("unknown", "未知")
AT_END = Text(
    "{requested} in use at the end, {allocated} allocated (in whole blocks), largest free block {largest}",
    "结束时占用 {requested}，按整块计已分配 {allocated}，最大空闲块 {largest}",
)
OVER_TIME = Text("in use over time", "占用变化")
OVER_TIME_BY = Text("Memory in use during the recording, by owner", "记录期间的显存占用（按占用者）")
AT_ITS_MOST = Counted("{n} block at its peak", "{n} blocks at its peak", "最大时 {n} 块")
FROM_STEP = Text("in use from step {first} to step {last}", "从第 {first} 步到第 {last} 步占用")
IN_STEP = Text("in use in step {first}", "在第 {first} 步占用")
RESERVED = Text("reserved", "预留")
OUT_OF_MEMORY = Text("out of memory", "显存不足")
MAP: Mapping[str, Text] = {
    "oom": Text("Memory layout when the request failed", "申请失败时显存的分布"),
    "peak": Text("Memory layout at the peak", "峰值时显存的分布"),
    "end": Text("Memory layout when the snapshot was taken", "保存快照时显存的分布"),
}
SEGMENTS = Text("Segments, drawn to scale", "各个段，长度与大小成比例")
ALIKE_SEGMENTS = Text("{n} × {label}", "{n} × {label}")
SMALL = Text("small", "小块")
OTHER_STREAM = Text("other pool", "其他池")
FREE = Text("free", "空闲")
OTHERS = Text("others", "其他")
LEFT_OUT = Counted("{n} more segment with {size}", "{n} more segments with {size}", "另有 {n} 个段，共 {size}")
CATEGORIES: Mapping[str, Text] = {
    "oom": Text("In use when it failed: {size}", "失败时占用：{size}"),
    "peak": Text("In use at the peak: {size}", "峰值时占用：{size}"),
    "end": Text("In use when the snapshot was taken: {size}", "保存快照时占用：{size}"),
}
HOLDERS = Text("What the memory is used for", "显存用在哪里")
LINES = Text("Lines that hold it", "占用它的代码行")
MORE_LINES = Text("{n} more lines, {size}", "另有 {n} 行，共 {size}")
BLOCKS = Counted("{category}, {n} block", "{category}, {n} blocks", "{category}，{n} 块")
NO_FRAME = Text("no line recorded", "未记录代码行")
BESIDE = Text("What separates the free blocks", "夹在空闲块之间的")
GROWS = Text("What grows", "逐步增长的部分")
GROWTH = Text(
    "{site} retains {size} more in each of {steps} steps: {held} by then.", "{site} 在 {steps} 步里每步多占 {size}，累计 {held}。"
)
BY_ROUNDS = Text(
    "Steps are identified by iterations of the outermost loop: no optimizer step is marked.",
    "没有优化器步的标记，步数按最外层循环的轮次判断。",
)
RANKS = Text("Side by side", "对照")
RANKS_AT_PEAK = Text("At the peak of each", "各自的峰值")
RANKS_HOLD = Text("In use when each failed, otherwise at its peak; colors as above", "各自失败时（没有失败则在峰值时）的占用，颜色同上图")
RANK_COLUMNS = (Text("file", "文件"), Text("peak in use", "峰值占用"), Text("reserved", "预留"), Text("failed request", "失败的申请"))
MORE = Text("{name} holds {size} more than the median of the others", "{name} 比其他几个的中位数多占 {size}")
MORE_FROM = Text(": {parts}.", "：{parts}。")
MORE_PART = Text("{size} at {site} ({category})", "{site}（{category}）多 {size}")
ALIKE = Text("They hold about the same.", "占用相近。")
UNKNOWN = Text("What is not known", "尚不清楚的")
NO_HISTORY = Text(
    "Allocations were not recorded, so who holds what and what happened before are unknown. Call `{call}` before the model is created.",
    "没有记录分配过程，因此不知道谁占用、此前发生了什么。请在创建模型之前调用 `{call}`。",
)
NO_TRACE = Text(
    "Allocations were not recorded, only the owners of blocks in use at the end: what happened before is unknown. Call "
    "`{call}` before the model is created.",
    "没有记录分配过程，只知道结束时各块是谁的；此前发生了什么无从得知。请在创建模型之前调用 `{call}`。",
)
NO_FRAMES = Text(
    "No Python lines were recorded. Call `{call}` before the model is created.",
    "没有记录到任何 Python 代码行。请在创建模型之前调用 `{call}`。",
)
LATE = Text(
    "{size} was allocated before the recording began; the owner is unknown. Start recording before the model is created, "
    "with as many entries as the run needs: `{call}`.",
    "{size} 在记录开始之前就已存在，不知道是谁的。请在创建模型之前开始记录，并让条目数够用：`{call}`。",
)
UNREADABLE = Counted(
    "{n} entry or block lacks required fields and was skipped.",
    "{n} entries or blocks lack required fields and were skipped.",
    "{n} 个条目或块缺少必需的内容，已略去。",
)
OPEN = Text("{what}: {why}.", "{what}：{why}。")
