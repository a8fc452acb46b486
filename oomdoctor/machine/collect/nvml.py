"""Ask NVML, through pynvml, for the driver and the cards; a call that fails costs one fact.

Old and new drivers have different functions for the same thing, and the layout of a process changed twice: the newest is tried
first (nvitop's compatibility ladder). No serial number and no UUID is ever asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import takewhile
from typing import Any

from msgspec import Struct, field

from oomdoctor.case.environment import Driver, EnvironmentPart, Gpu, GpuProcess, MigSlice
from oomdoctor.case.gap import Gap

try:
    import pwd
except ImportError:  # Windows has none
    pwd = None  # type: ignore[assignment]

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


OwnerLookup = Callable[[int], Owner]
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
        """Return an answer as text; older versions of pynvml give bytes."""
        answer = self(name, *arguments)
        if isinstance(answer, bytes):
            answer = answer.decode("utf-8", "replace")
        return answer[:200] or None if isinstance(answer, str) else None

    def first(self, *tries: tuple[Any, ...]) -> Any:
        """Return the answer of the first call that gives one."""
        return next((answer for call in tries if (answer := self(*call)) is not None), None)


def query_nvml(api: Any, owner_of: OwnerLookup) -> NvmlAnswers:
    """Ask NVML for the driver and all cards. `api` has the functions of pynvml and its NVMLError."""
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
        cards = [_gpu(call, index, owner_of) for index in range(min(count, _CARDS))]
        return NvmlAnswers(
            driver=driver, gpus=tuple(gpu for gpu, _ in cards), gpus_known=True, gaps=tuple(gap for _, gaps in cards for gap in gaps)
        )
    finally:
        call("nvmlShutdown")


class CardUse(Struct, frozen=True):
    """What is held on a card at a moment, and by whom as far as the driver says; it counts processes by the host's numbers."""

    index: int
    used_bytes: int | None = None
    total_bytes: int | None = None
    processes: dict[int, int] = field(default_factory=dict)


class NvmlMeter:
    """Asks for the memory of the cards again and again, and for nothing else."""

    def __init__(self, api: Any) -> None:
        """Start NVML; raise OSError where it does not start."""
        self._call = _Calls(api)
        self._call("nvmlInit")
        if self._call.code is not None:
            raise OSError(self._call.message)
        count = self._call("nvmlDeviceGetCount")
        self._handles = [self._call("nvmlDeviceGetHandleByIndex", index) for index in range(min(count or 0, _CARDS))]

    def __call__(self) -> list[CardUse]:
        """Return the memory of each card now."""
        return [self._card(index, handle) for index, handle in enumerate(self._handles) if handle is not None]

    def _card(self, index: int, handle: Any) -> CardUse:
        memory = _memory(self._call, handle)
        listed = self._call.first(*((name, handle) for name in _PROCESS_CALLS)) or ()
        processes = [_process(process, lambda _: Owner()) for process in list(listed)[:_PROCESSES]]
        sizes = {process.pid: process.used_bytes for process in processes if process.pid is not None and process.used_bytes is not None}
        return CardUse(index, memory.used_bytes, memory.total_bytes, sizes)


def _cuda(number: Any) -> str | None:
    """Return the version behind NVML's number: 12020 is 12.2."""
    return f"{number // 1000}.{number % 1000 // 10}" if isinstance(number, int) and number > 0 else None


def _gpu(call: _Calls, index: int, owner_of: OwnerLookup) -> tuple[Gpu, list[Gap]]:
    handle = call("nvmlDeviceGetHandleByIndex", index)
    if handle is None:
        return Gpu(index=index, vendor="nvidia"), [Gap(f"GPU {index}", f"NVML: {call.message}")]
    gaps: list[Gap] = []
    memory = _memory(call, handle)
    if memory.total_bytes is None:
        gaps.append(Gap(f"memory of GPU {index}", f"NVML: {call.message}"))
    capability = call("nvmlDeviceGetCudaComputeCapability", handle)
    processes = _processes(call, handle, owner_of)
    if processes is None:
        gaps.append(Gap(f"processes on GPU {index}", f"NVML: {call.message}"))
    mig = call("nvmlDeviceGetMigMode", handle)
    ecc = call("nvmlDeviceGetEccMode", handle)
    errors = _errors(call, handle)
    is_cut = bool(mig[0]) if isinstance(mig, (list, tuple)) and mig else None
    gpu = Gpu(
        index=index,
        vendor="nvidia",
        name=call.text("nvmlDeviceGetName", handle),
        total_bytes=memory.total_bytes,
        used_bytes=memory.used_bytes,
        free_bytes=memory.free_bytes,
        reserved_bytes=memory.reserved_bytes,
        processes=processes or (),
        processes_known=processes is not None,
        compute_capability=f"{capability[0]}.{capability[1]}" if isinstance(capability, (list, tuple)) else None,
        mig=is_cut,
        slices=tuple(_slices(call, handle)) if is_cut else (),
        ecc=bool(ecc[0]) if isinstance(ecc, (list, tuple)) and ecc else None,
        ecc_uncorrected=errors.uncorrected,
        retired_pages=errors.retired_pages,
        repair_pending=errors.repair_pending,
        nvlink=_links(call, handle),
        exclusive=_mode(call("nvmlDeviceGetComputeMode", handle)),
    )
    return gpu, gaps


class _Memory(Struct, frozen=True, kw_only=True):
    """Bytes of a card or of a MIG device; None where NVML does not say."""

    total_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    reserved_bytes: int | None = None


def _memory(call: _Calls, handle: Any) -> _Memory:
    """Memory of the second version (R510), which tells what the driver keeps apart from what is used; else of the first."""
    second = getattr(call.api, "nvmlMemory_v2", None)
    answer = call("nvmlDeviceGetMemoryInfo", handle, second) if second is not None else None
    if answer is None:
        answer = call("nvmlDeviceGetMemoryInfo", handle)
    if answer is None or not answer.total:
        return _Memory()
    reserved = getattr(answer, "reserved", None)
    return _Memory(
        total_bytes=int(answer.total),
        used_bytes=int(answer.used),
        free_bytes=int(answer.free),
        reserved_bytes=None if reserved is None else int(reserved),
    )


def _processes(call: _Calls, handle: Any, owner_of: OwnerLookup) -> tuple[GpuProcess, ...] | None:
    listed = call.first(*((name, handle) for name in _PROCESS_CALLS))
    return None if listed is None else tuple(_process(process, owner_of) for process in list(listed)[:_PROCESSES])


def _process(process: Any, owner_of: OwnerLookup) -> GpuProcess:
    owner = owner_of(process.pid)
    used = process.usedGpuMemory
    # NVML says all ones where the memory of a process is not known (Windows, containers).
    size = used if isinstance(used, int) and 0 < used < 1 << 60 else None
    return GpuProcess(pid=process.pid, used_bytes=size, user=owner.user, name=owner.program, own=owner.own)


def _slices(call: _Calls, handle: Any) -> Iterator[MigSlice]:
    for number in range(min(call("nvmlDeviceGetMaxMigDeviceCount", handle) or 0, 16)):
        device = call("nvmlDeviceGetMigDeviceHandleByIndex", handle, number)
        if device is not None:
            memory = _memory(call, device)
            yield MigSlice(
                name=call.text("nvmlDeviceGetName", device),
                total_bytes=memory.total_bytes,
                used_bytes=memory.used_bytes,
                free_bytes=memory.free_bytes,
            )


class _Errors(Struct, frozen=True):
    """What ECC could not correct, and what was taken out of use for it."""

    uncorrected: int | None
    retired_pages: int | None
    repair_pending: bool | None


def _errors(call: _Calls, handle: Any) -> _Errors:
    """Errors of a card; rows are taken out of use from Ampere on, pages before."""
    total = call("nvmlDeviceGetTotalEccErrors", handle, _UNCORRECTED, _SINCE_LOADED)
    uncorrected = total if isinstance(total, int) else None
    rows = call("nvmlDeviceGetRemappedRows", handle)
    if isinstance(rows, (list, tuple)) and len(rows) == 4:
        return _Errors(uncorrected, int(rows[1]), bool(rows[2] or rows[3]))
    pages = call("nvmlDeviceGetRetiredPages", handle, _DOUBLE_BIT)
    pending = call("nvmlDeviceGetRetiredPagesPendingStatus", handle)
    return _Errors(uncorrected, None if pages is None else len(list(pages)), bool(pending) if isinstance(pending, int) else None)


def _links(call: _Calls, handle: Any) -> int | None:
    states = list(takewhile(lambda state: state is not None, (call("nvmlDeviceGetNvLinkState", handle, link) for link in range(_LINKS))))
    return states.count(1) if states else None


def _mode(mode: Any) -> bool | None:
    return mode == _EXCLUSIVE if isinstance(mode, int) else None


def process_owner_lookup(read: Callable[[str], str | None], uid: int | None) -> OwnerLookup:
    """Return a function that names the owner and the program of a process by /proc.

    `read` gives a file's text, `uid` is the user who asks. A program's arguments may hold anything and stay out.
    """

    def owner_of(pid: int) -> Owner:
        status = read(f"/proc/{int(pid)}/status") or ""
        program = re.search(r"^Name:\s{1,4}(\S[^\n]{0,60})$", status, re.MULTILINE)
        user = re.search(r"^Uid:\s{1,4}(\d{1,10})", status, re.MULTILINE)
        if user is None:
            return Owner(program=program[1] if program else None)
        return Owner(user=_user(int(user[1])), program=program[1] if program else None, own=int(user[1]) == uid)

    return owner_of


def _user(uid: int) -> str | None:
    try:
        return None if pwd is None else pwd.getpwuid(uid).pw_name
    except (KeyError, OSError):
        return None
