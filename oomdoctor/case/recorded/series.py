"""Memory over time: what monitors wrote down of cards and processes, and which shape it has."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Of = Literal["card", "process", "host"]
Clock = Literal["utc", "local", "none"]
ShapeName = Literal["steady", "staircase", "leak", "climb", "saw-tooth", "unclear"]


class SeriesColumn(Struct, frozen=True, kw_only=True):
    """What one card, process or machine had in use, sample by sample; None where the monitor could not tell."""

    source: str
    of: Of = "card"
    card: str | None = None
    """As the monitor names it: an index, else a UUID or address."""
    process: int | None = None
    name: str | None = None
    """The program of a process, or the name of the figure."""
    used: tuple[int | None, ...] = ()
    """Bytes; thousandths of a percent where `is_share`."""
    times: tuple[float, ...] = ()
    """Seconds, one for each sample; empty where none are written."""
    clock: Clock = "none"
    """`utc`: seconds since 1970. `local`: the same for a clock without a zone. `none`: from any moment on."""
    steps: tuple[int, ...] = ()
    """Training steps, where they are written."""
    total: int | None = None
    is_share: bool = False

    @property
    def key(self) -> tuple[str, str | None, int | None, str | None]:
        """What tells it from the others of its file."""
        return self.of, self.card, self.process, self.name


class Slope(Struct, frozen=True, kw_only=True):
    """How fast something grows, and between which figures that lies."""

    low: float
    middle: float
    high: float


class SeriesShape(Struct, frozen=True, kw_only=True):
    """What a column looks like between the start of the work and its end."""

    name: ShapeName
    samples: int
    start: int
    """Where in the column the work begins: what was loaded stands before it."""
    end: int
    """Behind the last sample of the work: what comes after it was given back."""
    first: int
    """Level at the start of the work."""
    last: int
    """Level at its end."""
    highest: int
    lowest: int
    rises: int = 0
    """How often it rose to a new level."""
    per_hour: Slope | None = None
    per_step: Slope | None = None
    hours_to_full: float | None = None
    """From the last sample on, at this pace."""
    last_climb: int | None = None
    """How much higher the last samples are than any before."""
    interval: float | None = None
    """Seconds between two samples."""
    given_back: bool = False
    """The memory fell after the end: the program had ended."""

    @property
    def usual_highest(self) -> int:
        """The highest level, but for the last samples where they leapt."""
        return self.highest - (self.last_climb or 0)


class SeenSeries(Struct, frozen=True, kw_only=True):
    """A column with its shape; None where there is too little to tell."""

    column: SeriesColumn
    shape: SeriesShape | None
    failed_at: float | None = None
    """Where the log's failure stands on its clock."""
