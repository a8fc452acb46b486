"""A log that has a text wherever a report could quote it, and what of a secret a report shows."""

from __future__ import annotations

import html
import re

FIGURES = "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.50 GiB of which 1.25 GiB is free."
_WINDOW = 10
"""So many signs of a secret are as bad as all of it."""


def log(text: str) -> str:
    """A run that dies, with the text in its command, its frames, its messages and its last line."""
    line = text.replace("\n", " ")
    frame = f'  File "/opt/app/{line[:60].replace(chr(34), "")}/train.py", line 12, in step\n    loss = model({line})'
    return "\n".join([
        f"[INFO] {text}",
        f"Running: python train.py --output_dir out --note {line}",
        f"loading weights from {line}",
        "Traceback (most recent call last):",
        frame,
        f"torch.OutOfMemoryError: {FIGURES} {line}",
        f"RuntimeError: CUDA error: out of memory while {line}",
        f"ValueError: {line}",
    ])  # fmt: skip


def squeezed(text: str) -> str:
    """A report without what formats put between the signs of a text: line breaks, escapes, entities."""
    return re.sub(r"[\s\\│|]", "", html.unescape(text))


def shown(secret: str, report: str) -> list[str]:
    """The pieces of a secret that stand in a report."""
    plain, whole = squeezed(report), squeezed(secret)
    pieces = [whole] if len(whole) <= _WINDOW else [whole[at : at + _WINDOW] for at in range(len(whole) - _WINDOW + 1)]
    return [piece for piece in pieces if piece in plain]
