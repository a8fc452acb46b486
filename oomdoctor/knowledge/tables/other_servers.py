"""Servers whose memory is not counted here, and the nearest one that is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.opening import open_file

_MOST_BYTES = 1 << 16


def other_server(paths: Iterable[str]) -> str | None:
    """Return what to say of scripts that start a server which is not counted here; None where they start none that is known."""
    for path in filter(os.path.isfile, paths):
        with open_file(path) as file:
            text = " ".join(file.read(_MOST_BYTES).decode("utf-8", "replace").split())
        row = next((row for row in table("other_servers") if re.search(rf"(?<![\w./-]){re.escape(row['command'])}(?![\w-])", text)), None)
        if row is not None:
            near = row["nearest"]
            return (
                f"{row['title']} ({row['command']}) is not modeled here; the closest that is: {near}. Use --serve --framework {near} "
                "--model NAME"
            )
    return None
