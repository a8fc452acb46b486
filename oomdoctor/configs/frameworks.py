"""What the rules know of frameworks: whose config a config is, and what its keys mean in the words that all share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.case.settings import Scalar, WrittenSetting
from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.framework import FRAMEWORKS, FromKey

Value = Scalar | tuple[Scalar, ...]


class Frameworks:
    """The frameworks that the rules know, in the order in which they are tried."""

    def __init__(self, pack: Pack) -> None:
        records = sorted(pack.records(FRAMEWORKS), key=lambda record: record.order)
        self.records = {record.framework: record for record in records}
        self.layers = frozenset(record.framework for record in records if record.layer is not None)
        """Programs that run below a trainer, with a config of their own."""

    def named(self, name: str) -> str:
        """Return the framework that has this name; the name itself where none has."""
        return next((record.framework for record in self.records.values() if name in record.names), name)

    def title(self, framework: str) -> str:
        """Return the name that a person knows."""
        return self.records[framework].title if framework in self.records else framework

    def deepspeed_key(self, framework: str | None) -> str:
        """Return the key that names a DeepSpeed file; under another block nobody reads it."""
        record = self.records.get(framework or "")
        return "deepspeed" if record is None else record.deepspeed_key

    def family(self, framework: str) -> list[str]:
        """Return the framework, and those whose keys it shares."""
        record = self.records.get(framework)
        return [framework] if record is None else [framework, *record.shares]

    def recognise(self, config: ParsedConfig) -> ParsedConfig:
        """Return the config with its framework, and every setting of it marked; unchanged where nothing shows one."""
        framework, reason = (config.framework, config.reason) if config.framework else self._found(config)
        if framework is None:
            return config
        given = tuple(replace(setting, framework=framework) for setting in config.written)
        version = config.version or self._version_by_keys(framework, config)
        return replace(config, written=given, framework=framework, reason=reason, version=version)

    def _version_by_keys(self, framework: str, config: ParsedConfig) -> str | None:
        """Return the last release that takes a key of this config; None where the newest does, as far as is known."""
        record = self.records.get(framework)
        if record is None or not record.dated:
            return None
        names = {setting.name for setting in config.written}
        return next((release for release, keys in record.dated.items() if not names.isdisjoint(keys)), None)

    def _found(self, config: ParsedConfig) -> tuple[str | None, str | None]:
        if config.program:
            for name, record in self.records.items():
                if not record.takes_options and config.written:
                    continue
                if any(_starts(config.program, program) for program in record.programs):
                    return name, config.program
        for name, record in self.records.items():
            if module := next((module for module in record.modules if module in config.imports), None):
                return name, f"import {module}"
        keys = {setting.name for setting in config.written}
        for name, record in self.records.items():
            if config.form == "command" and not record.in_commands:
                continue
            for sign in record.signs:
                if keys.issuperset(sign):
                    return name, ", ".join(sign)
        return None, None

    def common_settings(self, config: ParsedConfig) -> Iterator[tuple[str, Scalar, WrittenSetting]]:
        """Yield the common names that a config gives, with the value and the setting that it comes from."""
        if config.framework not in self.records:
            return
        by_name = settings_by_name(config.written, self.records[config.framework].roots)
        seen: set[str] = set()
        for framework in self.family(config.framework):
            record = self.records.get(framework)
            for name, sources in record.settings.items() if record is not None else ():
                match = _first(sources, by_name)
                if match is not None and name not in seen:
                    seen.add(name)
                    yield name, *match

    def model_sizes(self, config: ParsedConfig) -> dict[str, Scalar]:
        """Return the sizes of a model that a config says, by the keys of a config.json; empty where it says none."""
        record = self.records.get(config.framework or "")
        if record is None or not record.sizes:
            return {}
        by_name = settings_by_name(config.written, record.roots)
        return {name: match[0] for name, sources in record.sizes.items() if (match := _first(sources, by_name)) is not None}


def settings_by_name(settings: Sequence[WrittenSetting], roots: Sequence[str]) -> dict[str, WrittenSetting]:
    """Return the settings by name; those under a root also without it. The last of a name counts."""
    by_name: dict[str, WrittenSetting] = {}
    for setting in settings:
        by_name[setting.name] = setting
        root, _, rest = setting.name.partition(".")
        if rest and root in roots:
            by_name[rest] = setting
    return by_name


def _starts(program: str, known: str) -> bool:
    return program == known or program.startswith((f"{known} ", f"{known}.", f"{known}/")) or program.endswith((f"/{known}", f" {known}"))


def _first(sources: Sequence[str | FromKey], by_name: Mapping[str, WrittenSetting]) -> tuple[Scalar, WrittenSetting] | None:
    """Return what the first of these keys that says something says, and where it stands."""
    for source in sources:
        at = _at(source, by_name)
        value = _meaning(source, at)
        if at is not None and value is not None:
            return value, at
    return None


def _at(source: str | FromKey, by_name: Mapping[str, WrittenSetting]) -> WrittenSetting | None:
    key = source if isinstance(source, str) else source.key
    if key == "*":
        return next(iter(by_name.values()), None)
    return by_name.get(key)


def _meaning(source: str | FromKey, at: WrittenSetting | None) -> Scalar:
    """Return what the key of `source` says, None where it is not there or says nothing."""
    if at is None:
        return None
    if isinstance(source, str):
        return None if at.block or _is_open(at.value) else _scalar(at.value)
    values = source.map
    value = setting_value(at)
    meant = values.get(value, values.get(value.lower(), values.get("*") if value else None))
    return value if meant == "*" else meant


def setting_value(given: WrittenSetting) -> str:
    """Return the value in one word, as tables compare it: `true`, `16`, `{}` for a block, nothing for null."""
    if given.block:
        return "{}"
    value = _scalar(given.value)
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _scalar(value: Value) -> Scalar:
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def _is_open(value: Value) -> bool:
    """`auto` leaves the decision to another program."""
    return value is None or value == "auto" or value == ""
