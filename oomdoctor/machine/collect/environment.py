"""Run all collectors: this machine and one interpreter -> an Environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec.structs import asdict, replace

from oomdoctor.case.environment import Environment, Host, Package, Python, TorchBuild
from oomdoctor.case.gap import Gap
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.machine.cards import complete_card, mark_visible
from oomdoctor.machine.collect.accelerators import collect_accelerators
from oomdoctor.machine.collect.cgroup import collect_cgroup
from oomdoctor.machine.collect.collected import Collected
from oomdoctor.machine.collect.driver import collect_driver, start_driver_queries
from oomdoctor.machine.collect.host import Uname, collect_host_system, read_uname
from oomdoctor.machine.collect.host_memory import collect_folder, collect_host_memory, measure_file_system
from oomdoctor.machine.collect.interpreter import choose_interpreter, describe_layout, describe_running_interpreter, is_running_interpreter
from oomdoctor.machine.collect.packages import collect_packages
from oomdoctor.machine.collect.root import Root
from oomdoctor.machine.collect.torch_build import collect_torch_build
from oomdoctor.machine.collect.variables import collect_variables
from oomdoctor.machine.probe.answer import ProbeResult
from oomdoctor.machine.probe.result import explain_failure, merge_cards, merge_interpreter, merge_torch_build, read_torch_run

if TYPE_CHECKING:
    from oomdoctor.machine.probe.client import ProbeClient

_PROBE_SECONDS = 2.0
_DEEP_SECONDS = 60.0


def collect_environment(
    environ: Mapping[str, str], *, python: str | None = None, deep: bool = False, disk: str = ".", root: Root | None = None
) -> Environment:
    """Describe this machine, with the interpreter `python` (default: the active environment's). `deep` imports torch in that interpreter.

    The driver and the other interpreter are asked first and waited for last: what they take time for goes on beside the rest.
    """
    root, uname, path = root or Root(), read_uname(), choose_interpreter(python, environ)
    query = start_driver_queries()
    probe = _start_probe(path, environ, deep) if deep or not is_running_interpreter(path) else None
    host = _host(root, uname, environ, disk)
    others = collect_accelerators(root, uname, host.value.ram_bytes)
    settings = collect_variables(environ, table("variables"))
    result = None if probe is None else probe.result()
    interpreter = _interpreter(path, environ, result)
    folders = interpreter.value.site_packages
    installed = collect_packages(folders, [row["name"] for row in table("packages")])
    build = collect_torch_build(folders, table("torch_releases"))
    torch = merge_torch_build(build.value, result)
    driver_facts = collect_driver(root, query, torch.version if torch else None)
    gpus = merge_cards(driver_facts.gpus or others.value, result)
    parts = (host, others, settings, interpreter, installed, build)
    return Environment(
        host=host.value,
        python=interpreter.value,
        packages=_with_build(installed.value, torch),
        torch=torch,
        torch_run=read_torch_run(result) if deep else None,
        variables=settings.value.variables,
        launcher=settings.value.launcher,
        driver=driver_facts.driver,
        gpus=mark_visible(tuple(complete_card(gpu) for gpu in gpus), environ),
        gpus_known=driver_facts.gpus_known or bool(gpus) or None,
        symbols=driver_facts.symbols,
        origins={name: origin for part in (*parts, driver_facts) for name, origin in part.origins.items()}
        | ({"torch_run": "torch itself"} if deep else {}),
        gaps=(*(gap for part in parts for gap in part.gaps), *driver_facts.gaps),
    )


def _start_probe(python: str, environ: Mapping[str, str], deep: bool) -> ProbeClient:
    from oomdoctor.machine.probe.client import ProbeClient  # noqa: PLC0415 - subprocess: most often no other interpreter is asked

    return ProbeClient(python, environ, _DEEP_SECONDS if deep else _PROBE_SECONDS, deep=deep)


def _interpreter(path: str, environ: Mapping[str, str], result: ProbeResult | None) -> Collected[Python]:
    """Return the interpreter of the run: as it described itself, else as its folder shows it."""
    layout = describe_running_interpreter() if is_running_interpreter(path) else describe_layout(path, environ)
    if result is None:
        return Collected(layout, {"python": "the interpreter"})
    described = merge_interpreter(result, layout)
    if described is not None:
        return Collected(described, {"python": "the interpreter"})
    gap = Gap("the interpreter of the run", explain_failure(result), "oomdoctor env --python PATH")
    return Collected(layout, {"python": "the layout of its folder"}, (gap,))


def _host(root: Root, uname: Uname, environ: Mapping[str, str], disk: str) -> Collected[Host]:
    system = collect_host_system(root, uname, environ, _libc(), _cpus())
    ram, group = collect_host_memory(root), collect_cgroup(root)
    shm = collect_folder(root.at("/dev/shm"), "shm", measure_file_system) if root.exists("/dev/shm") else Collected(None)
    volume = collect_folder(disk, "disk", measure_file_system)
    named = None if shm.value is None else replace(shm.value, path="/dev/shm")
    value = Host(**asdict(system.value), **asdict(ram.value), cgroup=group.value, shm=named, disk=volume.value)
    origins = {**system.origins, **ram.origins, **group.origins, **shm.origins, **volume.origins}
    return Collected(value, origins, ram.gaps if uname.platform == "linux" else ())


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


def _with_build(installed: Mapping[str, Package], torch: TorchBuild | None) -> Mapping[str, Package]:
    """Return the packages; torch with the local part of its version, which its metadata may lack."""
    version = installed["torch"].version if "torch" in installed else None
    if torch is None or torch.version is None or version is None or "+" in version or not torch.version.startswith(version):
        return installed
    return {**installed, "torch": replace(installed["torch"], version=torch.version)}
