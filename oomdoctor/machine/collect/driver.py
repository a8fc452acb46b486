"""The driver's side of an environment: NVML and its library, asked in an isolated process, and what the kernel module says of itself."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.environment import Driver, Gpu, Symbol
from oomdoctor.case.gap import Gap
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.machine.collect.nvml import NvmlAnswers, process_owner_lookup, query_nvml
from oomdoctor.machine.collect.nvml_library import (
    NvmlLibrary,
    check_symbols,
    load_nvml_library,
    read_kernel_cards,
    read_kernel_version,
    required_symbols,
)
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
        """Return where its fields were read."""
        out = {"gpus": "NVML"} if self.gpus_known and self.gpus else {}
        if self.driver.version is not None:
            out["driver.version"] = "NVML" if self.driver.state == "ok" else "the kernel module"
        if self.driver.kernel_version is not None:
            out["driver.kernel_version"] = "/proc/driver/nvidia/version"
        if self.driver.library is not None:
            out["driver.library"] = "/proc/self/maps"
        return out


class DriverReport(Struct, frozen=True, kw_only=True):
    """What comes back from the process that asks the driver."""

    library: NvmlLibrary
    answers: NvmlAnswers


def start_driver_queries() -> IsolatedProcess[DriverReport]:
    """Start asking the driver; the answers come while other things are read."""
    return IsolatedProcess(_query, DriverReport, _SECONDS)


def collect_driver(root: Root, query: IsolatedProcess[DriverReport], torch: str | None) -> DriverFacts:
    """Wait for the driver's answers. `torch` is the version whose NVML functions are looked for."""
    names = required_symbols(table("nvml_symbols"), torch)
    report = query.result()
    if isinstance(report, IsolatedFailure):
        why = "it did not respond in time" if report.why == "timeout" else f"it crashed ({report.why})"
        driver = Driver(state="error", message=f"NVML: {why}")
        failed = NvmlAnswers(driver=driver, gpus_known=False, gaps=(Gap("GPUs", f"NVML: {why}", "nvidia-smi"),))
        return merge_driver_facts(root, failed, NvmlLibrary(loaded=False), names)
    return merge_driver_facts(root, report.answers, report.library, names)


def merge_driver_facts(root: Root, answers: NvmlAnswers, library: NvmlLibrary, names: Sequence[tuple[str, bool]]) -> DriverFacts:
    """Merge what NVML says, what its library is, and what the kernel module says of itself."""
    module = read_kernel_version(root)
    state = answers.driver.state
    if state == "no-library" and module is None and not any(map(root.exists, _NODES)):
        # A machine without a driver of NVIDIA's lacks nothing: there is nothing to know.
        return DriverFacts(driver=Driver(state="no-library", message=library.error or answers.driver.message), gpus_known=None)
    gpus = answers.gpus or tuple(Gpu(index=number, vendor="nvidia", name=name) for number, name in enumerate(read_kernel_cards(root)))
    driver = replace(
        answers.driver,
        version=answers.driver.version or module,
        kernel_version=module,
        library=library.path,
        library_version=library.version,
        state=state,
    )
    return DriverFacts(driver=driver, gpus=gpus, gpus_known=answers.gpus_known, symbols=check_symbols(names, library), gaps=answers.gaps)


def _query() -> DriverReport:
    """Load the library, then ask NVML by it; this runs in the isolated process."""
    library = load_nvml_library([name for name, _ in required_symbols(table("nvml_symbols"), None)])
    if not library.loaded:
        answers = NvmlAnswers(driver=Driver(state="no-library", message=library.error), gpus_known=False)
    else:
        import pynvml  # type: ignore[import-untyped]  # noqa: PLC0415 - 20 ms, and only where there is a library

        answers = query_nvml(pynvml, process_owner_lookup(Root().read, getattr(os, "getuid", lambda: None)()))
    return DriverReport(library=library, answers=answers)
