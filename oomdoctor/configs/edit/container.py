"""Edits of what containers run, in compose files and manifests of Kubernetes: an option in a list of words, or in a text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from oomdoctor.configs.edit.change import ConfigChange, Edit, UnsafeEdit, plain_key
from oomdoctor.configs.edit.documents import read_documents
from oomdoctor.configs.edit.lists import append_items
from oomdoctor.configs.edit.script import edit_script
from oomdoctor.configs.edit.values import yaml_text
from oomdoctor.configs.readers.containers import Container, container_configs, containers
from oomdoctor.configs.readers.shell import OPTION, Word
from oomdoctor.configs.readers.tree import Node

_QUOTES = ("'", '"')
_BLOCKS = ("|", ">")
_WRITTEN_OTHERWISE = "\\'\""


def edit_container(text: str, file: str, change: ConfigChange, takes: Callable[[Sequence[Word]], bool]) -> Edit:
    """Return the edit that makes `change`; `takes` says of a command of a script whether it takes new options.

    Raise UnsafeEdit where there is none that touches nothing else.
    """
    if change.action != "set" or change.variable:
        raise UnsafeEdit("only options in a container's command are changed", "只改容器命令里的选项")
    roots = read_documents(text, "yaml")
    running = [container for root in roots for container in containers(root) if _runs(file, container, change)]
    if len(running) != 1:
        raise UnsafeEdit("it is unclear which command this option belongs to", "无法确定该写进哪条命令")
    container = running[0]
    if any(node.shared for node in (*container.parts, *container.texts)):
        raise UnsafeEdit("the value is shared by an anchor, a tag or an alias", "这个值通过锚点、标签或别名共用")
    if container.script is not None:
        return _in_text(text, container.script, change, takes, is_script=True)
    if len(container.parts) == 1 and container.parts[0].kind == "scalar":
        return _in_text(text, container.parts[0], change, lambda _: True, is_script=False)
    return _in_lists(text, container.parts, change)


def _runs(file: str, container: Container, change: ConfigChange) -> bool:
    """Return whether a container runs the program, with the option in its line where one is named."""
    configs = [config for config in container_configs(file, container) if container.parts and config.program == change.program]
    return any(change.line is None or any(setting.line == change.line for setting in config.written) for config in configs)


def _in_text(text: str, node: Node, change: ConfigChange, takes: Callable[[Sequence[Word]], bool], *, is_script: bool) -> Edit:
    """Return the edit of a command that is one text, which ends with its line only in a script."""
    start, end = node.start, node.end
    if node.style in _QUOTES:
        start, end = start + 1, end - 1
    elif node.style in _BLOCKS:
        start = text.index("\n", start) + 1
    # As long as what stands there, so that places in one are places in the other.
    command = text[start:end] if is_script and node.style == "|" else text[start:end].replace("\r", " ").replace("\n", " ")
    edit = edit_script(command, "", change, takes)
    quoted = node.style in _QUOTES and any(mark in command + edit.new for mark in _WRITTEN_OTHERWISE)
    if command.split() != node.value.split() or quoted:
        raise UnsafeEdit("the text is written in a way that is easy to get wrong", "这段文本的写法不容易改对")
    return Edit(start + edit.start, start + edit.end, edit.new)


def _in_lists(text: str, parts: Sequence[Node], change: ConfigChange) -> Edit:
    """Return the edit of a command that is a list of words."""
    words = [(part, entry.value) for part in parts for entry in part.entries]
    plain = all(word.kind == "scalar" and "\n" not in text[word.start : word.end] for _, word in words)
    if not plain or any(part.kind != "sequence" for part in parts):
        raise UnsafeEdit("the command is not a list of words", "这条命令不是由单个词组成的列表")
    named = [at for at, (_, word) in enumerate(words) if _is_option(word, change.key)]
    if len(named) > 1:
        raise UnsafeEdit("the option appears several times", "这个选项出现了多次")
    if not named:
        return append_items(text, parts[-1], _items(parts[-1], change))
    part, option = words[named[0]]
    flow = part.style == "{"
    name, mark, _ = option.value.partition("=")
    if mark:
        return Edit(option.start, option.end, yaml_text(f"{name}={change.to}", option.style, flow=flow))
    values = [word for _, word in words[named[0] + 1 :]]
    size = next((at for at, word in enumerate(values) if OPTION.match(word.value)), len(values))
    if size != 1:
        raise UnsafeEdit("the option does not have exactly one value", "这个选项的值不是一个")
    return Edit(values[0].start, values[0].end, yaml_text(change.to, values[0].style, flow=flow))


def _is_option(word: Node, key: str) -> bool:
    option = OPTION.match(word.value)
    return option is not None and plain_key(option[1]) == plain_key(key)


def _items(part: Node, change: ConfigChange) -> list[str]:
    """Return a new option as the others of its list are written: in one word with `=` or in two, in their quotes."""
    options = [entry.value for entry in part.entries if OPTION.match(entry.value.value)]
    last = options[-1] if options else part.entries[-1].value if part.entries else part
    key = change.key if change.key.startswith("-") else f"--{change.key}"
    joined = bool(options) and all("=" in option.value for option in options)
    words = [key] if not change.to else [f"{key}={change.to}"] if joined else [key, change.to]
    return [yaml_text(word, last.style, flow=part.style == "{") for word in words]
