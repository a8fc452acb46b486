"""Watch this process from inside: as a block, by the callbacks of a trainer, in a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from oomdoctor import __version__
from oomdoctor.record.here import ProcessWatch

_NOTEBOOKS: list[ProcessWatch] = []
"""That of this process; loading the extension again changes nothing."""
_LIGHTNING = ("lightning.pytorch", "pytorch_lightning")
"""Whose Trainer takes nothing but its own class of callbacks (trainer/connectors/callback_connector.py), where they are loaded."""


def watch(out: str | None = None, *, level: int = 1) -> ProcessWatch:
    """Record the memory of this process while a block runs, for `oomdoctor diagnose FOLDER`.

    `out` is the evidence folder, by default a new one in the working directory; `level` is 0 for counters, 1 for who holds what, 2 for
    history. Import torch before the block. Under `oomdoctor run` the folder of that run is used.

    >>> import oomdoctor, os, tempfile
    >>> with tempfile.TemporaryDirectory() as place, oomdoctor.watch(place, level=0) as watched:
    ...     watched.phase("training")
    ...     os.path.samefile(place, watched.folder or "")
    True
    """
    return ProcessWatch(out, level, __version__)


def memory_callback(out: str | None = None, *, level: int = 1) -> MemoryCallback:
    """Return a callback for transformers' or Lightning's Trainer that tells steps and phases, and records like `watch`.

    >>> import os, tempfile
    >>> from oomdoctor.api.runs.watch import memory_callback
    >>> with tempfile.TemporaryDirectory() as place:
    ...     callback = memory_callback(place, level=0)  # Trainer(..., callbacks=[callback])
    ...     callback.watched.stop()
    >>> callback.watched.folder == os.path.abspath(place)
    True
    """
    loaded = (getattr(sys.modules.get(name), "Callback", None) for name in _LIGHTNING)
    bases = tuple(base for base in loaded if base is not None)
    kind = type(MemoryCallback.__name__, (MemoryCallback, *bases), {}) if bases else MemoryCallback
    out_: MemoryCallback = kind(ProcessWatch(out, level, __version__))
    return out_


def _hook(phase: str) -> Callable[..., None]:
    """Return a hook at which a phase begins. What trainers pass holds the number of steps, in the state or in the trainer itself."""

    def enter(self: MemoryCallback, *given: Any, **_: Any) -> None:
        self.watched.phase(phase)
        steps = (getattr(thing, "global_step", None) for thing in given)
        step = next((step for step in steps if isinstance(step, int)), None)
        if step is not None:
            self.watched.step(step)

    return enter


class MemoryCallback:
    """Tells a recorder what a trainer does. Neither library is imported: hooks are called by their names, and all others do nothing."""

    state_key = "oomdoctor.MemoryCallback"

    def __init__(self, watched: ProcessWatch) -> None:
        self.watched = watched
        watched.start()

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return a hook that does nothing, for all that trainers have and no phase follows from."""
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(name)

    # transformers/trainer_callback.py
    on_step_begin = _hook("training")
    on_prediction_step = _hook("evaluation")
    # lightning/pytorch/callbacks/callback.py
    on_train_batch_start = _hook("training")
    on_validation_start = _hook("evaluation")
    on_test_start = _hook("evaluation")
    on_predict_start = _hook("inference")
    on_save_checkpoint = _hook("checkpoint-save")


def _nothing(*_: Any, **named: Any) -> None:
    """Do nothing, whatever a trainer passes."""


def load_ipython_extension(shell: Any) -> None:
    """Record in a notebook: `%load_ext oomdoctor`. A cell that fails is written down, as notebooks catch what cells raise."""
    if _NOTEBOOKS:
        return
    watched = watch()
    watched.start()
    _NOTEBOOKS.append(watched)

    def after_cell(result: Any) -> None:
        watched.start()  # a library that this cell imported
        error = getattr(result, "error_in_exec", None)
        if isinstance(error, Exception):
            watched.failed(type(error), error, error.__traceback__)

    shell.events.register("post_run_cell", after_cell)
