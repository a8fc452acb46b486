"""A forward pass as a program runs it: the inputs of the model, autocast, checkpointing, and the loss."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from oomdoctor.case.setup import Setup
from oomdoctor.errors import Untraceable
from oomdoctor.memory.inference import prompted
from oomdoctor.tracing.card import CardKernels
from oomdoctor.tracing.inputs import of_diffusers, of_transformers
from oomdoctor.tracing.operations import TakesTooLong


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
        raise Untraceable(f"its code runs for more than {seconds} s: without its fused kernels it processes one token at a time") from None
    except Exception as why:  # noqa: BLE001 - the code of hundreds of model classes runs here
        raise Untraceable(f"the model cannot be traced: {type(why).__name__}: {str(why)[:200]}") from why


def forward(model: Any, setup: Setup) -> Any:
    """Return what a forward pass in training gives; the loss where the inputs have labels."""
    inputs = _inputs(model, setup)
    if "use_cache" in inspect.signature(_base(model).forward).parameters:
        inputs["use_cache"] = False
    model.train()
    if setup.checkpointing == "full":
        _checkpoint_layers(model, setup)
    # accelerate leaves precision to DeepSpeed's engine.
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=setup.stack.autocast and setup.layout.engine != "deepspeed"):
        return model(**inputs)


def loss_of(output: Any) -> torch.Tensor:
    """Return the loss, or where a model has none the mean of what it gives first."""
    loss = getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor):
        return loss
    given = (leaf for leaf in tree_leaves(tuple(output.values()) if isinstance(output, Mapping) else output))
    first = next((leaf for leaf in given if isinstance(leaf, torch.Tensor) and leaf.requires_grad), None)
    if first is None:
        raise Untraceable("its output has no gradient")
    return first.float().mean()


def read_prompt(model: Any, setup: Setup) -> None:
    """Have a prompt read as `generate` does: the scores of the last token only where the class knows how."""
    inputs = _inputs(model, setup)
    inputs.pop("labels", None)
    known = inspect.signature(_base(model).forward).parameters
    inputs |= {name: value for name, value in (("logits_to_keep", 1), ("use_cache", True)) if name in known}
    if getattr(model.config, "is_encoder_decoder", False):
        inputs["decoder_input_ids"] = torch.ones(setup.batch * setup.sequences, 1, dtype=torch.long)
    model.eval()
    with torch.no_grad():
        model(**inputs)


def _base(model: Any) -> Any:
    """Return the model below adapters, whose arguments are the model's own."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def _inputs(model: Any, setup: Setup) -> dict[str, object]:
    base = _base(model)
    make = of_transformers if hasattr(base, "main_input_name") else of_diffusers
    inputs = make(base, setup.batch * setup.sequences, round(prompted(setup)) // setup.layout.context)
    width = next((param.dtype for param in model.parameters() if param.is_floating_point()), torch.float32)
    return {name: _as_wide(value, width) for name, value in inputs.items()}


def _as_wide(value: Any, width: torch.dtype) -> Any:
    if isinstance(value, dict):
        return {name: _as_wide(part, width) for name, part in value.items()}
    return value.to(width) if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _checkpoint_layers(model: Any, setup: Setup) -> None:
    # The backward pass is a call like others, within which the mode is off: recomputation has its own.
    again = {"use_reentrant": False, "context_fn": lambda: (nullcontext(), CardKernels())}
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    if not hasattr(base, "main_input_name"):
        base.enable_gradient_checkpointing(partial(checkpoint, **again))
        return
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs=again)
    if setup.adapters is not None:
        model.enable_input_require_grads()
