"""Pieces of text that are the same in every language: settings as they are typed, and what `backquotes` mark."""

from __future__ import annotations

from oomdoctor.report.document import Span, Style

_NAMES = frozenset(
    {
        "Adafactor",
        "Apple",
        "Ascend",
        "Docker",
        "Keras",
        "Kubernetes",
        "Linux",
        "Megatron",
        "Ollama",
        "Python",
        "Ray",
        "Slurm",
        "Triton",
        "Windows",
    }
)
"""Names that have no other sign of one than their first letter."""


def bare(text: str) -> str:
    """Return a text without its full stop, to go on after it."""
    return text.rstrip(" .。")


def lower_first(text: str) -> str:
    """Return a sentence as part of another one: "All activations" goes on in small letters, "JAX holds" and "Windows could" do not."""
    word = text.partition(" ")[0].partition("'")[0].rstrip(",")
    is_name = word in _NAMES or word[1:] != word[1:].lower()
    return text if is_name else text[:1].lower() + text[1:]


def setting_line(key: str, value: str) -> str:
    """Return a setting as a person types it: an option, a variable, an argument in code, or a line of a config.

    A key that ends with `=` (`qsub -l mem=`), and Java's `-Xmx`, have their value right behind them. Where only a direction is known
    there is no value, and the key stands alone.
    """
    if key.endswith(("=", "-Xmx")):
        return key + value
    if key.rpartition(" ")[2].startswith("-"):
        return f"{key} {value}".rstrip()
    if key.endswith(")"):
        return f"{key[:-1]}={value})" if value else key
    if not value:
        return key
    return f"{key}={value}" if key[:3].isupper() and "_" in key else f"{key}: {value}"


def spans(text: str) -> tuple[Span, ...]:
    """Return a text in which `backquotes` mark what is to be typed."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return (Span(text),)
    return tuple(Span(piece, Style.CODE if at % 2 else Style.PLAIN) for at, piece in enumerate(pieces) if piece)
