"""The texts of `oomdoctor fix`, in English and Chinese."""

from __future__ import annotations

from oomdoctor.case.text import Text

NOTHING = Text("Nothing to change.", "没有需要改动的地方。")
DID = Text("change ", "改动    ")
ALREADY = Text("already", "已是如此")
REFUSED = Text("skipped", "未改动  ")
BY_HAND = Text("by hand", "需手动  ")
LAUNCH = Text("then run: {command}", "然后运行：{command}")
LINE = Text("{line}", "{line}")
STILL = Text("by hand: {line}", "需手动：{line}")
UNDECIDED = Text("decide ", "待决定  ")
NEW_FILE = Text("a new file: {path}", "新文件：{path}")
YES = Text("Changes that need your decision are written only with --yes.", "待决定的改动加上 --yes 才会写入。")
OTHERS = Text("Also possible, written only by name (--only ID --yes): {names}.", "还有其他办法，指明才会写入（--only ID --yes）：{names}。")
THEN = Text("it then needs {range}; {card} has {usable} usable", "之后需要 {range}；{card} 可规划的显存为 {usable}")
FITS = Text(
    "The run fits as is: it needs {range}; {card} has {usable} usable.",
    "现在就放得下：需要 {range}；{card} 可规划的显存为 {usable}。",
)
WALL = Text(
    "No combination of settings fits: the smallest needs {range}, and {card} has {usable} usable. `oomdoctor plan` shows "
    "what would be enough.",
    "没有哪种设置组合放得下：需求最小的一种也要 {range}，而 {card} 可规划的显存为 {usable}。`oomdoctor plan` 会说明要多少才够。",
)
HOLDS = Text("the cache then holds {tokens} tokens ({low} to {high})", "之后缓存可容纳 {tokens} 个 token（{low} 至 {high}）")
BROKEN = Text(
    "A combination would fit, but the files do not allow it: {place}: {why}. `oomdoctor plan` lists each.",
    "有可行的组合，但现有文件写不进去：{place}：{why}。`oomdoctor plan` 会逐一列出。",
)
STARTS = Text("The server starts as is.", "服务现在就能启动。")
STARTS_NOT = Text(
    "No combination of settings lets the server start. `oomdoctor plan` shows what would be enough.",
    "没有哪种设置组合能让服务启动。`oomdoctor plan` 会说明要多少才够。",
)
CARD = Text("the card in the log", "日志中的显卡")
WRITTEN = Text("{path} was changed; the old file is kept as {copy}", "已改写 {path}，原文件保存为 {copy}")
CREATED = Text("{path} was created", "已新建 {path}")
ASK = Text("Write these changes?", "写入这些改动？")
DECLINED = Text("Nothing was written.", "没有写入任何内容。")
