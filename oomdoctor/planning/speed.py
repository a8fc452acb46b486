"""How long an update takes, by a model of a few lines: it ranks plans, and no more than that.

Arithmetic at a fixed rate, slower for small micro batches, plus every byte that goes over the bus; nothing overlaps, so that
what is gathered or offloaded looks rather slower than it is. The constants stand in rules/tables/throughput.csv.
"""

from __future__ import annotations

from functools import cache

from oomdoctor.case.estimate import Setup
from oomdoctor.knowledge.tables import table
from oomdoctor.memory import activations
from oomdoctor.memory import parameters as count
from oomdoctor.memory.optimizer import state_width
from oomdoctor.memory.trained import groups
from oomdoctor.memory.weights import HALF

_FORWARD, _BACKWARD_INPUTS, _BACKWARD_WEIGHTS = 2, 2, 2
"""Operations for each parameter and token (arXiv 2001.08361)."""
_GATHERS = 2
"""Weights that are not there are fetched for the forward and for the backward pass (arXiv 1910.02054)."""


def seconds(setup: Setup) -> float:
    """The time of one update of the weights; of one token where nothing is trained."""
    whole = _arithmetic(setup) + _bus_bytes(setup) / _constants()["bus"]
    return whole if setup.task == "train" else whole / (setup.batch * setup.length)


def _arithmetic(setup: Setup) -> float:
    known = _constants()
    each = float(_FORWARD)
    if setup.task == "train":
        each += _BACKWARD_INPUTS + (_BACKWARD_WEIGHTS if setup.adapters is None else 0) + (_FORWARD if setup.checkpointing == "full" else 0)
    tokens = setup.batch * setup.length
    slower = 1 + known["half_speed_tokens"] / tokens
    unpacking = known["unpacking"] if setup.weights.unpacks else 1.0
    split = setup.layout.tensor * setup.layout.context
    return each * count.active(setup.shape) * tokens * setup.accumulation / split / known["flops"] * slower * unpacking


def _bus_bytes(setup: Setup) -> float:
    """Bytes that one card moves for one update, between cards and to the host."""
    layout, micro = setup.layout, setup.accumulation
    others = 1 - 1 / layout.data
    model = HALF * count.text(setup.shape)
    trained = sum(group.params for group in groups(setup)) if setup.task == "train" else 0
    own = trained / layout.sharded(1)
    moved = 2 * HALF * trained * others
    if layout.sharded(3) > 1:
        moved += _GATHERS * model * others * micro
    if setup.offload_params:
        moved += _GATHERS * model / layout.sharded(3) * micro
    if setup.offload_optimizer:
        moved += 2 * HALF * own
    elif setup.optimizer.paged and setup.task == "train":
        moved += 2 * sum(group.params * state_width(setup, group) for group in groups(setup)) / layout.sharded(1)
    if setup.offload_activations:
        moved += 2 * setup.shape.layers * activations.boundary(setup) * micro
    if layout.tensor > 1:
        moved += 4 * setup.shape.layers * HALF * setup.shape.hidden * setup.batch * setup.length * micro
    return moved


@cache
def _constants() -> dict[str, float]:
    return {row["name"]: float(row["value"]) for row in table("throughput")}
