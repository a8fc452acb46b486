"""All memory requests of the first steps of a training run in order: the model's own code under fake tensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from oomdoctor.case.setup import Setup
from oomdoctor.errors import Untraceable
from oomdoctor.simulation.requests import RequestLog, Site
from oomdoctor.tracing.build import config_of, fill, model_of, undropped
from oomdoctor.tracing.card import CardKernels
from oomdoctor.tracing.passes import forward, loss_of, traceable
from oomdoctor.tracing.record import RequestRecorder
from oomdoctor.tracing.sharding import DataParallel, check

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

    Of a run on several cards it is what one rank asks for.

    Raise Untraceable for a run that is divided otherwise than among data parallel ranks, and where the model's code cannot be run so.
    """
    if setup.task != "train" or setup.placement is not None:
        raise Untraceable("the allocator is simulated for training")
    check(setup)
    with traceable(_SECONDS):
        return _TrainingRun(undropped(config_of(config)), setup).log()


class _TrainingRun:
    def __init__(self, config: Any, setup: Setup) -> None:
        self._setup = setup
        self._model = model_of(config, setup, packed=setup.weights.packed)
        self._recorder = RequestRecorder(_SECONDS)

    def log(self) -> RequestLog:
        with FakeTensorMode(allow_non_fake_inputs=True), self._recorder as recorder, CardKernels():
            fill(self._model)
            rank = DataParallel(self._model, self._setup, recorder, self._made)
            recorder.follow(self._model)
            # DeepSpeed makes the states before the first step (initialize_optimizer_states of deepspeed/runtime/zero).
            first = self._setup.layout.engine == "deepspeed"
            kept = rank.states() if first else []
            kept.append(self._made(_WORKSPACE, Site("cuBLAS workspace")))
            for step in range(1, _STEPS + 1):
                for _ in range(min(2, self._setup.accumulation)):
                    self._passes(step, rank)
                recorder.begin(_STEP, step)
                if step == 1 and not first:
                    kept += rank.states()
                # All of them live until the last is made.
                _ = rank.step_temporaries()
                del _
                rank.end_step()
            # What lives on is live at the end of the log: nothing is freed while the model is taken apart.
            requests = tuple(recorder.requests)
        return RequestLog(requests=requests, sites=tuple(recorder.sites))

    def _passes(self, step: int, rank: DataParallel) -> None:
        setup, recorder = self._setup, self._recorder
        recorder.begin(_FORWARD, step)
        output = forward(self._model, setup)
        loss = loss_of(output)
        if setup.stack.converts and setup.layout.engine != "deepspeed" and hasattr(output, "logits"):
            # accelerate gives the outputs in fp32 (ConvertOutputsToFp32 of accelerate/utils/operations.py).
            output.logits.float()
        del output
        recorder.begin(_BACKWARD, step)
        rank.begin_backward()
        loss.backward()
        rank.end_backward()

    def _made(self, size: float, site: Site) -> torch.Tensor:
        tensor = torch.empty(round(size), dtype=torch.uint8)
        self._recorder.name(tensor, site)
        return tensor
