"""Configs and the events of the log -> the training config of a run, with what is wrong in it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.case.case import LogStart
from oomdoctor.case.event import Event
from oomdoctor.case.settings import ConfigIssue, RunConfig, RunSettings, WrittenSetting
from oomdoctor.configs.checks.alloc_conf import allocator_options, check_alloc_conf
from oomdoctor.configs.checks.cards import card_facts, has_more_processes_than_cards
from oomdoctor.configs.checks.combinations import comparison_facts, run_checks, written_facts
from oomdoctor.configs.checks.contradictions import find_contradictions
from oomdoctor.configs.checks.unknown_keys import find_misplaced_keys, find_unknown_keys
from oomdoctor.configs.frameworks import Frameworks
from oomdoctor.configs.logged_commands import has_options, logged_commands
from oomdoctor.configs.merge import AROUND, MergedSettings, merge, settings_in_log
from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.server import SERVERS

_ORDER = {"error": 0, "warning": 1, "note": 2}
_BESIDE = ("launcher", "environment", "log", *AROUND)
"""What starts a run or shows its settings; none of them trains or serves."""
_NESTED = "deepspeed."


def resolve_config(
    configs: Sequence[ParsedConfig],
    events: Sequence[Event],
    known: Mapping[str, Fact],
    pack: Pack,
    starts: Sequence[LogStart] = (),
    running: Sequence[str] = (),
) -> RunConfig | None:
    """Return the settings in `configs` and in the log; None where neither says anything.

    `known` are the facts of the log, `starts` the beginnings of the logs, in which commands of the programs `running` are looked for.
    """
    printed = settings_in_log(events)
    may_command = bool(running) and has_options(starts)
    if not configs and not printed.written and not may_command:
        return None
    frameworks = Frameworks(pack)
    commands = logged_commands(starts, running, frameworks, is_known="log.framework" in known) if may_command else []
    if not configs and not printed.written and not commands:
        return None
    read = [part for config in configs for part in _with_nested(frameworks.recognise(config))]
    merged = merge([*_in_force(read, frameworks), *commands, printed], frameworks)
    aside = (None, *_BESIDE, *frameworks.layers)
    main = next(
        (config for config in sorted(read, key=lambda config: config.form != "command") if config.framework not in aside),
        None,
    )
    main = main or next((config for config in read if config.framework in frameworks.layers), None)
    if main is None and "log.framework" not in known:
        main = next(iter(commands), None)
    versions, known = _versions(known, frameworks), {**card_facts(known.get("log.gpu_name") or merged.settings.card), **known}
    run = RunConfig(
        framework=main.framework if main else None,
        reason=main.reason if main else None,
        version=versions.get(main.framework or "", main.version) if main else None,
        written=tuple(setting for config in read for setting in config.written),
        settings=merged.settings if main is None else _with_version(merged.settings, main, pack),
        places=merged.places,
    )
    issues = _worst_first(_of_files(read, versions, frameworks), _of_settings(run, merged, [*read, printed], known, frameworks, pack))
    return replace(run, issues=issues)


def _with_version(settings: RunSettings, main: ParsedConfig, pack: Pack) -> RunSettings:
    """Return the settings with the version that the files name; of a server also the first that refuses one of its options."""
    if settings.method != "serve":
        return replace(settings, framework_version=main.version)
    if main.version is not None:
        return replace(settings, server_version=main.version)
    record = pack.record(SERVERS, main.framework or "")
    written = {setting.name: setting.key for setting in main.written}
    for row in () if record is None else record.removed:
        option = next((written[name] for name in row.options if name in written), None)
        if option is not None:
            return replace(settings, server_before=row.until, removed_option=option)
    return settings


def _in_force(read: Sequence[ParsedConfig], frameworks: Frameworks) -> list[ParsedConfig]:
    """Return the configs without those that are named only where nobody looks (`deepspeed` under `generation_config`)."""
    void = {(issue.file, issue.line) for config in read for issue in find_misplaced_keys(config, frameworks)}
    naming = [
        setting
        for config in read
        for setting in config.written
        if isinstance(setting.value, str) and setting.value.endswith((".json", ".yaml", ".yml"))
    ]

    def is_void(config: ParsedConfig) -> bool:
        named = [
            (setting.file, setting.line) for setting in naming if os.path.basename(str(setting.value)) == os.path.basename(config.file)
        ]
        return bool(named) and void.issuperset(named)

    return [config for config in read if not is_void(config)]


def _with_nested(config: ParsedConfig) -> Iterator[ParsedConfig]:
    """Yield the config, and the DeepSpeed config inside a trainer's as one of its own."""
    yield config
    inner = tuple(
        replace(setting, key=setting.name.removeprefix("training_args.").removeprefix(_NESTED), framework="deepspeed")
        for setting in config.written
        if setting.name.removeprefix("training_args.").startswith(_NESTED)
    )
    if inner:
        yield ParsedConfig(file=config.file, form="json", written=inner, framework="deepspeed", reason="deepspeed")


def _versions(known: Mapping[str, Fact], frameworks: Frameworks) -> dict[str, str]:
    """Framework -> version, as the log states it."""
    named = {name.removeprefix("log.").removesuffix("_version"): str(value) for name, value in known.items() if name.endswith("_version")}
    return {frameworks.named(name): version for name, version in named.items()}


def _of_files(read: Sequence[ParsedConfig], versions: Mapping[str, str], frameworks: Frameworks) -> Iterator[ConfigIssue]:
    """Yield what is wrong with the form of the files and with their keys."""
    for config in read:
        yield from config.issues
        yield from find_unknown_keys(config, frameworks, versions)


def _of_settings(
    run: RunConfig,
    merged: MergedSettings,
    configs: Sequence[ParsedConfig],
    known: Mapping[str, Fact],
    frameworks: Frameworks,
    pack: Pack,
) -> Iterator[ConfigIssue]:
    """Yield what is wrong with the values, alone and together."""
    yield from find_contradictions(merged)
    options = allocator_options(pack)
    windows = str(known.get("log.os", "")).lower().startswith("win")
    for setting in _variables(configs):
        yield from (
            check_alloc_conf(setting, options, _versions(known, frameworks).get("torch"), windows=windows) if options is not None else ()
        )
    together = {**comparison_facts(run), "config.more_processes_than_cards": has_more_processes_than_cards(configs, frameworks)}
    yield from run_checks(run, written_facts(configs, frameworks), {**known, **together}, pack)


def _variables(read: Sequence[ParsedConfig]) -> Iterator[WrittenSetting]:
    for config in read:
        if config.framework == "environment":
            yield from config.written


def _worst_first(*stages: Iterator[ConfigIssue]) -> tuple[ConfigIssue, ...]:
    """One issue of a kind for each line; errors before notes, then earlier stages: they can explain the later ones."""
    once = {(issue.id, issue.file, issue.line, issue.key): (number, issue) for number, issues in enumerate(stages) for issue in issues}
    ordered = sorted(once.values(), key=lambda staged: (_ORDER[staged[1].severity], staged[0], staged[1].file, staged[1].line))
    return tuple(issue for _, issue in ordered)
