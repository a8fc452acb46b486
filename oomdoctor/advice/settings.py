"""The settings of one fix in one run: the value in force, and the one to write instead.

How a new value follows from an old one is a keyword in the rule, never a formula:

- none: `to`, whatever it was
- `divide`: the old value divided by `by`, not below `least`
- `at-most`, `at-least`: `to`, unless the old value is already within that bound
- `fitting`: what would fit according to `facts`, rounded down to a multiple of `by`; without them, like `at-most`
- `raise`: the largest of `facts` times `by`, in whole steps of its `unit`; if none is known, `to`, with a unit as an example
- `option`: one option `name:value` of a variable that holds several; the others are unchanged
- `keep-batch`: accumulation steps that compensate for a smaller `micro_batch`
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from oomdoctor.case.settings import ProposedSetting, RunConfig, WrittenSetting
from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.records.fix import SettingRecord
from oomdoctor.units import GIB, MIB

WORLD = ("training.world_size", "log.world_size", "log.num_processes", "log.nproc_per_node")
"""The facts that say how many processes train together; the first known one counts."""
_NUMBER = re.compile(r"-?\d{1,15}(?:,\d{3}){0,5}(?:\.\d{1,9})?")
_OPTION = re.compile(r"[^,\[\]]{1,80}(?:\[[^\[\]]{0,200}\])?")
_LARGEST = 1e18
_STEPS = ((256, 32), (64, 16), (16, 4), (2, 1))
_SMALLEST_STEP = 0.125
"""Above this many GiB, sizes are requested in steps of this size."""
_MEGA = str.maketrans("Gg", "Mm")
_ALWAYS_SET = frozenset(("micro_batch", "sequence_length", "max_model_len", "max_num_seqs", "max_batched_tokens", "memory_share"))
"""Settings that have a value in every run of a program that knows them, so that there is one to lower."""
_LEAST = "1"
_LOWER = Text("lower than now", "比现在调低")
_ELSEWHERE, _WITH_ELSEWHERE = "auto", ("deepspeed", "accelerate")
"""DeepSpeed's keyword, in its own file and in accelerate's, for a value set by the framework above it."""
_TRUE, _FALSE = ("true", "1", "yes", "on"), ("false", "0", "no", "off")


NO_VALUES: Mapping[str, float] = {}


class ConfigInForce(Struct, frozen=True):
    """What the config files say, in the form that the rows of fixes query."""

    framework: str | None = None
    """The framework whose config was read: anything the config does not name has its default there."""
    places: Mapping[str, WrittenSetting] = {}
    """By the name that all frameworks share."""
    keys: Mapping[tuple[str | None, str], WrittenSetting] = {}
    """By framework and key."""


class SettingChange(Struct, frozen=True):
    """A setting, and whether it has this value already."""

    setting: ProposedSetting
    in_force: bool
    counts: bool
    """Whether the setting is the point of the fix, or only goes along with another one."""
    was: float | None = None


class _Old(Struct, frozen=True):
    value: Fact
    goal: str
    """What the new value is compared with: `to` as written, or what it means in the words that all frameworks share."""
    written: str | None = None
    given: WrittenSetting | None = None
    default: bool = False


def config_of(training: RunConfig | None) -> ConfigInForce:
    """Return the config in the form that the rows of fixes query."""
    if training is None:
        return ConfigInForce()
    # What a command in a log leaves out may be in a file that was not given.
    framework = training.framework if training.written else None
    return ConfigInForce(framework, training.places, {(setting.framework, setting.name): setting for setting in training.written})


def setting_changes(
    rows: Sequence[SettingRecord], facts: Mapping[str, Fact], config: ConfigInForce, values: Mapping[str, float] = NO_VALUES
) -> list[SettingChange]:
    """Return the changes that the rows of a fix make in this run; a row that leads to none is left out.

    `values` were calculated for this run, by the names that all frameworks share; they take precedence over the rows.
    """
    old_values = [(row, _old(row, facts, config)) for row in rows]
    out = [
        change for row, old in old_values if row.change != "keep-batch" and (change := _change(row, old, facts, config, values)) is not None
    ]
    for row, old in old_values:
        if row.change == "keep-batch":
            out += [change for smaller in out if _is_batch(smaller, row) for change in _kept(row, old, smaller, facts)]
    return out


def written_settings(
    rows: Sequence[SettingRecord], values: Mapping[str, Fact], facts: Mapping[str, Fact], config: ConfigInForce
) -> tuple[ProposedSetting, ...]:
    """Return what to write for `values` (settings by the names that all frameworks share), followed by what goes along.

    Rows of a fix that sets nothing with a shared name are written unchanged.
    """
    out: list[ProposedSetting] = []
    named = any(row.sets for row in rows)
    for row in rows:
        value = values.get(row.sets or "")
        if value is None:
            if not row.sets and ((out and row.along) or not named):
                out.append(_setting(row, _old(row, facts, config), row.to))
        elif row.means is None and (not row.values or str(value) in row.values):
            # The value was calculated for this run, so it is not an example.
            out.append(_setting(row, _old(row, facts, config), _shown(value) or "", is_example=False))
        elif row.means is not None and _same(value, row.means):
            out.append(_setting(row, _old(row, facts, config), row.to))
        elif str(value) in row.values:
            out.append(_setting(row, _old(row, facts, config), row.values[str(value)]))
    return tuple(out)


def number(value: Fact) -> float | None:
    """Return a number as logs and configs write it (`4`, `0.92`, `2,048`); None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) if abs(value) < _LARGEST else None
    text = str(value).strip()
    return float(text.replace(",", "")) if _NUMBER.fullmatch(text) else None


def was_tried(change: SettingChange, training: RunConfig | None) -> bool:
    """Return whether the report says this was tried: for memory-reducing settings, any smaller value counts too."""
    name, new = change.setting.sets, change.setting.to
    tried = None if training is None or name is None else training.tried.get(name)
    if tried is None:
        return False
    least, to = number(tried), number(new)
    return (least is not None and to is not None and least <= to) if name in _ALWAYS_SET else _same(tried, new)


def first_number(facts: Mapping[str, Fact], names: Sequence[str]) -> float | None:
    """Return the first of these facts that is a number."""
    return next((size for name in names if (size := number(facts.get(name))) is not None), None)


def _old(row: SettingRecord, facts: Mapping[str, Fact], config: ConfigInForce) -> _Old:
    """Return the value in force: the config takes precedence, then what the log prints under this key, then what else it shows."""
    name, tail, means = row.sets, _tail(row.key), row.means or row.to
    given = _given(row, config)
    shared = next((value for part in ("training", "log") if name and (value := facts.get(f"{part}.{name}")) is not None), None)
    printed = facts.get(f"log.{tail}", _was(row, facts)) if given is None else _fact(given.value)
    if shared is None and printed is None and row.default is not None and config.framework == row.framework:
        return _Old(row.default, means, default=True)
    if shared is None:
        return _Old(printed, row.to, _shown(printed), given)
    if printed is None and not row.means:
        printed = shared
    return _Old(shared, means, _shown(printed), given)


def _was(row: SettingRecord, facts: Mapping[str, Fact]) -> Fact:
    """Return the value in force that a fact states, written the way the row writes its own."""
    value = facts.get(row.was or "")
    return _in_unit(value, row.unit) if row.unit is not None and isinstance(value, int) else value


def _given(row: SettingRecord, config: ConfigInForce) -> WrittenSetting | None:
    """Return where the config has this exact key."""
    key = row.key.lstrip("-").replace("-", "_")
    place = config.places.get(row.sets or "")
    if place is not None and (place.framework, place.name) == (row.framework, key):
        return place
    return config.keys.get((row.framework, key))


def _change(
    row: SettingRecord, old: _Old, facts: Mapping[str, Fact], config: ConfigInForce, values: Mapping[str, float]
) -> SettingChange | None:
    if _plain(old.value) == _ELSEWHERE and row.framework in _WITH_ELSEWHERE:
        return None
    value = values.get(row.sets or "") if row.means is None and not row.values else None
    if value is not None:
        was = number(old.value)
        setting = _setting(row, old, _digits(value), is_example=False)
        return SettingChange(setting, was is not None and was <= value, not row.along, was)
    new = _new(row, old, facts)
    if new is None:
        return None
    if _is_only_a_direction(row, old, facts, config):
        return SettingChange(_lowered(row), False, not row.along)
    in_force = old.value is not None and any(_same(old.value, value) for value in (new, *row.also))
    to = row.to if new == old.goal else new
    return SettingChange(_setting(row, old, to), in_force, not row.along, number(old.value))


def _is_only_a_direction(row: SettingRecord, old: _Old, facts: Mapping[str, Fact], config: ConfigInForce) -> bool:
    """Return whether no figure of the run leads to a value, so that any number would be invented: only that it must go down is known."""
    if old.value is not None or config.framework == row.framework or row.example or not number(row.to) or row.to == _LEAST:
        return False
    return row.sets in _ALWAYS_SET and (row.change in ("divide", "at-most") or (row.change == "fitting" and _fitting(row, facts) is None))


def _lowered(row: SettingRecord) -> ProposedSetting:
    """Return a row as a direction only."""
    dated = _dated(row)
    note = _LOWER if dated is None else Text(f"{_LOWER.en}; {dated.en}", f"{_LOWER.zh}；{dated.zh}")
    return ProposedSetting(
        framework=row.framework, key=row.key, to="", direction="lower", note=note, sets=row.sets, dated=dated is not None
    )


def _setting(row: SettingRecord, old: _Old, to: str, note: Text | None = None, *, is_example: bool = True) -> ProposedSetting:
    """Return the change of a row's key; `is_example`: if the row is an example, so is the value."""
    place = old.given
    open_size = row.unit is not None and row.change == "raise" and to == row.to
    return ProposedSetting(
        framework=row.framework,
        key=row.key,
        to=to,
        before=None if old.written is not None and _same(old.written, to) else old.written,
        file=place.file if place else None,
        line=place.line if place else None,
        note=note or (_by_default(row) if old.default else (_only_an_example(row, old, to) if is_example else None) or _dated(row)),
        example=(row.example and is_example) or open_size,
        sets=row.sets,
        dated=bool(row.since or row.until),
    )


def _new(row: SettingRecord, old: _Old, facts: Mapping[str, Fact]) -> str | None:
    """Return the value to write; the old one if it is already within the bound."""
    was, bound, word = number(old.value), number(old.goal), row.change
    if word == "raise":
        raised = _raised(row, facts)
        higher = number(raised)
        return str(old.value) if was is not None and higher is not None and was >= higher else raised
    if word == "option":
        return _with_option(None if old.value is None else str(old.value), row.to)
    if word == "fitting" and (fitting := _fitting(row, facts)) is not None:
        fits, step = fitting
        if fits < step:
            return None
        return str(old.value) if was is not None and 0 < was <= fits else _digits(fits)
    if word is None or was is None or bound is None or was < 0:
        return old.goal
    least = bound if row.least is None else row.least
    if was >= bound if word == "at-least" else was <= (least if word == "divide" else bound):
        return str(old.value)
    return _digits(max(was // row.by, least)) if word == "divide" else old.goal


def _fitting(row: SettingRecord, facts: Mapping[str, Fact]) -> tuple[float, float] | None:
    """Return what would fit, rounded down, and the rounding step; None if a fact is missing."""
    sizes = [number(facts.get(name)) for name in row.facts]
    known = [size for size in sizes if size is not None]
    if len(known) < len(sizes) or not known or (len(known) > 1 and not known[1]):
        return None
    fits, step = known[0] / known[1] if len(known) > 1 else known[0], float(row.by)
    # A tenth of a millionth keeps 0.3 from becoming 0.25 because 0.3 / 0.05 is not quite 6.
    return round(int(fits / step + 1e-7) * step, 6), step


def _raised(row: SettingRecord, facts: Mapping[str, Fact]) -> str:
    """Return a size that leaves room above everything known, rounded up; the row's example if nothing is known."""
    sizes = [size for name in row.facts if (size := number(facts.get(name)))]
    if not sizes:
        return row.to
    if row.unit is None:
        return _digits(round(max(sizes) * row.by, 4))
    size = max(sizes) * row.by / GIB
    step = next((step for least, step in _STEPS if size > least), _SMALLEST_STEP)
    return _in_unit(int(-(-size // step) * step * GIB), row.unit)


def _in_unit(size: int, unit: str) -> str:
    """Return a size as a program writes it; below a GiB, in MiB."""
    if unit == "python":
        return f"{-(-size // GIB)} * 1024**3"
    return str(size // MIB) if unit == "MiB" else f"{size // GIB}{unit}" if not size % GIB else f"{size // MIB}{unit.translate(_MEGA)}"


def _with_option(old: str | None, option: str) -> str:
    """Return the variable with this option in it: an existing option of that name is replaced, the others are unchanged."""
    name = option.partition(":")[0]
    kept = [text.strip() for text in _OPTION.findall((old or "")[:1000])]
    others = [text for text in kept if text and text.partition(":")[0].strip() != name]
    return ",".join([*others, option])


def _is_batch(change: SettingChange, row: SettingRecord) -> bool:
    return change.setting.framework == row.framework and change.counts and not change.in_force


def _kept(row: SettingRecord, old: _Old, smaller: SettingChange, facts: Mapping[str, Fact]) -> Iterator[SettingChange]:
    """Yield accumulation steps to go with a smaller batch: exact if both are known, otherwise the factor, otherwise nothing."""
    was, new, steps = smaller.was, number(smaller.setting.to), number(old.value)
    if not was or not new:
        return
    if steps is None:
        if not was % new:
            yield SettingChange(_setting(row, old, f"× {_digits(was / new)}"), False, False)
        return
    samples, now = was * steps, -(-was * steps // new)
    yield SettingChange(_setting(row, old, _digits(now), _batch_note(samples, now * new, first_number(facts, WORLD))), False, False)


def _batch_note(before: float, after: float, world: float | None) -> Text:
    """Return what happens to the samples per update: of all GPUs if their number is known, otherwise of each."""
    old, new = _digits(before * (world or 1)), _digits(after * (world or 1))
    if world is None:
        if old == new:
            return Text(f"keeps {new} samples per card and update", f"每卡每次更新仍为 {new} 个样本")
        return Text(f"{new} samples per card and update, previously {old}", f"每卡每次更新由 {old} 个样本变为 {new} 个")
    if old == new:
        return Text(f"keeps the effective batch at {new}", f"有效批大小仍为 {new}")
    return Text(f"the effective batch becomes {new}, previously {old}", f"有效批大小由 {old} 变为 {new}")


def _only_an_example(row: SettingRecord, old: _Old, to: str) -> Text | None:
    """Return a note that the number is arbitrary: no figure of the run leads to it, and none is in force."""
    computed = row.change != "fitting" or to != row.to or old.value is not None
    return None if (computed and not row.example) or not number(to) else Text("an example", "仅为示例")


def _by_default(row: SettingRecord) -> Text:
    return Text(f"the default is {row.default}", f"默认为 {row.default}")


def _dated(row: SettingRecord) -> Text | None:
    """Return the versions that know the key, if the version of the run is unknown."""
    since, until = row.since, row.until
    if since and until:
        return Text(f"{since} to {until}", f"{since} 至 {until}")
    if since:
        return Text(f"from {since}", f"{since} 起")
    return Text(f"up to {until}", f"至 {until}") if until else None


def _tail(key: str) -> str:
    """Return the last part of a key as facts spell it: `training_args.optim` is optim, `--max-model-len` is max_model_len."""
    return re.split(r"[.( ]", key.rstrip(")"))[-1].lstrip("-").replace("-", "_")


def _digits(value: float) -> str:
    return str(int(value)) if value == int(value) else f"{value:g}"


def _fact(value: object) -> Fact:
    """Return a config value as a fact; None for a block or a list."""
    return value if isinstance(value, (str, int, float, bool)) else None


def _shown(value: object) -> str | None:
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _same(value: object, other: object) -> bool:
    left, right = _plain(value), _plain(other)
    if left == right or (left in _TRUE and right in _TRUE) or (left in _FALSE and right in _FALSE):
        return True
    first, second = number(left), number(right)
    return first is not None and first == second


def _plain(value: object) -> str:
    return str(value).strip().strip("'\"").lower().removeprefix("torch.")
