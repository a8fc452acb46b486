"""The clipboard of the terminal that the user sits at, by the terminal's own escape (OSC 52): it also works over SSH.

Source: XTerm Control Sequences, "Operating System Commands", Ps = 52. Many terminals take no more than 100,000 bytes of base64.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

_MOST = 74_994
"""Bytes whose base64 still fits into 100,000 (hterm and tmux cut there)."""
_TERMINAL = "/dev/tty"


def sequence(text: str, environ: Mapping[str, str]) -> str | None:
    """Return what to send to the terminal; None where the text is longer than terminals take."""
    data = text.encode("utf-8", "replace")
    if len(data) > _MOST:
        return None
    escape = f"\x1b]52;c;{base64.b64encode(data).decode('ascii')}\x07"
    # tmux hands on only what is wrapped for it, with each escape doubled (tmux(1), allow-passthrough).
    return "\x1bPtmux;" + escape.replace("\x1b", "\x1b\x1b") + "\x1b\\" if environ.get("TMUX") else escape


def copy(text: str, environ: Mapping[str, str], terminal: str = _TERMINAL) -> str | None:
    """Send a text to the clipboard. Return what hindered it, None where it was sent; whether the terminal took it is not known."""
    escape = sequence(text, environ)
    if escape is None:
        return f"the text exceeds the terminal copy limit ({_MOST} bytes); use --output"
    try:
        with open(terminal, "w", encoding="ascii") as file:
            file.write(escape)
    except OSError:
        return "there is no terminal to copy through; use --output"
    return None
