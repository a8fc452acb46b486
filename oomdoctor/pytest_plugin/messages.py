"""What the plugin says, in English and Chinese."""

from __future__ import annotations

import os

from oomdoctor.case.text import Text
from oomdoctor.cli.output import locale_language
from oomdoctor.pytest_plugin.leaks import Leak
from oomdoctor.pytest_plugin.peaks import MeasuredPeak
from oomdoctor.pytest_plugin.tracebacks import HeldByTraceback
from oomdoctor.report.wording.wording import Counted, Wording
from oomdoctor.units import format_size

_ABOVE_LIMIT = Text(
    "the test used {peak} on {device}, {more} over its limit of {limit}", "测试在 {device} 上占用 {peak}，超过上限 {limit}，多出 {more}"
)
_PROCESS_ABOVE_LIMIT = Text(
    "the process used {peak} on {device}, {more} over the limit of {limit}; {test} of that came from the test",
    "进程在 {device} 上占用 {peak}，超过上限 {limit}，多出 {more}；其中 {test} 是该测试新增的",
)
_ABOVE_KEPT = Text(
    "the test used {peak} on {device}, {more} more than the {kept} recorded in {file}; up to {most} is allowed",
    "测试在 {device} 上占用 {peak}，比 {file} 中记录的 {kept} 多 {more}；允许的上限是 {most}",
)
_OTHER_DEVICE = Text(" (measured on {kept}, now on {now})", "（当时在 {kept} 上测得，现在是 {now}）")
_LEAK = Text(
    "a leak on {device}: each run leaves about {each}; over {runs} runs, memory in use went from {before} to {after}",
    "{device} 上有显存泄漏：每运行一次约多占 {each}；运行 {runs} 次后从 {before} 增加到 {after}",
)
_LEFT = Text("; left behind: {left}", "；留下的张量：{left}")
_SKIPPED = Text(
    "needs {need} of device memory ({source}); --max-vram allows {most}", "需要 {need} 显存（{source}）；--max-vram 只允许 {most}"
)
_SOURCES = {
    "marked": Text("as marked", "标记所写"),
    "estimated": Text("estimated", "估算"),
    "kept": Text("recorded in the baseline", "基线记录"),
    "limit": Text("its limit", "其上限"),
}
_HELD = Text(
    "This test's traceback kept {bytes} alive on {device} after it ended: {variables}. They were released for the next tests.",
    "该测试结束后，它的 traceback 仍在 {device} 上占着 {bytes}：{variables}。这些变量已被释放，不影响后面的测试。",
)
_VARIABLE = Text("{name} in {place} ({bytes})", "{place} 的 {name}（{bytes}）")
_WRITTEN = Counted(
    "oomdoctor: the peak of 1 test was saved in {path}",
    "oomdoctor: the peaks of {n} tests were saved in {path}",
    "oomdoctor：{n} 个测试的峰值已写入 {path}",
)
_NOT_WRITTEN = Text("oomdoctor: could not save the peaks in {path}: {why}", "oomdoctor：峰值未能写入 {path}：{why}")
_NOTHING_MEASURED = Text(
    "oomdoctor: no passing test used a device, so {path} is unchanged", "oomdoctor：通过的测试都没有使用设备，{path} 未改动"
)
_NOT_COMPARED = Counted(
    "oomdoctor: 1 test has no recorded peak in {path}; --gpu-memory-write adds it",
    "oomdoctor: {n} tests have no recorded peak in {path}; --gpu-memory-write adds them",
    "oomdoctor：{path} 中没有 {n} 个测试的峰值；用 --gpu-memory-write 添加",
)


def wording() -> Wording:
    """Return the language of the locale."""
    return Wording(locale_language(os.environ))


def above_limit(peak: MeasuredPeak, limit: int, *, of_process: bool) -> str:
    """Return that a test took more than its limit."""
    taken = peak.of_process if of_process else peak.of_test
    sizes = {"peak": taken, "limit": limit, "more": taken - limit, "test": peak.of_test}
    text = _PROCESS_ABOVE_LIMIT if of_process else _ABOVE_LIMIT
    return wording().say(text, device=peak.device, **{name: format_size(size) for name, size in sizes.items()})


def above_kept(peak: MeasuredPeak, kept: int, most: int, path: str, device: str | None) -> str:
    """Return that a test took more than it did when its peak was kept."""
    sizes = {"peak": peak.of_test, "kept": kept, "more": peak.of_test - kept, "most": most}
    text = wording().say(_ABOVE_KEPT, device=peak.device, file=path, **{name: format_size(size) for name, size in sizes.items()})
    is_other = device is not None and device != peak.title
    return text + (wording().say(_OTHER_DEVICE, kept=device, now=peak.title) if is_other else "")


def leaks(leak: Leak) -> str:
    """Return that a test leaves memory behind."""
    sizes = {"each": round(leak.each), "before": leak.before, "after": leak.after}
    text = wording().say(_LEAK, device=leak.device, runs=leak.runs, **{name: format_size(size) for name, size in sizes.items()})
    return text + (wording().say(_LEFT, left=wording().item_comma.join(leak.left)) if leak.left else "")


def needs_too_much(need: int, source: str, most: int) -> str:
    """Return why a test is skipped."""
    return wording().say(_SKIPPED, need=format_size(need), source=wording().say(_SOURCES[source]), most=format_size(most))


def held(by: HeldByTraceback) -> str:
    """Return what the traceback of a test held."""
    variables = [
        wording().say(_VARIABLE, name=variable.variable, place=variable.place, bytes=format_size(variable.bytes))
        for variable in by.variables
    ]
    return wording().say(_HELD, bytes=format_size(by.bytes), device=by.device, variables=wording().comma.join(variables))


def peaks_kept(path: str, n: int) -> str:
    """Return how many peaks a file keeps now."""
    return wording().count(_WRITTEN, n, path=path) if n else wording().say(_NOTHING_MEASURED, path=path)


def not_written(path: str, why: str) -> str:
    """Return why no peaks could be kept."""
    return wording().say(_NOT_WRITTEN, path=path, why=why)


def not_compared(path: str, n: int) -> str:
    """Return how many tests had nothing to be held against."""
    return wording().count(_NOT_COMPARED, n, path=path)
