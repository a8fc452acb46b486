"""All collectors together: this machine and one interpreter -> an Environment."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, convert, to_builtins
from msgspec.structs import asdict, replace

from oomdoctor.case.case import Gap
from oomdoctor.case.environment import Driver, Environment, Gpu, Host, Package, Python, Symbol, TorchBuild, TorchRun
from oomdoctor.environment import memory as memories
from oomdoctor.environment.accelerators import accelerators
from oomdoctor.environment.apart import Lost, apart
from oomdoctor.environment.ask import Answer, ask
from oomdoctor.environment.cards import known_card, visible
from oomdoctor.environment.cgroup import cgroup
from oomdoctor.environment.found import Found
from oomdoctor.environment.host import Uname, machine, uname
from oomdoctor.environment.interpreter import chosen, is_own, laid_out, running
from oomdoctor.environment.nvml import Answers, answers, who_is
from oomdoctor.environment.nvml_library import Library, kernel_cards, kernel_version, library, needed, symbols
from oomdoctor.environment.packages import packages
from oomdoctor.environment.root import Root
from oomdoctor.environment.torch_build import torch_build
from oomdoctor.environment.variables import variables
from oomdoctor.knowledge.tables import table

_NVML_SECONDS = 2.0
_PROBE_SECONDS = 2.0
_DEEP_SECONDS = 60.0
_NODES = ("/dev/nvidiactl", "/dev/nvhost-ctrl-gpu", "/dev/nvmap", "/dev/dxg")
"""Device files of the driver: a data-centre or desktop card, Tegra (two generations), WSL."""


class Collected(Struct, frozen=True, kw_only=True):
    """The driver's side of an environment."""

    driver: Driver
    gpus: tuple[Gpu, ...] = ()
    gpus_known: bool | None = None
    symbols: tuple[Symbol, ...] = ()
    gaps: tuple[Gap, ...] = ()


def collect(
    environ: Mapping[str, str],
    *,
    python: str | None = None,
    deep: bool = False,
    disk: str = ".",
    root: Root | None = None,
) -> Environment:
    """This machine, with the interpreter `python` (default: the active environment's). `deep` imports torch in that interpreter."""
    root, said = root or Root(), uname()
    interpreter, answer, gaps = _interpreter(python, environ, deep=deep)
    installed = packages(interpreter.site_packages, [row["name"] for row in table("packages")])
    build = torch_build(interpreter.site_packages, table("torch_releases"))
    torch = _build_asked(build.value, answer)
    run = _run(answer) if deep else None
    driver = driver_side(root, torch.version if torch else None)
    host = _host(root, said, environ, disk)
    others = accelerators(root, said, host.value.ram_bytes)
    settings = variables(environ, table("variables"))
    gpus = driver.gpus if driver.gpus or not others.value else others.value
    gpus = visible(tuple(known_card(gpu) for gpu in _with_torch(gpus, answer)), environ)
    origins = {
        **host.origins,
        **others.origins,
        **settings.origins,
        **installed.origins,
        **build.origins,
        "python": "the interpreter" if answer is None or answer.said else "the layout of its folder",
        **({"torch_run": "torch itself"} if deep else {}),
        **_driver_origins(driver),
    }
    return Environment(
        host=host.value,
        python=interpreter,
        packages=_with_build(installed.value, torch),
        torch=torch,
        torch_run=run,
        variables=settings.value.variables,
        launcher=settings.value.launcher,
        driver=driver.driver,
        gpus=gpus,
        gpus_known=driver.gpus_known or bool(gpus) or None,
        symbols=driver.symbols,
        origins=origins,
        gaps=(*host.gaps, *installed.gaps, *build.gaps, *gaps, *driver.gaps),
    )


def driver_side(root: Root, torch: str | None) -> Collected:
    """The driver, its library and its cards. Nothing is loaded where no device file shows that there is a driver."""
    wanted = needed(table("nvml_symbols"), torch)
    answered = apart(lambda: to_builtins(_ask_driver(wanted)), _NVML_SECONDS)
    if isinstance(answered, Lost):
        why = "it did not answer in time" if answered.why == "timeout" else f"it crashed ({answered.why})"
        found, loaded = Answers(driver=Driver(state="error", message=f"NVML: {why}"), gpus_known=False), Library(loaded=False)
        found = replace(found, gaps=(Gap("GPUs", f"NVML: {why}", "nvidia-smi"),))
    else:
        found, loaded = convert(answered["answers"], Answers), convert(answered["library"], Library)
    return joined(root, found, loaded, wanted)


def joined(root: Root, found: Answers, loaded: Library, wanted: Sequence[tuple[str, bool]]) -> Collected:
    """What NVML said, what its library is, and what the kernel module says of itself."""
    module = kernel_version(root)
    gpus, gaps = found.gpus, found.gaps
    state = found.driver.state
    if state == "no-library" and module is None and not any(root.exists(one) for one in _NODES):
        # A machine without a driver of NVIDIA's lacks nothing: there is nothing to know.
        return Collected(driver=Driver(state="no-library", message=loaded.error or found.driver.message), gpus_known=None)
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
    return Collected(driver=driver, gpus=gpus, gpus_known=found.gpus_known, symbols=symbols(wanted, loaded), gaps=gaps)


def _ask_driver(wanted: Sequence[tuple[str, bool]]) -> dict[str, Any]:
    """In the process apart: the library first, then NVML by it."""
    loaded = library([name for name, _ in wanted])
    if not loaded.loaded:
        driver = Driver(state="no-library", message=loaded.error)
        return {"library": loaded, "answers": Answers(driver=driver, gpus_known=False)}
    import pynvml  # type: ignore[import-untyped]  # noqa: PLC0415 - 20 ms, and only where there is a library

    return {"library": loaded, "answers": answers(pynvml, who_is(Root().read))}


def _interpreter(python: str | None, environ: Mapping[str, str], *, deep: bool) -> tuple[Python, Answer | None, list[Gap]]:
    """The interpreter, what it answered if it was asked, and what could not be known of it."""
    path = chosen(python, environ)
    if is_own(path) and not deep:
        return running(), None, []
    answer = ask(path, environ, _DEEP_SECONDS if deep else _PROBE_SECONDS, deep=deep)
    if answer.said is not None and isinstance(answer.said.get("python"), dict):
        told = answer.said["python"]
        layout = laid_out(path, environ)
        asked = Python(
            executable=_text(told.get("executable")) or path,
            version=_text(told.get("version")),
            prefix=_text(told.get("prefix")),
            kind=layout.kind,
            site_packages=tuple(one for one in told.get("site_packages") or () if isinstance(one, str)),
        )
        return asked, answer, []
    why = (
        "did not answer in time" if answer.timed_out else f"ended by {answer.signal}" if answer.signal else answer.error or "gave no answer"
    )
    layout = running() if is_own(path) else laid_out(path, environ)
    return layout, answer, [Gap("the interpreter of the run", why, "oomdoctor env --python PATH")]


def _host(root: Root, said: Uname, environ: Mapping[str, str], disk: str) -> Found[Host]:
    own = machine(root, said, environ, _libc(), _cpus())
    ram, group = memories.memory(root), cgroup(root)
    shm = memories.folder(root.at("/dev/shm"), "shm", memories.measured)
    room = memories.folder(os.path.abspath(disk), "disk", memories.measured)
    named = None if shm.value is None else replace(shm.value, path="/dev/shm")
    value = Host(**asdict(own.value), **asdict(ram.value), cgroup=group.value, shm=named, disk=room.value)
    origins = {**own.origins, **ram.origins, **group.origins, **shm.origins, **room.origins}
    return Found(value, origins, ram.gaps if said.platform == "linux" else ())


def _libc() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (AttributeError, ValueError, OSError):
        return None


def _cpus() -> int | None:
    try:
        return len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        return os.cpu_count()


def _build_asked(build: TorchBuild | None, answer: Answer | None) -> TorchBuild | None:
    """The build as read, with what torch itself said of it where it was asked."""
    told = _told(answer)
    if not told.get("imports"):
        return build
    arches = tuple(one for one in told.get("arch_list") or () if isinstance(one, str))
    build = build or TorchBuild(version=_text(told.get("version")), cuda=_text(told.get("cuda")), hip=_text(told.get("hip")))
    return replace(build, version=_text(told.get("version")) or build.version, arch_list=arches or build.arch_list)


def _run(answer: Answer | None) -> TorchRun:
    told = _told(answer)
    if answer is None or not told:
        return TorchRun(
            error=None if answer is None else answer.error,
            signal=None if answer is None else answer.signal,
            timed_out=answer is not None and answer.timed_out,
        )
    failed = told.get("failed")
    error = _text(told.get("error")) or (next((str(one) for one in failed.values()), None) if isinstance(failed, dict) else None)
    count = told.get("device_count")
    return TorchRun(
        error=error,
        device_count=count if isinstance(count, int) else None,
        imports=_flag(told, "imports"),
        cuda_available=_flag(told, "cuda_available"),
        bf16_works=_flag(told, "bf16_works"),
        bf16_claimed=_flag(told, "bf16_claimed"),
        fp16_works=_flag(told, "fp16_works"),
        allocator_backend=_text(told.get("allocator_backend")),
        allocator_settings=_text(told.get("allocator_settings")),
        nccl=_text(told.get("nccl")),
        cudnn=_text(told.get("cudnn")),
    )


def _flag(told: Mapping[str, Any], name: str) -> bool | None:
    value = told.get(name)
    return value if isinstance(value, bool) else None


def _told(answer: Answer | None) -> Mapping[str, Any]:
    told = None if answer is None or answer.said is None else answer.said.get("torch")
    return told if isinstance(told, dict) else {}


def _text(value: object) -> str | None:
    return value[:4000] if isinstance(value, str) and value else None


def _with_torch(gpus: tuple[Gpu, ...], answer: Answer | None) -> tuple[Gpu, ...]:
    """The cards as torch describes them, where nothing else does."""
    listed = _told(answer).get("cards")
    if gpus or not isinstance(listed, list):
        return gpus
    known = ("index", "name", "total_bytes", "free_bytes", "compute_capability", "unified")
    return tuple(convert({name: one.get(name) for name in known}, Gpu) for one in listed[:64] if isinstance(one, dict))


def _with_build(found: Mapping[str, Package], torch: TorchBuild | None) -> Mapping[str, Package]:
    """The packages; torch with the local part of its version, which its metadata may lack."""
    if torch is None or torch.version is None or "torch" not in found or "+" in found["torch"].version:
        return found
    return {**found, "torch": replace(found["torch"], version=torch.version)} if torch.version.startswith(found["torch"].version) else found


def _driver_origins(found: Collected) -> dict[str, str]:
    out = {"gpus": "NVML"} if found.gpus_known and found.gpus else {}
    if found.driver.version is not None:
        out["driver.version"] = "NVML" if found.driver.state == "ok" else "the kernel module"
    if found.driver.kernel_version is not None:
        out["driver.kernel_version"] = "/proc/driver/nvidia/version"
    if found.driver.library is not None:
        out["driver.library"] = "/proc/self/maps"
    return out
