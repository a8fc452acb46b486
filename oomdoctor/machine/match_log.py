"""Decide whether a machine is the one that a log is from, and what it adds to what the log says.

A log may come from anywhere. What it shows of its machine (the size of a card, versions, paths of scripts) is held against the
machine at hand; where anything differs, nothing of that machine is used unless the user asked for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.event import Event, Kind, Value
from oomdoctor.case.text import Text
from oomdoctor.units import format_size

if TYPE_CHECKING:
    from oomdoctor.case.environment import Environment
    from oomdoctor.machine.facts import Fact

_SHARE = 0.03
"""Tools count a card with or without what the driver keeps: 1 to 3 % apart (environment.md, section 1)."""
_PATH = re.compile(r"(?P<path>/[^:\s]{2,300}|[A-Za-z]:\\[^:\n]{2,300}):\d{1,7} in ")
_PATHS = 4
_NODES = (
    "/dev/nvidiactl",
    "/dev/nvhost-ctrl-gpu",
    "/dev/nvmap",
    "/dev/dxg",
    "/dev/kfd",
    "/dev/dri/renderD128",
    "/dev/davinci0",
    "/dev/accel/accel0",
)
"""Device files of drivers: NVIDIA, Tegra (two generations), WSL, ROCm, any other graphics card, Ascend, Gaudi."""
_NO_TRACE = Text("the log shows neither a card nor a path that could identify the machine", "日志里没有可以核对的显卡或路径")
_SHOWN = 3
_ON_THE_CARD = (Kind.DEVICE_OOM, Kind.MASKED_DEVICE_OOM)


class MachineSource(Struct, frozen=True):
    """Which machine the user wants beside the log."""

    take: Callable[[], Environment]
    name: str | None = None
    """The file that describes it; None for this machine."""
    always: bool = False
    """Whether it is the run's machine because the user says so."""


class LogTraces(Struct, frozen=True, kw_only=True):
    """What a log shows of the machine that it is from."""

    totals: tuple[int, ...] = ()
    """Bytes of cards, as messages give them."""
    versions: Mapping[str, str] = {}
    """torch, driver."""
    paths: tuple[str, ...] = ()


class MatchedMachine(Struct, frozen=True):
    """The machine, if its facts may be used, and a sentence that says why or why not."""

    environment: Environment | None
    note: Text


def find_log_traces(events: Sequence[Event], log: Mapping[str, Value]) -> LogTraces:
    """Return what the failures and the settings in a log show of its machine."""
    frames = dict.fromkeys(place["path"] for event in events if event.frame and (place := _PATH.match(event.frame)))
    totals = dict.fromkeys(total for event in events if event.kind in _ON_THE_CARD and (total := event.size("total_bytes")) is not None)
    versions = {name: str(log[f"log.{name}_version"]) for name in ("torch", "driver") if f"log.{name}_version" in log}
    return LogTraces(totals=tuple(totals), versions=versions, paths=tuple(frames)[:_PATHS])


def match_log(source: MachineSource, traces: LogTraces, exists: Callable[[str], bool] = os.path.exists) -> MatchedMachine:
    """Return the machine that the user asks for, if it may be the run's. Paths and device files are looked at first: that costs nothing."""
    missing = [path for path in traces.paths if not exists(path)] if source.name is None else []
    if not source.always and (missing or not (traces.paths or traces.totals)):
        return MatchedMachine(None, _unused([_no_path(missing[0]) if missing else _NO_TRACE]))
    if not source.always and traces.totals and exists("/proc/self") and not any(map(exists, _NODES)):
        return MatchedMachine(None, _unused([_no_card(traces.totals[0])]))
    environment = source.take()
    differs = [*map(_no_path, missing[:1]), *_differences(environment, traces)]
    agrees = [*_same_card(environment, traces), *(Text(path, path) for path in traces.paths[:1] if source.name is None and not missing)]
    if not source.always and (differs or not agrees):
        return MatchedMachine(None, _unused(differs or [_NO_TRACE]))
    return MatchedMachine(environment, _used(source, [*agrees, *_same_versions(environment, traces)], differs))


def missing_log_facts(environment: Environment) -> dict[str, Value]:
    """Return what the environment says under the names that a log would use: `log.torch_version`, `log.gpu_name`."""
    out: dict[str, Value] = {
        f"log.{name.replace('-', '_')}_version": package.version
        for name, package in environment.packages.items()
        if not name.startswith("nvidia-")
    }
    known = {
        "driver_version": environment.driver.version,
        "gpu_name": environment.gpus[0].name if environment.gpus else None,
        "python_version": environment.python.version,
    }
    out.update({f"log.{name}": value for name, value in known.items() if value is not None})
    return out


def lasting_facts(environment: Environment) -> dict[str, Fact]:
    """Return the facts that hold for a while. How full a card is, and by whom, is left out: that may have been before, during or after."""
    from oomdoctor.machine.facts import environment_facts  # noqa: PLC0415 - most logs come from elsewhere, and then nobody asks

    gpus = tuple(replace(gpu, used_bytes=None, free_bytes=None, processes=(), processes_known=None) for gpu in environment.gpus)
    return environment_facts(replace(environment, gpus=gpus))


def _differences(environment: Environment, traces: LogTraces) -> Iterator[Text]:
    sizes = [gpu.total_bytes for gpu in environment.gpus if gpu.total_bytes]
    for total in traces.totals:
        if sizes and not any(_same_size(total, size) for size in sizes):
            yield Text(
                f"the log shows a {format_size(total)} card, the machine has {format_size(sizes[0])}",
                f"日志里的显卡是 {format_size(total)}，这台机器是 {format_size(sizes[0])}",
            )
        elif not environment.gpus and _has_no_card(environment):
            yield Text(
                f"the log shows a {format_size(total)} card, the machine has none",
                f"日志里有 {format_size(total)} 的显卡，这台机器没有",
            )
    for name, logged, installed in _versions(environment, traces):
        if not _same_version(logged, installed):
            yield Text(
                f"{name} is {logged} in the log and {installed} on the machine", f"日志里 {name} 是 {logged}，这台机器上是 {installed}"
            )


def _same_card(environment: Environment, traces: LogTraces) -> Iterator[Text]:
    sizes = [gpu.total_bytes for gpu in environment.gpus if gpu.total_bytes]
    total = next((total for total in traces.totals if any(_same_size(total, size) for size in sizes)), None)
    if total is not None:
        yield Text(f"the card ({format_size(total)})", f"显卡（{format_size(total)}）")


def _same_versions(environment: Environment, traces: LogTraces) -> Iterator[Text]:
    for name, logged, installed in _versions(environment, traces):
        if _same_version(logged, installed):
            yield Text(f"{name} {logged}", f"{name} {logged}")


def _has_no_card(environment: Environment) -> bool:
    return environment.gpus_known is True or environment.driver.state in ("no-library", "no-driver")


def _versions(environment: Environment, traces: LogTraces) -> Iterator[tuple[str, str, str]]:
    versions = {"torch": environment.torch.version if environment.torch else None, "driver": environment.driver.version}
    for name, logged in traces.versions.items():
        if (value := versions[name]) is not None:
            yield name, logged, value


def _same_size(first: int, second: int) -> bool:
    return abs(first - second) <= _SHARE * max(first, second)


def _same_version(first: str, second: str) -> bool:
    """Equal as far as both go: `2.3.1` and `2.3.1+cu121`."""
    short, long = sorted((first, second), key=len)
    return long == short or (long.startswith(short) and not long[len(short)].isalnum())


def _no_card(total: int) -> Text:
    return Text(f"the log shows a {format_size(total)} card, the machine has none", f"日志里有 {format_size(total)} 的显卡，这台机器没有")


def _no_path(path: str) -> Text:
    return Text(f"{path} does not exist here", f"这里没有 {path}")


def _unused(why: Sequence[Text]) -> Text:
    return Text(
        f"Facts about this machine are not used: {_joined(why, 'en')}.",
        f"没有结合本机信息：{_joined(why, 'zh')}。",
    )


def _used(source: MachineSource, agrees: Sequence[Text], differs: Sequence[Text]) -> Text:
    name = source.name
    en = f"Facts about the machine come from {name}" if name else "Facts about this machine are used"
    zh = f"机器信息来自 {name}" if name else "已结合本机信息"
    if differs:
        return Text(f"{en}, although {_joined(differs, 'en')}.", f"{zh}，但{_joined(differs, 'zh')}。")
    if agrees:
        return Text(f"{en}; the log agrees on {_joined(agrees, 'en')}.", f"{zh}，与日志一致的有：{_joined(agrees, 'zh')}。")
    return Text(f"{en}; nothing in the log confirms or contradicts them.", f"{zh}；日志里没有可以核对的内容。")


def _joined(texts: Sequence[Text], lang: str) -> str:
    return ("、" if lang == "zh" else ", ").join(text.get(lang) for text in texts[:_SHOWN])
