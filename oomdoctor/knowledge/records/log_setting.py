"""The shape of a row of settings in logs: one setting that programs print in the same few forms.

Only loading and lint import this module (msgspec); reading a compiled pack does not.
"""

from typing import Annotated, Literal

from msgspec import Meta, field

from oomdoctor.knowledge.records.base import Id, Plain, Record
from oomdoctor.knowledge.records.signature import Example, NearMiss, PurposeName

FormName = Literal["yaml", "option", "json", "call", "dots"]


class LogSettingRecord(Record, frozen=True, kw_only=True):
    """A row of rules/signatures that stands for a whole signature: `{setting: [eval_steps], value: int, like: 250, source: ...}`."""

    setting: Annotated[list[Annotated[str, Meta(pattern=r"^[a-z0-9]+(_[a-z0-9]+)*$")]], Meta(min_length=1)]
    """The names of the setting with underscores; dashes in their place match too. The field of the event has the first one."""
    value: str | Annotated[list[Annotated[str, Meta(pattern=r"^\w+$")]], Meta(min_length=2)]
    """`int`, `flag` (true, false, auto), `bool`, `path`, a list of choices, or a pattern."""
    like: Plain | None = None
    """A value for the examples; the first choice where it is not given."""
    forms: Annotated[list[FormName], Meta(min_length=1)] = field(default_factory=lambda: ["yaml", "option", "json", "call"])
    """How programs print it: `a: 1` at the start of a line, `--a 1`, `"a": 1`, `f(a=1)`."""
    dots: bool = False
    """Whether it stands in dumps like DeepSpeed's too: `a ..... 1`; short for `dots` among the forms."""
    literals: Annotated[list[str], Meta(min_length=1)] | None = None
    """What must stand in a line; without it the names, with underscores and with dashes."""
    point: bool = True
    """Whether a point may follow the value, as at the end of a sentence; false where the value could be the beginning of 0.5."""
    id: Id | None = None
    """`setting-` and the first name where it is not given."""
    purpose: PurposeName | None = None
    source: str
    note: str | None = None
    examples: list[Example] = field(default_factory=list)
    """Besides those that the forms give."""
    near_misses: list[NearMiss] = field(default_factory=list)
    """Besides advice without a value."""
