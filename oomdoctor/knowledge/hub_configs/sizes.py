"""Sizes in a config.json: positive whole numbers that a model can have, and lists of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HubConfig = Mapping[str, Any]
"""A config.json as it was read."""
MOST = 10**7
"""No size of a model's config is larger; a number beyond it is no config."""
MOST_LAYERS = 2000
_MOST_OF = {"num_hidden_layers": MOST_LAYERS, "hidden_size": 200_000, "head_dim": 16_384, "num_attention_heads": 10_000} | dict.fromkeys(
    ("num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts"), 20_000
)
"""No model is near these; a number beyond is a slip, and what it gave would be a figure out of nothing."""
_OFTEN_NONE = ("num_key_value_heads", "num_kv_heads", "num_experts_per_tok", "moe_intermediate_size", "kv_lora_rank", "q_lora_rank")


def size(config: HubConfig, *names: str) -> int | None:
    """Return the first of these that is a positive whole number of a sensible size."""
    for name in names:
        value = config.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST:
            return value
    return None


def absurd_sizes(config: HubConfig) -> tuple[str, ...]:
    """Return the names of sizes that are there and can be no model's: negative, no whole number, far too many, or at odds with another."""
    wrong = [name for name in (*_MOST_OF, *_OFTEN_NONE) if name in config and not _can_be(config[name], _MOST_OF.get(name, MOST))]
    heads, hidden = size(config, "num_attention_heads"), size(config, "hidden_size")
    keys, experts = size(config, "num_key_value_heads"), size(config, "num_local_experts", "n_routed_experts", "num_experts")
    if config.get("head_dim") == 0:
        wrong.append("head_dim")
    # Latent attention has one set of keys for all heads, and leaves the number of key heads at its default.
    if heads and keys and heads % keys and not config.get("kv_lora_rank"):
        wrong.append("num_key_value_heads")
    if heads and hidden and hidden < heads and "head_dim" not in config:
        wrong.append("hidden_size")
    if experts and (size(config, "num_experts_per_tok") or 0) > experts:
        wrong.append("num_experts_per_tok")
    return tuple(dict.fromkeys(wrong))


def _can_be(value: object, most: int) -> bool:
    """Return whether a value can be a size, or says that there is none; configs of some families have a list of them."""
    if value is None or isinstance(value, list):
        return True
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


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
