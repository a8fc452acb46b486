"""How long an update takes, from a model of a few lines: it ranks plans, and no more than that.

Arithmetic at a fixed rate, slower for small micro-batches and while a pipeline fills, plus every byte that crosses the bus and
host memory; nothing overlaps, so that what is gathered or offloaded looks somewhat slower than it is. The constants are
in rules/tables/throughput.csv.
"""

from __future__ import annotations

from functools import cache

from oomdoctor.case.setup import GgmlRun, Setup
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.memory import activations, ggml
from oomdoctor.memory.model import parameters as count
from oomdoctor.memory.model import weights
from oomdoctor.memory.model.trained import groups
from oomdoctor.memory.model.weights import HALF
from oomdoctor.memory.optimizer import state_width

_FORWARD, _BACKWARD_INPUTS, _BACKWARD_WEIGHTS = 2, 2, 2
"""Operations per parameter and token (arXiv 2001.08361)."""
_GATHERS = 2
"""Absent weights are fetched for the forward and for the backward pass (arXiv 1910.02054)."""
_EXCHANGES = 3
"""Keys and values of a split sample circulate in the forward pass, and with their gradients in the backward pass (arXiv 2310.01889)."""
_REDUCTIONS = 4
"""Reductions over a tensor parallel group per layer: two in the forward and two in the backward pass (arXiv 1909.08053)."""
_ADAM = 30
"""Bytes that an update on the host reads and writes per parameter: gradient, fp32 copy and two states read, the last three and the 16-bit
weight written (arXiv 2101.06840)."""


def seconds(setup: Setup) -> float:
    """Return the time of one weight update; of one token if nothing is trained."""
    if setup.ggml is not None:
        return _reading(setup, setup.ggml)
    whole = _arithmetic(setup) + _bus_bytes(setup) / _constants()["bus"] + _host_bytes(setup) / _constants()["host_memory"]
    return whole if setup.task == "train" else whole / (setup.batch * setup.length)


def _reading(setup: Setup, run: GgmlRun) -> float:
    """Return the time needed to read every weight used by a token once, each from where it is stored."""
    used = count.active(setup.shape) * setup.weights.bytes_per_param
    on_host = min(1.0, ggml.on_host(setup, run) / weights.stored(setup))
    return used * ((1 - on_host) / _constants()["card_memory"] + on_host / _constants()["host_memory"])


def _arithmetic(setup: Setup) -> float:
    known = _constants()
    each = float(_FORWARD)
    if setup.task == "train":
        again = _FORWARD / setup.checkpointed_every if setup.checkpointing == "full" else 0
        each += _BACKWARD_INPUTS + (_BACKWARD_WEIGHTS if setup.adapters is None else 0) + again
    layout, tokens = setup.layout, setup.batch * setup.length
    slower = 1 + known["half_speed_tokens"] * layout.context / tokens
    unpacking = known["unpacking"] if setup.weights.unpacks else 1.0
    # Stages wait for (p - 1) / (m + p - 1) of the time (arXiv 1811.06965).
    filling = 1 + (layout.pipeline - 1) / setup.accumulation
    split = layout.tensor * layout.context * layout.pipeline
    return each * count.active(setup.shape) * tokens * setup.accumulation / split / known["flops"] * slower * unpacking * filling


def _bus_bytes(setup: Setup) -> float:
    """Return the bytes that one GPU moves per update, between GPUs and to the host."""
    layout, micro, shape = setup.layout, setup.accumulation, setup.shape
    others, split = 1 - 1 / layout.data, layout.tensor * layout.pipeline
    # Packed weights travel packed.
    model = (setup.weights.bytes_per_param if setup.weights.packed else HALF) * count.text(shape) / split
    trained = _trained(setup) / split
    sharded = trained / layout.sharded(1)
    moved = 2 * HALF * trained * others * (micro if layout.syncs else 1)
    if layout.sharded(3) > 1:
        moved += _GATHERS * model * others * micro
    if setup.offload_params:
        moved += _GATHERS * model / layout.sharded(3) * micro
    if setup.offload_optimizer:
        moved += HALF * sharded * (_gradient_trips(setup) + 1)
    elif setup.optimizer.paged and setup.task == "train":
        moved += 2 * sum(group.params * state_width(setup, group) for group in groups(setup)) / layout.sharded(1)
    layers, tokens = shape.layers / layout.pipeline, setup.batch * setup.length
    if setup.offload_activations:
        moved += 2 * layers * activations.boundary(setup) * micro
    if layout.tensor > 1:
        moved += _REDUCTIONS * layers * HALF * shape.hidden * tokens / layout.context * micro
    if layout.context > 1:
        moved += _EXCHANGES * layers * HALF * (shape.key + shape.value) * tokens * (1 - 1 / layout.context) / layout.tensor * micro
    return moved


def _gradient_trips(setup: Setup) -> int:
    """Return how often gradients cross the bus per update on the host.

    DeepSpeed adds them up on the GPU: for each micro-batch except the first, the sum comes from the host and goes back
    (async_accumulate_grad_in_cpu_via_gpu of deepspeed/runtime/zero/stage_1_and_2.py, partition_grads of stage3.py).
    """
    return 2 * setup.accumulation - 1 if setup.layout.engine == "deepspeed" else 1


def _host_bytes(setup: Setup) -> float:
    """Return the bytes that go through host memory in an update there, for all GPUs of the host."""
    return _ADAM * _trained(setup) if setup.task == "train" and setup.offload_optimizer else 0.0


def _trained(setup: Setup) -> int:
    return sum(group.params for group in groups(setup)) if setup.task == "train" else 0


@cache
def _constants() -> dict[str, float]:
    return {row["name"]: float(row["value"]) for row in table("throughput")}
