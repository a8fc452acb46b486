"""Modelfiles of Ollama: the model that FROM names, and its parameters (ollama docs/modelfile.mdx, parser/parser.go)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from oomdoctor.case.settings import WrittenSetting
from oomdoctor.configs.parsed_config import LONGEST, MOST_KEYS, ParsedConfig, plain_value

_COMMAND = re.compile(r"[ \t]*(?P<name>FROM|PARAMETER|ADAPTER|SYSTEM|TEMPLATE|LICENSE|MESSAGE)[ \t]+(?P<rest>.*)", re.IGNORECASE)
_PARAMETER = re.compile(r"(?P<key>[A-Za-z_]\w{0,80})[ \t]+(?P<value>.+)")
_TEXT = '"""'
_PROGRAM = "ollama run"
_HERE = ("./", "../", ".\\", "..\\")


def is_modelfile(file: str, text: str) -> bool:
    """Return whether a file is a Modelfile: by its name, or by a FROM with PARAMETER lines after it."""
    name = os.path.basename(file).lower()
    if name.startswith("modelfile") or name.endswith(".modelfile"):
        return True
    return "." not in name and {"from", "parameter"} <= {match["name"].lower() for match, _ in _commands(text[:20_000])}


def read_modelfile(file: str, text: str) -> list[ParsedConfig]:
    """Return the model and the parameters of a Modelfile; the last of a name counts."""
    given = tuple(_settings(file, text))[:MOST_KEYS]
    return [ParsedConfig(file=file, form="modelfile", written=given, program=_PROGRAM)] if given else []


def _settings(file: str, text: str) -> Iterator[WrittenSetting]:
    for match, line in _commands(text):
        rest = match["rest"].strip()
        if match["name"].upper() == "FROM" and rest:
            yield WrittenSetting(key="model", value=_beside(file, rest)[:LONGEST], file=file, line=line)
        elif match["name"].upper() == "PARAMETER" and (parameter := _PARAMETER.fullmatch(rest)):
            yield WrittenSetting(key=parameter["key"], value=plain_value(parameter["value"].strip("\"' ")), file=file, line=line)


def _beside(file: str, model: str) -> str:
    """Return the model of FROM; a path counts from the folder of the Modelfile."""
    return os.path.join(os.path.dirname(file), model.replace("\\", "/")) if model.startswith(_HERE) else model


def _commands(text: str) -> Iterator[tuple[re.Match[str], int]]:
    """Yield the commands with their lines; what stands in a text of several lines is none."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        starts = not inside
        if line.count(_TEXT) % 2:
            inside = not inside
        if starts and (match := _COMMAND.fullmatch(line)):
            yield match, number
