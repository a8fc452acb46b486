"""The texts of an answer to a reporter, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.text import Text

THANKS = Text("Thank you for the report.", "感谢反馈。")
NOT_MEMORY = Text("This is not a memory failure. {what}.", "这不是内存或显存不足：{what}。")
NOTHING = Text("The text you posted shows no failure.", "贴出的内容里没有看到失败。")
OTHER_ERROR = Text(
    "This is not a memory failure. What you posted ends with another error: {error}.",
    "这不是内存或显存不足。贴出的内容以另一个错误结束：{error}。",
)
CUT = Text(
    "No memory failure is shown: what you posted ends inside a traceback; the last line, which names the error, is missing.",
    "没有看到内存或显存不足：贴出的 traceback 不完整，缺少写明错误的最后一行。",
)
TOLD = Text(
    "You write that memory ran out, but what you posted does not include a log of it yet.", "你提到内存或显存不够，但还没有贴出相应的日志。"
)
WISH = Text(
    "This requests a change and reports no failure, so there is nothing to diagnose.",
    "这是一条改进建议，没有报告失败，因此没有需要诊断的内容。",
)
NAN_LOSS = Text(
    "No memory failure is shown: the loss is not a number (nan). Look at the first step where it appears and at its batch. "
    "Usual causes: fp16 overflow (try bf16, or fp32 on cards without it), a learning rate that is too high, gradients that "
    "are not clipped, or samples without any labels.",
    "没有看到内存或显存不足：损失变成了 nan。先看它第一次出现在哪一步、那一批是什么数据。常见原因：fp16 溢出"
    "（改用 bf16，不支持的卡用 fp32）、学习率过高、没有做梯度裁剪、有样本的标签全部被忽略。",
)
UNREAD = Text("Nothing in the report could be read.", "没有读到任何内容。")
PLACE = Text("({place})", "（{place}）")
LINE = Text("(line {n})", "（第 {n} 行）")
CONFIDENCE: Mapping[str, Text] = {
    "certain": Text("What it is: ", "原因："),
    "likely": Text("What it most likely is: ", "很可能是："),
    "possible": Text("What it may be: ", "可能是："),
}
SETTLE = Text("The log alone does not settle it. To settle it: {check}.", "只看日志还不能确定。可以这样确认：{check}。")
CONFIG = Text("In the config, {place}: ", "配置 {place}：")
TRY = Text("Worth trying, in this order:", "建议依次尝试：")
TRY_ONE = Text("Worth trying:", "建议尝试：")
AVOID = Text("To keep it from happening again:", "想避免再次出现：")
ASK = Text("If that is not enough, please add: {list}.", "如果还不行，请补充：{list}。")
ASK_FIRST = Text("It would help to see: {list}.", "要进一步判断，还需要：{list}。")
ASKED = Text("{what} ({how})", "{what}（{how}）")
AND = Text("; and ", "；以及")
IN = Text(" ({where})", "（{where}）")
