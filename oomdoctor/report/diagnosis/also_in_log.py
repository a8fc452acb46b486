"""What the log and the configs state of settings and figures and the answer does not use, in one folded line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.case import Case
from oomdoctor.case.event import Event, Kind
from oomdoctor.report.diagnosis.places import place_text
from oomdoctor.report.document import Block, Document, Facts, Folded, Row, map_text
from oomdoctor.report.safety.redact import redact_text
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.texts import FIGURES
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_MOST = 80
_GIST = 12
_VALUE = 80
_TELLING = 3
"""A value of fewer characters (`1`, `on`) stands anywhere; then its key must stand beside it."""
_NOT_STATED = frozenset({"last_error", "framework", "shard_bars", "inference", "phase", "launch_command"})
"""Facts that were concluded and not read, or that the report tells in its own words."""
_ROOTS = (Kind.DEVICE_OOM, Kind.MASKED_DEVICE_OOM, Kind.HOST_OOM, Kind.SHM_OOM, Kind.KERNEL_RESOURCE)


class Stated(Struct, frozen=True, kw_only=True):
    """A setting or a figure that a log or a config states."""

    name: str
    value: str
    """As it is shown."""
    where: str = ""
    is_size: bool = False


class StatedUse(Struct, frozen=True, kw_only=True):
    """What of the stated settings and figures a report uses."""

    used: tuple[Stated, ...]
    unused: tuple[Stated, ...]


def also_in_log(case: Case, blocks: Sequence[Block], wording: Wording) -> Iterator[Block]:
    """Yield the settings and figures that `blocks`, the rest of the report, do not use."""
    unused = stated_use(case, blocks, wording).unused[:_MOST]
    if unused:
        rows = tuple(Row(each.name, each.value, each.where) for each in unused)
        gist = wording.comma.join(f"{each.name} {each.value}" for each in unused[:_GIST])
        yield Folded(wording.say(labels.ALSO_IN_LOG, n=len(unused)), (Facts(rows),), clean_line(gist, 160))


def stated_use(case: Case, blocks: Sequence[Block], wording: Wording) -> StatedUse:
    """Return what of the stated settings and figures stands in the blocks of a report, and what does not."""
    texts: list[str] = []
    map_text(Document("", tuple(blocks)), lambda text: texts.append(text) or text)  # type: ignore[func-returns-value]
    words = frozenset(re.findall(r"[^\s,;()`\"'：，；（）]+", "\n".join(texts).replace(":", " ").replace("=", " ")))
    whole = "\n".join(texts)
    used: list[Stated] = []
    unused: list[Stated] = []
    for each in stated(case, wording):
        (used if _is_used(each, whole, words) else unused).append(each)
    return StatedUse(used=tuple(used), unused=tuple(unused))


def stated(case: Case, wording: Wording) -> Sequence[Stated]:
    """Return the settings and figures that the log and the configs of a run state, each name once, as it was said last."""
    known: dict[str, Stated] = {}
    printed = (Stated(name=name, value=value) for name, value in case.options.items())
    for each in (*_settings(case), *_facts(case), *_figures(case, wording), *printed):
        known.setdefault(each.name.lstrip("-").replace("-", "_"), each)
    return [_shortened(each) for each in known.values() if each.is_size or _is_harmless(each)]


def _is_harmless(each: Stated) -> bool:
    """Return whether a setting is no secret, person or path: what only its name or its whole length gives away is lost in a table."""
    line = f"{each.name}={each.value}"
    return redact_text(line) == line


def _shortened(each: Stated) -> Stated:
    return replace(each, value=clean_line(each.value, _VALUE))


def _settings(case: Case) -> Iterator[Stated]:
    for setting in case.training.written if case.training is not None else ():
        if not setting.block and setting.value not in (None, ""):
            value = ", ".join(map(str, setting.value)) if isinstance(setting.value, tuple) else str(setting.value)
            yield Stated(name=setting.key, value=value, where=f"{setting.file}:{setting.line}")


def _facts(case: Case) -> Iterator[Stated]:
    for fact, value in case.facts.items():
        name = fact.removeprefix("log.")
        if name not in _NOT_STATED and not isinstance(value, tuple):
            is_size = name.endswith("_bytes") and isinstance(value, int)
            yield Stated(name=name, value=format_size(int(value)) if is_size else str(value), is_size=is_size)


def _figures(case: Case, wording: Wording) -> Iterator[Stated]:
    """Yield the sizes of what failed, and those that the program printed on its way; of a series the last."""
    roots = [incident.root for incident in case.incidents[:1]]
    printed = [event for event in case.events if event.kind is Kind.CONTEXT or (event.kind in _ROOTS and event not in roots)]
    for event in (*roots, *reversed(printed)):
        yield from _sizes(event, wording)


def _sizes(event: Event, wording: Wording) -> Iterator[Stated]:
    for name in event.fields:
        size = event.size(name)
        if name.endswith("_bytes") and size is not None and size > 0:
            label = wording.say(FIGURES[name]) if name in FIGURES else name.removesuffix("_bytes").replace("_", " ")
            yield Stated(name=label, value=format_size(size), where=place_text(event.place, wording), is_size=True)


def _is_used(each: Stated, whole: str, words: frozenset[str]) -> bool:
    if each.is_size:
        return each.value in whole
    if len(each.value) >= _TELLING and (
        each.value in words or _grouped(each.value) in words or (" " in each.value and each.value in whole)
    ):
        return True
    return re.search(rf"(?<![\w.-]){re.escape(each.name)}[\s:=]{{1,3}}{re.escape(each.value)}(?![\w.])", whole) is not None


def _grouped(value: str) -> str:
    return f"{int(value):,}" if value.isdecimal() and len(value) < 12 else value
