"""The short texts of the report of a run, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.text import Text
from oomdoctor.report.wording.wording import Counted

SURE: Mapping[str, Text] = {
    "certain": Text("", ""),
    "likely": Text("most likely ", "很可能"),
    "possible": Text("possibly ", "可能"),
}
CERTAIN = Text("Certain.", "确定。")
CONFIDENCE: Mapping[str, Text] = {
    "certain": Text("certain", "确定"),
    "likely": Text("likely", "很可能"),
    "possible": Text("possible", "有可能"),
}
SETTLE = Text("To settle it: ", "要确定原因：")
LINES_FOLLOWED = Counted("({n} message followed)", "({n} messages followed)", "（随后还有 {n} 条）")
MESSAGE = Text("The message", "报错原文")
FIGURES = Text("The figures", "数字")
DO = Text("What to do", "怎么处理")
DO_THIS = Text("Do this", "这样处理")
DO_THIS_MISSING = Text("Do this ({missing} missing)", "这样处理（还差 {missing}）")
DO_LATER = Text("To keep it from happening again", "想避免再次出现")
WRITE_IT = Text("write it: ", "直接写入：")
WRITE_STEP = Text("write step {n}: ", "写入第 {n} 步：")
MORE_STEPS = Text("The steps in full ({n})", "各步详解（{n} 条）")
SET_ALREADY = Text("Already set", "已经设好的")
THEN_FITS = Text("then it fits", "改后放得下")
FREES_SHORT: Mapping[str, Text] = {
    "setting": Text("frees ≈{size}", "约省 {size}"),
    "model": Text("frees ≈{size}", "约省 {size}"),
    "half": Text("frees ≈{size} if halved", "减半约省 {size}"),
    "at-most": Text("frees up to {size}", "最多省 {size}"),
}
"""What a fix frees, by how that is known (MeasuredSaving.by)."""
OR_ELSE = Text(" or ", " 或 ")
EITHER = Text(" or ", "，或 ")
THEN = Text("; then ", "；还不够再用 ")
TRACEBACK_TELLS = Text("the traceback above it: {shown}; if there is none, the config", "看报错上方的堆栈：{shown}；没有就看配置")
REQUEST = Text("The request was for {what}.", "失败的申请是{what}。")
GROWS_WITH = Text("The request grows with {what}.", "这次申请的大小随{what}增长。")
WHY = Text("Why ({sure}): ", "原因（{sure}）：")
CANNOT_TELL = Text("The log cannot tell: ", "只看日志无法确定：")
POSSIBLY = Text("possibly {readings}.", "可能是{readings}。")
OR = Text("; or ", "；或者")
MORE_WHY = Text("More on why", "原因详解")
READINGS = Text("All findings ({n})", "全部判断（{n} 条）")
READ_AS = Text("Read as: ", "运行概况：")
ALSO_IN_LOG = Text("Also in the log ({n})", "日志里还有（{n} 项）")
OTHER_WAYS = Text("Other ways ({n})", "其他办法（{n}）")
NEXT = Text("What to do next", "先做这一步")
SIGNS_FOR = Text("For it: ", "支持：")
SIGNS_AGAINST = Text("Against it: ", "不支持：")
SOURCES = Text("Sources ({n})", "出处（{n} 条）")
CORRECTED = Text("Common advice that is wrong", "常见但不成立的说法")
PARTLY = Text("Common advice that is only partly right", "只对了一部分的说法")
CORRECTED_SAYS = Text("“{source}” says: {says}. ", "《{source}》说：{says}。")
CORRECTION = Text("In fact: {correction}", "实际上：{correction}")
WANTED = Text("It would help to see: {list}.", "要进一步判断，还需要：{list}。")
FOLLOWED = Text("What followed ({n})", "随后发生的（{n} 条）")
OTHERS = Text("Other failures ({n})", "其他失败（{n} 个）")
OTHER_LEDGERS = Text("Where other memory went", "其他内存的去向")
UNKNOWN = Text("What is not known", "还不知道的")
MACHINE = Text("The machine", "机器")
AND_MORE = Text("and {n} more", "还有 {n} 条")
MORE_LABEL = Text("more", "其余")
SAME_RANKS = Text("The same on {ranks}.", "{ranks} 也是同样的报错。")
SAME_TIMES = Text("Seen {n} times in all.", "一共出现 {n} 次。")
SAME_BOTH = Text("The same on {ranks}; seen {n} times in all.", "{ranks} 也是同样的报错，一共出现 {n} 次。")
FRAME = Text("Raised in {frame}.", "出错位置：{frame}。")
STEPS_PASSED = Counted("{n} step completed.", "{n} steps completed.", "此前已跑完 {n} 步。")
RANK = Text("rank {n}", "rank {n}")
RANKS = Text("ranks {list}", "rank {list}")
RANKS_MORE = Text("ranks {list} and {n} more", "rank {list} 以及另外 {n} 个 rank")
GPU = Text("GPU {n}", "GPU {n}")
AT_END = Text("the last line", "最后一行")
FROM_END = Counted("{n} line before the end", "{n} lines before the end", "距末尾 {n} 行")
BYTE = Text("byte {n}", "第 {n} 字节")
ESTIMATED = Text("estimated", "估计")
UNKNOWNS = Text("Not known: ", "未知：")
FREES = Text("Frees: ", "省下：")
UP_TO = Text(", here at most about {size}", "，这里最多约 {size}")
EXPECTED_HERE = Text(
    "Expected from the settings: {sizes}; observed with this request: {seen}.",
    "按设置推算，此刻张量应占 {sizes}；连同这次申请，实际为 {seen}。",
)
ABOVE_EXPECTED = Text("About {size} of it is unexplained.", "其中约 {size} 从设置上解释不了。")
EXPECTED_PEAK = Text("Peak for the whole run: {sizes}; the card has {card}.", "整个运行的峰值为 {sizes}，而这张卡只有 {card}。")
ABOUT = Text(", here about {size}", "，这里约 {size}")
MEASURED: Mapping[str, Text] = {
    "setting": Text(", about {size} of the {of} measured", "，约为实测 {of} 中的 {size}"),
    "model": Text(", about {size} of the {of} measured", "，约为实测 {of} 中的 {size}"),
    "half": Text(", about {size} of the {of} measured if halved", "，约为实测 {of} 中的 {size}（减半时）"),
    "at-most": Text(", at most the {size} measured", "，最多为实测的 {size}"),
}
"""What a fix frees of what was measured, by how it follows (MeasuredSaving.by)."""
FREES_MEASURED = Text("Frees {amount}.", "省下{amount}。")
PARTS_AT: Mapping[str, Text] = {
    "failure": Text("Live on GPU {gpu} when the request failed", "申请失败时 GPU {gpu} 上的占用"),
    "peak": Text("Live on GPU {gpu} at the peak of the recording", "记录中峰值时 GPU {gpu} 上的占用"),
    "end": Text("Live on GPU {gpu} when the snapshot was saved", "保存快照时 GPU {gpu} 上的占用"),
}
PART_EXPECTED = Text("expected {sizes}", "预计 {sizes}")
PARTS_SOURCE = Text(
    "Sizes come from the snapshot; their purpose was inferred from the requesting lines (≈: from timing); expected sizes "
    "are estimated from the settings.",
    "大小读自快照，用途由申请它的代码行判断（≈：由时刻判断）；预计值由设置估算。",
)
PARTS_SOURCE_ALONE = Text(
    "Sizes come from the snapshot; their purpose was inferred from the requesting lines (≈: from timing).",
    "大小读自快照，用途由申请它的代码行判断（≈：由时刻判断）。",
)
FITS: Mapping[str, Text] = {
    "yes": Text("With it the run should fit.", "这样改之后应该放得下。"),
    "close": Text("Whether that is enough is too close to call.", "光靠这一项够不够，难以断定。"),
    "no": Text("That alone is not enough.", "只改这一项还不够。"),
}
COSTS = Text("Costs: ", "代价：")
NEEDS = Text("Needs: ", "前提：")
WAS = Text("it was {value}", "原为 {value}")
ALREADY = Text("Already set, no change needed: {lines}.", "已经设好，不必再改：{lines}。")
TRIED = Text("Left out because, according to the report, it was tried: {said}.", "报告中说已试过，故未列入：{said}。")
ENVIRONMENT = Text("environment", "环境变量")
NOT_THIS = Text("What will not help", "这些做法没有用")
SETTINGS_MORE = Text("{n} more", "还有 {n} 处")
IN_CONFIG = Text("In your config", "你的配置里")
CONFIG_ISSUES = Text("Your config ({n})", "你的配置（{n} 条提示）")
MORE_IN_CONFIG = Text("More on the config ({n})", "配置的其他提示（{n} 条）")
WRITE_INSTEAD = Text("Write: ", "改成：")
GAP_LEARN = Text("try: {how}", "可以试试：{how}")
UNREAD = Counted(
    "{n} more message like these was counted but not read",
    "{n} more messages like these were counted but not read individually",
    "另有 {n} 条同类报错，只计了数，没有逐条解析",
)
INCOMPLETE = Text("{name} was not read to the end", "{name} 没有读到末尾")
RUNS = Counted("{n} run", "{n} runs", "{n} 次运行")
RUNS_YES = Counted("{n} ran out of memory", "{n} ran out of memory", "{n} 次内存或显存不足")
RUNS_POSSIBLE = Counted("{n} possibly ran out of memory", "{n} possibly ran out of memory", "{n} 次可能是内存或显存不足")
RUNS_OTHER = Counted("{n} ended with another error", "{n} ended with other errors", "{n} 次以其他错误结束")
FILES = Counted("{n} file, {size}", "{n} files, {size}", "{n} 个文件，{size}")
AND_FILES = Counted("{name} and {n} more file", "{name} and {n} more files", "{name} 以及另外 {n} 个文件")
INPUT = Text("the input", "输入")
MEMORY_GPU = Text("GPU memory", "显存")
MEMORY_DEVICE = Text("{device} memory", "{device} 内存")
MEMORY_HOST = Text("host memory (RAM)", "主机内存（RAM）")
MEMORY_SHM = Text("shared memory (/dev/shm)", "共享内存（/dev/shm）")
ANY_MEMORY = Text("memory", "内存")
EXIT_CODE = Text(" (exit code {n})", "（退出码 {n}）")
PLAIN_EXIT_CODE = Text("exit code {n}", "退出码 {n}")
ASKED_FREE = Text(": {asked} requested, {free} free", "：申请 {asked}，只剩 {free}")
ASKED_FREE_OF = Text(": {asked} requested, {free} of {total} free", "：申请 {asked}，{total} 中只剩 {free}")
ASKED_REFUSED = Text(": {asked} requested and refused, although {free} was free", "：申请 {asked} 被拒绝，尽管当时还有 {free} 空闲")
ASKED_LIMIT = Text(
    ": {asked} requested and refused with a limit of {limit}, although {free} was free",
    "：申请 {asked}，因 {limit} 的上限被拒绝，尽管当时还有 {free} 空闲",
)
ASKED_ABOVE = Text(": {asked} requested, more than the whole card has ({total})", "：申请 {asked}，比整张卡（{total}）还大")
ASKED = Text(": {asked} requested", "：申请 {asked}")
CACHE_NEEDS = Text(": the KV cache needs {needed}, {left} is left for it", "：KV 缓存需要 {needed}，只剩 {left}")
FAILED_FIRST = Text(". Rank {n} failed first", "。最先出错的是 rank {n}")
VICTIM = Text(": {by} killed {victim}", "：{by}杀掉了 {victim}")
VICTIM_HELD = Text(": {by} killed {victim}, which was using {held}", "：{by}杀掉了 {victim}，它当时占用 {held}")
BY_KERNEL = Text("the kernel", "内核")
A_PROCESS = Text("a process", "一个进程")
PID = Text("{name} (pid {pid})", "{name}（pid {pid}）")
LIMIT = Text(": the limit was {limit}", "：上限是 {limit}")
OF_LIMIT = Text(": {asked} requested, the limit is {limit}", "：需要 {asked}，上限 {limit}")
TIMES = Text(" {n} times", "曾 {n} 次")
ONCE = Text("", "一度")
FEATURE = Text("{feature} is not supported on this card", "这张卡不支持 {feature}")
SOMETHING_ELSE = Text("the run stopped for another reason", "程序因其他原因停止")
SEEN_BESIDE = Text("observed at the failure", "失败时所见")
EXPECTED_BESIDE = Text("expected from these settings at the peak", "按这些设置估计的峰值")
