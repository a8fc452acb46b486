"""Which facts exist: what messages, settings and tables name, and what the code works out.

A fact that no rule file and no code can ever give would leave a rule unknown for ever, without a word: such a rule is refused.
Whoever lets the code work out something new adds its name to the sets below; tests/rules/test_fact_names.py holds the code to it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import fields

from oomdoctor.case.environment import Gpu, Host, TorchRun
from oomdoctor.case.event import Certainty, Kind
from oomdoctor.case.settings import RunSettings
from oomdoctor.knowledge.records.framework import KeyTable
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.knowledge.rule_set import RuleSet

_NUMBERED = re.compile(r"\.gpu\.\d{1,3}\.")
"""One of several cards: `environment.gpu.1.name`."""
_GROUP = re.compile(r"\(\?P<(\w+)>")

DERIVED: Final = frozenset({
    "above_share", "allocated_share", "beyond_card_bytes", "cache_covers_request", "card_is_whole", "equal_neighbours",
    "first_rank_over_others", "fitting_cache_bytes",
    "fitting_layers", "fitting_length", "free_and_neither_cover_request", "free_and_unallocated_cover_request",
    "free_covers_request", "free_share", "higher_share", "host_limit_bytes", "host_used_bytes", "kv_needed_times",
    "largest_process_share", "lower_share", "matrix_bits", "matrix_model", "matrix_shape", "matrix_weights_bytes", "matrix_weights_share",
    "neither_bytes", "neither_share", "other_processes_bytes",
    "other_processes_count", "other_share", "over_series", "request_as_product", "request_kind", "request_share",
    "share", "spare_bytes", "step", "step_is_eval", "step_is_first", "step_is_late", "step_is_save",
    "unaccounted_bytes", "unaccounted_share", "unallocated_bytes", "unallocated_share", "wanted_times", "whole_pool_refused",
})  # fmt: skip
"""findings/derived.py, fitting.py, failure_step.py, tensor_match.py, weight_matrix.py, host_memory.py, serving_share.py, facts.py: what
follows from messages."""
INCIDENT: Final = frozenset({
    "card", "certainty", "computes", "count", "frame", "in_python", "inference", "kind", "native", "phase", "platform",
    "program", "quantised", "ranks", "signature", "survived", "works_on",
})  # fmt: skip
"""findings/facts.py, workload.py, platform.py and api/: the first failure."""
VERDICT: Final = frozenset({"kind", "memory_failure"})
LOG: Final = frozenset({
    "framework", "fullest_card_share", "gpu_name", "last_error", "memory_series", "series_highest_bytes", "shard_bars",
    "smi_unlisted_bytes", "vision",
})  # fmt: skip
"""findings/facts.py and machine/match_log.py: what several messages show together. `PACKAGE_version` comes from the packages."""
ESTIMATE: Final = frozenset({"card_bytes", "explains", "fits", "model", "needed_bytes", "over_card", "stands_too_large", "weights_bytes"})
"""planning/observed/run_expected_vs_observed.py: what the memory model expects."""
TRAINING: Final = frozenset({"framework", "version"})
"""case/settings.py: beside the settings themselves."""
CONFIG: Final = frozenset({"eval_batch_above_train", "more_processes_than_cards"})
"""configs/checks: how two settings compare."""
CHECKED_CARD: Final = frozenset({"compute_capability", "name"})
"""configs/checks/cards.py: the card that a config is checked against."""

HOST: Final = frozenset({
    "cgroup_kills", "cgroup_limit_bytes", "cgroup_share", "cgroup_used_bytes", "disk_free_bytes", "in_container", "shm_bytes",
    "shm_free_bytes",
})  # fmt: skip
_CONFLICT = ("count", "installed", "needs", "package", "pairs", "specifier", "version")
SOFTWARE: Final = frozenset({
    "driver_branch", "driver_covers_torch", "driver_cuda", "driver_kernel_version", "driver_knows_cuda_of_torch", "driver_message",
    "driver_minimum", "driver_state", "driver_version", "nvml_differs_from_kernel", "nvml_library", "nvml_library_version",
    "nvml_missing", "nvml_missing_count", "python_kind", "python_version", "torch_architectures", "torch_backend", "torch_cuda",
    "torch_hip", "torch_runs", "torch_version", "twice.count", "twice.name", "twice.other", "twice.used",
    *(f"{of}.{name}" for of in ("clash", "mismatch") for name in _CONFLICT),
})  # fmt: skip
CARD: Final = frozenset({
    "architecture", "bf16_native", "capability_major", "cuda_of_torch_has_code", "cuda_since", "fp16_rate", "held_bytes", "held_share",
    "holders", "in_torch_build", "processes", "used_share",
})  # fmt: skip
CARDS: Final = frozenset({"gpu", "fullest", "damaged", "uncovered", "foreign", "emulating", "busy"})
COUNTS: Final = frozenset({"gpu_count", "gpu_names", "visible_gpu_count", *(f"{card}.count" for card in CARDS - {"gpu", "fullest"})})
"""machine/facts.py: an environment, beside the plain fields of its parts."""

SNAPSHOT: Final = frozenset({
    "beside_sites", "category", "category_share", "device_free_bytes", "ends_giving_back", "failed", "free_elsewhere_bytes",
    "free_in_pool_bytes", "given_back_bytes", "growth_added_bytes", "growth_category", "growth_freed_in_a_step_bytes",
    "growth_held_bytes", "growth_share", "growth_site", "growth_steps", "has_frames", "has_history", "holder_bytes", "holder_category",
    "holder_share", "holder_site", "kept_blocks", "kept_bytes", "kept_of_left_share", "kept_phase", "kept_share", "kept_site",
    "kept_without_gradients", "largest_free_bytes", "left_blocks", "left_paths", "left_share", "live_bytes", "live_share", "ooms",
    "peak_bytes", "request_category", "request_share", "request_site", "requested_bytes", "reserved_bytes", "steps_from", "survived", "why",
})  # fmt: skip
"""snapshots/facts.py: what a memory snapshot tells, beside the share of each entry of rules/holdings.yaml."""
REFUSED: Final = frozenset({
    "fragmentation", "limit", "one-large-request", "other-pool", "others-on-the-card", "too-much-live", "unknown",
})  # fmt: skip
"""The values of `snapshot.why`: snapshots/refusal.py."""

COMPARED: Final = frozenset({
    "card.bf16_native", "card.count", "card.ecc", "card.mig", "card.name", "card.others_bytes", "card.total_bytes", "failed", "framework",
    "host.cgroup_limit_bytes", "host.disk_free_bytes", "host.memlock_bytes", "host.ram_available_bytes", "host.ram_bytes",
    "host.shm_bytes", "host.swap_bytes", "host.wsl", "model.parameters", "model.trained", "training.accumulates", "version.cuda",
    "version.driver", "version.python",
})  # fmt: skip
"""comparing/facts.py: what two sides share, beside versions, settings, variables and options of the allocator."""

ASKED_BY_FORMS: Final = frozenset({
    "accelerator", "allocator", "container", "cuda_available", "driver", "gpu", "gpu_count", "gpu_memory", "gpus", "gpus_in_a_line",
    "launcher", "libc", "os", "platform", "python", "ram", "shm", "system", "torch", "torch_cuda", "torch_hip", "vendor",
    "visible_devices", "wsl",
})  # fmt: skip
"""report/issue/known_values.py: what bug forms ask, beside `package.NAME` and `commit.NAME`."""

PHASES: Final = frozenset({
    "backward", "checkpoint-save", "data-loading", "evaluation", "forward", "generation", "model-load", "optimizer-step",
})  # fmt: skip
"""The values of `incident.phase`: parse/traceback.py."""
CARDS_SEEN: Final = frozenset({"amd-apu", "blackwell", "pascal", "spark", "turing", "volta"})
"""The values of `incident.card`: findings/platform.py."""
PLATFORMS: Final = frozenset({"container", "kubernetes", "macos", "managed-job", "windows"})
"""The values of `incident.platform`: findings/platform.py."""
REQUEST_KINDS: Final = frozenset({"hidden", "logits", "parameters"})
"""The values of `derived.request_kind`: findings/tensor_match.py."""


class WrittenKeys(Struct, frozen=True):
    """The keys of configs as they are written: `given.FRAMEWORK.KEY`, and `given.FRAMEWORK` where there is a config of it."""

    frameworks: frozenset[str]
    unlisted: frozenset[str]
    """Frameworks of which nobody has listed the keys."""
    keys: frozenset[str]

    def nearest(self, name: str) -> tuple[bool, Collection[str]]:
        """Return whether a fact exists, and the names among which the one that was meant may be."""
        _, framework, key = (*name.split(".", 2), "")[:3]
        if framework not in self.frameworks:
            return False, {f"given.{known}{'.' if key else ''}{key}" for known in self.frameworks}
        block, _, inner = key.rpartition(".")
        exists = not key or framework in self.unlisted or key in self.keys or (block in self.keys and inner in self.keys)
        return exists, () if exists else {f"given.{framework}.{known}" for known in self.keys}


class FactNames(Struct, frozen=True):
    """The facts that each kind of rule may ask for."""

    case: frozenset[str]
    """Problems and fixes: a run or a machine."""
    configs: frozenset[str]
    """Checks: the settings of a run, as they are written and as they mean."""
    compared: frozenset[str]
    """Changes: what two runs or machines share."""
    forms: frozenset[str]
    """Bug forms."""
    open: tuple[str, ...]
    """Beginnings of names of which any end may exist."""
    written: WrittenKeys
    values: Mapping[str, frozenset[str]]
    """The values of facts that have few."""

    def nearest(self, name: str, names: frozenset[str]) -> tuple[bool, Collection[str]]:
        """Return whether a fact exists among `names`, and the names among which the one that was meant may be."""
        if names is self.configs and name.startswith("given."):
            return self.written.nearest(name)
        return _NUMBERED.sub(".gpu.", name) in names or name.startswith(self.open), names


def fact_names(rules: RuleSet) -> FactNames:
    """Return the facts that exist with these rules."""
    events = {name for loaded in rules.signatures if loaded.record.kind != "context" for name in fields_of(loaded.record)}
    logged = {name for loaded in rules.signatures if loaded.record.kind == "context" for name in fields_of(loaded.record)}
    packages, variables = _listed(rules.root, "packages"), _listed(rules.root, "variables")
    plain = {package.replace("-", "_") for package in packages}
    printed = [name.removesuffix("_version").replace("_", "-") for name in logged if name.endswith("_version")]
    versions = {f"{package}_version" for package in (*plain, "driver", "python")}
    settings = set(RunSettings.__struct_fields__)
    log = _under("log", logged | versions | LOG)
    training = _under("training", settings | TRAINING)
    verdict = _under("verdict", VERDICT) | _under("estimate", ESTIMATE)
    case = _under("event", events) | _under("derived", DERIVED) | _under("incident", INCIDENT) | log | training | verdict
    holdings = frozenset(holding.id for holding in rules.holdings)
    case |= _under("snapshot", SNAPSHOT | {f"{name.replace('-', '_')}_share" for name in holdings})
    options = {name for _, framework in rules.frameworks for table in framework.options.values() for name in _listed_keys(table)}
    return FactNames(
        case=frozenset(case | _environment(packages, variables)),
        configs=frozenset(log | training | _under("key", settings) | _under("config", CONFIG) | _under("card", CHECKED_CARD)),
        compared=frozenset(training | COMPARED | _under("version", plain) | _under("alloc", options) | _under("variable", variables)),
        forms=frozenset(ASKED_BY_FORMS | _under("package", (*packages, *printed)) | _under("commit", packages)),
        open=(
            *(f"{group}.{name[:-1]}" for name in variables if name.endswith("*") for group in ("environment.variable", "variable")),
            *(() if packages else ("environment.package.", "version.", "package.", "commit.")),
            *(() if variables else ("environment.variable.", "environment.launcher.", "variable.")),
        ),
        written=_written_keys(rules),
        values={
            "incident.kind": frozenset(kind.value for kind in Kind),
            "verdict.kind": frozenset(kind.value for kind in Kind),
            "incident.certainty": frozenset(certainty.value for certainty in Certainty),
            "incident.signature": frozenset(loaded.record.id for loaded in rules.signatures),
            "incident.program": frozenset(loaded.program for loaded in rules.signatures),
            "incident.computes": frozenset(record.id for record in rules.computations),
            "incident.phase": PHASES,
            "incident.card": CARDS_SEEN,
            "incident.platform": PLATFORMS,
            "derived.request_kind": REQUEST_KINDS,
            "snapshot.why": REFUSED,
            **{f"snapshot.{name}": holdings for name in ("category", "growth_category", "holder_category", "request_category")},
        },
    )


def fields_of(signature: SignatureRecord) -> set[str]:
    """Return the fields of the events of a signature; where no pattern reads them, those that its examples show."""
    shown = (name for example in signature.examples for name in example.fields)
    return {*_GROUP.findall(signature.pattern or ""), *signature.set, *(() if signature.pattern else shown)}


def _listed(root: str, table: str) -> list[str]:
    """Return the names in a table of a folder of rules; empty where it has no such table."""
    path = Path(root) / "tables" / f"{table}.csv"
    return [row["name"] for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())] if path.is_file() else []


def _under(prefix: str, names: Iterable[str]) -> set[str]:
    return {f"{prefix}.{name}" for name in names}


def _environment(packages: Iterable[str], variables: Iterable[str]) -> set[str]:
    gpu = {field.name for field in fields(Gpu)} | CARD
    names = {field.name for field in fields(Host)} | {f"torch_{field.name}" for field in fields(TorchRun)}
    names |= HOST | SOFTWARE | COUNTS
    names |= {f"{card}.{name}" for card in CARDS for name in gpu}
    names |= _under("package", (package.replace("-", "_") for package in packages))
    names |= _under("variable", variables) | _under("launcher", variables)
    return _under("environment", names)


def _written_keys(rules: RuleSet) -> WrittenKeys:
    """Return the keys that people can write.

    People write keys of one framework for another, and checks may say so: a key of any framework exists for all.
    """
    records = {record.framework: record for _, record in rules.frameworks}
    listed = {record.framework for record in records.values() if record.keys is not None}
    keys: set[str] = set()
    for record in records.values():
        keys |= {*_listed_keys(record.keys), *record.extra, *record.renamed, *record.blocks}
        keys |= {key if isinstance(key, str) else key.key for written in record.settings.values() for key in written}
        keys |= {f"{block}.{key}" for block, inner in record.blocks.items() for key in inner}
    keys |= {".".join(key.split(".")[:depth]) for key in keys for depth in range(1, key.count(".") + 1)}
    unlisted = {record.framework for record in records.values() if listed.isdisjoint((record.framework, *record.shares))}
    return WrittenKeys(frozenset({*records, "hf"}), frozenset(unlisted), frozenset(keys))


def _listed_keys(table: KeyTable | None) -> set[str]:
    """Return the keys of a table, of all versions."""
    return set() if table is None else {name for span in table.spans for name in span.names.split()}
