"""Two runs or machines compared: what changed, which changes matter for memory, and what memory shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Union

from msgspec import Struct

from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.settings import RunConfig
from oomdoctor.case.text import Text

if TYPE_CHECKING:
    from oomdoctor.case.environment import Environment
    from oomdoctor.case.estimate import Estimate

Effect = Literal["tighter", "looser", "differs"]
"""`tighter`: more memory is needed, or less is available; `looser`: the reverse; `differs`: either."""
Fact = Union[str, int, float, bool]


class Side(Struct, frozen=True, kw_only=True):
    """One of the two: what was read, and the result."""

    name: str
    """As the user named it."""
    diagnosis: Diagnosis | None = None
    environment: Environment | None = None
    training: RunConfig | None = None


class RunChange(Struct, frozen=True, kw_only=True):
    """Something that differs, with a known effect on memory."""

    id: str
    about: Text
    """What changed, in a few words."""
    effect: Effect
    why: Text
    before: str | None = None
    after: str | None = None
    """The two values as shown; both None if the change is that something is wrong now."""
    source: str = ""


class Difference(Struct, frozen=True):
    """Something that differs, with no known effect on memory."""

    name: str
    before: str
    after: str


class OneSided(Struct, frozen=True):
    """Something that only one of the two states, so that it is unknown whether it changed."""

    about: Text
    before: str | None = None
    after: str | None = None
    wrong_now: bool = False
    """Whether it is a finding about the later machine; the earlier one does not say whether it had it too."""


class Point(Struct, frozen=True, kw_only=True):
    """The same moment in both runs: how far they had progressed, and the bytes that each showed."""

    at: str
    """`40` for a step, or `#3` for the third line of its kind."""
    before: int
    after: int


class Series(Struct, frozen=True, kw_only=True):
    """One memory figure that both runs printed repeatedly."""

    figure: str
    """`peak_allocated_bytes`"""
    points: tuple[Point, ...]

    @property
    def effect(self) -> Effect | None:
        """Whether the second run shows more at the last moment that both have; None if they are the same within 3 %."""
        last = self.points[-1]
        if abs(last.after - last.before) <= _SAME * max(last.before, last.after):
            return None
        return "tighter" if last.after > last.before else "looser"


_SAME = 0.03
"""Tools round, and caches differ by a block: below this share two figures are equal."""


class Comparison(Struct, frozen=True, kw_only=True):
    """What `oomdoctor compare` knows at the end."""

    before: Side
    after: Side
    changes: tuple[RunChange, ...]
    """The most suspicious first."""
    series: tuple[Series, ...] = ()
    estimates: tuple[Estimate, Estimate] | None = None
    """The memory model's estimates for both; None if one of them is not described well enough."""
    differences: tuple[Difference, ...] = ()
    one_sided: tuple[OneSided, ...] = ()
    compared: int = 0
    """How many facts both of them state."""

    @property
    def matters(self) -> bool:
        """Whether anything changed that is known to affect memory, or memory itself changed."""
        return bool(self.changes) or any(series.effect is not None for series in self.series)
