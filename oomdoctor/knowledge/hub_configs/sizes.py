"""Sizes in a config.json: positive whole numbers that a model can have, and lists of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HubConfig = Mapping[str, Any]
"""A config.json as it was read."""
MOST = 10**7
"""No size of a model's config is larger; a number beyond it is no config."""
MOST_LAYERS = 2000


def size(config: HubConfig, *names: str) -> int | None:
    """Return the first of these that is a positive whole number of a sensible size."""
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST:
            return value
    return None


def sizes(config: HubConfig, name: str) -> list[int]:
    """Return a list of whole numbers; none where it is no such list."""
    value = config.get(name)
    if not isinstance(value, list) or len(value) > MOST_LAYERS:
        return []
    return value if all(isinstance(number, int) and 0 <= number <= MOST for number in value) else []


def texts(config: HubConfig, name: str) -> list[str]:
    """Return a list of texts; none where it is no such list."""
    value = config.get(name)
    if not isinstance(value, list):
        return []
    return value if all(isinstance(word, str) for word in value) else []


def part_of(config: HubConfig, *names: str) -> HubConfig:
    """Return the first of these that is a config of its own; an empty one where none is."""
    return next((value for name in names if isinstance(value := config.get(name), Mapping)), {})
