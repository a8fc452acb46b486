"""Forward and backward of a model with few layers under fake tensors, carried on to its whole depth."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import torch
from msgspec import Struct
from msgspec.structs import replace
from torch._subclasses.fake_tensor import FakeTensorMode

from oomdoctor.case.setup import Setup, TracedMemory
from oomdoctor.tracing.build import config_of, depth, fill, model_of, shortened, steps, undropped
from oomdoctor.tracing.card import CardKernels
from oomdoctor.tracing.live import LiveTensors
from oomdoctor.tracing.passes import forward, loss_of, read_prompt, traceable

_CUT_RIGHTLY = 0.01
"""By how much of the whole the parameters may differ: a few layers of one kind more or less at the ends of a pattern."""
_SECONDS = 30
"""How long each depth may take."""


class _Run(Struct, frozen=True):
    """What one trace found. Sizes are bytes."""

    highest: int
    """The most beside weights and gradients."""
    at_the_end: int
    """The most beside weights and gradients while the last gradients are made."""
    params: int
    trained: int
    tensors: int
    """How many tensors are trained."""


def trace(config: Mapping[str, Any], setup: Setup) -> TracedMemory:
    """Count in the model's own code what a run keeps alive beside weights, gradients and optimizer states.

    Tokens of one card in one forward pass, nothing sharded; the figures of two depths make a line that is carried on to the model's
    depth. A model that does not say how deep it is, and those of diffusers, are run as they are.

    Raise Untraceable where no library has a class for the config, or its code asks for values.
    """
    whole = config_of(config)
    layers = depth(whole)
    with traceable(_SECONDS):
        if layers is None or _is_cut_wrongly(whole, setup):
            return _whole(_run(undropped(whole), setup, None))
        few, more = steps(whole)
        first = _run(shortened(whole, few), setup, 0)
        second = _run(shortened(whole, more), setup, first.tensors)

    def carried(name: str) -> int:
        near, far = int(getattr(first, name)), int(getattr(second, name))
        return round(near + (far - near) * (layers - few) / (more - few))

    return TracedMemory(
        forward=carried("highest"),
        # The first layer comes last, whatever the depth.
        backward=second.at_the_end,
        params=carried("params"),
        trained=carried("trained"),
        layers=(few, more),
        depth=layers,
    )


def _is_cut_wrongly(config: Any, setup: Setup) -> bool:
    """Return whether models of few layers do not tell how many parameters the whole has: what is called a layer is something else."""
    plain, layers = replace(setup, adapters=None), depth(config) or 0
    few, more = steps(config)
    if layers <= more:
        return False
    parts = (shortened(config, few), shortened(config, more), undropped(deepcopy(config)))
    near, far, whole = (_count(list(model_of(part, plain).parameters())) for part in parts)
    return abs(near + (far - near) * (layers - few) / (more - few) - whole) > _CUT_RIGHTLY * whole


def _whole(run: _Run) -> TracedMemory:
    return TracedMemory(forward=run.highest, backward=run.at_the_end, params=run.params, trained=run.trained, layers=None, depth=None)


def _run(config: Any, setup: Setup, behind: int | None) -> _Run:
    """Run one forward and backward pass; `behind` gradients are those of upper layers, after them the end begins.

    None stands for a whole model: what lives beside the gradients is what the backward pass needs beyond all of them.
    """
    model = model_of(config, setup)
    with FakeTensorMode(allow_non_fake_inputs=True), LiveTensors(_SECONDS) as live, CardKernels():
        fill(model)
        params = list(model.parameters())
        standing = live.now
        live.mark()
        if setup.task != "train":
            read_prompt(model, setup)
            return _Run(live.peak - standing, 0, _count(params), 0, 0)
        trained = [param for param in params if param.requires_grad]
        if behind is None:
            return _run_whole(model, setup, live, standing)
        backward = _Backward(live, behind)
        for param in trained:
            param.register_post_accumulate_grad_hook(backward.made)
        loss_of(forward(model, setup)).backward()
        return _Run(max(live.peak, backward.before) - standing, live.peak - standing, _count(params), _count(trained), len(trained))


def _run_whole(model: Any, setup: Setup, live: LiveTensors, standing: int) -> _Run:
    params = list(model.parameters())
    trained = [param for param in params if param.requires_grad]
    loss = loss_of(forward(model, setup))
    highest = live.peak - standing
    live.mark()
    loss.backward()
    gradients = sum(param.grad.untyped_storage().nbytes() for param in trained if param.grad is not None)
    return _Run(highest, max(0, live.peak - standing - gradients), _count(params), _count(trained), len(trained))


class _Backward:
    """Takes each gradient off the count when it is made, and marks the beginning of the end."""

    def __init__(self, live: LiveTensors, behind: int) -> None:
        self.before = 0
        self._live = live
        self._left = behind

    def made(self, param: torch.Tensor) -> None:
        """Take a gradient that exists off the count."""
        if param.grad is not None:
            self._live.leave_out(param.grad)
        self._left -= 1
        if self._left == 0:
            self.before = self._live.peak
            self._live.mark()


def _count(params: list[torch.nn.Parameter]) -> int:
    return sum(param.numel() for param in params)
