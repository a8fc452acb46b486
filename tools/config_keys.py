"""Writes the keys of rules/frameworks/*.yaml: the keys of each framework's configs, by version, read from its wheels.

    pip download --no-deps -d WHEELS transformers==4.50.3 transformers==4.51.3 llamafactory==0.9.5 ...
    pip download --no-deps --no-binary deepspeed -d WHEELS deepspeed
    python tools/config_keys.py WHEELS

Nothing of a package is imported or run: fields of classes and names of options are read with `ast`. One wheel (DeepSpeed
has only source archives) for each version that shall be known; a key's `since` and `until` are the first and the last of
these that have it.
"""

from __future__ import annotations

import ast
import re
import sys
import tarfile
import zipfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import TypeGuard

from packaging.version import Version

FRAMEWORKS = Path(__file__).parents[1] / "rules" / "frameworks"
MARK = "# The keys as tools/config_keys.py reads them from the wheels of "
"""What stands above this line is written by hand, what stands below it is written here."""
SOURCES = {
    "transformers": ("transformers", r"transformers/training_args(_seq2seq)?\.py$"),
    "llamafactory": ("llamafactory", r"(llamafactory|llmtuner)/hparams/\w+\.py$"),
    "trl": ("trl", r"trl/(trainer/\w+_config|scripts/(utils|sft|dpo|grpo|kto)|experimental/\w+/\w+_config|commands/cli_utils)\.py$"),
    "axolotl": ("axolotl", r"axolotl/(utils/schemas/\w+|integrations/\w+/args|cli/args|core/training_args_base|core/training_args)\.py$"),
    "ms-swift": (
        "ms_swift",
        r"swift/(arguments/.*|llm/argument/.*|llm/utils/argument|trainers/(rlhf_)?arguments|rlhf_trainers/arguments|megatron/arguments?/.*)\.py$",
    ),
    "accelerate": ("accelerate", r"accelerate/commands/(launch|config/(cluster|config_args|sagemaker))\.py$"),
    "vllm": ("vllm", r"vllm/(engine/arg_utils|entrypoints/openai/cli_args|config/\w+)\.py$"),
    "deepspeed": (
        "deepspeed",
        r"deepspeed/(runtime/(\w+|zero/\w*config|activation_checkpointing/config|comm/\w*config)|\w+/(config|constants)|\w+/\w+/(config|constants))\.py$",
    ),
    "sglang": ("sglang", r"sglang/srt/(server_args|arg_groups/fields/\w+)\.py$"),
}
"""Framework -> the name that its wheels begin with, and the files that define its keys."""
_KEY = re.compile(r"[a-z]\w{1,80}\Z")


def main(wheels: Path) -> None:
    """Writes the keys of each framework that has a wheel here."""
    for framework, (package, files) in SOURCES.items():
        archives = [*wheels.glob(f"{package}-*.whl"), *wheels.glob(f"{package}-*.tar.gz")]
        found = sorted((Version(path.name.removesuffix(".tar.gz").split("-")[1]), path) for path in archives)
        if found:
            keys = {version: set(_keys(path, re.compile(files))) for version, path in found}
            path = FRAMEWORKS / f"{framework}.yaml"
            by_hand = path.read_text(encoding="utf-8").partition(MARK)[0]
            path.write_text(by_hand + _table(package, keys), encoding="utf-8")


def _keys(archive: Path, files: re.Pattern[str]) -> Iterator[str]:
    for name, text in _members(archive, files):
        tree = ast.parse(text)
        yield from _defined(tree)
        if "/commands/" in name:
            yield from _subscripts(tree)
        if name.endswith("constants.py"):
            yield from _constants(tree)


def _members(archive: Path, files: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist() if files.search(name))
        return
    with tarfile.open(archive) as source:
        for member in source:
            file = source.extractfile(member) if files.search(member.name) else None
            if file is not None:
                yield member.name, file.read()


def _defined(tree: ast.AST) -> Iterator[str]:
    """Annotated fields of classes, their aliases, and options of argument parsers."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            targets = [one.target for one in node.body if isinstance(one, ast.AnnAssign)]
            yield from (one.id for one in targets if isinstance(one, ast.Name) and _KEY.match(one.id))
        elif isinstance(node, ast.Call):
            yield from (one.value.value for one in node.keywords if one.arg == "alias" and _is_key(one.value))
            if isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
                texts = [one.value for one in node.args if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                yield from (text[2:].replace("-", "_") for text in texts if text.startswith("--"))


def _subscripts(tree: ast.AST) -> Iterator[str]:
    """Keys that accelerate sets in its nested dicts by name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and _is_key(node.slice):
            yield node.slice.value


def _constants(tree: ast.AST) -> Iterator[str]:
    """`NAME = "key"`, the way of DeepSpeed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _is_key(node.value):
            yield node.value.value


def _is_key(node: ast.expr) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _KEY.match(node.value) is not None


def _table(package: str, keys: dict[Version, set[str]]) -> str:
    versions = sorted(keys)
    spans: dict[tuple[Version | None, Version | None], list[str]] = defaultdict(list)
    for key in sorted(set().union(*keys.values())):
        having = [version for version in versions if key in keys[version]]
        since = None if having[0] == versions[0] else having[0]
        until = None if having[-1] == versions[-1] else having[-1]
        spans[since, until].append(key)
    lines = [
        f"{MARK}{package.replace('_', '-')}. Do not edit below.",
        "keys:",
        f"  source: 'PyPI wheels of {package.replace('_', '-')}'",
        fill(f"  versions: [{', '.join(repr(str(version)) for version in versions)}]", 140, subsequent_indent="    "),
        "  spans:",
    ]
    for since, until in sorted(spans, key=lambda span: (span[0] or Version("0"), span[1] or Version("9999"))):
        names = spans[since, until]
        span = "".join(f"{word}: '{version}', " for word, version in (("since", since), ("until", until)) if version is not None)
        lines.append(f"    - {{{span}names: {_wrapped(names)}}}")
    return "\n".join(lines) + "\n"


def _wrapped(names: list[str]) -> str:
    rows, row = [], ""
    for name in names:
        if row and len(row) + len(name) > 130:
            rows.append(row)
            row = ""
        row += f"{name} " if row else f"        {name} "
    rows.append(row)
    return '"\n' + "\n".join(one.rstrip() for one in rows) + '"' if len(names) > 1 else f'"{names[0]}"'


if __name__ == "__main__":
    main(Path(sys.argv[1]))
