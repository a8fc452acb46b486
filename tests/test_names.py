"""One word for one thing: a class name stands once, and the words that the glossary replaced name nothing any more."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "oomdoctor"
FILES = sorted(PACKAGE.rglob("*.py"))
REPLACED = {
    "circle": "expected_vs_observed", "room": "memory_budget", "apart": "isolated_process", "ask": "the probe's client",
    "answered": "the probe's result", "asked": "from_settings, or a request", "said": "merge_facts", "found": "collected",
    "neighbour": "nearest_model", "moments": "failure_step", "words": "template", "product": "tensor_match", "purpose": "workload",
    "refused": "incompatible", "written": "framework_keys", "homes": "edit_targets", "instead": "replacement", "settle": "apply",
    "wanted": "missing_info", "safe": "sanitize", "sheet": "parsed_config", "copies": "gathered_weights", "judge": "findings",
    "hurdle": "startup_check", "complaint": "config_issue", "timeline": "incidents",
}  # fmt: skip
"""Words that the glossary replaced, and what stands in their place: none names a file, a class or a public function."""
VAGUE = {
    "one",
    "found",
    "said",
    "asked",
    "apart",
    "neighbour",
    "moments",
    "wanted",
    "homes",
    "circle",
    "room",
    "hurdle",
    "complaint",
    "judge",
}
"""Words that name no variable and no parameter either: the noun does."""

JSON_NAMES = {("case/environment.py", "found"), ("report/wire/estimate_v1.py", "asked")}
"""Fields whose name stands in published JSON, which keeps its names."""


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def test_no_class_name_stands_twice() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in FILES:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(PACKAGE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def definitions(path: Path) -> set[str]:
    """Return the names of a file, its classes and its public functions."""
    return {path.stem} | {node.name for node in ast.walk(tree(path)) if isinstance(node, (ast.ClassDef, ast.FunctionDef))}


def variables(path: Path) -> set[str]:
    """Return the names of parameters, variables and fields in a file."""
    parameters = {node.arg for node in ast.walk(tree(path)) if isinstance(node, ast.arg)}
    return parameters | {node.id for node in ast.walk(tree(path)) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def test_no_replaced_word_names_anything() -> None:
    assert [f"{path}: {name}, now {REPLACED[name]}" for path in FILES for name in definitions(path) if name in REPLACED] == []


def test_no_vague_word_names_a_variable() -> None:
    vague = {(path.relative_to(PACKAGE).as_posix(), name) for path in FILES for name in variables(path) if name.strip("_") in VAGUE}
    assert vague - JSON_NAMES == set()
