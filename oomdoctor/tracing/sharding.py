"""What one rank of a data parallel run has: its shards, units that are gathered before use, gradients on their way to other cards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from oomdoctor.case.setup import Setup
from oomdoctor.errors import Untraceable
from oomdoctor.memory import optimizer
from oomdoctor.memory.model.trained import adapter_width
from oomdoctor.memory.model.weights import HALF, SHARDS_ALL
from oomdoctor.simulation.requests import Frame, Site
from oomdoctor.tracing.record import RequestRecorder

_LIVE = 1_000_000_000
"""Parameters that ZeRO-3 keeps gathered: `stage3_max_live_parameters` of deepspeed/runtime/zero/config.py."""
_UNITS = 2
"""FSDP has the unit in use and the next one: limit_all_gathers of torch/distributed/fsdp/fully_sharded_data_parallel.py."""
_BUCKET = 25 << 20
"""Bytes of DDP's buckets: bucket_cap_mb of torch/nn/parallel/distributed.py."""
_FP32 = 4
_ENGINES = ("none", "ddp", "deepspeed", "fsdp1", "fsdp2")

Make = Callable[[float, Site], torch.Tensor]


def check(setup: Setup) -> None:
    """Raise Untraceable for what is divided otherwise than among data parallel ranks."""
    layout = setup.layout
    if layout.engine not in _ENGINES:
        raise Untraceable(f"the allocator is simulated for data-parallel ranks, not for {layout.engine}")
    for ways, what in ((layout.tensor, "tensor"), (layout.pipeline, "pipeline"), (layout.context, "context"), (layout.expert, "expert")):
        if ways > 1:
            raise Untraceable(f"the allocator is simulated for data-parallel ranks: {what} parallelism splits the operations themselves")
    if setup.offload_params or setup.offload_activations or (setup.offload_optimizer and layout.engine != "deepspeed"):
        raise Untraceable("the allocator is simulated for parameters and activations that stay on the card")
    if layout.wide_gradients:
        raise Untraceable("the allocator is simulated for DDP, FSDP and DeepSpeed: Megatron has its own buffers")


class _Unit:
    """Parameters that are gathered, used and reduced together."""

    def __init__(self, name: str, params: Mapping[str, torch.nn.Parameter]) -> None:
        self.name = name
        self.params = dict(params)
        self.waiting = {name: param for name, param in params.items() if param.requires_grad}
        """Those of which no gradient has come in this backward pass."""
        self.numel = sum(param.numel() for param in params.values())
        self.bytes = sum(param.numel() * param.element_size() for param in params.values())
        self.whole: torch.Tensor | None = None
        self.shard: torch.Tensor | None = None
        """Of its gradients."""


class DataParallel:
    """One rank of a data parallel run; one card is a run of one rank, with nothing sharded.

    `make` gives memory for what no operation of the model makes.
    """

    def __init__(self, model: torch.nn.Module, setup: Setup, recorder: RequestRecorder, make: Make) -> None:
        self._setup, self._recorder, self._make = setup, recorder, make
        self._layout = setup.layout
        self._backward = False
        self._units = _units(model)
        self._unit_of = {name: unit for unit in self._units for name in unit.params}
        self._gathered: list[_Unit] = []
        self._waiting: list[tuple[int, torch.Tensor]] = []
        """What was gathered and is not free yet, with its number of parameters."""
        self._reduced: torch.Tensor | None = None
        self._buckets: list[torch.Tensor] = []
        self._trained = {name: param for name, param in model.named_parameters() if param.requires_grad}
        self._shards_all = self._layout.sharded(SHARDS_ALL) > 1
        for name, param in model.named_parameters():
            self._store(name, param)
        for name, param in self._trained.items():
            param.register_post_accumulate_grad_hook(self._graded(name))
        if self._shards_all:
            self._follow(model)
        if optimizer.keeps_buckets(setup):
            self._buckets = self._new_buckets()

    def begin_backward(self) -> None:
        """Make what exists in backward passes only."""
        self._backward = True
        for unit in self._units:
            unit.waiting = {name: param for name, param in unit.params.items() if param.requires_grad}
        if not self._buckets:
            self._buckets = self._new_buckets()

    def end_backward(self) -> None:
        """Reduce what is left, and give back what exists in backward passes only."""
        if self._is_fsdp:
            for unit in self._units:
                self._reduce(unit)
        self._backward, self._reduced = False, None
        if not optimizer.keeps_buckets(self._setup):
            self._buckets = []
        self._release(keep=0)
        self._waiting = []

    def end_step(self) -> None:
        """Give gradients back."""
        for param in self._trained.values():
            param.grad = None
        for unit in self._units:
            unit.shard = None

    def states(self) -> list[torch.Tensor]:
        """Return new states of the optimizer."""
        setup, chosen = self._setup, self._setup.optimizer
        if chosen.paged or setup.offload_optimizer:
            # They are the driver's to move, or the host's, and none of torch's blocks.
            return []
        number = max(1, round(chosen.states))
        if self._layout.engine == "deepspeed":
            # Flat: the fp32 copy of the rank's part, and the states of all of it.
            part = self._numel / self._layout.sharded(1)
            kept = part * (_FP32 if chosen.bytes_per_param is None else chosen.bytes_per_param / number)
            flat = [self._make(part * _FP32, Site("fp32 copy"))]
            return flat + [self._make(kept, Site("optimizer state")) for _ in range(number if kept and chosen.states else 0)]
        width = 0 if chosen.bytes_per_param is None else chosen.bytes_per_param / number
        made = []
        for name, param in self._trained.items():
            each = param.numel() / self._layout.sharded(1) * (width or self._width(param) * chosen.states / number)
            made += [self._make(each, _site("optimizer state", name)) for _ in range(number) if each]
        return made

    def step_temporaries(self) -> list[torch.Tensor]:
        """Return what an update of all parameters at once needs for a moment."""
        term = optimizer.step_temporary(self._setup)
        if self._layout.engine == "deepspeed":
            return [] if term is None else [self._make(term.bytes, Site("optimizer step"))]
        if not self._setup.optimizer.foreach_temporary:
            return []
        ranks = self._layout.sharded(SHARDS_ALL)
        return [
            self._make(param.numel() * self._width(param) / ranks, _site("optimizer step", name)) for name, param in self._trained.items()
        ]

    @property
    def _numel(self) -> int:
        return sum(param.numel() for param in self._trained.values())

    @property
    def _is_fsdp(self) -> bool:
        return self._shards_all and self._layout.engine != "deepspeed"

    @property
    def _waits(self) -> bool:
        """Whether whole gradients stay until the step: no_sync, which modules of FSDP2 do not have."""
        return self._layout.engine == "fsdp1" and self._setup.accumulation > 1 and not self._layout.syncs

    def _width(self, param: torch.Tensor) -> float:
        """Return the bytes in which a trained parameter is kept: FSDP shards fp32 and gathers 16 bit."""
        if not self._shards_all or self._layout.engine == "deepspeed":
            return float(param.element_size())
        return adapter_width(self._setup) if self._setup.adapters is not None else self._setup.weights.bytes_per_param

    def _store(self, name: str, param: torch.nn.Parameter) -> None:
        """Have a parameter take what this rank stores of it."""
        self._recorder.name(param, _site("parameter", name))
        if self._shards_all:
            width = self._width(param) if param.requires_grad else param.element_size()
            self._recorder.resize(param, _share(param.numel() * width, self._layout.sharded(SHARDS_ALL)))

    # Weights

    def _follow(self, model: torch.nn.Module) -> None:
        modules = dict(model.named_modules())
        for unit in self._units[1:]:
            modules[unit.name].register_forward_pre_hook(lambda *_, unit=unit: self._gather(unit))
            modules[unit.name].register_forward_hook(lambda _, __, output, unit=unit: self._expect(unit, output))
        model.register_forward_pre_hook(lambda *_: self._gather(self._units[0]))

    def _expect(self, unit: _Unit, output: Any) -> None:
        """Have a unit gathered when the backward pass reaches what it gave."""
        first = next((part for part in (output if isinstance(output, tuple) else (output,)) if isinstance(part, torch.Tensor)), None)
        if first is not None and first.requires_grad and not self._backward:
            first.register_hook(lambda _: self._gather(unit))

    def _gather(self, unit: _Unit) -> None:
        if unit.whole is None:
            unit.whole = self._make(unit.bytes, _site("all-gather", unit.name))
            self._gathered.append(unit)
            self._release()

    def _release(self, keep: int | None = None) -> None:
        """Give the units back that are too many; the root of FSDP stays until the pass ends."""
        stays = self._layout.engine != "deepspeed" and keep is None
        inner = [unit for unit in self._gathered if not (stays and unit is self._units[0])]
        while inner and self._is_too_much(inner, keep):
            unit = inner.pop(0)
            self._gathered.remove(unit)
            self._give_back(unit)

    def _give_back(self, unit: _Unit) -> None:
        """Free the memory of a gathered unit; DeepSpeed's waits while others are gathered, as their stream may still write it.

        It marks the blocks with record_stream (deepspeed/runtime/zero/partitioned_param_coordinator.py).
        """
        whole, unit.whole = unit.whole, None
        if self._layout.engine != "deepspeed" or whole is None:
            return
        self._recorder.release(whole)
        self._waiting.append((unit.numel, whole))
        while sum(numel for numel, _ in self._waiting) > self._live:
            self._waiting.pop(0)

    @property
    def _live(self) -> int:
        return self._layout.live or _LIVE

    def _is_too_much(self, gathered: list[_Unit], keep: int | None) -> bool:
        if keep is not None:
            return len(gathered) > keep
        if self._layout.engine == "deepspeed":
            return len(gathered) > 1 and sum(unit.numel for unit in gathered) > self._live
        return len(gathered) > _UNITS

    # Gradients

    def _graded(self, name: str) -> Callable[[torch.Tensor], None]:
        def hook(param: torch.Tensor) -> None:
            unit = self._unit_of[name]
            unit.waiting.pop(name, None)
            if param.grad is not None:
                self._recorder.name(param.grad, _site("gradient", name))
            if self._setup.optimizer.in_backward:
                param.grad = None
            elif self._layout.sharded(2) > 1 and self._layout.engine == "deepspeed":
                self._partition(param)
            elif self._is_fsdp and not unit.waiting:
                self._reduce(unit)

        return hook

    def _partition(self, param: torch.Tensor) -> None:
        """Copy a gradient into the bucket and keep the rank's part of it; offloaded ones leave the card."""
        param.grad = None
        unit = self._units[0]
        if unit.shard is None and not self._setup.offload_optimizer:
            unit.shard = self._make(self._numel * HALF / self._layout.sharded(2), Site("gradient shard"))

    def _reduce(self, unit: _Unit) -> None:
        """Copy the gradients of a unit together, keep the rank's part, and give the whole ones back."""
        trained = [param for param in unit.params.values() if param.requires_grad and param.grad is not None]
        if not trained:
            return
        flat = self._layout.engine == "fsdp1" and self._setup.stack.flat_gradients and self._setup.adapters is not None
        if self._waits and not flat:
            return
        size = float(sum(param.numel() * param.element_size() for param in trained))
        kept = sum(param.numel() * self._width(param) for param in trained)
        if flat:
            # Frozen and trained parameters are parts of one.
            size = kept = float(unit.bytes)
        if self._waits:
            size, kept = 0.0, kept * self._layout.sharded(2)
        self._reduced = self._make(size, _site("reduce-scatter", unit.name))
        if unit.shard is None:
            unit.shard = self._make(kept / self._layout.sharded(2), _site("gradient shard", unit.name))
        for param in trained:
            param.grad = None

    def _new_buckets(self) -> list[torch.Tensor]:
        term = optimizer.buckets(self._setup)
        if term is None or self._layout.engine not in ("ddp", "deepspeed"):
            return []
        most = _BUCKET if self._layout.engine == "ddp" else max(1, round(optimizer.bucket(self._setup)))
        return [self._make(min(most, term.bytes - begin), Site("bucket")) for begin in range(0, term.bytes, most)]


def _units(model: torch.nn.Module) -> list[_Unit]:
    """Return what is wrapped: first what no layer has, then each layer of the longest lists of layers."""
    lists = [(name, module) for name, module in model.named_modules() if isinstance(module, torch.nn.ModuleList) and len(module) > 1]
    outer = [(name, module) for name, module in lists if not any(name.startswith(f"{other}.") for other, _ in lists if other != name)]
    layers = {f"{name}.{number}": layer for name, module in outer for number, layer in enumerate(module)}
    inside = {f"{place}.{name}": (place, param) for place, layer in layers.items() for name, param in layer.named_parameters()}
    root = {name: param for name, param in model.named_parameters() if name not in inside}
    each = {place: {name: param for name, (at, param) in inside.items() if at == place} for place in layers}
    return [_Unit("", root), *(_Unit(place, params) for place, params in each.items() if params)]


def _site(what: str, name: str) -> Site:
    return Site(what, (Frame("model", 0, name),) if name else ())


def _share(size: float, ranks: int) -> int:
    return -(-round(size) // ranks)
