"""What the cards mean for settings: what kind they are, and whether a command lets its processes see enough of them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoctor.case.settings import RunSettings, Scalar
from oomdoctor.configs.frameworks import Frameworks
from oomdoctor.configs.parsed_config import ParsedConfig
from oomdoctor.findings.conditions import Fact
from oomdoctor.knowledge.tables.cards import capability

_CARDS = re.compile(r"\d{1,3}(?:,\d{1,3}){0,63}")


def card_facts(name: Fact) -> dict[str, Fact]:
    """Return the card of a name as conditions ask for it, `card.compute_capability` as a number; nothing where it is not known."""
    known = capability(name) if isinstance(name, str) else ""
    return {"card.name": name, "card.compute_capability": float(known)} if known else {}


def has_more_processes_than_cards(configs: Sequence[ParsedConfig], frameworks: Frameworks) -> bool:
    """Return whether a command starts more processes than it lets them see cards.

    A script can start a server on one card and a training on others: each command is looked at with its own variables.
    """
    read = [config for config in configs if config.form != "log"]
    common = _settings([config for config in read if config.command == 0], frameworks)
    numbers = {(config.file, config.command) for config in read if config.command}
    groups = [_settings([config for config in read if (config.file, config.command) == number], frameworks) for number in numbers] or [{}]
    return any(_is_crowded(RunSettings().with_values({**common, **group})) for group in groups)


def _settings(configs: Sequence[ParsedConfig], frameworks: Frameworks) -> dict[str, Scalar]:
    return {name: value for config in configs for name, value, _ in frameworks.common_settings(config)}


def _is_crowded(settings: RunSettings) -> bool:
    cards = str(settings.visible_devices)
    processes = settings.tensor_parallel if settings.method == "serve" else settings.processes_per_node
    return processes is not None and _CARDS.fullmatch(cards) is not None and processes > len(cards.split(","))
