"""The words of `oomdoctor env` in English and Chinese, by key."""

from __future__ import annotations

import re

from oomdoctor.case.text import Text
from oomdoctor.report.wording.wording import Counted, Wording

THIS_MACHINE = Text("this machine", "这台机器")
GOOD = Text("Nothing here would keep a run from working.", "没有发现会妨碍运行的问题。")
NEITHER = Text(
    "There is no card here, and this interpreter has no torch, so nothing can be said about a run yet. `--python PATH` "
    "selects the run's interpreter, `--from FILE` reads another machine.",
    "这里没有显卡，这个解释器里也没有 torch，因此还无法判断能不能运行。用 `--python 路径` 指定运行所用的解释器，"
    "用 `--from 文件` 读取另一台机器的信息。",
)
TORCH_WITHOUT_CARD = Text(
    "No card was found here, so a run would use the CPU. No other problems found.",
    "这里没有找到显卡，程序只能在 CPU 上跑。其他方面没有发现问题。",
)
CARD_ALONE = Text(
    "No torch was found, so whether it could use the card is unknown. `--python PATH` selects the run's interpreter.",
    "没有找到 torch，无法判断它能不能用上显卡。用 `--python 路径` 指定运行所用的解释器。",
)
TORCH_ALONE = Text(
    "Nothing in the input would keep a run from working; it does not show which card the run would use.",
    "就给出的内容看没有问题；但没有给出显卡型号，无法判断是否配套。",
)
NOTHING = Text(
    "The input shows neither a card nor torch, so nothing can be said about a run.", "没有给出显卡，也没有给出 torch，无法判断能不能运行。"
)
ERRORS = Counted("{n} problem here will make a run fail.", "{n} problems here will make a run fail.", "有 {n} 个问题会导致运行失败。")
WARNINGS = Counted(
    "Nothing here will make a run fail; {n} item is worth a look.",
    "Nothing here will make a run fail; {n} items are worth a look.",
    "没有会导致运行失败的问题；有 {n} 处值得留意。",
)
LACKS = Text("missing: {names}", "缺少：{names}")
FOUND = Text("Problems", "需要注意")
NOTES = Text("Worth knowing", "另外说明")
ALL_FINE = Text("OK: ", "正常：")
CARDS = Text("Cards", "显卡")
SOFTWARE = Text("Software", "软件")
MACHINE = Text("Machine", "机器")
VARIABLES = Text("Variables that affect memory ({n})", "影响内存和显存的环境变量（{n}）")
LAUNCHER = Text("How it was launched ({n})", "启动方式（{n}）")
PACKAGES = Text("More packages ({n})", "其他包（{n}）")
FUNCTIONS = Text("NVML functions that torch looks up ({n})", "torch 要查询的 NVML 函数（{n}）")
UNKNOWN = Text("Unknown", "还不知道的")
UNKNOWN_CARD = Text("unknown card", "未知型号")
GPU = Text("GPU {index}", "GPU {index}")
NO_CARDS = Text("none found", "没有找到")
FREE_OF = Text("{free} of {total} free", "{total}，空闲 {free}")
TOTAL = Text("{total}", "{total}")
CAPABILITY = Text("compute capability {value}", "计算能力 {value}")
BF16_NATIVE = Text("bf16 native", "原生 bf16")
BF16_EMULATED = Text("no native bf16", "无原生 bf16")
MIG = Text("MIG, {n} slices", "MIG，{n} 个切片")
MIG_EMPTY = Text("MIG", "MIG")
UNIFIED = Text("shares host memory", "与主机共用内存")
ECC = Text("ECC on", "ECC 已开启")
ERRORS_OF_CARD = Text("uncorrected memory errors: {n}", "未纠正的显存错误 {n} 个")
REPAIR_PENDING = Text("needs a reset", "等待重置")
NVLINK = Counted("{n} NVLink", "{n} NVLinks", "{n} 条 NVLink")
HIDDEN = Text("hidden from the run", "对程序不可见")
EXCLUSIVE = Text("one process at a time", "只允许一个进程")
OWN = Text(" (yours)", "（你的）")
NOT_OWN = Text(" (another user's)", "（其他用户的）")
HELD_BY = Text("used by {names}", "占用者：{names}")
DRIVER = Text("Driver", "驱动")
CUDA_UP_TO = Text("CUDA up to {value}", "CUDA 最高 {value}")
NVML = Text("NVML library", "NVML 库")
TORCH = Text("torch", "torch")
NO_TORCH = Text("not found in this interpreter", "该解释器中没有找到")
BUILT_FOR = Text("built for {value}", "按 {value} 构建")
CPU_ONLY = Text("CPU only", "仅 CPU")
PYTHON = Text("Interpreter", "解释器")
OS = Text("System", "系统")
RAM = Text("RAM", "内存")
AVAILABLE_OF = Text("{free} of {total} available", "{total}，可用 {free}")
SWAP = Text("Swap", "交换空间")
LIMIT = Text("Container or job", "容器或作业")
LIMIT_ALONE = Text("limit {limit}", "上限 {limit}")
LIMIT_OF = Text("limit {limit}, {used} in use", "上限 {limit}，已用 {used}")
NO_LIMIT = Text("no memory limit", "没有内存上限")
MEMLOCK = Text("Locked memory", "可锁定内存")
AT_MOST = Text("at most {size}", "最多 {size}")
UNLIMITED = Text("unlimited", "不限")
SHM = Text("/dev/shm", "/dev/shm")
DISK = Text("Disk here", "当前目录所在磁盘")
TORCH_SAID = Text("torch itself", "torch 自己说")
SEES = Counted("sees {n} card", "sees {n} cards", "看到 {n} 张卡")
SEES_SOME = Text("CUDA is available", "CUDA 可用")
SEES_NONE = Text("sees no card", "看不到显卡")
ALLOCATOR = Text("allocator {value}", "分配器 {value}")
MISSING = Text("missing", "缺少")
THERE = Text("present", "存在")
COMMIT = Text("commit {value}", "提交 {value}")
EDITABLE = Text("editable", "可编辑安装")
DEEP = Text("run oomdoctor env --deep to ask torch itself", "oomdoctor env --deep 会直接询问 torch")

FINE_FACTS: tuple[tuple[str, object, Text], ...] = (
    ("environment.driver_covers_torch", True, Text("the driver is new enough for torch", "驱动满足 torch 的要求")),
    ("environment.nvml_missing_count", 0, Text("NVML has every function that torch looks up", "NVML 具备 torch 要查询的全部函数")),
    ("environment.clash.count", 0, Text("compiled packages match torch", "依赖 torch 编译的包与它配套")),
    ("environment.uncovered.count", 0, Text("torch has code for the cards", "torch 含有这些显卡的代码")),
    ("environment.emulating.count", 0, Text("bf16 is native", "原生支持 bf16")),
    ("environment.busy.count", 0, Text("no other process uses the cards", "显卡上没有其他进程")),
    ("environment.damaged.count", 0, Text("no memory errors", "没有显存错误")),
    ("environment.torch_bf16_works", True, Text("a bf16 matrix multiplication gave the correct result", "bf16 乘法结果正确")),
    ("environment.torch_fp16_works", True, Text("an fp16 matrix multiplication gave the correct result", "fp16 乘法结果正确")),
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
    (r"did not respond in time", "没有及时应答"),
    (r"killed by (\w+)", r"被 \1 终止"),
    (r"returned no answer", "没有应答"),
    (r"NVML does not start: (.*)", r"NVML 无法启动：\1"),
    (r"NVML does not list them: (.*)", r"NVML 没有列出：\1"),
    (r"NVML: it did not respond in time", "NVML 没有及时应答"),
    (r"NVML: it crashed \((\w+)\)", r"NVML 崩溃（\1）"),
    (r"NVML: (.*)", r"NVML：\1"),
)
"""What a gap of an environment says, as a pattern, and how Chinese says it."""


def gap_text(text: str, wording: Wording) -> str:
    """Return what is not known, or why, in the language of the report; a text of another program as it is."""
    if wording.is_chinese:
        for pattern, chinese in GAPS:
            match = re.fullmatch(pattern, text)
            if match:
                return match.expand(chinese)
    return text
