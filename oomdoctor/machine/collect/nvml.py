"""The cards and the driver by NVML, through pynvml; every call may fail on its own and costs one fact then.

Old and new drivers have different functions for the same thing, and the layout of a process changed twice: the newest is tried
first (nvitop's compatibility ladder). No serial number and no UUID is ever asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from msgspec import Struct

from oomdoctor.case.environment import Driver, EnvironmentPart, Gpu, GpuProcess, MigSlice
from oomdoctor.case.gap import Gap

_STATES = {4: "no-permission", 9: "no-driver", 12: "no-library", 13: "no-function", 18: "mismatch"}
"""NVML's return codes (nvml.h, nvmlReturn_t)."""
_NO_PERMISSION = 4
_CARDS = 64
_PROCESSES = 64
_LINKS = 18
"""NVLink ports of the largest cards (NVML_NVLINK_MAX_LINKS)."""
_PROCESS_CALLS = (
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetComputeRunningProcesses_v2",
    "nvmlDeviceGetComputeRunningProcesses",
)
_EXCLUSIVE = 3
_UNCORRECTED, _SINCE_LOADED, _DOUBLE_BIT = 1, 0, 1


class Owner(Struct, frozen=True, kw_only=True):
    """Whose a process is."""

    user: str | None = None
    program: str | None = None
    own: bool | None = None


Who = Callable[[int], Owner]
"""A process number -> whose it is."""


class NvmlAnswers(EnvironmentPart, frozen=True, kw_only=True):
    """What NVML said."""

    driver: Driver
    gpus: tuple[Gpu, ...] = ()
    gpus_known: bool | None = None
    gaps: tuple[Gap, ...] = ()


class _Calls:
    """Calls that answer None instead of failing, and remember the last code of failure."""

    def __init__(self, api: Any) -> None:
        self.api = api
        self.code: int | None = None
        self.message: str | None = None

    def __call__(self, name: str, *arguments: Any) -> Any:
        self.code, self.message = None, None
        try:
            return getattr(self.api, name)(*arguments)
        except (self.api.NVMLError, AttributeError, TypeError, ValueError, OSError) as why:
            self.code = getattr(why, "value", -1)
            self.message = str(why)[:200]
            return None

    def text(self, name: str, *arguments: Any) -> str | None:
        """An answer as text; older versions of pynvml give bytes."""
        said = self(name, *arguments)
        if isinstance(said, bytes):
            said = said.decode("utf-8", "replace")
        return said[:200] or None if isinstance(said, str) else None

    def first(self, *tries: tuple[Any, ...]) -> Any:
        """The first call of several that answers."""
        for one in tries:
            said = self(*one)
            if said is not None:
                return said
        return None


def nvml_answers(api: Any, who: Who) -> NvmlAnswers:
    """Asks NVML. `api` has the functions of pynvml and its NVMLError."""
    call = _Calls(api)
    call("nvmlInit")
    if call.code is not None:
        state = _STATES.get(call.code, "error")
        driver = Driver(state=state, message=call.message)
        return NvmlAnswers(driver=driver, gpus_known=False, gaps=(Gap("GPUs", f"NVML does not start: {call.message}"),))
    try:
        driver = Driver(
            version=call.text("nvmlSystemGetDriverVersion"),
            cuda=_cuda(call.first(("nvmlSystemGetCudaDriverVersion_v2",), ("nvmlSystemGetCudaDriverVersion",))),
            state="ok",
        )
        count = call("nvmlDeviceGetCount")
        if not isinstance(count, int):
            return NvmlAnswers(driver=driver, gpus_known=False, gaps=(Gap("GPUs", f"NVML does not list them: {call.message}"),))
        found = [_gpu(call, index, who) for index in range(min(count, _CARDS))]
        return NvmlAnswers(
            driver=driver, gpus=tuple(gpu for gpu, _ in found), gpus_known=True, gaps=tuple(gap for _, gaps in found for gap in gaps)
        )
    finally:
        call("nvmlShutdown")


def _cuda(said: Any) -> str | None:
    """12020 -> 12.2"""
    return f"{said // 1000}.{said % 1000 // 10}" if isinstance(said, int) and said > 0 else None


def _gpu(call: _Calls, index: int, who: Who) -> tuple[Gpu, list[Gap]]:
    handle = call("nvmlDeviceGetHandleByIndex", index)
    if handle is None:
        return Gpu(index=index, vendor="nvidia"), [Gap(f"GPU {index}", f"NVML: {call.message}")]
    gaps: list[Gap] = []
    memory = _memory(call, handle)
    if memory is None:
        gaps.append(Gap(f"memory of GPU {index}", f"NVML: {call.message}"))
    capability = call("nvmlDeviceGetCudaComputeCapability", handle)
    processes = _processes(call, handle, who)
    if processes is None:
        gaps.append(Gap(f"processes on GPU {index}", f"NVML: {call.message}"))
    mig = call("nvmlDeviceGetMigMode", handle)
    ecc = call("nvmlDeviceGetEccMode", handle)
    cut = bool(mig[0]) if isinstance(mig, (list, tuple)) and mig else None
    gpu = Gpu(
        index=index,
        vendor="nvidia",
        name=call.text("nvmlDeviceGetName", handle),
        **(memory or {}),
        processes=processes or (),
        processes_known=processes is not None,
        compute_capability=f"{capability[0]}.{capability[1]}" if isinstance(capability, (list, tuple)) else None,
        mig=cut,
        slices=tuple(_slices(call, handle)) if cut else (),
        ecc=bool(ecc[0]) if isinstance(ecc, (list, tuple)) and ecc else None,
        **_errors(call, handle),
        nvlink=_links(call, handle),
        exclusive=_mode(call("nvmlDeviceGetComputeMode", handle)),
    )
    return gpu, gaps


def _memory(call: _Calls, handle: Any) -> dict[str, Any] | None:
    """Memory of the second version (R510), which tells what the driver keeps apart from what is used; else of the first."""
    second = getattr(call.api, "nvmlMemory_v2", None)
    said = call("nvmlDeviceGetMemoryInfo", handle, second) if second is not None else None
    if said is None:
        said = call("nvmlDeviceGetMemoryInfo", handle)
    if said is None or not said.total:
        return None
    out: dict[str, Any] = {"total_bytes": int(said.total), "used_bytes": int(said.used), "free_bytes": int(said.free)}
    reserved = getattr(said, "reserved", None)
    return out if reserved is None else {**out, "reserved_bytes": int(reserved)}


def _processes(call: _Calls, handle: Any, who: Who) -> tuple[GpuProcess, ...] | None:
    said = call.first(*((name, handle) for name in _PROCESS_CALLS))
    if said is None:
        return None
    return tuple(_process(one, who) for one in list(said)[:_PROCESSES])


def _process(one: Any, who: Who) -> GpuProcess:
    owner = who(one.pid)
    used = one.usedGpuMemory
    # NVML says all ones where the memory of a process is not known (Windows, containers).
    size = used if isinstance(used, int) and 0 < used < 1 << 60 else None
    return GpuProcess(pid=one.pid, used_bytes=size, user=owner.user, name=owner.program, own=owner.own)


def _slices(call: _Calls, handle: Any) -> Iterator[MigSlice]:
    for number in range(min(call("nvmlDeviceGetMaxMigDeviceCount", handle) or 0, 16)):
        one = call("nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
        if one is not None:
            memory = _memory(call, one) or {}
            memory.pop("reserved_bytes", None)
            yield MigSlice(name=call.text("nvmlDeviceGetName", one), **memory)


def _errors(call: _Calls, handle: Any) -> dict[str, Any]:
    """What ECC could not correct, and what was taken out of use for it: rows from Ampere on, pages before."""
    out: dict[str, Any] = {}
    uncorrected = call("nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED, _SINCE_LOADED)
    if isinstance(uncorrected, int):
        out["ecc_uncorrected"] = uncorrected
    rows = call("nvmlDeviceGetRemappedRows", handle)
    if isinstance(rows, (list, tuple)) and len(rows) == 4:
        return {**out, "retired_pages": int(rows[1]), "repair_pending": bool(rows[2] or rows[3])}
    pages = call("nvmlDeviceGetRetiredPages", handle, _DOUBLE_BIT)
    if pages is not None:
        out["retired_pages"] = len(list(pages))
    pending = call("nvmlDeviceGetRetiredPagesPendingStatus", handle)
    if isinstance(pending, int):
        out["repair_pending"] = bool(pending)
    return out


def _links(call: _Calls, handle: Any) -> int | None:
    active, asked = 0, 0
    for link in range(_LINKS):
        state = call("nvmlDeviceGetNvLinkState", handle, link)
        if state is None:
            break
        asked += 1
        active += state == 1
    return active if asked else None


def _mode(mode: Any) -> bool | None:
    return mode == _EXCLUSIVE if isinstance(mode, int) else None


def who_is(read: Callable[[str], str | None], uid: int | None) -> Who:
    """Names processes by /proc; `read` gives a file's text, `uid` is who asks. A program's arguments may hold anything and stay out."""

    def named(pid: int) -> Owner:
        status = read(f"/proc/{int(pid)}/status") or ""
        program = re.search(r"^Name:\s{1,4}(\S[^\n]{0,60})$", status, re.MULTILINE)
        found = re.search(r"^Uid:\s{1,4}(\d{1,10})", status, re.MULTILINE)
        if found is None:
            return Owner(program=program[1] if program else None)
        return Owner(user=_user(int(found[1])), program=program[1] if program else None, own=int(found[1]) == uid)

    return named


def _user(uid: int) -> str | None:
    try:
        import pwd  # noqa: PLC0415 - only where a card is in use; Windows has none

        return pwd.getpwuid(uid).pw_name
    except (ImportError, KeyError, OSError):
        return None
