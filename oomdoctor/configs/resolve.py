"""Sheets and the events of the log -> the training config of a run, with what is wrong in it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.case.event import Event
from oomdoctor.case.settings import ConfigIssue, RunConfig, WrittenSetting
from oomdoctor.configs.checks.alloc_conf import allocator_options, check_alloc_conf
from oomdoctor.configs.checks.cards import card_facts, has_more_processes_than_cards
from oomdoctor.configs.checks.combinations import comparison_facts, run_checks, written_facts
from oomdoctor.configs.checks.contradictions import find_contradictions
from oomdoctor.configs.checks.unknown_keys import find_misplaced_keys, find_unknown_keys
from oomdoctor.configs.frameworks import Frameworks
from oomdoctor.configs.merge import MergedSettings, merge, settings_in_log
from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.pack import Pack

_ORDER = {"error": 0, "warning": 1, "note": 2}
_BESIDE = ("launcher", "environment", "log")
"""What starts a run or shows its settings; none of them trains or serves."""
_NESTED = "deepspeed."


def resolve_config(sheets: Sequence[ParsedConfig], events: Sequence[Event], known: Mapping[str, Fact], pack: Pack) -> RunConfig | None:
    """The settings in `sheets` and in the log; None where neither says anything. `known` are the facts of the log."""
    printed = settings_in_log(events)
    if not sheets and not printed.written:
        return None
    frameworks = Frameworks(pack)
    read = [one for sheet in sheets for one in _with_nested(frameworks.recognise(sheet))]
    merged = merge([*_in_force(read, frameworks), printed], frameworks)
    aside = (None, *_BESIDE, *frameworks.layers)
    main = next(
        (one for one in sorted(read, key=lambda one: one.form != "command") if one.framework not in aside),
        None,
    )
    main = main or next((one for one in read if one.framework in frameworks.layers), None)
    versions, known = _versions(known, frameworks), {**card_facts(known.get("log.gpu_name")), **known}
    found = RunConfig(
        framework=main.framework if main else None,
        reason=main.reason if main else None,
        version=versions.get(main.framework or "") if main else None,
        written=tuple(one for sheet in read for one in sheet.written),
        settings=merged.settings,
        places=merged.places,
    )
    wrong = _worst_first(_of_files(read, versions, frameworks), _of_settings(found, merged, [*read, printed], known, frameworks, pack))
    return replace(found, issues=wrong)


def _in_force(read: Sequence[ParsedConfig], frameworks: Frameworks) -> list[ParsedConfig]:
    """The sheets without those that are named only where nobody looks (`deepspeed` under `generation_config`)."""
    void = {(one.file, one.line) for sheet in read for one in find_misplaced_keys(sheet, frameworks)}
    naming = [
        one for sheet in read for one in sheet.written if isinstance(one.value, str) and one.value.endswith((".json", ".yaml", ".yml"))
    ]

    def is_void(sheet: ParsedConfig) -> bool:
        named = [(one.file, one.line) for one in naming if os.path.basename(str(one.value)) == os.path.basename(sheet.file)]
        return bool(named) and void.issuperset(named)

    return [sheet for sheet in read if not is_void(sheet)]


def _with_nested(sheet: ParsedConfig) -> Iterator[ParsedConfig]:
    """A DeepSpeed config that stands inside a trainer's is one of its own."""
    yield sheet
    inner = tuple(
        replace(one, key=one.name.removeprefix("training_args.").removeprefix(_NESTED), framework="deepspeed")
        for one in sheet.written
        if one.name.removeprefix("training_args.").startswith(_NESTED)
    )
    if inner:
        yield ParsedConfig(file=sheet.file, form="json", written=inner, framework="deepspeed", reason="deepspeed")


def _versions(known: Mapping[str, Fact], frameworks: Frameworks) -> dict[str, str]:
    """Framework -> version, as the log states it."""
    named = {name.removeprefix("log.").removesuffix("_version"): str(value) for name, value in known.items() if name.endswith("_version")}
    return {frameworks.named(name): version for name, version in named.items()}


def _of_files(read: Sequence[ParsedConfig], versions: Mapping[str, str], frameworks: Frameworks) -> Iterator[ConfigIssue]:
    """What is wrong with the form of the files and with their keys."""
    for sheet in read:
        yield from sheet.issues
        yield from find_unknown_keys(sheet, frameworks, versions)


def _of_settings(
    found: RunConfig,
    merged: MergedSettings,
    sheets: Sequence[ParsedConfig],
    known: Mapping[str, Fact],
    frameworks: Frameworks,
    pack: Pack,
) -> Iterator[ConfigIssue]:
    """What is wrong with the values, alone and together."""
    yield from find_contradictions(merged)
    options = allocator_options(pack)
    windows = str(known.get("log.os", "")).lower().startswith("win")
    for one in _variables(sheets):
        yield from check_alloc_conf(one, options, _versions(known, frameworks).get("torch"), windows=windows) if options is not None else ()
    together = {**comparison_facts(found), "config.more_processes_than_cards": has_more_processes_than_cards(sheets, frameworks)}
    yield from run_checks(found, written_facts(sheets, frameworks), {**known, **together}, pack)


def _variables(read: Sequence[ParsedConfig]) -> Iterator[WrittenSetting]:
    for sheet in read:
        if sheet.framework == "environment":
            yield from sheet.written


def _worst_first(*stages: Iterator[ConfigIssue]) -> tuple[ConfigIssue, ...]:
    """One complaint of a kind for each line; errors before notes, then earlier stages: they can explain the later ones."""
    once = {(one.id, one.file, one.line, one.key): (stage, one) for stage, own in enumerate(stages) for one in own}
    ordered = sorted(once.values(), key=lambda staged: (_ORDER[staged[1].severity], staged[0], staged[1].file, staged[1].line))
    return tuple(one for _, one in ordered)
