"""The checks of rules/checks: combinations of settings, asked as conditions over facts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from oomdoctor.case.settings import ConfigIssue, RunConfig, WrittenSetting
from oomdoctor.case.text import Text
from oomdoctor.configs.frameworks import Frameworks, setting_value, settings_by_name
from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.findings.conditions import Fact, KnownFacts, evaluate
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.check import CHECKS

_PLACEHOLDER = re.compile(r"\{([a-z_]+\.[A-Za-z_0-9.-]+)\}")
_SETTING = re.compile(r"(-{0,2}\w[\w-]*): (\S+)\Z")
_HF = "transformers"


def written_facts(configs: Sequence[ParsedConfig], frameworks: Frameworks) -> dict[str, tuple[Fact, WrittenSetting]]:
    """Every key as it is written, as `given.FRAMEWORK.KEY`; those of transformers' family also as `given.hf.KEY`."""
    facts: dict[str, tuple[Fact, WrittenSetting]] = {}
    for config in configs:
        if config.framework is None or config.framework not in frameworks.records:
            continue
        families = [config.framework, *(["hf"] if _HF in frameworks.family(config.framework) else [])]
        for name, setting in settings_by_name(config.written, frameworks.records[config.framework].roots).items():
            for family in families:
                facts.setdefault(f"given.{family}.{name}", (setting_value(setting), setting))
        for family in families:
            if config.written:
                facts.setdefault(f"given.{family}", ("there", config.written[0]))
    return facts


def run_checks(
    training: RunConfig, given: Mapping[str, tuple[Fact, WrittenSetting]], known: Mapping[str, Fact], pack: Pack
) -> Iterator[ConfigIssue]:
    """Yield what the checks say of these settings; a check that depends on something unknown stays quiet."""
    keys = {f"key.{name}": place.key.rpartition(".")[2] for name, place in training.places.items()}
    every = {**known, **training.facts(), **keys, **{name: value for name, (value, _) in given.items()}}
    facts = KnownFacts(every, ())
    for record in pack.records(CHECKS):
        if not evaluate(record.when, facts).truth:
            continue
        at = next((place for fact in record.at if (place := _place(fact, training, given)) is not None), None)
        if at is not None:
            yield ConfigIssue(
                id=record.id,
                severity=record.severity,
                key=at.key,
                file=at.file,
                line=at.line,
                what=_filled_text(record.what, every),
                why=_filled_text(record.why, every),
                replacement=None if record.instead is None else _typed(_filled(record.instead, every), at),
                mended_by=record.mended_by,
                sets=tuple(record.sets.items()),
                cites=tuple(record.cites),
            )


def comparison_facts(training: RunConfig) -> dict[str, Fact]:
    """Return what conditions cannot say themselves: how two settings compare, as `config.NAME`."""
    batch, evaluation = training.settings.micro_batch, training.settings.eval_batch
    return {} if batch is None or evaluation is None else {"config.eval_batch_above_train": evaluation > batch}


def _place(name: str, training: RunConfig, given: Mapping[str, tuple[Fact, WrittenSetting]]) -> WrittenSetting | None:
    if name.startswith("training."):
        return training.places.get(name.removeprefix("training."))
    fact = given.get(name)
    return None if fact is None else fact[1]


def _typed(replacement: str, at: WrittenSetting) -> str:
    """Return a setting in the form of the file: `--key value` where it stands in a command."""
    match = _SETTING.match(replacement)
    if match is None or not at.key.startswith("-"):
        return replacement
    return f"--{match[1].lstrip('-')} {match[2]}"


def _filled_text(text: Text, known: Mapping[str, Fact]) -> Text:
    return Text(_filled(text.en, known), _filled(text.zh, known))


def _filled(text: str, known: Mapping[str, Fact]) -> str:
    return _PLACEHOLDER.sub(lambda match: str(known.get(match[1], match[0])), text)
