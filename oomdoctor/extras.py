"""Packages that only some uses need (extras of this package), loaded where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from oomdoctor.errors import UsageError


def load_extra(module: str, extra: str, what: str) -> Any:
    """Return a module of an extra of this package. Raise UsageError that says for `what` it is needed, and how to get it."""
    try:
        return import_module(module)
    except ImportError as why:
        raise UsageError(f'{what} needs {module.split(".")[0]}: pip install "oomdoctor[{extra}]"') from why
