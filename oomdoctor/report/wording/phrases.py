"""How sentences end and join in each language, and what `backquotes` mark in a text of ours."""

from __future__ import annotations

from oomdoctor.report.document import Span, Style


def stop(lang: str) -> str:
    """The full stop."""
    return "。" if lang == "zh" else "."


def blank(lang: str) -> str:
    """What stands between two sentences."""
    return "" if lang == "zh" else " "


def comma(lang: str) -> str:
    """What stands between two items of a sentence."""
    return "，" if lang == "zh" else ", "


def bare(text: str) -> str:
    """A text without its full stop, to go on after it."""
    return text.rstrip(" .。")


def stopped(text: str, lang: str) -> str:
    """A text with one full stop."""
    return bare(text) + stop(lang)


def first_sentences(text: str, lang: str, most: int) -> str:
    """The first sentences of a text."""
    end = stop(lang) + blank(lang)
    return end.join(text.split(end)[:most]).rstrip(" .。") + stop(lang) if text.count(end) >= most else text


def written(key: str, value: str) -> str:
    """A setting as a person types it: an option, a variable, an argument in code, or a line of a config."""
    if key.rpartition(" ")[2].startswith("-"):
        return f"{key} {value}".rstrip()
    if key.endswith(")"):
        return f"{key[:-1]}={value})"
    return f"{key}={value}" if key[:3].isupper() and "_" in key else f"{key}: {value}"


def spans(text: str) -> tuple[Span, ...]:
    """A text in which `backquotes` mark what is to be typed."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return (Span(text),)
    return tuple(Span(piece, Style.CODE if at % 2 else Style.PLAIN) for at, piece in enumerate(pieces) if piece)
