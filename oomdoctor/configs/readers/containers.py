"""Commands that YAML files give to containers: compose services, pods of Kubernetes. They are read as a script would be."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.configs.readers.command_line import read_command_line
from oomdoctor.configs.readers.tree import Node
from oomdoctor.configs.readers.yaml import parse_yaml

_IMAGE, _PARTS = "image", ("entrypoint", "command", "args")
"""Compose has an entrypoint and a command, Kubernetes a command and args; both run them in this order."""
_SHELLS = ("sh", "bash")


def read_containers(file: str, text: str) -> list[ParsedConfig]:
    """Return the configs of the commands that containers run; none where the text has no container."""
    if f"{_IMAGE}:" not in text:
        return []
    return [config for root in parse_yaml(text).documents for node in _containers(root) for config in _commands(file, node)]


def _containers(node: Node) -> Iterator[Node]:
    """Yield the blocks that name an image and what it runs."""
    keys = {entry.key for entry in node.entries} if node.kind == "mapping" else set()
    if _IMAGE in keys and keys.intersection(_PARTS):
        yield node
        return
    for entry in node.entries:
        yield from _containers(entry.value)


def _commands(file: str, container: Node) -> list[ParsedConfig]:
    """Return the configs of one container: of the script that its shell runs, else of the command behind its image."""
    values = {entry.key: entry.value for entry in container.entries}
    image = values[_IMAGE].value
    words = [word for name in _PARTS if name in values for word in _words(values[name])]
    script = next((words[at + 1] for at in range(1, len(words) - 1) if _is_shell(words[at - 1].value, words[at].value)), None)
    if script is not None:
        return read_command_line(file, "\n" * (script.line - 1) + script.value, beside=(image,))
    return read_command_line(file, _command(image, words))


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
