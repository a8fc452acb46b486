"""What YAML files give to containers, compose services and pods of Kubernetes: commands, variables, cards and memory.

Commands are read as those of a script would be.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from oomdoctor.case.settings import Scalar, WrittenSetting
from oomdoctor.configs.parsed_config import LONGEST, ParsedConfig, plain_value
from oomdoctor.configs.readers.command_line import read_command_line
from oomdoctor.configs.readers.shell import is_of_interest
from oomdoctor.configs.readers.tree import Entry, Node, all_entries, find_path
from oomdoctor.configs.readers.yaml import parse_yaml

_IMAGE, _PARTS = "image", ("entrypoint", "command", "args")
"""Compose has an entrypoint and a command, Kubernetes a command and args; both run them in this order."""
_SHELLS = ("sh", "bash")
_COMMAND = re.compile(rf"(?:\A|\.)(?:{'|'.join(_PARTS)})(?:\.\d{{1,6}})?\Z")


_ENVIRONMENT = ("environment", "env")
_GIVEN = (*_ENVIRONMENT, "resources", "deploy")
_STARTS = {"ollama/ollama": "ollama serve"}
"""Images that serve without a command: ENTRYPOINT and CMD of ollama Dockerfile."""
_CARDS = re.compile(r"(?:nvidia|amd)\.com/(?:gpu|(?P<slice>mig-[\w.]{1,20}))\Z")
_OF_A_NODE = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator", "gpu.nvidia.com/class", "gpu.nvidia.com/model")
"""Labels of nodes that name the card: NVIDIA GPU feature discovery, GKE, CoreWeave."""
_COMPOSE_LIMITS = {
    "mem_limit": "--memory", "deploy.resources.limits.memory": "--memory",
    "gpus": "--gpus",
}  # fmt: skip
_COMPOSE_DEVICES = "deploy.resources.reservations.devices"


class Container(Struct, frozen=True):
    """What one container runs."""

    image: str
    parts: tuple[Node, ...]
    """The entrypoint, the command and the arguments that are there, in the order in which they are run: lists or texts."""
    block: Node
    """All that the file says of it."""

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
    configs: list[ParsedConfig] = []
    for root in parse_yaml(text).documents:
        for container in containers(root):
            runs = container_configs(file, container)
            # Of several containers the first that runs something known is meant, and others have variables and cards of their own.
            configs += [*runs, *_surroundings(file, container)] if runs and not configs else runs
        configs += _of_job(file, root) if configs else ()
    return configs


def containers(root: Node) -> Iterator[Container]:
    """Yield the containers of a document."""
    for node in _containers(root):
        values = {entry.key: entry.value for entry in node.entries}
        yield Container(values[_IMAGE].value, tuple(values[name] for name in _PARTS if name in values), node)


def is_command(key: str) -> bool:
    """Return whether a key of a file holds what a container runs, or a word of it."""
    return _COMMAND.search(key) is not None


def _containers(node: Node) -> Iterator[Node]:
    """Yield the blocks that name an image and what it runs."""
    keys = {entry.key for entry in node.entries} if node.kind == "mapping" else set()
    if _IMAGE in keys and keys.intersection((*_PARTS, *_GIVEN)):
        yield node
        return
    for entry in node.entries:
        yield from _containers(entry.value)


def container_configs(file: str, container: Container) -> list[ParsedConfig]:
    """Return the configs of one container: of the script that its shell runs, else of the command behind its image."""
    if not container.parts:
        program = next((program for image, program in _STARTS.items() if image in container.image), None)
        return read_command_line(file, program) if program else []
    script = container.script
    if script is not None:
        return read_command_line(file, "\n" * (script.line - 1) + script.value, beside=(container.image,))
    return read_command_line(file, _command(container.image, container.texts))


def _surroundings(file: str, container: Container) -> Iterator[ParsedConfig]:
    """Yield the variables that a container is given, and its cards and memory."""
    variables = tuple(_variables(file, container.block))
    if variables:
        yield ParsedConfig(file=file, form="environment", written=variables, framework="environment")
    pod, compose = tuple(_pod_limits(file, container.block)), tuple(_compose_limits(file, container.block))
    if pod:
        yield ParsedConfig(file=file, form="job", written=pod, framework="kubernetes")
    if compose:
        yield ParsedConfig(file=file, form="job", written=compose, framework="docker")


def _variables(file: str, block: Node) -> Iterator[WrittenSetting]:
    """Yield the variables that decide about memory: a mapping, a list of `NAME=value`, or a list of `name` and `value`."""
    for entry in block.entries:
        for item in entry.value.entries if entry.key in _ENVIRONMENT else ():
            named = {part.key: part.value.value for part in item.value.entries if part.value.kind == "scalar"}
            name, _, value = item.value.value.partition("=") if item.value.kind == "scalar" else ("", "", "")
            if entry.value.kind == "mapping":
                name, value = item.key, item.value.value
            elif "name" in named:
                name, value = named["name"], named.get("value", "")
            if value and is_of_interest(name):
                yield WrittenSetting(key=name, value=plain_value(value), file=file, line=item.line, framework="environment")


def _pod_limits(file: str, block: Node) -> Iterator[WrittenSetting]:
    """Yield the cards and the memory of a container in a pod."""
    for entry in _below(block, "resources.limits"):
        card = _CARDS.match(entry.key)
        if card is not None:
            yield _setting(file, "gpus", entry)
            if card["slice"]:
                yield WrittenSetting(key="gpu_type", value=card["slice"], file=file, line=entry.line)
        elif entry.key == "memory":
            yield _setting(file, "memory", entry)


def _compose_limits(file: str, block: Node) -> Iterator[WrittenSetting]:
    """Yield the cards and the memory of a service."""
    for path, key in _COMPOSE_LIMITS.items():
        entries = find_path(block, path)
        if entries and entries[-1].value.kind == "scalar":
            yield _setting(file, key, entries[-1])
    for device in _below(block, _COMPOSE_DEVICES):
        for entry in device.value.entries:
            if entry.key == "count" and entry.value.value.isdecimal():
                yield _setting(file, "--gpus", entry)
            elif entry.key == "device_ids":
                yield WrittenSetting(key="--gpus", value=len(entry.value.entries), file=file, line=entry.line)


def _of_job(file: str, root: Node) -> Iterator[ParsedConfig]:
    """Yield what a whole manifest says: the card that its labels name, the pods of a training job."""
    written: list[WrittenSetting] = []
    labelled = [entry for entry in all_entries(root) if entry.key in _OF_A_NODE and entry.value.kind == "scalar"]
    written += [_setting(file, "gpu_type", entry) for entry in labelled[:1]]
    replicas = [entry for kind in _below(root, "spec.pytorchReplicaSpecs") for entry in kind.value.entries if entry.key == "replicas"]
    pods = sum(int(entry.value.value) for entry in replicas if entry.value.value.isdecimal())
    written += [WrittenSetting(key="replicas", value=pods, file=file, line=replicas[0].line)] if pods else []
    if written:
        yield ParsedConfig(file=file, form="job", written=tuple(written), framework="kubernetes")


def _below(block: Node, path: str) -> list[Entry]:
    entries = find_path(block, path)
    return entries[-1].value.entries if entries else []


def _setting(file: str, key: str, entry: Entry) -> WrittenSetting:
    value: Scalar = plain_value(entry.value.value[:LONGEST])
    return WrittenSetting(key=key, value=value, file=file, line=entry.line)


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
