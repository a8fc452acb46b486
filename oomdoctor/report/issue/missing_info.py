"""What a report lacks and a maintainer would ask for, with the command that gives it: the most telling first.

Of 170 public reports 8 show the torch version, 3 the driver and 14 a batch or length (the field reports of rules/sources.yaml):
those three come first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from msgspec import Struct

from oomdoctor.case.case import Case
from oomdoctor.case.event import Kind
from oomdoctor.case.text import Text
from oomdoctor.report.wording import reply as texts
from oomdoctor.report.wording.wording import Wording

_DEVICE = frozenset({Kind.DEVICE_OOM, Kind.MASKED_DEVICE_OOM})
_HOST = frozenset({Kind.HOST_OOM})
_SHM = frozenset({Kind.SHM_OOM})
_LOOKS = frozenset({Kind.LOOK_ALIKE, Kind.KERNEL_RESOURCE})
_OPEN = frozenset({Kind.CONSEQUENCE})
_VERSIONS = "python -m torch.utils.collect_env"


class MissingInfo(Struct, frozen=True, kw_only=True):
    """One thing worth knowing, and how to learn it."""

    what: Text
    how: Text
    kinds: frozenset[Kind]
    """The kinds of failure for which it counts."""
    known_by: tuple[str, ...] = ()
    """Facts of which one is enough to know it."""


QUESTIONS = (
    MissingInfo(
        what=Text("the log of every rank from the start, not only the end", "所有 rank 从头开始的日志，而不只是结尾"),
        how=Text("`oomdoctor report LOGDIR` reads them together", "`oomdoctor report 日志目录` 会一起读"),
        kinds=_OPEN,
    ),
    MissingInfo(
        what=Text("batch size, sequence length and how the model is split across cards", "批大小、序列长度，以及模型怎样切分到各卡"),
        how=Text("the complete launch command and config file", "完整的启动命令和配置文件"),
        kinds=_DEVICE,
        known_by=(
            "training.micro_batch",
            "training.max_model_len",
            "log.per_device_train_batch_size",
            "log.train_micro_batch_size_per_gpu",
            "log.micro_batch_size",
            "log.batch_size",
            "log.max_model_len",
        ),
    ),
    MissingInfo(
        what=Text("the card, how full it was, and which processes were using it", "是什么显卡，占用多少，被哪些进程占用"),
        how=Text("`nvidia-smi`, run during the job or right after it failed", "在运行时或刚出错时执行 `nvidia-smi`"),
        kinds=_DEVICE,
        known_by=("event.total_bytes", "log.bus_id"),
    ),
    MissingInfo(
        what=Text("versions of torch, CUDA and the driver", "版本信息：torch、CUDA 和驱动"),
        how=Text(f"`{_VERSIONS}`", f"`{_VERSIONS}`"),
        kinds=_DEVICE | _LOOKS,
        known_by=("log.torch_version",),
    ),
    MissingInfo(
        what=Text(
            "when it failed: the first step, an evaluation, a save, or after many steps", "出错的时机：第一步、评估、保存，还是很多步之后"
        ),
        how=Text("the 100 lines before the error", "报错之前的 100 行"),
        kinds=_DEVICE | _HOST,
        known_by=("incident.phase", "log.step", "log.total_steps"),
    ),
    MissingInfo(
        what=Text("what the kernel log says about the kill", "内核对这次杀进程的记录"),
        how=Text("`dmesg -T | grep -iE 'killed process|oom'`", "`dmesg -T | grep -iE 'killed process|oom'`"),
        kinds=_HOST,
        known_by=("event.anon_rss_bytes", "event.total_vm_bytes", "event.limit_bytes", "settle.sigkill", "machine.windows"),
    ),
    MissingInfo(
        what=Text("how much RAM there is and the job's memory limit", "主机内存有多大，作业的上限是多少"),
        how=Text("`free -h; cat /sys/fs/cgroup/memory.max`", "`free -h; cat /sys/fs/cgroup/memory.max`"),
        kinds=_HOST,
        known_by=("event.host_total_bytes", "event.limit_bytes", "log.host_total_bytes", "machine.windows"),
    ),
    MissingInfo(
        what=Text("the size of /dev/shm", "共享内存 /dev/shm 的大小"),
        how=Text("`df -h /dev/shm`, inside the container", "在容器里执行 `df -h /dev/shm`"),
        kinds=_SHM,
        known_by=("event.limit_bytes", "event.total_bytes"),
    ),
    MissingInfo(
        what=Text("the number of DataLoader workers", "数据加载的 worker 数"),
        how=Text("the complete launch command and config file", "完整的启动命令和配置文件"),
        kinds=_SHM,
        known_by=("training.dataloader_workers", "log.dataloader_num_workers"),
    ),
    MissingInfo(
        what=Text("versions of the framework and of transformers", "所用框架和 transformers 的版本"),
        how=Text(
            "`pip list | grep -iE 'torch|transformers|accelerate|deepspeed|vllm|sglang|factory'`",
            "`pip list | grep -iE 'torch|transformers|accelerate|deepspeed|vllm|sglang|factory'`",
        ),
        kinds=_DEVICE | _LOOKS,
        known_by=("log.transformers_version", "log.vllm_version", "log.llamafactory_version", "training.version"),
    ),
)


_ANY = frozenset(Kind)
_COMMAND = MissingInfo(
    what=Text("the complete launch command and config file", "完整的启动命令和配置文件"),
    how=Text("as text, not a screenshot", "贴文本，不要截图"),
    kinds=_ANY,
    known_by=("told.command",),
)
NO_LOG = (
    MissingInfo(
        what=Text("the log as text, from the start of the run to its last line", "文本形式的日志，从启动到最后一行"),
        how=Text("in a code block, or as a file", "放在代码块里，或作为附件"),
        kinds=_ANY,
    ),
    _COMMAND,
    MissingInfo(
        what=Text("which model, and how it is trained or served", "用的是哪个模型，怎样训练或部署"),
        how=Text("its full name", "写出模型全名"),
        kinds=_ANY,
        known_by=("told.model",),
    ),
    MissingInfo(
        what=Text("which card, and how many", "什么显卡，几张"),
        how=Text("`nvidia-smi`", "`nvidia-smi`"),
        kinds=_ANY,
        known_by=("told.card", "event.total_bytes", "log.bus_id"),
    ),
)
"""What to ask somebody who shows no log of a failure."""
OTHER_ERROR = (
    MissingInfo(
        what=Text("the complete traceback", "完整的 traceback"),
        how=Text("from `Traceback` to the last line", "从 `Traceback` 到最后一行"),
        kinds=_ANY,
        known_by=("told.traceback",),
    ),
    _COMMAND,
    MissingInfo(
        what=Text("package versions", "各个包的版本"),
        how=Text("`pip list`", "`pip list`"),
        kinds=_ANY,
        known_by=("log.torch_version", "log.transformers_version", "log.vllm_version"),
    ),
)
"""What to ask where something else failed and no rule knows it."""
_SETS: Mapping[str, tuple[MissingInfo, ...]] = {"told": NO_LOG, "none": NO_LOG, "other-error": OTHER_ERROR}
_WANTED = 3


def missing_info(case: Case, held: frozenset[str] = frozenset()) -> Iterator[MissingInfo]:
    """Yield what is not known of a case and would help, the most telling first; `held` names what stands in the text around its log."""
    known = _known(case) | held
    if case.verdict.reason in _SETS:
        yield from (question for question in _SETS[case.verdict.reason] if not known & set(question.known_by))
        return
    kind = case.verdict.kind if case.verdict.kind is not Kind.NONE or not case.incidents else case.incidents[0].kind
    yield from (question for question in QUESTIONS if kind in question.kinds and not known & set(question.known_by))


def wanted_list(case: Case, wording: Wording, held: frozenset[str] = frozenset(), most: int = _WANTED) -> str:
    """Return what to ask for as part of a sentence; empty where nothing is missing."""
    requests = (
        wording.say(texts.ASKED, what=wording.say(question.what), how=wording.say(question.how)) for question in missing_info(case, held)
    )
    return wording.say(texts.AND).join(islice(requests, most))


def _known(case: Case) -> set[str]:
    """Return the names of the facts that the case holds, and of what makes a question needless (it is asked already, another system)."""
    known = {*case.facts, f"settle.{case.verdict.settle}"}
    if case.told is not None:
        told = {"told.model": case.told.model is not None and case.told.method_is_told, "told.card": case.told.card_is_known}
        known |= {name for name, is_known in told.items() if is_known}
    if case.environment is not None:
        installed = {f"log.{name.replace('-', '_')}_version" for name in case.environment.packages}
        known |= installed | ({"log.torch_version"} if case.environment.torch is not None else set())
        known |= {"log.bus_id"} if case.environment.gpus else set()
    if case.training is not None:
        known |= {f"training.{name}" for name in case.training.settings.known()}
    if case.incidents:
        first = case.incidents[0]
        known |= {f"event.{name}" for name in first.root.fields}
        if "windows" in first.root.signature:
            known.add("machine.windows")
        if first.phase or first.root.phase or first.steps_passed:
            known.add("incident.phase")
    return known
