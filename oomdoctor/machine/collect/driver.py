"""The driver's side of an environment: NVML and its library, asked in a process apart, beside what the kernel module says of itself."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from oomdoctor.case.environment import Driver, Gpu, Symbol
from oomdoctor.case.gap import Gap
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.machine.collect.nvml import NvmlAnswers, nvml_answers, who_is
from oomdoctor.machine.collect.nvml_library import NvmlLibrary, kernel_cards, kernel_version, needed, nvml_library, symbols
from oomdoctor.machine.collect.root import Root
from oomdoctor.machine.probe.isolated_process import IsolatedFailure, IsolatedProcess

_SECONDS = 2.0
_NODES = ("/dev/nvidiactl", "/dev/nvhost-ctrl-gpu", "/dev/nvmap", "/dev/dxg")
"""Device files of the driver: a data-centre or desktop card, Tegra (two generations), WSL."""


class DriverFacts(Struct, frozen=True, kw_only=True):
    """The driver's side of an environment."""

    driver: Driver
    gpus: tuple[Gpu, ...] = ()
    gpus_known: bool | None = None
    symbols: tuple[Symbol, ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def origins(self) -> dict[str, str]:
        """Where its fields were read."""
        out = {"gpus": "NVML"} if self.gpus_known and self.gpus else {}
        if self.driver.version is not None:
            out["driver.version"] = "NVML" if self.driver.state == "ok" else "the kernel module"
        if self.driver.kernel_version is not None:
            out["driver.kernel_version"] = "/proc/driver/nvidia/version"
        if self.driver.library is not None:
            out["driver.library"] = "/proc/self/maps"
        return out


def start_driver_queries() -> IsolatedProcess:
    """The question, put: it is answered while other things are read."""
    return IsolatedProcess(_ask, _SECONDS)


def collected(root: Root, question: IsolatedProcess, torch: str | None) -> DriverFacts:
    """The answer, with the functions that this version of torch looks up."""
    wanted = needed(table("nvml_symbols"), torch)
    answered = question.result()
    if isinstance(answered, IsolatedFailure):
        why = "it did not answer in time" if answered.why == "timeout" else f"it crashed ({answered.why})"
        driver = Driver(state="error", message=f"NVML: {why}")
        lost = NvmlAnswers(driver=driver, gpus_known=False, gaps=(Gap("GPUs", f"NVML: {why}", "nvidia-smi"),))
        return joined(root, lost, NvmlLibrary(loaded=False), wanted)
    return joined(root, convert(answered["answers"], NvmlAnswers), convert(answered["library"], NvmlLibrary), wanted)


def joined(root: Root, found: NvmlAnswers, loaded: NvmlLibrary, wanted: Sequence[tuple[str, bool]]) -> DriverFacts:
    """What NVML said, what its library is, and what the kernel module says of itself."""
    module = kernel_version(root)
    gpus, gaps = found.gpus, found.gaps
    state = found.driver.state
    if state == "no-library" and module is None and not any(root.exists(one) for one in _NODES):
        # A machine without a driver of NVIDIA's lacks nothing: there is nothing to know.
        return DriverFacts(driver=Driver(state="no-library", message=loaded.error or found.driver.message), gpus_known=None)
    if not gpus:
        gpus = tuple(Gpu(index=number, vendor="nvidia", name=name) for number, name in enumerate(kernel_cards(root)))
    driver = replace(
        found.driver,
        version=found.driver.version or module,
        kernel_version=module,
        library=loaded.path,
        library_version=loaded.version,
        state=state,
    )
    return DriverFacts(driver=driver, gpus=gpus, gpus_known=found.gpus_known, symbols=symbols(wanted, loaded), gaps=gaps)


def _ask() -> dict[str, Any]:
    """In the process apart: the library first, then NVML by it."""
    loaded = nvml_library([name for name, _ in needed(table("nvml_symbols"), None)])
    if not loaded.loaded:
        said = NvmlAnswers(driver=Driver(state="no-library", message=loaded.error), gpus_known=False)
    else:
        import pynvml  # type: ignore[import-untyped]  # noqa: PLC0415 - 20 ms, and only where there is a library

        said = nvml_answers(pynvml, who_is(Root().read, getattr(os, "getuid", lambda: None)()))
    return {"library": to_builtins(loaded), "answers": to_builtins(said)}
