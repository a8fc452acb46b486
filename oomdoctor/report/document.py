"""A report before it has a format: a title and blocks.

Renderers know these blocks and nothing of findings; `compose` chooses the words, a renderer only the looks. No block can
hold a control character or an endless text, whoever builds it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import cast

from oomdoctor.report.safe import clean, clean_line

_LINE = 1000
_TEXT = 4000


class Style(Enum):
    """What a piece of text is, never how it looks."""

    PLAIN = "plain"
    STRONG = "strong"
    DIM = "dim"
    GOOD = "good"
    WARN = "warn"
    BAD = "bad"
    CODE = "code"
    LINK = "link"


class _Block:
    """Cleans the texts of a block when it is built; fields named in `_LONG` keep their lines."""

    __slots__ = ()
    _LONG: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # every child is a dataclass
            value = getattr(self, field.name)
            if type(value) is str:
                safe = clean(value, _TEXT) if field.name in self._LONG else clean_line(value, _LINE)
                object.__setattr__(self, field.name, safe)


@dataclass(frozen=True, slots=True)
class Span:
    """A run of text in one style. Blanks at its ends count: spans are joined as they are."""

    text: str
    style: Style = Style.PLAIN

    def __post_init__(self) -> None:
        core = clean_line(self.text, _LINE)
        lead = " " if self.text[:1] == " " else ""
        tail = " " if core and self.text[-1:] == " " else ""
        object.__setattr__(self, "text", f"{lead}{core}{tail}")


@dataclass(frozen=True, slots=True)
class Heading(_Block):
    """The name of the part that follows."""

    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Running text."""

    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Row(_Block):
    """One labelled value."""

    label: str
    value: str
    note: str = ""
    style: Style = Style.PLAIN


@dataclass(frozen=True, slots=True)
class Facts:
    """Labelled values, in order."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Slice(_Block):
    """One part of a bar; `share` is of the whole, between 0 and 1."""

    label: str
    value: str
    share: float
    style: Style = Style.PLAIN
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bar(_Block):
    """Parts that add up to a whole, drawn as one bar."""

    title: str
    slices: tuple[Slice, ...]


@dataclass(frozen=True, slots=True)
class Quote(_Block):
    """Lines of a log, word by word, and where they stand."""

    _LONG = frozenset({"text"})

    where: str
    text: str


@dataclass(frozen=True, slots=True)
class Step(_Block):
    """One thing to do: what, how, the values to set, a command to run, an aside."""

    _LONG = frozenset({"command"})

    title: str
    text: tuple[Span, ...] = ()
    settings: tuple[Row, ...] = ()
    command: str = ""
    note: tuple[Span, ...] = ()


@dataclass(frozen=True, slots=True)
class Steps:
    """Things to do, numbered from `first`."""

    steps: tuple[Step, ...]
    first: int = 1


@dataclass(frozen=True, slots=True)
class Folded(_Block):
    """Blocks for whoever wants to know more; `gist` is what the others see of them."""

    title: str
    blocks: tuple[Block, ...]
    gist: str = ""


Block = Heading | Paragraph | Facts | Bar | Quote | Steps | Folded


@dataclass(frozen=True, slots=True)
class Document(_Block):
    """A whole report."""

    title: str
    blocks: tuple[Block, ...]
    lang: str = "en"


def map_text(document: Document, change: Callable[[str], str]) -> Document:
    """The document with every text changed."""
    return cast(Document, _map(document, change))


def _map(value: object, change: Callable[[str], str]) -> object:
    if type(value) is str:
        return change(value)
    if isinstance(value, tuple):
        return tuple(_map(item, change) for item in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: _map(getattr(value, field.name), change) for field in fields(value)})
    return value
