"""The words of the handbook in English and Chinese: headings, areas, kinds, and how sure a rule is."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.text import Text

TITLE = Text("oomdoctor handbook", "oomdoctor 手册")
PROBLEM = Text("problem", "问题")
FIX = Text("fix", "措施")
SIGNATURE = Text("message of {program}", "{program} 的报错")
OBSERVATION = Text("observation of {program}", "{program} 的观察记录")
SOURCE = Text("source", "出处")
CAUSE = Text("cause {name}", "原因 {name}")
WHY = Text("Why it happens", "为什么会这样")
WHY_EXAMPLE = Text("Why it happens, using the figures from the example", "为什么会这样（数字取自下面的例子）")
HOW_SURE = Text("Certainty", "有多确定")
SURE: Mapping[str, Text] = {
    "certain": Text("Certain if all of these hold.", "以下各项都成立时，可以确定。"),
    "likely": Text("Likely if all of these hold.", "以下各项都成立时，很可能就是它。"),
    "possible": Text("Possible if all of these hold.", "以下各项都成立时，有可能是它。"),
}
CONFIDENCE: Mapping[str, Text] = {
    "certain": Text("certain", "确定"),
    "likely": Text("likely", "很可能"),
    "possible": Text("possible", "有可能"),
}
COMPETES = Text(
    "Less certain if something else also explains the failure, or if other evidence contradicts it.",
    "若同时有别的解释，或有证据不支持它，把握就小一些。",
)
SURE_UNKNOWN = Text(
    "If one of them is unknown, the report says “possible” and names what is missing.",
    "其中某一项未知时，报告只说“有可能”，并写明缺的是什么。",
)
MESSAGE: Mapping[str, Text] = {
    "certain": Text("Certain: no healthy program prints it.", "确定：正常运行的程序不会打印它。"),
    "likely": Text("Likely: this is what it usually means.", "很可能：它通常就是这个意思。"),
    "possible": Text("Open: it has other causes too, and the lines around it decide.", "未定：别的原因也会打印它，要看前后的内容。"),
}
EXAMPLE = Text("Example", "例子")
AS_PRINTED = Text("as {program} prints it", "{program} 的原文")
AS_SEEN = Text("as a report quotes it", "报告中的写法")
FIGURES = Text("What it says", "其中的信息")
DO = Text("What to do", "怎么办")
NOT = Text("What does not help", "没有用的做法")
SOURCES = Text("Sources", "出处")
SEE = Text("See also", "另见")
WEAKER = Text("more specific than", "比这些更具体")
STRONGER = Text("yields to", "让位于")
SAME_CAUSE = Text("the same cause", "同一原因")
HOW = Text("How", "怎么做")
RUN = Text("In the shell", "在终端执行")
KEYS = Text("Configuration keys", "参数")
FREES = Text("Frees", "省下的是")
NEEDS = Text("Needs", "前提")
TYPED = Text("When no program is known", "不清楚是哪个程序时")
COSTS = Text("Costs", "代价")
WHO_DECIDES = Text("Who decides", "由谁决定")
SAFETY: Mapping[str, Text] = {
    "safe": Text("a tool may apply it", "工具可以代为修改"),
    "review": Text("a person should review it first", "应由人先看过"),
}
FOR = Text("When it helps", "适用于")
ENVIRONMENT = Text("environment", "环境")
FOR_MORE = Text("Also: {list}", "还有：{list}")
CHANGE: Mapping[str, Text] = {
    "divide": Text("or old ÷ {by}", "或原值 ÷ {by}"),
    "at-most": Text("at most", "不超过"),
    "at-least": Text("at least", "不低于"),
    "fitting": Text("or whatever fits", "或放得下的值"),
    "keep-batch": Text("× the same", "× 同样倍数"),
    "raise": Text("observed value × {by}", "所见用量 × {by}"),
}
SINCE = Text("from {version}", "{version} 起")
UNTIL = Text("up to {version}", "到 {version} 为止")
BETWEEN = Text("{since} to {until}", "{since} 至 {until}")
KEYS_FROM = Text("Checked in: {list}", "核对自：{list}")
MEANING = Text("What it means", "它说明什么")
PRESSURE = Text(
    "Printed by programs that may continue: on its own it is a warning, not a failure.",
    "程序打印它之后可能继续运行：单独出现只是警告，不算失败。",
)
LEADS = Text("What the report says about the example", "报告对这个例子的判断")
NEAR = Text("Similar messages that are not this problem", "相似但不是")
PRINTED = Text("Printed by", "由谁打印")
SEEN_BY = Text("Observed by", "由谁观察")
VERSIONS = Text("Versions", "版本")
SEEN_IN = Text("Source of the format", "见于")
NOTE = Text("Note", "备注")
CLAIMS = Text("Claims, and whether they are right", "它怎么说，是否成立")
VERDICT: Mapping[str, Text] = {
    "right": Text("right", "正确"),
    "partly": Text("partly right", "部分正确"),
    "wrong": Text("wrong", "不成立"),
    "unverified": Text("cannot be checked", "无法核实"),
}
CITED_BY = Text("Cited by", "被引用于")
IN_FACT = Text("In fact: {correction}", "实际上：{correction}")
SAYS = Text("“{source}” says: {says}. ", "《{source}》说：{says}。")
PROBLEMS_BY_AREA = Text("Problems by area", "问题（按领域）")
MORE = Text("Also here", "此外")
PART_PROBLEMS = Text("problems", "问题")
PART_FIXES = Text("what to change, with each framework's key", "改什么，各框架对应的参数")
PART_SIGNATURES = Text("messages of {n} programs", "{n} 个程序的报错")
PART_SOURCES = Text("cited documents; five of them are articles, checked claim by claim", "引用的文档，其中五篇文章逐条核对过")
PART_BUGS = Text("known memory bugs and changed defaults in releases", "各版本的已知内存缺陷与默认行为变化")
FOUND_PROBLEMS = Text("Problems that mention “{text}”", "提到“{text}”的问题")
FOUND_FIXES = Text("What to change", "可以改什么")
HINT = Text(
    "Continue with `oomdoctor explain NAME`: an area, an ID, or a quoted message.",
    "继续查看：`oomdoctor explain 名字`，可以是领域、编号，也可以是一段报错原文。",
)
COUNT = Text("{n}", "{n} 个")

AREAS: Mapping[str, Text] = {
    "consequence": Text("the failure itself is in another log", "真正的错误在别的日志里"),
    "device": Text("GPU memory", "显存"),
    "environment": Text("machine, GPU or torch problems that make runs fail", "机器、显卡或 torch 自身的问题"),
    "host": Text("host memory, its limits, and processes killed because of it", "主机内存、内存上限与被杀进程"),
    "kernel": Text("the on-chip memory of one kernel", "单个 kernel 的片上内存"),
    "lookalike": Text("failures that look like a memory failure but are not", "看似内存或显存不足，其实不是"),
    "masked": Text("memory failures hidden behind another error", "被其他报错掩盖的显存不足"),
    "nvml": Text("NVIDIA Management Library errors", "NVIDIA 管理库（NVML）的错误"),
    "pressure": Text("memory was tight, but the run continued", "显存吃紧，但程序继续运行"),
    "serving": Text("inference servers", "推理服务"),
    "shm": Text("shared memory, /dev/shm", "共享内存 /dev/shm"),
    "snapshot": Text("what a PyTorch memory snapshot shows", "PyTorch 显存快照显示的内容"),
    "training": Text("training and fine-tuning", "训练与微调"),
}

KINDS: Mapping[str, Text] = {
    "device-oom": Text("GPU memory, or a pool within it, ran out.", "显存（或其上的某个内存池）不足。"),
    "masked-device-oom": Text("GPU memory ran out, although the message names something else.", "显存不足，只是报错写的是别的。"),
    "host-oom": Text("Host memory ran out, or a limit on it was reached.", "主机内存不足，或达到了内存上限。"),
    "shm-oom": Text("Shared memory (/dev/shm) ran out.", "共享内存（/dev/shm）不足。"),
    "kernel-resource": Text(
        "One kernel needs more on-chip memory than the card has; a smaller batch does not help.",
        "某个 kernel 需要的片上内存超过显卡上限，减小批大小没有用。",
    ),
    "look-alike": Text("Not memory: another failure that looks like it.", "不是内存或显存不足，只是看起来像。"),
    "other-error": Text("Not memory: a different kind of error.", "不是内存或显存不足，是另一种错误。"),
    "consequence": Text(
        "The process died of an error that appears earlier or in another log.", "进程是被前面（或另一份日志里）的错误带倒的。"
    ),
    "context": Text("No failure: information about the run.", "不是失败，只说明这次运行的情况。"),
}
