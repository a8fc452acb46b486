"""Which known name somebody may have meant by one that is not known; difflib takes longer to load than a start may."""

from __future__ import annotations

from collections.abc import Callable, Iterable

_LIKE = 0.25
"""Names that are less like than this are not like."""


def likeness(first: str, second: str) -> float:
    """Return how many pairs of neighbouring letters two words share, from 0 to 1 (Dice)."""
    pairs = [{word[at : at + 2] for at in range(len(word) - 1)} for word in (first, second)]
    return 2 * len(pairs[0] & pairs[1]) / max(1, len(pairs[0]) + len(pairs[1]))


def did_you_mean(written: str, known: Iterable[str]) -> str:
    """Return `; did you mean A, B, C?` for the known names that are most like a written one; nothing where none is."""
    meant = nearest(written.lower(), known)
    return f"; did you mean {', '.join(meant)}?" if meant else ""


def nearest(written: str, known: Iterable[str], most: int = 3, spelled: Callable[[str], str] = str.lower) -> list[str]:
    """Return the known names that are most like a written one, the best first; `spelled` is how names are compared."""
    marked = [(likeness(written, spelled(name)), name) for name in dict.fromkeys(known)]
    return [name for mark, name in sorted(marked, key=lambda pair: -pair[0]) if mark >= _LIKE][:most]
