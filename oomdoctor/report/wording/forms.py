"""The texts that are added to a bug form, in English and Chinese."""

from __future__ import annotations

from oomdoctor.case.text import Text

ASK = Text("(please fill in: {what})", "（请补充：{what}）")
REST = Text("the other lines of `{command}`, such as {labels}", "`{command}` 输出的其余各项，例如 {labels}")
SETTINGS = Text("Settings in effect", "生效的设置")
TRY = Text("Possible fixes", "可能有用的措施")
MODEL = Text("Model: ", "模型：")
WHICH_MODEL = Text("the model's full name", "模型全名")
LINES_LEFT_OUT = Text("... ({n} lines omitted)", "……（省略 {n} 行）")
