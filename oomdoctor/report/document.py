"""A report before it has a format: a title and blocks.

Renderers know these blocks and nothing of findings; `compose` chooses the words, a renderer only the looks. No block can
hold a control character or an endless text, whoever builds it.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import ClassVar, cast

from msgspec import Struct
from msgspec.structs import force_setattr, replace

from oomdoctor.report.safety.sanitize import clean, clean_line

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


class _Block(Struct, frozen=True):
    """Cleans the texts of a block when it is built; fields named in `_LONG` keep their lines."""

    _LONG: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if type(value) is str:
                force_setattr(self, name, clean(value, _TEXT) if name in self._LONG else clean_line(value, _LINE))
            elif type(value) is tuple and value and type(value[0]) is str:
                force_setattr(self, name, tuple(clean_line(item, _LINE) for item in value))


class Span(Struct, frozen=True):
    """A run of text in one style. Blanks at its ends count: spans are joined as they are."""

    text: str
    style: Style = Style.PLAIN

    def __post_init__(self) -> None:
        core = clean_line(self.text, _LINE)
        lead = " " if self.text[:1] == " " else ""
        tail = " " if core and self.text[-1:] == " " else ""
        force_setattr(self, "text", f"{lead}{core}{tail}")


class Heading(_Block, frozen=True):
    """The name of the part that follows."""

    text: str


class Paragraph(Struct, frozen=True):
    """Running text."""

    spans: tuple[Span, ...]


class Row(_Block, frozen=True):
    """One labelled value."""

    label: str
    value: str
    note: str = ""
    style: Style = Style.PLAIN


class Facts(Struct, frozen=True):
    """Labelled values, in order."""

    rows: tuple[Row, ...]


class Cell(_Block, frozen=True):
    """One value of a table."""

    text: str
    style: Style = Style.PLAIN


class Table(_Block, frozen=True):
    """Values by two things: a name for each column, the first for what names the rows, and rows of as many cells."""

    title: str
    columns: tuple[Cell, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Slice(_Block, frozen=True):
    """One part of a bar; `share` is of the whole, between 0 and 1."""

    label: str
    value: str
    share: float
    style: Style = Style.PLAIN
    note: str = ""


class Mark(_Block, frozen=True):
    """A place in a bar that has a name; `share` is of the whole, between 0 and 1."""

    share: float
    label: str


class Bar(_Block, frozen=True):
    """Parts that add up to a whole, drawn as one bar."""

    title: str
    slices: tuple[Slice, ...]
    mark: Mark | None = None
    value: str = ""
    note: str = ""
    spread: tuple[float, float] | None = None
    """What the parts come to at least and at most, as shares of the whole; None where they were seen."""
    beside: tuple[Bar, ...] = ()
    """Bars of the same whole that a page draws below this one; elsewhere sentences tell of them."""


class Bars(_Block, frozen=True):
    """Bars of the same whole, a row each: `title`, `value`, `note`. The mark is that of all of them.

    Parts stand in the order of the first bar that has them, those of `parts` before the others.
    """

    title: str
    bars: tuple[Bar, ...]
    mark: Mark | None = None
    parts: tuple[str, ...] = ()
    is_told: bool = False
    """Whether what stands beside it tells the same; then only a page draws it."""


class Area(_Block, frozen=True):
    """One part of a total over time: its size at each point."""

    label: str
    sizes: tuple[int, ...]
    style: Style = Style.PLAIN
    about: str = ""
    """What a page tells of it on request."""
    stack: tuple[str, ...] = ()
    """The lines that asked for it, innermost first; told with it."""


class Areas(_Block, frozen=True):
    """Sizes in bytes over time, drawn on each other; the line is what encloses them. `marks` are moments that have a name."""

    title: str
    areas: tuple[Area, ...]
    line: Area
    marks: tuple[Mark, ...] = ()


class Curve(_Block, frozen=True):
    """Bytes at places along an axis, from its start to its end; None is a hole."""

    label: str
    points: tuple[tuple[float, int | None], ...]


class Limit(_Block, frozen=True):
    """Bytes that are the most there can be."""

    label: str
    bytes: int


class Moment(_Block, frozen=True):
    """A place on an axis that has a name."""

    at: float
    label: str


class Stretch(_Block, frozen=True):
    """A part of an axis that has a name."""

    start: float
    end: float
    label: str


class Curves(_Block, frozen=True):
    """Bytes over steps, time or whatever `axis` names, each curve on its own; Markdown has no room for them."""

    title: str
    axis: str
    curves: tuple[Curve, ...]
    limit: Limit | None = None
    failure: Moment | None = None
    phases: tuple[Stretch, ...] = ()
    is_log: bool = False
    """Whether both axes are logarithmic: for places of which each is the double of the one before."""
    is_told: bool = False
    """Whether what stands beside it tells the same; then only a page draws it."""


class Piece(Struct, frozen=True):
    """Bytes of a strip, and the number of the key that says whose they are; None is free."""

    size: int
    key: int | None


class Strip(_Block, frozen=True):
    """A stretch of bytes, from its start to its end."""

    label: str
    pieces: tuple[Piece, ...]


class Strips(_Block, frozen=True):
    """Stretches of bytes below each other. They are only drawn where pieces can be seen; elsewhere nothing stands for them."""

    title: str
    keys: tuple[str, ...]
    free: str
    strips: tuple[Strip, ...]


class Counts(_Block, frozen=True):
    """A name, and how many of each thing."""

    label: str
    counts: tuple[int, ...]


class CountBars(_Block, frozen=True):
    """How many of each of some things over time: a bar for each time, with a count for each key. They are only drawn."""

    title: str
    keys: tuple[str, ...]
    bars: tuple[Counts, ...]


class CountGrid(_Block, frozen=True):
    """How many at each of some times, a row for each thing. They are only drawn."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Counts, ...]


class Quote(_Block, frozen=True):
    """Lines of a log, word by word, and where they stand; where alone if what stands around tells what they say."""

    _LONG = frozenset({"text"})

    where: str
    text: str


class Step(_Block, frozen=True):
    """One thing to do: what, how, the values to set, a command to run, an aside."""

    _LONG = frozenset({"command"})

    title: str
    text: tuple[Span, ...] = ()
    settings: tuple[Row, ...] = ()
    command: str = ""
    note: tuple[Span, ...] = ()


class Steps(Struct, frozen=True):
    """Things to do, numbered from `first`."""

    steps: tuple[Step, ...]
    first: int = 1


class BriefStep(_Block, frozen=True):
    """One thing to do, in a line: where, what to type or to do, and what that is for."""

    do: tuple[Span, ...]
    place: str = ""
    aside: str = ""
    """What the line is not understood without, in brackets."""
    whole_aside: str = ""
    """The same with what a reader who has no room for it does without."""


class BriefSteps(Struct, frozen=True):
    """What to do, numbered: each thing in a line."""

    steps: tuple[BriefStep, ...]
    written_by: tuple[Span, ...] = ()
    """What writes the first of them."""


class Folded(_Block, frozen=True):
    """Blocks for whoever wants to know more; `gist` is what the others see of them."""

    title: str
    blocks: tuple[Block, ...]
    gist: str = ""
    kind: int | None = None
    """The number of the choice of a `Filter` with which it is shown."""


class Filter(_Block, frozen=True):
    """Kinds of the folded parts below; on a page one can be chosen, and all else goes."""

    title: str
    kinds: tuple[str, ...]


Block = (
    Heading
    | Paragraph
    | Facts
    | Table
    | Bar
    | Bars
    | Areas
    | Curves
    | Strips
    | CountBars
    | CountGrid
    | Quote
    | Steps
    | BriefSteps
    | Folded
    | Filter
)


class Document(_Block, frozen=True):
    """A whole report."""

    title: str
    blocks: tuple[Block, ...]
    lang: str = "en"
    head: tuple[str, ...] = ()
    """What a page is of, above all else: the log, the model, the cards, versions and time of the run."""


def map_text(document: Document, change: Callable[[str], str]) -> Document:
    """Change every text of a document."""
    return cast(Document, _map(document, change))


def _map(value: object, change: Callable[[str], str]) -> object:
    if type(value) is str:
        return change(value)
    if isinstance(value, tuple):
        return tuple(_map(item, change) for item in value)
    if isinstance(value, Struct):
        return replace(value, **{name: _map(getattr(value, name), change) for name in value.__struct_fields__})
    return value
