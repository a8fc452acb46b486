"""A line of styled text, measured in the cells of a terminal: Chinese characters take two."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from click import style
from rich.cells import cell_len


class StyledLine:
    """Pieces of text, each with the name of its look (`bold red`; empty: none)."""

    __slots__ = ("_pieces",)

    def __init__(self, text: str = "", look: str = "") -> None:
        self._pieces: list[tuple[str, str]] = [(text, look)] if text else []

    @property
    def pieces(self) -> Sequence[tuple[str, str]]:
        """The texts, each with the name of its look."""
        return self._pieces

    @property
    def plain(self) -> str:
        """The text alone."""
        return "".join(text for text, _ in self._pieces)

    @property
    def width(self) -> int:
        """How many cells it takes."""
        return sum(cell_len(text) for text, _ in self._pieces)

    def append(self, text: str, look: str = "") -> StyledLine:
        """Itself, with a piece more."""
        if text:
            self._pieces.append((text, look))
        return self

    def extend(self, other: StyledLine) -> StyledLine:
        """Itself, with the pieces of another line."""
        self._pieces += other._pieces
        return self

    def mapped(self, change: Callable[[str], str]) -> StyledLine:
        """Return a line with every piece changed."""
        out = StyledLine()
        for text, look in self._pieces:
            out.append(change(text), look)
        return out

    def cut(self, characters: int) -> StyledLine:
        """Its first characters, without blanks at their end."""
        remaining = len(self.plain[:characters].rstrip())
        out = StyledLine()
        for text, look in self._pieces:
            out.append(text[:remaining], look)
            remaining -= min(remaining, len(text))
        return out

    def render(self, *, color: bool) -> str:
        """Return the text, with escapes for its looks where colour is wanted, and no blanks at its end."""
        line = self.cut(len(self.plain))
        return "".join(_painted(text, look) for text, look in line._pieces) if color else line.plain


def _painted(text: str, look: str) -> str:
    styles: Sequence[str] = look.split()
    if not styles:
        return text
    colours = [word for word in styles if word not in ("bold", "dim", "underline")]
    return style(
        text,
        fg=colours[0] if colours else None,
        bold="bold" in styles or None,
        dim="dim" in styles or None,
        underline="underline" in styles or None,
    )
