"""A process that records itself: a block, the callbacks of a trainer, a notebook."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from record.recorded import Recorded

from oomdoctor.api.runs.callbacks import MemoryCallback
from oomdoctor.record.read_folder import RunEvidence, read_evidence

ROOT = Path(__file__).parents[2]
TORCH = "import torch\nimport sys\nsys.path.append({root!r})\nimport oomdoctor\n"


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def run(recorded: Recorded, program: str, *, is_watched: bool = False, status: int = 0) -> RunEvidence:
    text = TORCH.format(root=str(ROOT)) + program.replace("FOLDER", repr(str(recorded.place / "here")))
    done = recorded.run(text, watched=is_watched, python=sys.executable)
    assert done.returncode == status, done.stderr
    return read_evidence(str(recorded.folder if is_watched else recorded.place / "here"))


FAILS = "    watched.phase('training')\n    watched.step(12)\n    torch.cuda.allocate(900 << 20)\n    torch.cuda.allocate(600 << 20)\n"


def test_a_block_records_what_fails_in_it(recorded: Recorded) -> None:
    found = run(recorded, f"with oomdoctor.watch(FOLDER) as watched:\n{FAILS}", status=1)
    assert found.run is not None and (found.run.exit_code, found.run.processes[0].exit_code) == (1, 1)
    (rank,) = found.ranks
    assert rank.hello is not None and rank.hello.hook == "watch"
    (oom,) = rank.ooms
    assert (oom.step, oom.phase, oom.stack[-1].rsplit(":", 2)[1]) == (12, "training", "10")
    assert rank.exception is not None and rank.end is not None


def test_a_block_within_a_watched_run_tells_the_runs_recorder(recorded: Recorded) -> None:
    found = run(recorded, f"with oomdoctor.watch(FOLDER) as watched:\n{FAILS}", is_watched=True, status=1)
    assert not (recorded.place / "here").exists()
    (rank,) = found.ranks
    assert rank.hello is not None and rank.hello.hook == "entry-point" and rank.ooms[0].phase == "training"


def test_what_fails_after_a_block_is_not_its(recorded: Recorded) -> None:
    program = (
        "with oomdoctor.watch(FOLDER):\n    torch.cuda.init()\ntry:\n    torch.cuda.allocate(2 << 30)\nexcept RuntimeError:\n    pass\n"
    )
    found = run(recorded, program)
    assert found.run is not None and found.run.exit_code == 0 and found.ranks[0].ooms == []


TRAINER = """
callback = oomdoctor.memory_callback(FOLDER)
class State: global_step = 41
for hook in ("on_init_end", "on_train_begin", "on_step_begin", "on_step_end", {last!r}):
    assert getattr(callback, hook)({given}) is None
try:
    torch.cuda.allocate(2 << 30)
except RuntimeError:
    pass
"""


@pytest.mark.parametrize(
    ("last", "given", "phase"),
    [
        pytest.param("on_step_begin", "object(), State(), object(), model=None", "training", id="transformers, a step"),
        pytest.param("on_prediction_step", "object(), State(), object(), model=None", "evaluation", id="transformers, an evaluation"),
        pytest.param("on_train_batch_start", "State(), object(), [1], 0", "training", id="Lightning, a batch"),
        pytest.param("on_validation_start", "State(), object()", "evaluation", id="Lightning, a validation"),
        pytest.param("on_save_checkpoint", "State(), object(), {}", "checkpoint-save", id="Lightning, a checkpoint"),
    ],
)
def test_a_trainer_tells_steps_and_phases(recorded: Recorded, last: str, given: str, phase: str) -> None:
    (rank,) = run(recorded, TRAINER.format(last=last, given=given)).ranks
    assert [(oom.step, oom.phase) for oom in rank.ooms] == [(41, phase)]


def test_lightning_gets_a_callback_of_its_own_class(recorded: Recorded) -> None:
    program = (
        "import types\nclass Callback:\n    def setup(self, trainer): return 'base'\n"
        "sys.modules['lightning.pytorch'] = types.SimpleNamespace(Callback=Callback)\n"
        "callback = oomdoctor.memory_callback(FOLDER)\nassert isinstance(callback, Callback) and callback.setup(1) == 'base'\n"
    )
    assert len(run(recorded, program).ranks) == 1


def test_a_callback_has_no_other_attributes() -> None:
    assert not hasattr(MemoryCallback, "on_anything_else") and not hasattr(MemoryCallback.__new__(MemoryCallback), "state_dict")


def test_a_notebook_writes_down_what_a_cell_fails_of(recorded: Recorded) -> None:
    program = (
        "import os, types\nos.environ['XDG_STATE_HOME'] = os.path.join(os.path.dirname(FOLDER), 'state')\ncalls = []\n"
        "shell = types.SimpleNamespace(events=types.SimpleNamespace(register=lambda name, call: calls.append((name, call))))\n"
        "oomdoctor.load_ipython_extension(shell)\noomdoctor.load_ipython_extension(shell)\n((name, call),) = calls\nassert name == 'post_run_cell'\n"
        "call(types.SimpleNamespace(error_in_exec=None))\n"
        "try:\n    torch.cuda.allocate(2 << 30)\nexcept RuntimeError as error:\n    call(types.SimpleNamespace(error_in_exec=error))\n"
    )
    run(recorded, program)
    (folder,) = recorded.place.glob("state/oomdoctor/runs/*")
    (rank,) = read_evidence(str(folder)).ranks
    assert rank.exception is not None and rank.exception.type == "torch.OutOfMemoryError" and len(rank.ooms) == 1
