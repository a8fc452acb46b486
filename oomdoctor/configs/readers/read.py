"""A config file -> configs: which reader a text needs."""

from __future__ import annotations

import re

from oomdoctor.configs.parsed_config import MOST_BYTES, ParsedConfig, limits_exceeded
from oomdoctor.configs.readers.command_line import read_command_line
from oomdoctor.configs.readers.containers import read_containers
from oomdoctor.configs.readers.dump import is_dump, read_dump
from oomdoctor.configs.readers.json import read_json
from oomdoctor.configs.readers.modelfile import is_modelfile, read_modelfile
from oomdoctor.configs.readers.notebook import MOST_NOTEBOOK_BYTES, is_notebook, read_notebook
from oomdoctor.configs.readers.python_script import read_python
from oomdoctor.configs.readers.toml import read_toml
from oomdoctor.configs.readers.yaml import read_yaml

_SCRIPT = (".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".bat", ".cmd", ".ps1")
_YAML_KEY = re.compile(r"^[ \t]{0,20}[\w.\"'-]{1,100}:(?:[ \t]|$)", re.MULTILINE)
_COMMAND = re.compile(
    r"^(?:#!|\s*(?:export|CUDA_VISIBLE_DEVICES=|torchrun|deepspeed|accelerate|python[\d.]{0,5}|vllm|swift|llamafactory-cli|tune|trl)\b)|(?:^|\s)--[a-z]",
    re.MULTILINE,
)


def read_config(file: str, data: bytes) -> list[ParsedConfig] | None:
    """Return the configs of one file; None where it is not text."""
    if b"\0" in data[:4096] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    most = largest(file)
    text = _decoded(data[:most])
    configs = _read(file, text)
    if len(data) > most:
        configs.append(ParsedConfig(file=file, form="yaml", issues=(limits_exceeded(file, text.count("\n") + 1),)))
    return configs


def largest(file: str) -> int:
    """Return how many bytes of a file are read."""
    return MOST_NOTEBOOK_BYTES if is_notebook(file) else MOST_BYTES


def _decoded(data: bytes) -> str:
    utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    return data.decode("utf-16" if utf16 else "utf-8", "replace").removeprefix("\ufeff")


def _read(file: str, text: str) -> list[ParsedConfig]:
    lower = file.lower()
    start = text.lstrip()[:1]
    if is_notebook(file):
        return read_notebook(file, text, read_config)
    if is_modelfile(file, text):
        return read_modelfile(file, text)
    if lower.endswith((".yaml", ".yml")):
        return [read_yaml(file, text), *read_containers(file, text)]
    if lower.endswith(".toml"):
        return [read_toml(file, text)]
    if lower.endswith(".json") or start in ("{", "["):
        return [read_json(file, text)]
    if lower.endswith(_SCRIPT) or text.startswith("#!"):
        return read_command_line(file, text)
    if lower.endswith(".py") and (scripts := read_python(file, text)):
        return scripts
    if is_dump(text) and not _COMMAND.search(text):
        return [read_dump(file, text)]
    if _YAML_KEY.search(text) and not re.search(r"(?:^|\s)--[a-z]", text):
        return [read_yaml(file, text)]
    return read_command_line(file, text)
