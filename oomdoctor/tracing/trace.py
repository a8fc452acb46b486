"""Forward and backward of a model with few layers under fake tensors, carried on to its whole depth."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from msgspec import Struct
from torch._subclasses.fake_tensor import FakeTensorMode

from oomdoctor.case.setup import Setup, TracedMemory
from oomdoctor.memory.inference import prompted
from oomdoctor.tracing.build import Untraceable, config_of, depth, fill, model_of, shortened, steps
from oomdoctor.tracing.card import CardKernels
from oomdoctor.tracing.live import LiveTensors, TakesTooLong

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
    depth. Raise Untraceable where transformers has no class for the config, or its code asks for values.
    """
    whole = config_of(config)
    layers = depth(whole)
    few, more = steps(whole)
    with traceable(_SECONDS):
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


@contextmanager
def traceable(seconds: int) -> Iterator[None]:
    """Raise Untraceable for whatever the code of a model raises within, and where it runs for longer than so many seconds."""
    # What cannot be run is told as a result; torch would tell it on stderr, with a traceback.
    logging.getLogger("torch._subclasses.fake_tensor").setLevel(logging.CRITICAL)
    try:
        yield
    except Untraceable:
        raise
    except TakesTooLong:
        raise Untraceable(f"its code runs for more than {seconds} s: without its fused kernels it takes token by token") from None
    except Exception as why:  # noqa: BLE001 - the code of hundreds of model classes runs here
        raise Untraceable(f"the model cannot be traced: {type(why).__name__}: {str(why)[:200]}") from why


def _run(config: Any, setup: Setup, behind: int) -> _Run:
    """Run one forward and backward pass; `behind` gradients are those of upper layers, after them the end begins."""
    model = model_of(config, setup)
    with FakeTensorMode(allow_non_fake_inputs=True), LiveTensors(_SECONDS) as live, CardKernels():
        fill(model)
        params = list(model.parameters())
        length = round(prompted(setup)) // setup.layout.context
        tokens = torch.ones(setup.batch * setup.sequences, length or 1, dtype=torch.long)
        standing = live.now
        live.mark()
        if setup.task != "train":
            model.eval()
            with torch.no_grad():
                model(**_read(model, tokens))
            return _Run(live.peak - standing, 0, _count(params), 0, 0)
        trained = [param for param in params if param.requires_grad]
        backward = _Backward(live, behind)
        for param in trained:
            param.register_post_accumulate_grad_hook(backward.made)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = prepared(model, setup)(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        return _Run(max(live.peak, backward.before) - standing, live.peak - standing, _count(params), _count(trained), len(trained))


def _read(model: Any, tokens: torch.Tensor) -> dict[str, Any]:
    """Return the arguments with which `generate` has a prompt read: the scores of the last token only where the class knows how."""
    known = inspect.signature(model.forward).parameters
    last = {"logits_to_keep": 1} if "logits_to_keep" in known else {}
    first = {"decoder_input_ids": tokens[:, :1]} if model.config.is_encoder_decoder else {}
    return {"input_ids": tokens, "use_cache": True, **last, **first}


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


def prepared(model: Any, setup: Setup) -> Any:
    """Return the model as a training program has it: with checkpointing where the run has it."""
    model.train()
    if setup.checkpointing == "full":
        # The backward pass is a call like others, within which the mode is off: recomputation has its own.
        again = {"use_reentrant": False, "context_fn": lambda: (nullcontext(), CardKernels())}
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=again)
        if setup.adapters is not None:
            model.enable_input_require_grads()
    return model


def _count(params: list[torch.nn.Parameter]) -> int:
    return sum(param.numel() for param in params)
