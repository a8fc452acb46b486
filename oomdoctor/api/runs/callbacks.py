"""What trainers report to a recorder: which phase begins, and which step. No framework is imported: hooks are called by their names.

Under `oomdoctor run` that run's recorder is used; otherwise one starts here, unless `record` is false.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from oomdoctor import __version__
from oomdoctor.record.here import ProcessWatch

_LIGHTNING = ("lightning.pytorch", "pytorch_lightning")
"""Frameworks whose Trainer accepts only its own callback class (trainer/connectors/callback_connector.py), if loaded."""
_TRAINING, _EVALUATION, _INFERENCE, _SAVE, _LOAD = "training", "evaluation", "inference", "checkpoint-save", "checkpoint-load"


def memory_callback(out: str | None = None, *, level: int = 1, record: bool = True) -> MemoryCallback:
    """Return a callback for transformers' or Lightning's Trainer that reports steps and phases, and records like `watch`.

    If `oomdoctor run` is watching the process, its recorder is used; otherwise an evidence folder is created (`out`), unless `record`
    is false. Import Lightning before.

    >>> import os, tempfile
    >>> from oomdoctor.api.runs.callbacks import memory_callback
    >>> with tempfile.TemporaryDirectory() as place:
    ...     callback = memory_callback(place, level=0)  # Trainer(..., callbacks=[callback])
    ...     callback.watched.stop()
    >>> callback.watched.folder == os.path.abspath(place)
    True
    """
    loaded = (getattr(sys.modules.get(name), "Callback", None) for name in _LIGHTNING)
    bases = tuple(base for base in loaded if base is not None)
    kind = type(MemoryCallback.__name__, (MemoryCallback, *bases), {}) if bases else MemoryCallback
    out_: MemoryCallback = kind(ProcessWatch(out, level, __version__, begins=record))
    return out_


def watch_accelerator(accelerator: Any, *models: Any, out: str | None = None, level: int = 1, record: bool = True) -> ProcessWatch:
    """Report the phases of a loop that uses accelerate, and record like `watch`.

    `models` are those returned by `accelerator.prepare`: a model in training mode trains, one in evaluation mode evaluates.
    `save_state`, `save_model` and `load_state` are phases of their own. Steps are those of the optimizer.

    >>> import os, tempfile
    >>> from types import SimpleNamespace
    >>> from oomdoctor.api.runs.callbacks import watch_accelerator
    >>> with tempfile.TemporaryDirectory() as place:
    ...     watched = watch_accelerator(SimpleNamespace(), out=place, level=0)  # an Accelerator
    ...     watched.stop()
    >>> watched.folder == os.path.abspath(place)
    True
    """
    watched = ProcessWatch(out, level, __version__, begins=record)
    watched.start()

    def begins(model: Any, _: object) -> None:
        watched.phase(_TRAINING if model.training else _EVALUATION)

    for model in models:
        model.register_forward_pre_hook(begins)
    for name, phase in (("save_state", _SAVE), ("save_model", _SAVE), ("load_state", _LOAD)):
        if hasattr(accelerator, name):
            setattr(accelerator, name, _within(watched, getattr(accelerator, name), phase))
    return watched


def _within(watched: ProcessWatch, method: Callable[..., Any], phase: str) -> Callable[..., Any]:
    """Return a method that is a phase while it runs."""

    def call(*args: Any, **named: Any) -> Any:
        with watched.during(phase):
            return method(*args, **named)

    return call


def _hook(phase: str | None) -> Callable[..., None]:
    """Return a hook at which a phase begins. Trainers pass the number of steps, in the state or in the trainer itself."""

    def enter(self: MemoryCallback, *given: Any, **_: Any) -> None:
        self.tell_step(given)
        self.watched.phase(phase)

    return enter


class MemoryCallback:
    """Reports to a recorder what a trainer does. Neither library is imported: hooks are called by name, and all others do nothing."""

    state_key = "oomdoctor.MemoryCallback"

    def __init__(self, watched: ProcessWatch) -> None:
        self.watched = watched
        self._trains = False
        watched.start()

    def __getattr__(self, name: str) -> Callable[..., None]:
        """Return a hook that does nothing, for all trainer hooks that imply no phase."""
        if name.startswith("on_"):
            return _nothing
        raise AttributeError(name)

    def tell_step(self, given: tuple[Any, ...]) -> None:
        """Report the number of steps found in a hook's arguments."""
        steps = (getattr(thing, "global_step", None) for thing in given)
        step = next((step for step in steps if isinstance(step, int)), None)
        if step is not None:
            self.watched.step(step)

    # transformers/trainer_callback.py. No hook precedes an evaluation or a checkpoint: what comes next is in `control` when a step or an
    # epoch has ended (trainer.py, _maybe_log_save_evaluate). `on_prediction_step` comes after the first batch.
    on_step_begin = _hook(_TRAINING)
    on_prediction_step = _hook(_EVALUATION)
    on_save = on_predict = _hook(None)

    def on_train_begin(self, *given: Any, **_: Any) -> None:
        """Report the step at which training begins, which is not 0 if it resumes."""
        self._trains = True
        self.tell_step(given)

    def on_train_end(self, *given: Any, **_: Any) -> None:
        """Report that it is unknown what follows."""
        self._trains = False
        self.tell_step(given)
        self.watched.phase(None)

    def on_step_end(self, *given: Any, **_: Any) -> None:
        """Report what follows a step or an epoch: an evaluation, a checkpoint, or neither."""
        self.tell_step(given)
        if _is_set("should_evaluate", given):
            self.watched.phase(_EVALUATION)
        elif _is_set("should_save", given):
            self.watched.phase(_SAVE)

    on_epoch_end = on_step_end

    def on_evaluate(self, *given: Any, **_: Any) -> None:
        """Report what follows an evaluation: during training a checkpoint, otherwise unknown."""
        self.watched.phase(_SAVE if self._trains and _is_set("should_save", given) else None)

    # lightning/pytorch/callbacks/callback.py
    on_train_batch_start = _hook(_TRAINING)
    on_validation_start = on_sanity_check_start = on_test_start = _hook(_EVALUATION)
    on_predict_start = _hook(_INFERENCE)
    on_save_checkpoint = _hook(_SAVE)
    on_load_checkpoint = _hook(_LOAD)
    on_validation_end = on_sanity_check_end = on_test_end = on_predict_end = on_train_start = on_fit_end = _hook(None)


def _is_set(name: str, given: tuple[Any, ...]) -> bool:
    """Return whether one of a hook's arguments, the control of a trainer, has a flag set."""
    return any(getattr(thing, name, False) is True for thing in given)


def _nothing(*_: Any, **named: Any) -> None:
    """Do nothing, whatever a trainer passes."""
