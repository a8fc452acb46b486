"""The words about known bugs of releases, in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

from oomdoctor.case.text import Text
from oomdoctor.report.wording.wording import Counted

PROGRAMS = Text("Programs with known memory bugs", "已知有显存或内存缺陷的程序")
HINT = Text(
    "`oomdoctor bugs PACKAGE==VERSION` lists the bugs of a release, `pip freeze | oomdoctor bugs -` those of everything installed.",
    "`oomdoctor bugs 包名==版本` 列出某个版本的缺陷，`pip freeze | oomdoctor bugs -` 列出已安装软件的缺陷。",
)
FOUND = Counted(
    "One known memory bug or changed default.", "{n} known memory bugs and changed defaults.", "已知缺陷与默认行为变化 {n} 项。"
)
NONE = Text(
    "No memory bugs are known for these releases. That does not prove there are none.",
    "没有已知的相关缺陷，但不能证明没有。",
)
INSTALLED = Counted(
    "A known memory bug in an installed package", "Known memory bugs in installed packages ({n})", "已安装版本的已知内存缺陷（{n} 项）"
)
RELEASES = Text("Releases", "受影响的版本")
STATE = Text("State", "状态")
HELPS = Text("What helps", "怎么办")
MEMORY = Text("Memory", "内存类型")
EVIDENCE = Text("Evidence", "依据")
STATES: Mapping[str, Text] = {
    "open": Text("no release is known to fix it", "尚无已知的修复版本"),
    "fixed": Text("fixed", "已修复"),
    "intended": Text("intended, a changed default", "有意为之的默认行为变化"),
}
FIXED_IN = Text("fixed in {version}", "{version} 已修复")
UPGRADE = Text("Upgrade to {version} or later", "升级到 {version} 或更高版本")
MEMORIES: Mapping[str, Text] = {"card": Text("GPU memory", "显存"), "host": Text("host memory", "主机内存")}
PROOFS: Mapping[str, Text] = {
    "release": Text("the first release that contains the fixing commit", "包含修复提交的第一个版本"),
    "commit": Text("the fixing commit", "修复提交"),
    "maintainer": Text("a maintainer's word", "维护者的说法"),
    "reporter": Text("user reports; no maintainer has confirmed it", "用户报告，维护者尚未确认"),
    "documented": Text("the program's own documentation, or the commit that made the change", "程序自己的文档，或引入该变化的提交"),
}
SHOWN_BY = Text("Named for a log only if its own message or frames appear.", "只有日志中出现它的报错或调用栈时才会指出。")
NOT_SHOWN = Text(
    "No log distinguishes it from other failures: it is named only when you ask about versions.",
    "日志无法把它与其他失败区分开：只在查询版本时列出。",
)
BUG = Text("memory bug of {program}", "{program} 的内存缺陷")
GROUP = Text("Known bug", "已知缺陷")
