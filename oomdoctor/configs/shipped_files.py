"""Files that a config names and that are not at hand: what frameworks ship under their names, else what the names say."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from oomdoctor.case.settings import Scalar
from oomdoctor.configs.frameworks import Frameworks
from oomdoctor.configs.parsed_config import ParsedConfig, plain_value
from oomdoctor.knowledge.tables.shipped_files import shipped_file

_SAID = (
    "zero_stage",
    "offload_optimizer",
    "offload_params",
    "zero_bucket",
    "zero_bucket_auto",
    "zero_overlap",
    "fsdp",
    "fsdp_version",
    "fsdp_offload",
    "world_size",
)
"""What rules/tables/shipped_files.csv says of a file."""
_STAGE = re.compile(r"(?i)(?:z|zero|stage)[-_]?([0-3])(?![0-9])")
_FSDP = re.compile(r"(?i)(?<![a-z])fsdp(2(?![0-9]))?")
_YAML = (".yaml", ".yml")
_LAUNCHED = {"accelerate": "config_file", "trl": "accelerate_config"}
"""The key that names a config of accelerate, by the program that takes it."""


def shipped_settings(configs: Sequence[ParsedConfig], frameworks: Frameworks) -> dict[str, Scalar]:
    """Return what the files that are named and not at hand say, and which files these are."""
    return dict((*_of_deepspeed(configs, frameworks), *_of_accelerate(configs)))


def _of_deepspeed(configs: Sequence[ParsedConfig], frameworks: Frameworks) -> Iterator[tuple[str, Scalar]]:
    if any(config.framework == "deepspeed" for config in configs):
        return
    given = (setting for config in configs for setting in config.written if setting.name == frameworks.deepspeed_key(config.framework))
    named = next((_base(setting.value) for setting in given if str(setting.value).endswith(".json")), None)
    if named is None:
        return
    yield "zero_file", named
    yield from _known(named) or _stage(named)


def _of_accelerate(configs: Sequence[ParsedConfig]) -> Iterator[tuple[str, Scalar]]:
    if any(config.framework == "accelerate" and config.form != "command" for config in configs):
        return
    given = (setting for config in configs for setting in config.written if setting.name == _LAUNCHED.get(config.framework or ""))
    named = next((_base(setting.value) for setting in given if isinstance(setting.value, str) and setting.value), None)
    if named is None:
        return
    named = named if named.endswith(_YAML) else f"{named}.yaml"
    yield "launch_file", named
    yield from _known(named) or _stage(named) or _sharded(named)


def _known(named: str) -> list[tuple[str, Scalar]]:
    row = shipped_file(named)
    return [] if row is None else [(name, plain_value(row[name])) for name in _SAID if row[name]]


def _stage(named: str) -> list[tuple[str, Scalar]]:
    stage = _STAGE.search(named)
    return [] if stage is None else [("zero_stage", int(stage[1]))]


def _sharded(named: str) -> list[tuple[str, Scalar]]:
    match = _FSDP.search(named)
    return [] if match is None else [("fsdp", True), ("fsdp_version", int(match[1] or 1))]


def _base(value: object) -> str:
    return str(value).replace("\\", "/").rpartition("/")[2]
