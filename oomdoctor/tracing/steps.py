"""All memory requests of the first steps of a training run on one card, in order: the model's own code under fake tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from oomdoctor.case.setup import Setup
from oomdoctor.simulation.requests import Frame, RequestLog, Site
from oomdoctor.tracing.build import config_of, fill, model_of, undropped
from oomdoctor.tracing.card import CardKernels
from oomdoctor.tracing.failure import Untraceable
from oomdoctor.tracing.passes import forward, loss_of, traceable
from oomdoctor.tracing.record import RequestRecorder

_SECONDS = 180
_STEPS = 2
"""The states of an optimizer come with the first step; from the second on a step is like the one before."""
_WORKSPACE = (4096 * 2 + 16 * 8) * 1024
"""What cuBLAS keeps from the first product on: CUBLAS_WORKSPACE_CONFIG is :4096:2:16:8 by default, in KiB
(getChosenWorkspaceSize of aten/src/ATen/cuda/CublasHandlePool.cpp)."""
_FORWARD, _BACKWARD, _STEP = 1, 2, 3
"""Phases of a RequestLog."""


def record_steps(config: Mapping[str, object], setup: Setup) -> RequestLog:
    """Run the passes of the whole model with sizes and no values, and return what a run of two steps asks of the allocator.

    Raise Untraceable for a run that is spread over cards, and where the model's code cannot be run so.
    """
    if setup.task != "train" or setup.layout.cards > 1 or setup.placement is not None:
        raise Untraceable("the allocator is simulated for training on one card")
    if setup.offload_params or setup.offload_optimizer or setup.offload_activations or setup.weights.packed:
        raise Untraceable("the allocator is simulated for weights in 16 or 32 bit that stay on the card")
    with traceable(_SECONDS):
        return _TrainingRun(undropped(config_of(config)), setup).log()


class _TrainingRun:
    def __init__(self, config: Any, setup: Setup) -> None:
        self._setup = setup
        self._model = model_of(config, setup)
        self._recorder = RequestRecorder(_SECONDS)

    def log(self) -> RequestLog:
        with FakeTensorMode(allow_non_fake_inputs=True), self._recorder as recorder, CardKernels():
            fill(self._model)
            for name, param in self._model.named_parameters():
                recorder.name(param, _site("parameter", name))
            recorder.follow(self._model)
            trained = {name: param for name, param in self._model.named_parameters() if param.requires_grad}
            for name, param in trained.items():
                param.register_post_accumulate_grad_hook(self._graded(name))
            kept: list[torch.Tensor] = []
            for step in range(1, _STEPS + 1):
                for _ in range(min(2, self._setup.accumulation)):
                    self._passes(step, kept)
                recorder.begin(_STEP, step)
                self._update(trained, kept if step == 1 else None)
                for param in trained.values():
                    param.grad = None
            # What lives on is live at the end of the log: nothing is freed while the model is taken apart.
            requests = tuple(recorder.requests)
        return RequestLog(requests=requests, sites=tuple(recorder.sites))

    def _passes(self, step: int, kept: list[torch.Tensor]) -> None:
        setup, recorder = self._setup, self._recorder
        recorder.begin(_FORWARD, step)
        if not kept:
            kept.append(self._made(_WORKSPACE, Site("cuBLAS workspace")))
        output = forward(self._model, setup)
        loss = loss_of(output)
        if setup.stack.converts and hasattr(output, "logits"):
            # accelerate gives the outputs in fp32 (ConvertOutputsToFp32 of accelerate/utils/operations.py).
            output.logits.float()
        del output
        recorder.begin(_BACKWARD, step)
        loss.backward()

    def _graded(self, name: str) -> Any:
        def hook(param: torch.Tensor) -> None:
            if param.grad is not None:
                self._recorder.name(param.grad, _site("gradient", name))
                if self._setup.optimizer.in_backward:
                    param.grad = None

        return hook

    def _update(self, trained: Mapping[str, torch.Tensor], kept: list[torch.Tensor] | None) -> None:
        """Make the states where there are none yet, and what an update of all parameters at once needs for a moment."""
        optimizer = self._setup.optimizer
        if kept is not None:
            kept += [state for name, param in trained.items() for state in self._states(name, param)]
        if optimizer.foreach_temporary:
            # All of them live until the last is made.
            _ = [self._made(param.numel() * param.element_size(), _site("optimizer step", name)) for name, param in trained.items()]

    def _states(self, name: str, param: torch.Tensor) -> list[torch.Tensor]:
        optimizer = self._setup.optimizer
        if optimizer.paged:
            # They are the driver's to move, and none of torch's blocks.
            return []
        width = optimizer.states * param.element_size() if optimizer.bytes_per_param is None else optimizer.bytes_per_param
        number = max(1, round(optimizer.states))
        return [self._made(round(param.numel() * width / number), _site("optimizer state", name)) for _ in range(number)] if width else []

    def _made(self, size: int, site: Site) -> torch.Tensor:
        tensor = torch.empty(size, dtype=torch.uint8)
        self._recorder.name(tensor, site)
        return tensor


def _site(what: str, name: str) -> Site:
    return Site(what, (Frame("model", 0, name),))
