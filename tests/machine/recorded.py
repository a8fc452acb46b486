"""Recorded machines: what NVML, its library and the kernel module answered, as JSON, and an `api` that answers so again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pynvml  # type: ignore[import-untyped]

from oomdoctor.case.environment import Environment, Host, Package, TorchBuild
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.machine.cards import complete_card, mark_visible
from oomdoctor.machine.collect.driver import merge_driver_facts
from oomdoctor.machine.collect.nvml import NvmlAnswers, Owner, query_nvml
from oomdoctor.machine.collect.nvml_library import NvmlLibrary, required_symbols, version_of_file
from oomdoctor.machine.collect.root import Root

_FUNCTION_NOT_FOUND, _INVALID_ARGUMENT = 13, 2


class Recording(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One machine."""

    about: str
    expect: tuple[str, ...]
    """The ids of all findings, in their order."""
    kernel: str | None
    library: Mapping[str, Any] | None
    """`path`, and the functions that are `missing`; null where the loader finds none."""
    nvml: Mapping[str, Any] | None
    """`calls` of the library and of each of the `devices`; {"error": N} is NVML's return code N."""
    host: Host
    torch: TorchBuild | None = None
    who: Mapping[str, Owner] = {}
    packages: Mapping[str, str] = {}
    variables: Mapping[str, str] = {}
    kernel_cards: tuple[str, ...] = ()
    names: str = "str"
    """`bytes` as older versions of pynvml give them."""


class RecordedNvml:
    """Answers as pynvml did. A function that was not recorded is not in the library."""

    NVMLError = pynvml.NVMLError
    nvmlMemory_v2 = pynvml.nvmlMemory_v2

    def __init__(self, nvml: Mapping[str, Any], names: str = "str") -> None:
        self._calls, self._devices, self._names = nvml["calls"], nvml["devices"], names

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self._answer(name, *arguments)

    def _answer(self, name: str, *arguments: Any) -> Any:
        if name == "nvmlDeviceGetHandleByIndex":
            return self._devices[arguments[0]]
        if name == "nvmlDeviceGetMigDeviceHandleByIndex":
            return self._element(arguments[0].get("mig", []), arguments[1])
        calls = arguments[0] if arguments else self._calls
        if name == "nvmlDeviceGetMemoryInfo" and len(arguments) > 1:
            name = "nvmlDeviceGetMemoryInfo_v2"
        if name not in calls:
            raise pynvml.NVMLError(_FUNCTION_NOT_FOUND)
        said = calls[name]
        if isinstance(said, dict) and "error" in said:
            raise pynvml.NVMLError(said["error"])
        if name == "nvmlDeviceGetNvLinkState":
            return self._element(said, arguments[1])
        if isinstance(said, dict):
            return SimpleNamespace(**said)
        if "RunningProcesses" in name:
            return [SimpleNamespace(**one) for one in said]
        return said.encode() if isinstance(said, str) and self._names == "bytes" else said

    @staticmethod
    def _element(values: list[Any], number: int) -> Any:
        if number >= len(values):
            raise pynvml.NVMLError(_INVALID_ARGUMENT)
        return values[number]


def machine(path: Path, folder: Path) -> tuple[Recording, Environment]:
    """A recording, and the environment that comes of it; `folder` is an empty one for the files of the kernel module."""
    recording = msgspec.json.decode(path.read_bytes(), type=Recording)
    wanted = required_symbols(table("nvml_symbols"), recording.torch.version if recording.torch else None)
    found = merge_driver_facts(_kernel(recording, folder), _answers(recording), _library(recording, wanted), wanted)
    return recording, Environment(
        host=recording.host,
        torch=recording.torch,
        packages={name: Package(version=version) for name, version in recording.packages.items()},
        variables=recording.variables,
        driver=found.driver,
        gpus=mark_visible(tuple(complete_card(gpu) for gpu in found.gpus), recording.variables),
        gpus_known=found.gpus_known,
        symbols=found.symbols,
        gaps=found.gaps,
    )


def _answers(recording: Recording) -> NvmlAnswers:
    if recording.nvml is None:
        return NvmlAnswers(driver=msgspec.convert({"state": "no-library"}, type(Environment().driver)), gpus_known=False)
    return query_nvml(RecordedNvml(recording.nvml, recording.names), lambda pid: recording.who.get(str(pid), Owner()))


def _library(recording: Recording, wanted: list[tuple[str, bool]]) -> NvmlLibrary:
    if recording.library is None:
        return NvmlLibrary(loaded=False, error="libnvidia-ml.so.1: cannot open shared object file: No such file or directory")
    missing, path = recording.library.get("missing", ()), recording.library["path"]
    return NvmlLibrary(loaded=True, path=path, version=version_of_file(path), symbols={name: name not in missing for name, _ in wanted})


def _kernel(recording: Recording, folder: Path) -> Root:
    if recording.kernel is not None:
        base = folder / "proc/driver/nvidia"
        base.mkdir(parents=True)
        (base / "version").write_text(
            f"NVRM version: NVIDIA UNIX x86_64 Kernel Module  {recording.kernel}  Wed Jan  3 12:00:00 UTC 2024\nGCC version: 11.4.0\n"
        )
        for number, name in enumerate(recording.kernel_cards):
            card = base / f"gpus/0000:{number:02x}:00.0"
            card.mkdir(parents=True)
            (card / "information").write_text(f"Model: \t\t {name}\nIRQ:   \t\t 120\nDevice Minor: \t {number}\n")
    return Root(str(folder))
