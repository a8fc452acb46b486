"""Commands that YAML files give to containers: compose services, pods of Kubernetes. They are read as a script would be."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.configs.readers.command_line import read_command_line
from oomdoctor.configs.readers.tree import Node
from oomdoctor.configs.readers.yaml import parse_yaml

_IMAGE, _PARTS = "image", ("entrypoint", "command", "args")
"""Compose has an entrypoint and a command, Kubernetes a command and args; both run them in this order."""
_SHELLS = ("sh", "bash")
_COMMAND = re.compile(rf"(?:\A|\.)(?:{'|'.join(_PARTS)})(?:\.\d{{1,6}})?\Z")


class Container(Struct, frozen=True):
    """What one container runs."""

    image: str
    parts: tuple[Node, ...]
    """The entrypoint, the command and the arguments that are there, in the order in which they are run: lists or texts."""

    @property
    def texts(self) -> list[Node]:
        """The words of lists, and commands that are one text."""
        return [word for part in self.parts for word in _words(part)]

    @property
    def script(self) -> Node | None:
        """The text that its shell runs; None where it runs a program."""
        words = self.texts
        return next((words[at + 1] for at in range(1, len(words) - 1) if _is_shell(words[at - 1].value, words[at].value)), None)


def read_containers(file: str, text: str) -> list[ParsedConfig]:
    """Return the configs of the commands that containers run; none where the text has no container."""
    if f"{_IMAGE}:" not in text:
        return []
    return [
        config for root in parse_yaml(text).documents for container in containers(root) for config in container_configs(file, container)
    ]


def containers(root: Node) -> Iterator[Container]:
    """Yield the containers of a document."""
    for node in _containers(root):
        values = {entry.key: entry.value for entry in node.entries}
        yield Container(values[_IMAGE].value, tuple(values[name] for name in _PARTS if name in values))


def is_command(key: str) -> bool:
    """Return whether a key of a file holds what a container runs, or a word of it."""
    return _COMMAND.search(key) is not None


def _containers(node: Node) -> Iterator[Node]:
    """Yield the blocks that name an image and what it runs."""
    keys = {entry.key for entry in node.entries} if node.kind == "mapping" else set()
    if _IMAGE in keys and keys.intersection(_PARTS):
        yield node
        return
    for entry in node.entries:
        yield from _containers(entry.value)


def container_configs(file: str, container: Container) -> list[ParsedConfig]:
    """Return the configs of one container: of the script that its shell runs, else of the command behind its image."""
    script = container.script
    if script is not None:
        return read_command_line(file, "\n" * (script.line - 1) + script.value, beside=(container.image,))
    return read_command_line(file, _command(container.image, container.texts))


def _is_shell(program: str, option: str) -> bool:
    """Return whether the next word is a script: `bash -c`, `sh -ec`."""
    return program.rsplit("/", 1)[-1] in _SHELLS and option.startswith("-") and option.endswith("c")


def _words(node: Node) -> list[Node]:
    """Return the words of a list, or the text that a shell makes words of."""
    return [node] if node.kind == "scalar" else [entry.value for entry in node.entries if entry.value.kind == "scalar"]


def _command(image: str, words: list[Node]) -> str:
    """Return what a container runs as one command, with each word in its line of the file."""
    text, line = f"docker run {_quoted(image)}", 1
    for word in words:
        text += "\\\n" * max(0, word.line - line) + " " + (_quoted(word.value) if len(words) > 1 else word.value.replace("\n", " "))
        line = max(line, word.line)
    return text


def _quoted(word: str) -> str:
    inner = word.replace("'", "'\\''")
    return f"'{inner}'"
