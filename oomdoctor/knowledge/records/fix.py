"""The shape of rules/fixes: what to do, and in which keys of which framework."""

from typing import Annotated, Literal

from msgspec import Meta

from oomdoctor.knowledge.records.base import Id, Record, TextRecord
from oomdoctor.knowledge.records.condition import Condition

HarmName = Literal["none", "slower", "effort", "quality", "hardware"]
TermName = Literal[
    "weights", "gradients", "optimizer states", "activations", "logits", "kv cache", "allocator slack", "evaluation", "loading",
    "host memory", "other processes",
]  # fmt: skip
ChangeName = Literal["divide", "at-most", "at-least", "fitting", "raise", "option", "keep-batch"]
UnitName = Literal["Gi", "G", "g", "gb", "MiB", "python"]
"""How a program writes a size of memory: what stands behind a number of GiB; with `MiB` the number alone, in MiB, with
`python` an expression of bytes."""


class SettingRecord(Record, frozen=True, kw_only=True):
    """One key of one framework, and the value that it gets."""

    framework: str
    key: str
    """As it is written: `a.b` is nested, `-x` is an option, `CAPITALS` are a variable, `call(name)` stands in code."""
    to: str
    """The value to write; with `change` the value where the old one is unknown, and the bound where it is known."""
    sets: str | None = None
    """The setting behind the key, by the name that all frameworks share (`training.<sets>`)."""
    means: str | None = None
    """The value of that setting, where it is not `to` itself (`disable_gradient_checkpointing: false` means true)."""
    values: dict[str, str] = {}
    """What to write where another value of that setting is wanted, by its meaning (`'2': ds_z2.json` beside a file for stage 3).

    Without `means` these are all that the key can do by itself: a checkpoint in AWQ is another file, and no option makes it.
    """
    also: list[str] = []
    """Values of the setting that serve as well: with one of them in force there is nothing to change."""
    change: ChangeName | None = None
    """How the new value follows from the old one; findings/settings.py says what each word does."""
    least: Annotated[int, Meta(ge=0)] | None = None
    """Where `divide` stops; `to` where it is not given."""
    by: Annotated[float, Meta(gt=0)] = 2
    """What `divide` divides by, what `raise` multiplies with, and what `fitting` rounds down to."""
    unit: UnitName | None = None
    """How `raise` writes its size."""
    along: bool = False
    """Whether it only goes along with another row, and is not the point of the fix."""
    facts: Annotated[list[str], Meta(max_length=2)] = []
    """What `fitting` reads: one fact, or two whose quotient counts; of those that `raise` reads the largest counts."""
    was: str | None = None
    """A fact that states the value in force, where neither config nor log has it under this key."""
    example: bool = False
    """Whether `to` only shows what kind of value is meant: a person chooses it, and no tool writes it."""
    default: str | None = None
    """The value of the setting where the config at hand does not name it."""
    when: Condition | None = None
    """The row is for runs of which this is true."""
    since: str | None = None
    until: str | None = None
    source: str


class SetRecord(Record, frozen=True, kw_only=True):
    """A setting that a fix changes, whatever framework writes it; the fields are those of SettingRecord."""

    setting: str
    """By the name that all frameworks share."""
    to: str
    others: list[str] = []
    """Other values of the setting that the fix can give, where a framework has a way to write them."""
    also: list[str] = []
    change: ChangeName | None = None
    least: Annotated[int, Meta(ge=0)] | None = None
    by: Annotated[float, Meta(gt=0)] = 2
    along: bool = False
    """Whether it only goes along with another setting, in frameworks that write that one."""
    facts: Annotated[list[str], Meta(max_length=2)] = []
    was: str | None = None
    without: list[str] = []
    """Frameworks that write the setting and are left out here."""


class FreesRecord(Record, frozen=True, kw_only=True):
    """What a fix frees, in terms of the memory model, in words, and in bytes where they follow from the number of parameters."""

    terms: list[TermName] = []
    says: TextRecord
    fact: str | None = None
    """The fact that says how many bytes at most."""
    per_parameter: float = 0
    """Bytes per parameter of the model."""
    per_trainable: float = 0
    """Bytes per parameter that is trained."""
    measured: Literal["in-proportion", "at-most"] | None = None
    """What it frees where the memory of its terms was measured: as much as the setting goes down by, or all of it at most."""
    shared: bool = False
    """Whether the other cards take their part over: times (1 - 1 / cards), of what they do not hold already."""
    sharded_from: Annotated[int, Meta(ge=1, le=3)] | None = None
    """The ZeRO stage from which on each card holds its part of these bytes only: divided by the cards."""
    source: str | None = None
    """Where the bytes come from."""


class NeedRecord(Record, frozen=True, kw_only=True):
    """What must hold for a fix to help. Where it is false the fix is left out, where it is unknown the words are shown."""

    when: Condition
    says: TextRecord


class ElsewhereRecord(Record, frozen=True, kw_only=True):
    """How the same is done on some machines."""

    when: Condition
    how: TextRecord
    command: str | None = None


class TypedRecord(Record, frozen=True, kw_only=True):
    """What a person types for a fix where no program is known that has a key for it: the forms that are used most, the commonest first."""

    line: str
    """An argument, a line of code, an option or a command, as it is typed."""
    by: str = ""
    """Who understands it, as people call it, where the line itself does not tell."""
    of: list[str] = []
    """The frameworks that it is for; `unknown` is a program of which nothing is known, and an empty list the machine itself."""
    value: TextRecord | None = None
    """What it is given, in words, where no figure leads to a value."""
    when: Condition | None = None
    """The line is for runs of which this is true."""
    source: str


class NotThisRecord(Record, frozen=True, kw_only=True):
    """Advice that people meet and that is wrong for some problems."""

    advice: TextRecord
    why: TextRecord
    problems: Annotated[list[str], Meta(min_length=1)]
    when: Condition | None = None
    """Shown only where this is true."""
    cites: Annotated[list[str], Meta(min_length=1)]


class FixRecord(Record, frozen=True, kw_only=True):
    """rules/fixes/<measure>.yaml: what to do."""

    id: Id
    title: TextRecord
    how: TextRecord
    sets: list[SetRecord] = []
    """What it changes: rows of `settings` for each framework that writes these (`writes` in rules/frameworks)."""
    first: list[str] = []
    """Frameworks whose rows come before those of all others."""
    settings: list[SettingRecord] = []
    """Rows of one framework each. For a setting of `sets` a row stands instead of what its framework writes. Once the rules are
    loaded the rows of `sets` are among these."""
    typed: list[TypedRecord] = []
    """What to type where neither a row of `settings` nor `command` is for the run."""
    command: str | None = None
    elsewhere: list[ElsewhereRecord] = []
    """How it is done where `how` and `command` do not hold; the first whose condition is true counts."""
    frees: FreesRecord | None = None
    """None for a step that only looks or repairs."""
    harm: HarmName
    """The worst of what it costs."""
    costs: TextRecord | None = None
    needs: list[NeedRecord] = []
    safety: Literal["safe", "review"] = "review"
    not_this: list[NotThisRecord] = []
    """Wrong advice about this very measure."""
    cites: list[str] = []
