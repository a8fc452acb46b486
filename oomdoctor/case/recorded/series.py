"""Memory over time: what monitors recorded about GPUs and processes, and its shape."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Of = Literal["card", "process", "host"]
Clock = Literal["utc", "local", "none"]
ShapeName = Literal["steady", "staircase", "leak", "climb", "saw-tooth", "unclear"]


class SeriesColumn(Struct, frozen=True, kw_only=True):
    """The memory used by one GPU, process or machine, sample by sample; None if the monitor could not tell."""

    source: str
    of: Of = "card"
    card: str | None = None
    """As the monitor names it: an index, or otherwise a UUID or address."""
    process: int | None = None
    name: str | None = None
    """The program of a process, or the name of the figure."""
    used: tuple[int | None, ...] = ()
    """Bytes; thousandths of a percent if `is_share`."""
    times: tuple[float, ...] = ()
    """Seconds, one for each sample; empty if none were recorded."""
    clock: Clock = "none"
    """`utc`: seconds since 1970. `local`: the same for a clock without a time zone. `none`: from an arbitrary moment."""
    steps: tuple[int, ...] = ()
    """Training steps, if recorded."""
    total: int | None = None
    is_share: bool = False

    @property
    def key(self) -> tuple[str, str | None, int | None, str | None]:
        """What distinguishes it from the others in its file."""
        return self.of, self.card, self.process, self.name


class Slope(Struct, frozen=True, kw_only=True):
    """How fast something grows, with its range."""

    low: float
    middle: float
    high: float


class SeriesShape(Struct, frozen=True, kw_only=True):
    """The shape of a column between the start of the work and its end."""

    name: ShapeName
    samples: int
    start: int
    """Where in the column the work begins: what was loaded is before it."""
    end: int
    """Index after the last sample of the work: what follows was recorded after the memory was released."""
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
    """From the last sample on, at this rate."""
    last_climb: int | None = None
    """How much higher the last samples are than any before."""
    interval: float | None = None
    """Seconds between two samples."""
    given_back: bool = False
    """The memory fell after the end: the program had ended."""

    @property
    def usual_highest(self) -> int:
        """The highest level, ignoring the last samples if they jumped."""
        return self.highest - (self.last_climb or 0)


class SeenSeries(Struct, frozen=True, kw_only=True):
    """A column with its shape; None if there is too little data."""

    column: SeriesColumn
    shape: SeriesShape | None
    failed_at: float | None = None
    """The time of the log's failure on its clock."""
