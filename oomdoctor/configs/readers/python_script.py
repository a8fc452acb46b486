"""Scripts in Python: the arguments of their calls, as far as they are plain values. They are parsed, never run.

A script says in its calls what a command says in options: `SFTConfig(max_length=2048)`, `from_pretrained("org/model")`.
Names that are given a plain value stand for it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from oomdoctor.case.settings import Scalar, WrittenSetting
from oomdoctor.configs.parsed_config import LONGEST, MOST_KEYS, ParsedConfig
from oomdoctor.configs.readers.shell import is_of_interest

_Plain = Scalar | tuple[Scalar, ...]

_MODEL = "model_name_or_path"
"""The key of transformers for what its scripts load."""
_LOADS = re.compile(r"(?:\w*Model(?:For\w+)?|\w+For[A-Z]\w+|\w*Pipeline)\Z")
"""Classes of transformers, diffusers and Unsloth whose `from_pretrained` loads a model, and no tokenizer."""
_TAKES = re.compile(r"\w*Trainer\Z")
"""Trainers of TRL take a model or its name first: trl/trainer/sft_trainer.py."""
_OF_ADAPTERS: Mapping[str, str] = {"r": "lora_r", "target_modules": "lora_target_modules"}
"""Arguments of peft's LoraConfig (peft/tuners/lora/config.py), as scripts with options of their own call them."""
_SERVER = "LLM"
"""vLLM's class for a model in the same process: vllm/entrypoints/llm.py."""
_USAGE = "usage_context"
"""What vLLM calls the difference from a server (vllm/usage/usage_lib.py, UsageContext)."""


def read_python(file: str, text: str) -> list[ParsedConfig]:
    """Return what the calls of a script say, and the variables of the environment that it sets; nothing where it is no Python."""
    tree = _parsed(text)
    if tree is None:
        return []
    script = _Script(file, tree)
    config = ParsedConfig(
        file=file,
        form="dump",
        written=tuple(script.settings())[:MOST_KEYS],
        imports=tuple(dict.fromkeys(_imports(tree))),
        program="vllm" if script.serves() else None,
    )
    variables = tuple(script.variables())[:MOST_KEYS]
    environment = ParsedConfig(file=file, form="environment", written=variables, framework="environment")
    return [part for part in (config, environment) if part.written]


def plain_names(text: str) -> dict[str, Scalar]:
    """Return the names that a script gives a plain value, and the value of each."""
    tree = _parsed(text)
    return (
        {} if tree is None else {name: node.value for name, node in _constants(tree).items() if isinstance(node.value, (str, int, float))}
    )


def _parsed(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _constants(tree: ast.Module) -> dict[str, ast.Constant]:
    return {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _imports(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.partition(".")[0]


class _Script:
    """The calls of a script, in the order in which they stand."""

    def __init__(self, file: str, tree: ast.Module) -> None:
        self._file = file
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        self._calls = sorted(calls, key=lambda call: (call.lineno, call.col_offset))
        self._names = _constants(tree)
        self._assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]

    def serves(self) -> bool:
        """Return whether it answers with vLLM and trains nothing."""
        called = [_path(call.func)[-1:] for call in self._calls]
        return [_SERVER] in called and not any(_TAKES.match(name) for names in called for name in names)

    def variables(self) -> Iterator[WrittenSetting]:
        """Yield the variables of the environment that decide about memory: `os.environ["NAME"] = "value"`."""
        for node in self._assigned:
            target = node.targets[0]
            if isinstance(target, ast.Subscript) and _path(target.value)[-1:] == ["environ"] and isinstance(target.slice, ast.Constant):
                name, value = str(target.slice.value), self._value(node.value)
                if is_of_interest(name) and value is not None:
                    yield WrittenSetting(key=name[:LONGEST], value=value, file=self._file, line=node.lineno, framework="environment")

    def settings(self) -> Iterator[WrittenSetting]:
        """Yield the arguments of all calls that are plain values; the model is the first that is loaded."""
        model = next((setting for call in self._calls if (setting := self._model(call)) is not None), None)
        for call in self._calls:
            path = _path(call.func)
            if path[-1:] == ["LoraConfig"]:
                yield WrittenSetting(key="peft_config", value="LoraConfig", file=self._file, line=call.lineno)
            if path[-1:] == [_SERVER]:
                yield WrittenSetting(key=_USAGE, value="LLM_CLASS", file=self._file, line=call.lineno)
            for keyword in call.keywords:
                for below, node in _entries(keyword.arg, keyword.value):
                    value = self._value(node)
                    if value is not None:
                        key = _OF_ADAPTERS.get(below, below) if path[-1:] == ["LoraConfig"] else below
                        yield WrittenSetting(key=key, value=value, file=self._file, line=node.lineno)
        if model is not None:
            yield model

    def _model(self, call: ast.Call) -> WrittenSetting | None:
        """Return the model that a call loads or trains."""
        *parts, name = _path(call.func) or [""]
        names: tuple[str, ...] = ("model",)
        loads = _TAKES.match(name) is not None
        if name == "from_pretrained":
            names, loads = ("pretrained_model_name_or_path", "model_name"), bool(parts and _LOADS.match(parts[-1]))
        given = [keyword.value for keyword in call.keywords if keyword.arg in names] + call.args[:1]
        value = self._value(given[0]) if loads and given else None
        return WrittenSetting(key=_MODEL, value=value, file=self._file, line=call.lineno) if isinstance(value, str) else None

    def _value(self, node: ast.expr) -> _Plain:
        """Return a plain value; None where it comes out of a call or is worked out."""
        if isinstance(node, ast.Name):
            node = self._names.get(node.id, node)
        if isinstance(node, ast.Constant):
            value = node.value
            return value[:LONGEST] if isinstance(value, str) else value if isinstance(value, (bool, int, float)) else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            number = node.operand.value
            return -number if isinstance(number, (int, float)) else None
        if isinstance(node, (ast.List, ast.Tuple)):
            every = [self._value(item) for item in node.elts]
            return tuple(item for item in every if item is not None and not isinstance(item, tuple))
        path = _path(node) if isinstance(node, ast.Attribute) else []
        # torch.bfloat16, and members of enums: their value is their name in lower case.
        return path[-1].lower() if len(path) > 1 and (path[0] == "torch" or path[-1].isupper()) else None


def _entries(key: str | None, node: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Yield an argument by its name; of a dictionary its entries, as `name.entry`."""
    if key is None:
        return
    if not isinstance(node, ast.Dict):
        yield key, node
        return
    for name, value in zip(node.keys, node.values):
        if isinstance(name, ast.Constant) and isinstance(name.value, str) and not isinstance(value, ast.Dict):
            yield f"{key}.{name.value}", value


def _path(node: ast.expr) -> list[str]:
    """Return the names of `a.b.c`; nothing where it begins with something else."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        before = _path(node.value)
        return [*before, node.attr] if before else []
    return []
