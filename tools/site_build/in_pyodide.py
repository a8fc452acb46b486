"""Runs in Pyodide during the build: which modules of the standard library were needed, and bytecode for that very Python."""

from __future__ import annotations

import ast
import sys
from importlib._bootstrap_external import _code_to_hash_pyc  # type: ignore[attr-defined]
from pathlib import Path


def loaded_from(archive: str) -> list[str]:
    """Return the names of the modules that were loaded from an archive."""
    files = {name: getattr(module, "__file__", None) for name, module in sys.modules.items()}
    return sorted(name for name, path in files.items() if path is not None and path.startswith(archive))


def compile_tree(source: str, target: str) -> None:
    """Compile all Python of a folder into another one, without asserts, docstrings and the annotations of functions; other files are copied
    by the build."""
    for path in sorted(Path(source).rglob("*.py")):
        place = path.relative_to(source)
        code = compile(_bare(path.read_bytes()), place.as_posix(), "exec", dont_inherit=True, optimize=2)
        out = Path(target) / place.with_suffix(".pyc")
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(_code_to_hash_pyc(code, b"\0" * 8, False))


def _bare(source: bytes) -> ast.Module:
    """Return code without the annotations of functions, which nothing reads when it runs; those of classes are the fields of structs. A
    traceback names the line where a statement begins, which takes fewer bytes than each line of it."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
    _on_one_line(tree, 1)
    return tree


def _on_one_line(node: ast.AST, line: int) -> None:
    for child in ast.iter_child_nodes(node):
        begin = child.lineno if isinstance(child, (ast.stmt, ast.excepthandler)) else line
        if hasattr(child, "lineno"):
            child.lineno = child.end_lineno = begin
            child.col_offset = child.end_col_offset = 0
        _on_one_line(child, begin)
