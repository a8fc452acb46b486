"""What rules can ask of an environment: `environment.<name>`. A name that is missing is unknown.

Besides the facts of the machine there are those of cards: `environment.gpu.N.*` of each, `environment.gpu.*` of the smallest
one that the run sees, `environment.fullest.*` of the one with the most memory in use, and `environment.damaged.*`,
`environment.uncovered.*`, `environment.emulating.*` and `environment.busy.*` of the first one that is so, each with a `count`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Union

from msgspec.structs import asdict

from oomdoctor.case.environment import Environment, Gpu, Host, Package, TorchBuild
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.machine.cards import complete_card
from oomdoctor.machine.collect.torch_build import released_architectures
from oomdoctor.machine.compatibility import can_have_code, find_minimum_driver, find_newest_cuda, has_code
from oomdoctor.machine.conflicts import Conflict, find_conflicts
from oomdoctor.versions import at_least, parse_version, within

Fact = Union[str, int, float, bool]
Facts = dict[str, Fact]

Card = Mapping[str, Union[Fact, None]]

_SIGHTS: Mapping[str, Callable[[Card], bool | None]] = {
    "damaged": lambda card: _any(card.get("ecc_uncorrected"), card.get("repair_pending")),
    "uncovered": lambda card: _not(card.get("in_torch_build")),
    "foreign": lambda card: _not(card.get("cuda_of_torch_has_code")),
    "emulating": lambda card: _not(card.get("bf16_native")),
    "busy": lambda card: _any(card.get("processes")),
}
"""What a rule may ask about any card of several; None where it is not known of a card."""
_PAIRS = 6


def environment_facts(environment: Environment) -> Facts:
    """Every fact of an environment, by name."""
    facts: dict[str, Fact | None] = {
        **_host(environment.host),
        **_python(environment),
        **_torch(environment),
        **_driver(environment),
        **_cards(environment),
        **{f"package.{_plain(name)}": package.version for name, package in environment.packages.items()},
        **_shadowed(environment.packages),
        **_conflicts(environment),
        **{f"variable.{name}": value for name, value in environment.variables.items()},
        **{f"launcher.{name}": value for name, value in environment.launcher.items()},
    }
    return {f"environment.{name}": value for name, value in facts.items() if value is not None}


def _host(host: Host) -> Mapping[str, Fact | None]:
    plain = {name: value for name, value in asdict(host).items() if isinstance(value, (str, int, bool))}
    group, shm, disk = host.cgroup, host.shm, host.disk
    limit = group.limit_bytes if group else None
    return {
        **plain,
        "in_container": None if host.container is None else host.container != "none",
        "cgroup_limit_bytes": limit,
        "cgroup_used_bytes": group.used_bytes if group else None,
        "cgroup_kills": group.kills if group else None,
        "cgroup_share": _share(limit, host.ram_bytes),
        "shm_bytes": shm.total_bytes if shm else None,
        "shm_free_bytes": shm.free_bytes if shm else None,
        "disk_free_bytes": disk.free_bytes if disk else None,
    }


def _python(environment: Environment) -> Mapping[str, Fact | None]:
    return {"python_version": environment.python.version, "python_kind": environment.python.kind}


def _torch(environment: Environment) -> Mapping[str, Fact | None]:
    build, run = environment.torch or TorchBuild(), environment.torch_run
    out: dict[str, Fact | None] = {
        "torch_version": build.version or (environment.packages["torch"].version if "torch" in environment.packages else None),
        "torch_cuda": build.cuda,
        "torch_hip": build.hip,
        "torch_backend": build.backend,
        "torch_architectures": " ".join(_architectures(build)) or None,
    }
    if run is not None:
        answers = {f"torch_{name}": value for name, value in asdict(run).items() if isinstance(value, (str, int, bool))}
        out.update(answers)
        out["torch_runs"] = bool(run.imports)
    return out


def _architectures(build: TorchBuild) -> Sequence[str]:
    """Return for which cards a build has code: what it says of itself, else what the table of releases says of it."""
    return build.arch_list or (released_architectures(build, table("torch_releases")) if build.cuda else ())


def _driver(environment: Environment) -> Mapping[str, Fact | None]:
    driver, build = environment.driver, environment.torch or TorchBuild()
    cuda = driver.cuda or find_newest_cuda(driver.version)
    branch = parse_version(driver.version)
    needed = find_minimum_driver(build.cuda)
    missing = [symbol for symbol in environment.symbols if symbol.required and symbol.found is False]
    known = any(symbol.found is not None for symbol in environment.symbols)
    return {
        "driver_version": driver.version,
        "driver_branch": branch.major if branch else None,
        "driver_cuda": cuda,
        "driver_state": driver.state,
        "driver_message": driver.message,
        "driver_kernel_version": driver.kernel_version,
        "driver_minimum": needed,
        "driver_covers_torch": at_least(driver.version, needed),
        "driver_knows_cuda_of_torch": within(build.cuda, until=cuda) if cuda and build.cuda else None,
        "nvml_library": driver.library,
        "nvml_library_version": driver.library_version,
        "nvml_differs_from_kernel": _differs(driver.library_version, driver.kernel_version),
        "nvml_missing": ", ".join(symbol.name for symbol in missing) or None,
        "nvml_missing_count": len(missing) if known else None,
    }


def _differs(first: str | None, second: str | None) -> bool | None:
    return parse_version(first) != parse_version(second) if first and second else None


def _cards(environment: Environment) -> Mapping[str, Fact | None]:
    listed = [complete_card(gpu) for gpu in environment.gpus]
    seen = [(gpu, _card(gpu, environment)) for gpu in listed if gpu.visible is not False]
    known = bool(environment.gpus_known or listed)
    out: dict[str, Fact | None] = {
        "gpu_count": len(listed) if known else None,
        "visible_gpu_count": len(seen) if known else None,
        "gpu_names": ", ".join(dict.fromkeys(gpu.name for gpu in listed if gpu.name)) or None,
    }
    for number, gpu in enumerate(listed):
        out.update(_named(f"gpu.{number if gpu.index is None else gpu.index}", _card(gpu, environment)))
    if seen:
        out.update(_named("gpu", min(seen, key=lambda pair: pair[0].total_bytes or 1 << 62)[1]))
        out.update(_named("fullest", max(seen, key=lambda pair: pair[0].used_bytes or 0)[1]))
    for name, holds in _SIGHTS.items():
        answers = [(holds(card), card) for _, card in seen]
        so = [card for answer, card in answers if answer]
        out[f"{name}.count"] = len(so) if any(answer is not None for answer, _ in answers) else None
        out.update(_named(name, so[0]) if so else {})
    return out


def _any(*values: Fact | None) -> bool | None:
    known = [value for value in values if value is not None]
    return any(known) if known else None


def _not(value: Fact | None) -> bool | None:
    return None if value is None else not value


def _named(prefix: str, values: Mapping[str, Fact | None]) -> dict[str, Fact | None]:
    return {f"{prefix}.{name}": value for name, value in values.items()}


def _card(gpu: Gpu, environment: Environment) -> Mapping[str, Fact | None]:
    capability = parse_version(gpu.compute_capability) if gpu.vendor in (None, "nvidia") else None
    # Cards that are not in the table are like the ones before them in bf16, which none has lost again, but not in their rates.
    older = [row for row in table("compute_capabilities") if capability and at_least(gpu.compute_capability, row["compute_capability"])]
    row = next((row for row in older if parse_version(row["compute_capability"]) == capability), None)
    held = sum(process.used_bytes or 0 for process in gpu.processes) or None
    build = environment.torch or TorchBuild()
    architectures = _architectures(build)
    # Builds of other makers carry PTX for cards to come; those of the PyTorch index are told by their local version.
    cuda = build.cuda if not architectures and "+cu" in (build.version or "") else None
    return {
        **{name: value for name, value in asdict(gpu).items() if isinstance(value, (str, int, bool))},
        "free_bytes": gpu.free_bytes if gpu.free_bytes is not None else _difference(gpu.total_bytes, gpu.used_bytes),
        "capability_major": capability.major if capability else None,
        "bf16_native": older[-1]["bf16_native"] == "yes" if older else None,
        "fp16_rate": row["fp16_rate"] if row else None,
        "architecture": gpu.architecture or (row["architecture"] if row else None),
        "in_torch_build": has_code(gpu.compute_capability, architectures) if capability else None,
        "cuda_of_torch_has_code": can_have_code(gpu.compute_capability, cuda) if capability else None,
        "cuda_since": row["cuda_since"] if row else None,
        "processes": len(gpu.processes) if gpu.processes_known or gpu.processes else None,
        "held_bytes": held,
        "held_share": _share(held, gpu.total_bytes),
        "holders": ", ".join(_holder(process.name, process.pid) for process in gpu.processes[:3]) or None,
        "used_share": _share(gpu.used_bytes, gpu.total_bytes),
    }


def _holder(name: str | None, pid: int | None) -> str:
    return f"{name or 'pid'} {pid}" if pid is not None else name or "?"


def _shadowed(packages: Mapping[str, Package]) -> Mapping[str, Fact | None]:
    """Return packages that are installed twice: which, and the versions that are never imported."""
    twice = {name: package for name, package in packages.items() if package.shadowed}
    first = next((name for name in ("torch", *twice) if name in twice), None)
    if first is None:
        return {"twice.count": 0 if packages else None}
    return {
        "twice.count": len(twice),
        "twice.name": first,
        "twice.used": packages[first].version,
        "twice.other": ", ".join(packages[first].shadowed),
    }


def _conflicts(environment: Environment) -> Mapping[str, Fact | None]:
    """Return which packages ask for other versions than there are: `clash` where one is compiled for another, `mismatch` else."""
    packages = environment.packages
    conflicts = find_conflicts(packages, environment.torch.cuda if environment.torch else None)
    return {
        **_listed("clash", [conflict for conflict in conflicts if conflict.binds], packages),
        **_listed("mismatch", [conflict for conflict in conflicts if not conflict.binds], packages),
    }


def _listed(name: str, conflicts: Sequence[Conflict], packages: Mapping[str, Package]) -> Mapping[str, Fact | None]:
    if not conflicts:
        return {f"{name}.count": 0 if len(packages) > 1 else None}
    first = conflicts[0]
    named = {f"{name}.{key}": value for key, value in asdict(first).items() if isinstance(value, str)}
    return {f"{name}.count": len(conflicts), **named, f"{name}.pairs": "; ".join(str(conflict) for conflict in conflicts[:_PAIRS])}


def _difference(whole: int | None, part: int | None) -> int | None:
    return whole - part if whole is not None and part is not None and whole >= part else None


def _share(part: int | None, whole: int | None) -> float | None:
    return round(part / whole, 4) if part is not None and whole else None


def _plain(name: str) -> str:
    return name.replace("-", "_")
