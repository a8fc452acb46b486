"""The texts of the catalogue of rules, in English and Chinese."""

from __future__ import annotations

from oomdoctor.case.text import Text

MADE = Text(
    "Generated from `rules/` by `{command}`; edit the rules, not this page.", "由 `{command}` 从 `rules/` 生成；要改请改规则，不要改本页。"
)
FIGURES = Text("{figure} is a figure from your own log.", "{figure} 处是你自己日志中的数字。")
DO = Text("What to do", "怎么办")
NOT = Text("What does not help", "没有用的做法")
SOURCES = Text("Sources", "出处")
FOR = Text("Helps with", "适用于")
FRAMEWORK = Text("framework", "框架")
KEY = Text("key and value", "参数和取值")
VERSIONS = Text("versions", "版本")
MESSAGE = Text("message", "报错")
KIND = Text("what it means", "说明什么")
EXAMPLE = Text("example", "例子")
CLAIM = Text("claim", "说法")
VERDICT = Text("verdict", "结论")
CORRECTION = Text("the facts", "实际情况")
CITED = Text("Cited by", "被引用于")
SHELL = Text("In the shell", "在终端执行")
CONTEXT = Text("Information about the run, not a failure.", "只说明运行情况，不是失败。")
