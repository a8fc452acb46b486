"""Which modules a module needs, read from its code: imports inside functions count, those for type checking do not."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path


def modules_in(folder: Path, name: str) -> dict[str, Path]:
    """Return the modules of a package that lies in a folder, by their full names."""
    files = sorted((folder / name).rglob("*.py"))
    return {_module(path.relative_to(folder)): path for path in files if "__pycache__" not in path.parts}


def reached(start: str, modules: Mapping[str, Path]) -> dict[str, Path]:
    """Return the modules that `start` reaches, itself and the packages around them too."""
    out: dict[str, Path] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in out or name not in modules:
            continue
        out[name] = modules[name]
        waiting += [name.rpartition(".")[0], *_imported(name, modules[name])]
        if _loads_by_name(modules[name]):
            package = name.rpartition(".")[0]
            waiting += [other for other in modules if other.startswith(f"{package}.")]
    return out


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(name: str, path: Path) -> Iterator[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in _running(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            around = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*around, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of code that runs."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield from _running(other)
            continue
        yield child
        yield from _running(child)


def _loads_by_name(path: Path) -> bool:
    """Return whether a module loads its neighbours by names that it makes."""
    calls = (node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, ast.Call))
    return any(ast.unparse(call.func) == "import_module" and isinstance(call.args[0], ast.JoinedStr) for call in calls) and (
        path.name != "__init__.py"
    )
