"""The names of facts that the code works out, by their first word: what rules may ask beside what messages and settings say themselves.

A name that is not here, and that no signature, framework or table gives, does not exist: a rule that asks for it is wrong. Whoever
lets the code say something new adds its name here; tests/rules/test_fact_names.py holds the code to it.
"""

from __future__ import annotations

from typing import Final

DERIVED: Final = frozenset({
    "allocated_share", "equal_neighbours", "free_and_neither_cover_request", "free_and_unallocated_cover_request", "free_covers_request",
    "kv_needed_times", "neither_bytes", "neither_share", "other_processes_bytes", "other_processes_count", "other_share", "over_series",
    "request_as_product", "request_kind", "request_share", "spare_bytes", "step", "step_is_eval", "step_is_first", "step_is_late",
    "step_is_save", "unaccounted_bytes", "unaccounted_share", "unallocated_bytes", "unallocated_share", "whole_pool_refused",
})  # fmt: skip
"""findings/derived.py, failure_step.py, tensor_match.py and facts.py: figures that follow from a message."""
INCIDENT: Final = frozenset({"certainty", "count", "frame", "inference", "kind", "phase", "program", "ranks", "signature", "survived"})
"""findings/facts.py, workload.py and api/: the first failure."""
VERDICT: Final = frozenset({"kind", "memory_failure"})
LOG: Final = frozenset({
    "framework", "fullest_card_share", "gpu_name", "last_error", "memory_series", "series_highest_bytes", "shard_bars",
    "smi_unlisted_bytes", "vision",
})  # fmt: skip
"""findings/facts.py and machine/match_log.py: what several messages show together. `PACKAGE_version` comes from the packages."""
ESTIMATE: Final = frozenset({"card_bytes", "fits", "model", "needed_bytes", "over_card", "weights_bytes"})
"""planning/expected_vs_observed.py: what the memory model expects."""
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
SOFTWARE: Final = frozenset({
    "driver_branch", "driver_covers_torch", "driver_cuda", "driver_kernel_version", "driver_knows_cuda_of_torch", "driver_message",
    "driver_minimum", "driver_state", "driver_version", "nvml_differs_from_kernel", "nvml_library", "nvml_library_version",
    "nvml_missing", "nvml_missing_count", "python_kind", "python_version", "torch_architectures", "torch_backend", "torch_cuda",
    "torch_hip", "torch_runs", "torch_version", "twice.count", "twice.name", "twice.other", "twice.used",
})  # fmt: skip
CARD: Final = frozenset({
    "architecture", "bf16_native", "capability_major", "fp16_rate", "held_bytes", "held_share", "holders", "in_torch_build", "processes",
    "used_share",
})  # fmt: skip
CARDS: Final = frozenset({"gpu", "fullest", "damaged", "uncovered", "emulating", "busy"})
COUNTS: Final = frozenset({"gpu_count", "gpu_names", "visible_gpu_count", *(f"{card}.count" for card in CARDS - {"gpu", "fullest"})})
"""machine/facts.py: an environment, beside the plain fields of its parts."""

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
REQUEST_KINDS: Final = frozenset({"hidden", "logits", "parameters"})
"""The values of `derived.request_kind`: findings/tensor_match.py."""
