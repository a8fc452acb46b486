"""All collectors together: this machine and one interpreter -> an Environment."""

from __future__ import annotations

import os
from collections.abc import Mapping

from msgspec.structs import asdict, replace

from oomdoctor.case.environment import Environment, Host, Package, Python, TorchBuild
from oomdoctor.case.gap import Gap
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.machine.cards import known_card, visible
from oomdoctor.machine.collect import driver
from oomdoctor.machine.collect import host_memory as memories
from oomdoctor.machine.collect.accelerators import accelerators
from oomdoctor.machine.collect.cgroup import cgroup
from oomdoctor.machine.collect.collected import Collected
from oomdoctor.machine.collect.host import Uname, machine, uname
from oomdoctor.machine.collect.interpreter import chosen, is_own, laid_out, running
from oomdoctor.machine.collect.packages import packages
from oomdoctor.machine.collect.root import Root
from oomdoctor.machine.collect.torch_build import torch_build
from oomdoctor.machine.collect.variables import variables
from oomdoctor.machine.probe import result as answered
from oomdoctor.machine.probe.client import ProbeClient, ProbeResult

_PROBE_SECONDS = 2.0
_DEEP_SECONDS = 60.0


def collect_environment(
    environ: Mapping[str, str], *, python: str | None = None, deep: bool = False, disk: str = ".", root: Root | None = None
) -> Environment:
    """This machine, with the interpreter `python` (default: the active environment's). `deep` imports torch in that interpreter.

    The driver and the other interpreter are asked first and waited for last: what they take time for goes on beside the rest.
    """
    root, said, path = root or Root(), uname(), chosen(python, environ)
    question = driver.start_driver_queries()
    asking = None if is_own(path) and not deep else ProbeClient(path, environ, _DEEP_SECONDS if deep else _PROBE_SECONDS, deep=deep)
    host = _host(root, said, environ, disk)
    others = accelerators(root, said, host.value.ram_bytes)
    settings = variables(environ, table("variables"))
    answer = None if asking is None else asking.result()
    interpreter = _interpreter(path, environ, answer)
    folders = interpreter.value.site_packages
    installed = packages(folders, [row["name"] for row in table("packages")])
    build = torch_build(folders, table("torch_releases"))
    torch = answered.torch_build(build.value, answer)
    found = driver.collected(root, question, torch.version if torch else None)
    gpus = answered.cards(found.gpus or others.value, answer)
    parts = (host, others, settings, interpreter, installed, build)
    return Environment(
        host=host.value,
        python=interpreter.value,
        packages=_with_build(installed.value, torch),
        torch=torch,
        torch_run=answered.torch_run(answer) if deep else None,
        variables=settings.value.variables,
        launcher=settings.value.launcher,
        driver=found.driver,
        gpus=visible(tuple(known_card(gpu) for gpu in gpus), environ),
        gpus_known=found.gpus_known or bool(gpus) or None,
        symbols=found.symbols,
        origins={name: where for part in (*parts, found) for name, where in part.origins.items()}
        | ({"torch_run": "torch itself"} if deep else {}),
        gaps=(*(gap for part in parts for gap in part.gaps), *found.gaps),
    )


def _origins(*parts: Mapping[str, str]) -> dict[str, str]:
    return {name: where for part in parts for name, where in part.items()}


def _interpreter(path: str, environ: Mapping[str, str], answer: ProbeResult | None) -> Collected[Python]:
    """The interpreter of the run: as it described itself, else as its folder shows it."""
    layout = running() if is_own(path) else laid_out(path, environ)
    if answer is None:
        return Collected(layout, {"python": "the interpreter"})
    asked = answered.interpreter(answer, layout)
    if asked is not None:
        return Collected(asked, {"python": "the interpreter"})
    gap = Gap("the interpreter of the run", answered.silence(answer), "oomdoctor env --python PATH")
    return Collected(layout, {"python": "the layout of its folder"}, (gap,))


def _host(root: Root, said: Uname, environ: Mapping[str, str], disk: str) -> Collected[Host]:
    own = machine(root, said, environ, _libc(), _cpus())
    ram, group = memories.memory(root), cgroup(root)
    shm = memories.folder(root.at("/dev/shm"), "shm", memories.measure_host_memory) if root.exists("/dev/shm") else Collected(None)
    room = memories.folder(disk, "disk", memories.measure_host_memory)
    named = None if shm.value is None else replace(shm.value, path="/dev/shm")
    value = Host(**asdict(own.value), **asdict(ram.value), cgroup=group.value, shm=named, disk=room.value)
    origins = {**own.origins, **ram.origins, **group.origins, **shm.origins, **room.origins}
    return Collected(value, origins, ram.gaps if said.platform == "linux" else ())


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


def _with_build(found: Mapping[str, Package], torch: TorchBuild | None) -> Mapping[str, Package]:
    """The packages; torch with the local part of its version, which its metadata may lack."""
    if torch is None or torch.version is None or "torch" not in found or "+" in found["torch"].version:
        return found
    return {**found, "torch": replace(found["torch"], version=torch.version)} if torch.version.startswith(found["torch"].version) else found
