"""What torch's allocator makes of the first steps of a training run."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from oomdoctor.case.setup import Setup
from oomdoctor.knowledge.tables.cards import Card
from oomdoctor.memory.allocator import outside
from oomdoctor.simulation.replay import replay as replay_requests
from oomdoctor.simulation.settings import read_settings
from oomdoctor.simulation.simulated_run import Simulation
from oomdoctor.simulation.snapshot import pickled
from oomdoctor.tracing.steps import record_steps


def simulate(config: Mapping[str, object], setup: Setup, alloc_conf: str | None, card: Card | None) -> Simulation:
    """Simulate a run of the model of a config.json; `alloc_conf` is what PYTORCH_CUDA_ALLOC_CONF holds.

    Raise Untraceable where the model or the run cannot be traced.
    """
    log = record_steps(config, setup)
    capacity = None if card is None else _left_for_torch(setup, card)
    run, allocator = replay_requests(log, read_settings(alloc_conf or ""), capacity)
    return Simulation(run=run, snapshot=pickled(allocator, log), capacity=capacity)


def _left_for_torch(setup: Setup, card: Card) -> int:
    beside = outside(replace(setup, counter="nvidia-smi"))
    return card.bytes - (0 if beside is None else beside.bytes)
