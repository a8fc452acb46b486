"""Pieces of text that are the same in every language: settings as they are typed, and what `backquotes` mark."""

from __future__ import annotations

from oomdoctor.report.document import Span, Style

_SMALL = frozenset((
    "a", "an", "the", "this", "that", "these", "every", "each", "all", "more", "most", "several", "one", "two", "no", "another", "other",
    "some", "many", "enough", "both", "too", "after", "before", "while", "when", "what", "where", "how", "seen", "memory", "saving",
    "weights", "smaller", "shorter", "larger", "fewer", "higher", "lower", "loss",
))  # fmt: skip
"""Words that are no name, so that they begin with a small letter inside a sentence."""


def bare(text: str) -> str:
    """Return a text without its full stop, to go on after it."""
    return text.rstrip(" .。")


def lower_first(text: str) -> str:
    """Return a sentence as part of another one: "All activations" goes on in small letters, "Windows could not" does not."""
    return text[:1].lower() + text[1:] if text.partition(" ")[0].lower() in _SMALL else text


def setting_line(key: str, value: str) -> str:
    """Return a setting as a person types it: an option, a variable, an argument in code, or a line of a config.

    A key that ends with `=` (`qsub -l mem=`), and Java's `-Xmx`, have their value right behind them.
    """
    if key.endswith(("=", "-Xmx")):
        return key + value
    if key.rpartition(" ")[2].startswith("-"):
        return f"{key} {value}".rstrip()
    if key.endswith(")"):
        return f"{key[:-1]}={value})" if value else key
    return f"{key}={value}" if key[:3].isupper() and "_" in key else f"{key}: {value}"


def spans(text: str) -> tuple[Span, ...]:
    """Return a text in which `backquotes` mark what is to be typed."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return (Span(text),)
    return tuple(Span(piece, Style.CODE if at % 2 else Style.PLAIN) for at, piece in enumerate(pieces) if piece)
