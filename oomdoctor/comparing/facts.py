"""The comparable facts of one side, under names common to runs and machines. A missing name means unknown.

- `version.PACKAGE`, `version.driver`, `version.cuda` (of the torch build), `version.python`
- `training.NAME`: settings, by the names common to all frameworks
- `alloc.OPTION` for PyTorch's allocator, `variable.NAME` for other variables; `unset` if known not to be set
- `card.*` for the smallest GPU visible to the run, `card.count` for their number, `card.others_bytes` for memory used by other processes
- `host.*`: RAM, limits, /dev/shm
- `model.parameters`, `model.trained`; `framework`; `failed`: the memory that ran out, `card`, `host` or `shm`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from oomdoctor.case.comparison import Fact, Side
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.environment import Environment
from oomdoctor.case.event import Kind
from oomdoctor.machine.facts import environment_facts as machine_facts

Facts = dict[str, Fact]

UNSET = "unset"
_OPTION = re.compile(r"(?P<name>[a-z_]{2,60}):(?P<value>\[[^\]]{0,200}\]|[^,\[\]]{1,200})")
_ALLOCATOR = re.compile(r"PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF")
_OPTIONS = ("expandable_segments", "max_split_size_mb", "garbage_collection_threshold", "backend", "per_process_memory_fraction")
_VARIABLES = (
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "CUDA_MODULE_LOADING",
    "XLA_PYTHON_CLIENT_PREALLOCATE",
    "XLA_PYTHON_CLIENT_MEM_FRACTION",
    "TF_FORCE_GPU_ALLOW_GROWTH",
    "PYTORCH_MPS_HIGH_WATERMARK_RATIO",
    "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT",
)
"""Variables for which it matters that they are not set."""
_MEMORIES = {Kind.DEVICE_OOM: "card", Kind.MASKED_DEVICE_OOM: "card", Kind.HOST_OOM: "host", Kind.SHM_OOM: "shm"}
_CARD = {"name": "name", "total_bytes": "total_bytes", "bf16_native": "bf16_native", "mig": "mig", "ecc": "ecc"}
_HOST = ("ram_bytes", "ram_available_bytes", "swap_bytes", "cgroup_limit_bytes", "shm_bytes", "memlock_bytes", "disk_free_bytes", "wsl")
_MODEL = {"parameters": "all_params", "trained": "trainable_params"}
_VERSION = re.compile(r"log\.(?P<name>\w{2,40})_version")


def side_facts(side: Side) -> Facts:
    """Return all facts of one side. A given machine takes precedence over the log's description of it, and a file over the log."""
    facts: Facts = {}
    if side.diagnosis is not None:
        facts.update(_of_log(side.diagnosis))
    if side.environment is not None:
        facts.update(_of_machine(side.environment))
    if side.training is not None:
        facts.update({name: value for name, value in side.training.facts().items() if isinstance(value, (str, int, float, bool))})
        if side.training.framework is not None:
            facts["framework"] = side.training.framework
    if isinstance(steps := facts.get("training.accumulation"), int):
        facts["training.accumulates"] = steps > 1
    facts.pop("training.framework", None)
    alloc = facts.pop("training.alloc_conf", None)
    if isinstance(alloc, str):
        facts.update(_options(alloc))
    return facts


def _of_log(diagnosis: Diagnosis) -> Iterator[tuple[str, Fact]]:
    case = diagnosis.case
    for name, value in case.facts.items():
        version = _VERSION.fullmatch(name)
        if version is not None and isinstance(value, (str, int, float)):
            yield f"version.{version['name']}", str(value)
    for name, printed in _MODEL.items():
        text = str(case.facts.get(f"log.{printed}", "")).replace(",", "")
        if text.isascii() and text.isdigit() and len(text) < 16:
            yield f"model.{name}", int(text)
    framework = case.facts.get("log.framework")
    if isinstance(framework, str):
        yield "framework", framework
    yield from _of_failure(diagnosis)


def _of_failure(diagnosis: Diagnosis) -> Iterator[tuple[str, Fact]]:
    """Yield the facts about the GPU in a failure message."""
    for incident in diagnosis.case.incidents[:1]:
        memory = _MEMORIES.get(incident.kind)
        if memory is not None and not incident.survived:
            yield "failed", memory
        total = incident.root.size("total_bytes")
        if total is not None and memory == "card":
            yield "card.total_bytes", total
        others = incident.derived.get("other_processes_bytes")
        if isinstance(others, int):
            yield "card.others_bytes", others


def _of_machine(environment: Environment) -> Iterator[tuple[str, Fact]]:
    known = {name.removeprefix("environment."): value for name, value in machine_facts(environment).items()}
    for name, value in known.items():
        if name.startswith("package."):
            yield name.replace("package.", "version.", 1), value
    named = {
        "version.torch": "torch_version",
        "version.cuda": "torch_cuda",
        "version.driver": "driver_version",
        "version.python": "python_version",
        "card.count": "visible_gpu_count",
        "card.others_bytes": "fullest.held_bytes",
        **{f"card.{name}": f"gpu.{field}" for name, field in _CARD.items()},
        **{f"host.{name}": name for name in _HOST},
    }
    yield from ((name, known[field]) for name, field in named.items() if field in known)
    if known.get("gpu.processes") == 0 and "fullest.held_bytes" not in known:
        yield "card.others_bytes", 0
    yield from _variables(environment)


def _variables(environment: Environment) -> Iterator[tuple[str, Fact]]:
    # If the process's own variables were read, a missing one is not set; a pasted text may omit it.
    if "variables" in environment.origins:
        yield from ((f"variable.{name}", UNSET) for name in _VARIABLES)
        yield from ((f"alloc.{name}", UNSET) for name in _OPTIONS)
    for name, value in environment.variables.items():
        if _ALLOCATOR.fullmatch(name):
            yield from _options(value).items()
        else:
            yield f"variable.{name}", value


def _options(value: str) -> Mapping[str, Fact]:
    """Return the options in a string such as `expandable_segments:True,backend:native`; omitted options have their defaults."""
    written = {match["name"]: match["value"].strip().lower() for match in _OPTION.finditer(value[:2000])}
    return {f"alloc.{name}": written.get(name, UNSET) for name in (*_OPTIONS, *written)}
