"""The texts of an issue, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.text import Text

VERSIONS = Text("Versions and card", "版本与显卡")
SETTINGS = Text("Settings in effect", "生效的设置")
MORE_SETTINGS = Text("More settings ({n})", "其他设置（{n} 项）")
LEDGER = Text("Where the memory went ({of})", "内存去向（{of}）")
POINTS = Text("What it points to", "初步判断")
TRIED = Text("Already in use", "已经在用的措施")
MISSING = Text("Still missing", "还缺的信息")
ORIGINS: Mapping[str, Text] = {
    "measured": Text("printed", "日志写明"),
    "derived": Text("calculated", "推算"),
    "estimated": Text("estimated", "估计"),
}
TOTAL = Text("total", "合计")
LINE = Text("line {n}", "第 {n} 行")
