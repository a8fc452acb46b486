"""The words of `oomdoctor env` in English and Chinese, by key."""

from __future__ import annotations

import re
from collections.abc import Mapping

from oomdoctor.case.text import Text

WORDS: Mapping[str, Text] = {
    "this-machine": Text("this machine", "这台机器"),
    "good": Text("Nothing here stands in the way of a run.", "没有发现会妨碍运行的问题。"),
    "errors": Text("{n} thing here will make a run fail.", "有 {n} 个问题会导致运行失败。"),
    "errors-many": Text("{n} things here will make a run fail.", "有 {n} 个问题会导致运行失败。"),
    "warnings": Text("Nothing here makes a run fail; {n} thing is worth a look.", "没有会导致运行失败的问题；有 {n} 处值得留意。"),
    "warnings-many": Text("Nothing here makes a run fail; {n} things are worth a look.", "没有会导致运行失败的问题；有 {n} 处值得留意。"),
    "do": Text("What to do", "怎么处理"),
    "other-ways": Text("Other ways ({n})", "其他办法（{n}）"),
    "lacks": Text("missing: {names}", "缺少：{names}"),
    "found": Text("What stands out", "需要注意"),
    "notes": Text("Good to know", "另外说明"),
    "fine": Text("Fine: ", "正常："),
    "cards": Text("Cards", "显卡"),
    "software": Text("Software", "软件"),
    "machine": Text("Machine", "机器"),
    "variables": Text("Variables that change memory ({n})", "影响内存和显存的环境变量（{n}）"),
    "launcher": Text("How it was started ({n})", "启动方式（{n}）"),
    "packages": Text("More packages ({n})", "其他包（{n}）"),
    "functions": Text("NVML functions that torch looks up ({n})", "torch 要查询的 NVML 函数（{n}）"),
    "unknown": Text("What is not known", "还不知道的"),
    "gpu": Text("GPU {index}", "GPU {index}"),
    "no-cards": Text("none found", "没有找到"),
    "free-of": Text("{free} of {total} free", "{total}，空闲 {free}"),
    "total": Text("{total}", "{total}"),
    "capability": Text("compute capability {value}", "计算能力 {value}"),
    "bf16-native": Text("bf16 native", "原生 bf16"),
    "bf16-emulated": Text("no native bf16", "无原生 bf16"),
    "mig": Text("MIG, {n} slices", "MIG，{n} 个切片"),
    "mig-empty": Text("MIG", "MIG"),
    "unified": Text("shares the host's memory", "与主机共用内存"),
    "ecc": Text("ECC on", "ECC 已开启"),
    "errors-of-card": Text("uncorrected memory errors: {n}", "未纠正的显存错误 {n} 个"),
    "repair-pending": Text("waits for a reset", "等待重置"),
    "nvlink": Text("{n} NVLinks", "{n} 条 NVLink"),
    "nvlink-one": Text("1 NVLink", "1 条 NVLink"),
    "hidden": Text("hidden from the run", "对程序不可见"),
    "exclusive": Text("one process at a time", "只允许一个进程"),
    "own": Text(" (yours)", "（你的）"),
    "not-own": Text(" (another user's)", "（其他用户的）"),
    "held-by": Text("held by {names}", "占用者：{names}"),
    "driver": Text("Driver", "驱动"),
    "cuda-up-to": Text("CUDA up to {value}", "CUDA 最高 {value}"),
    "nvml": Text("NVML library", "NVML 库"),
    "torch": Text("torch", "torch"),
    "no-torch": Text("not found in this interpreter", "该解释器中没有找到"),
    "built-for": Text("built for {value}", "按 {value} 构建"),
    "cpu-only": Text("CPU only", "仅 CPU"),
    "python": Text("Interpreter", "解释器"),
    "os": Text("System", "系统"),
    "ram": Text("RAM", "内存"),
    "available-of": Text("{free} of {total} available", "{total}，可用 {free}"),
    "swap": Text("Swap", "交换空间"),
    "limit": Text("Container or job", "容器或作业"),
    "limit-of": Text("limit {limit}, {used} in use", "上限 {limit}，已用 {used}"),
    "no-limit": Text("no memory limit", "没有内存上限"),
    "memlock": Text("Locked memory", "可锁定内存"),
    "at-most": Text("at most {size}", "最多 {size}"),
    "unlimited": Text("unlimited", "不限"),
    "shm": Text("/dev/shm", "/dev/shm"),
    "disk": Text("Disk here", "当前目录所在磁盘"),
    "torch-said": Text("torch itself", "torch 自己说"),
    "sees": Text("sees {n} cards", "看到 {n} 张卡"),
    "sees-one": Text("sees 1 card", "看到 1 张卡"),
    "sees-none": Text("sees no card", "看不到显卡"),
    "allocator": Text("allocator {value}", "分配器 {value}"),
    "missing": Text("missing", "缺少"),
    "there": Text("there", "存在"),
    "commit": Text("commit {value}", "提交 {value}"),
    "editable": Text("editable", "可编辑安装"),
    "deep": Text("oomdoctor env --deep asks torch itself", "oomdoctor env --deep 会直接询问 torch"),
}

FINE: tuple[tuple[str, object, Text], ...] = (
    ("environment.driver_covers_torch", True, Text("the driver is new enough for torch", "驱动满足 torch 的要求")),
    ("environment.nvml_missing_count", 0, Text("NVML has every function that torch looks up", "NVML 具备 torch 要查询的全部函数")),
    ("environment.uncovered.count", 0, Text("torch has code for the cards", "torch 含有这些显卡的代码")),
    ("environment.emulating.count", 0, Text("bf16 is native", "原生支持 bf16")),
    ("environment.busy.count", 0, Text("no other process is on the cards", "显卡上没有其他进程")),
    ("environment.damaged.count", 0, Text("no memory errors", "没有显存错误")),
    ("environment.torch_bf16_works", True, Text("a product in bf16 came out right", "bf16 乘法结果正确")),
    ("environment.torch_fp16_works", True, Text("a product in fp16 came out right", "fp16 乘法结果正确")),
    ("environment.twice.count", 0, Text("no package is installed twice", "没有重复安装的包")),
)
"""A fact, the value with which all is well, and how that is said."""

GAPS: tuple[tuple[str, str], ...] = (
    (r"GPUs", "显卡"),
    (r"GPU (\d+)", r"GPU \1"),
    (r"memory of GPU (\d+)", r"GPU \1 的显存"),
    (r"processes on GPU (\d+)", r"GPU \1 上的进程"),
    (r"memory of the host", "主机内存"),
    (r"installed packages", "已安装的包"),
    (r"architectures of torch", "torch 支持的架构"),
    (r"the interpreter of the run", "运行用的解释器"),
    (r"/proc/meminfo cannot be read", "/proc/meminfo 无法读取"),
    (r"a folder of the interpreter cannot be read", "解释器的某个目录无法读取"),
    (r"this build is not in the table of releases", "该构建不在发行版表里"),
    (r"did not answer in time", "没有及时应答"),
    (r"ended by (\w+)", r"被 \1 终止"),
    (r"gave no answer", "没有应答"),
    (r"NVML does not start: (.*)", r"NVML 无法启动：\1"),
    (r"NVML does not list them: (.*)", r"NVML 没有列出：\1"),
    (r"NVML: it did not answer in time", "NVML 没有及时应答"),
    (r"NVML: it crashed \((\w+)\)", r"NVML 崩溃（\1）"),
    (r"NVML: (.*)", r"NVML：\1"),
)
"""What a gap of an environment says, as a pattern, and how Chinese says it."""


def gap_word(text: str, lang: str) -> str:
    """What is not known, or why, in the language of the report; a text of another program as it is."""
    if lang == "zh":
        for pattern, chinese in GAPS:
            found = re.fullmatch(pattern, text)
            if found:
                return found.expand(chinese)
    return text


def word(key: str, lang: str, **values: object) -> str:
    """One text of the table, filled in."""
    return WORDS[key].get(lang).format(**values)


def counted(key: str, lang: str, n: int) -> str:
    """A text with a number in it, in its plural where there is one."""
    return word(key if n == 1 or f"{key}-many" not in WORDS else f"{key}-many", lang, n=n)
