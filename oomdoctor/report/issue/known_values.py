"""What is known of a run's machine as the words that other projects' forms ask for: `python`, `gpus`, `package.trl`.

The environment comes first; where there is none, what the log shows of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from oomdoctor.case.case import Case
from oomdoctor.case.environment import Environment, Gpu, Host
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.units import GIB, format_size

_LONGEST = 400
_ALLOCATOR = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_NPU_ALLOC_CONF")
_LAUNCHERS = (("deepspeed-launch", "deepspeed"), ("torchelastic", "torchrun"))
"""Beginnings of the ids of messages that only a launcher prints."""
_ACCELERATORS = {"cuda": "CUDA", "rocm": "CUDA", "xpu": "XPU", "cpu": "N/A"}
"""As `accelerate env` names them; torch calls ROCm's cards CUDA too."""


def known_values(case: Case) -> dict[str, str]:
    """Every value that is known, by name. One that is missing is unknown."""
    known = case.environment or _none()
    values = {
        **dict(_from_log(case)),
        **dict(_host(known.host)),
        **dict(_torch(known)),
        **dict(_cards(known, case)),
        **{f"package.{name}": package.version for name, package in known.packages.items()},
        **{f"commit.{name}": package.commit for name, package in known.packages.items() if package.commit},
    }
    return {name: clean_line(value, _LONGEST) if name != "gpus" else value for name, value in values.items() if value}


def _none() -> Environment:
    return Environment()


def _from_log(case: Case) -> Iterator[tuple[str, str]]:
    for name, value in case.facts.items():
        plain = name.removeprefix("log.")
        if plain.endswith("_version") and isinstance(value, str):
            yield f"package.{plain.removesuffix('_version').replace('_', '-')}", value
    for name, fact in (
        ("torch", "torch_version"),
        ("driver", "driver_version"),
        ("python", "python_version"),
        ("torch_cuda", "cuda_version"),
    ):
        if f"log.{fact}" in case.facts:
            yield name, str(case.facts[f"log.{fact}"])
    launcher = next((name for sign, name in _LAUNCHERS if any(event.signature.startswith(sign) for event in case.events)), None)
    if launcher is not None:
        yield "launcher", launcher


def _host(host: Host) -> Iterator[tuple[str, str]]:
    yield "os", f"{host.os} ({host.architecture})" if host.os and host.architecture else host.os or ""
    yield "system", host.system or ""
    yield "libc", (host.libc or "").replace(" ", "-")
    yield "platform", _platform(host)
    yield "ram", f"{host.ram_bytes / GIB:.2f} GB" if host.ram_bytes else ""
    yield "shm", f"{host.shm.total_bytes / GIB:.2f} GB" if host.shm and host.shm.total_bytes else ""
    yield "container", host.container if host.container and host.container != "none" else ""
    yield "wsl", str(host.wsl) if host.wsl else ""


def _platform(host: Host) -> str:
    """As Python's `platform.platform()` writes it on Linux."""
    if host.system != "linux" or not host.kernel or not host.architecture:
        return ""
    libc = f"-with-{host.libc.replace(' ', '')}" if host.libc else ""
    return f"Linux-{host.kernel}-{host.architecture}{libc}"


def _torch(known: Environment) -> Iterator[tuple[str, str]]:
    build, run = known.torch, known.torch_run
    yield "python", known.python.version or ""
    if build is not None:
        yield "torch", build.version or ""
        yield "torch_cuda", build.cuda or ""
        yield "torch_hip", build.hip or ""
    if run is not None and run.cuda_available is not None:
        yield "cuda_available", str(run.cuda_available)
        if run.cuda_available and build is not None and build.backend:
            yield "accelerator", _ACCELERATORS.get(build.backend, "")
    yield "driver", known.driver.version or ""
    yield "allocator", _first(known.variables, _ALLOCATOR)
    yield "visible_devices", known.variables.get("CUDA_VISIBLE_DEVICES", "")


def _first(values: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((values[name] for name in names if name in values), "")


def _cards(known: Environment, case: Case) -> Iterator[tuple[str, str]]:
    named = [gpu for gpu in known.gpus if gpu.name]
    name = str(case.facts.get("log.gpu_name", ""))
    total = case.incidents[0].root.size("total_bytes") if case.incidents else None
    if named:
        counts = {card: sum(gpu.name == card for gpu in named) for card in dict.fromkeys(gpu.name for gpu in named)}
        yield "gpus", "\n".join(["", *(f"GPU {gpu.index}: {clean_line(gpu.name or '', 80)}" for gpu in named)])
        yield "gpus_in_a_line", ", ".join(f"{count} x {_with_size(card, named)}" for card, count in counts.items())
        yield "gpu", named[0].name or ""
        yield "vendor", named[0].vendor or ""
    elif name:
        yield "gpu", name
        yield "gpus", f"GPU 0: {clean_line(name, 80)}"
        yield "gpus_in_a_line", f"{name} ({format_size(total)})" if total else name
    elif total:
        yield "gpus_in_a_line", format_size(total)
    if known.gpus_known:
        yield "gpu_count", str(len(known.gpus))
    elif known.torch_run is not None and known.torch_run.device_count:
        yield "gpu_count", str(known.torch_run.device_count)
    memory = known.gpus[0].total_bytes if known.gpus else total
    yield "gpu_memory", f"{memory / GIB:.2f}GB" if memory else ""


def _with_size(name: str | None, gpus: list[Gpu]) -> str:
    size = next((gpu.total_bytes for gpu in gpus if gpu.name == name and gpu.total_bytes), None)
    return f"{name} ({format_size(size)})" if size else name or ""
