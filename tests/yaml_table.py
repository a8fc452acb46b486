"""Tables of tests that are written as YAML, read by the C loader where there is one: the other takes seconds for the large ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_table(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = yaml.load(path.read_text(encoding="utf-8"), _LOADER)
    return rows
