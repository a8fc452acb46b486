"""What trainers do by default with the engine that answers prompts while they train: rules/tables/rollout_engines.csv."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from oomdoctor.knowledge.tables.csv_table import table

_ALWAYS = "always"


class EngineDefaults(Struct, frozen=True):
    """The defaults of one trainer."""

    always: bool
    """Whether the engine shares the trainer's cards where nobody says it."""
    share: float
    """Part of a card that it takes."""
    sleeps: bool
    """Whether it gives its memory back while weights are updated."""
    reference: bool
    """Whether GRPO has a reference model where nobody weighs the distance to it."""


def engine_defaults(framework: str) -> EngineDefaults | None:
    """Return the defaults of a trainer; None where they are not known."""
    return _engines().get(framework)


@cache
def _engines() -> dict[str, EngineDefaults]:
    return {
        row["framework"]: EngineDefaults(row["on_cards"] == _ALWAYS, float(row["share"]), row["sleeps"] == "yes", row["reference"] == "yes")
        for row in table("rollout_engines")
    }
