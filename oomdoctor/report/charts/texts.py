"""The words in and below charts."""

from __future__ import annotations

from oomdoctor.case.text import Text

FIGURES = Text("The figures", "数值表")
AT_MOST = Text("at most {size}", "最高 {size}")
CURVE = Text("{label}: from {first} to {last}, at most {most}", "{label}：从 {first} 到 {last}，最高 {most}")
AT = Text("{label} at {axis} {at}", "{label}：{axis} {at}")
FROM_TO = Text("{axis} {start} to {end}", "{axis} {start} 至 {end}")
BETWEEN = Text("{low} to {high}", "{low} 至 {high}")
TOTAL = Text("total", "合计")
HIGHEST = Text("Each point is the highest size in its interval.", "每段取最高值。")
COUNT = Text("{label}: {n}", "{label}：{n}")
WHEN = Text("when", "时间")
PART = Text("part", "部分")
