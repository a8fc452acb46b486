"""What trainers tell: phases, steps and what was held in each. The hooks come in the order in which the frameworks call them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from record.recorded import Recorded

from oomdoctor.knowledge.pack import load_pack
from oomdoctor.parse.observer import Observer
from oomdoctor.record.evidence import RefusedRequest
from oomdoctor.record.observations.refusals import refusal_events
from oomdoctor.record.observations.sources import observed
from oomdoctor.record.read_folder import RankEvidence, RunEvidence, read_evidence

ROOT = Path(__file__).parents[2]
HEAD = """
import sys, torch
sys.path.append({root!r})
import oomdoctor
class Holder:
    def __init__(self, **held): self.__dict__.update(held)
def took(mib): torch.Tensor(mib << 20)
state, control = Holder(global_step=0), Holder(should_evaluate=False, should_save=False)
"""
TRANSFORMERS = """
callback = oomdoctor.memory_callback({folder}, level=0)
def tell(hook): getattr(callback, hook)(Holder(), state, control, model=None)
tell("on_init_end")
tell("on_train_begin")
for step in (1, 2):
    tell("on_step_begin"); took(100); state.global_step = step
    control.should_evaluate = control.should_save = step == 2
    tell("on_step_end")
took(300); tell("on_prediction_step"); took(200); tell("on_evaluate")
took(50); tell("on_save")
took(400); tell("on_train_end")
"""
"""Steps, then an evaluation and a checkpoint; what comes between is of no phase (transformers 5.23, trainer.py)."""
LIGHTNING = """
callback = oomdoctor.memory_callback({folder}, level=0)
trainer = Holder(global_step=0)
def tell(hook, *more): getattr(callback, hook)(trainer, Holder(), *more)
tell("on_sanity_check_start"); took(20); tell("on_validation_end"); tell("on_sanity_check_end")
tell("on_train_start"); tell("on_train_batch_start", [1], 0); took(100); trainer.global_step = 2
tell("on_validation_start"); took(300); tell("on_validation_end")
took(400); tell("on_save_checkpoint", {{}}); took(50); tell("on_train_end")
"""
"""Lightning 2.6, loops/fit_loop.py."""
ACCELERATE = """
class Model:
    training, hooks = True, []
    def register_forward_pre_hook(self, hook): self.hooks.append(hook)
    def __call__(self, mib):
        for hook in self.hooks: hook(self, (mib,))
        took(mib)
class Accelerator:
    def save_state(self, folder, mib=0): took(mib); return folder
accelerator, model = Accelerator(), Model()
watched = oomdoctor.watch_accelerator(accelerator, model, out={folder}, level=0)
watched.step(2); model(100)
model.training = False; model(300)
assert accelerator.save_state("x", mib=50) == "x"
took(10)
"""
NONE, MIB = None, 1 << 20


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def run(recorded: Recorded, program: str, *, is_watched: bool = False) -> RunEvidence:
    here = recorded.place / "here"
    text = HEAD.format(root=str(ROOT)) + program.format(folder=repr(str(here)))
    done = recorded.run(text, watched=is_watched, python=sys.executable)
    assert done.returncode == 0, done.stderr
    return read_evidence(str(recorded.folder if is_watched else here))


@pytest.mark.parametrize("is_watched", [pytest.param(False, id="alone"), pytest.param(True, id="in a watched run")])
@pytest.mark.parametrize(
    ("program", "phases"),
    [
        pytest.param(TRANSFORMERS, [("training", 100, 2), ("evaluation", 300, 2), ("checkpoint-save", NONE, 2)], id="transformers"),
        pytest.param(LIGHTNING, [("evaluation", 300, 2), ("training", 100, 2), ("checkpoint-save", NONE, 2)], id="Lightning"),
        pytest.param(ACCELERATE, [("training", 100, 2), ("evaluation", 300, 2), ("checkpoint-save", NONE, 2)], id="accelerate"),
    ],
)
def test_phases_are_told_with_their_peaks(recorded: Recorded, program: str, phases: list[object], is_watched: bool) -> None:
    (rank,) = run(recorded, program, is_watched=is_watched).ranks
    seen = [(phase.name, phase.peak and phase.peak // MIB, phase.last_step) for phase in rank.phases]
    assert seen == phases and all(phase.seconds >= 0 for phase in rank.phases)


def test_an_evaluation_after_the_training_is_followed_by_nothing(recorded: Recorded) -> None:
    program = TRANSFORMERS + "tell('on_prediction_step'); tell('on_evaluate'); assert callback.watched._recorder.phase is None\n"
    run(recorded, program)


def test_the_report_says_in_which_phase_most_was_allocated(recorded: Recorded) -> None:
    evidence = run(recorded, TRANSFORMERS)
    (event,) = [event for part in observed(evidence, load_pack()) for event in part.events if event.signature == "watched-phase-peak"]
    assert event.text == "The most memory was allocated in the evaluation phase: 300.00 MiB."


@pytest.mark.parametrize("program", [TRANSFORMERS, LIGHTNING, ACCELERATE], ids=["transformers", "Lightning", "accelerate"])
def test_without_a_recorder_nothing_is_written(recorded: Recorded, program: str) -> None:
    found = run(recorded, program.replace("level=0", "record=False"))
    assert found.run is None and found.ranks == () and not (recorded.place / "here").exists()


def test_without_a_recorder_a_recorder_that_is_there_is_told(recorded: Recorded) -> None:
    (rank,) = run(recorded, TRANSFORMERS.replace("level=0", "record=False"), is_watched=True).ranks
    assert [phase.name for phase in rank.phases] == ["training", "evaluation", "checkpoint-save"]


def test_what_a_block_does_goes_back_to_the_phase_before(recorded: Recorded) -> None:
    program = (
        "with oomdoctor.watch({folder}, level=0) as watched:\n    watched.phase('training')\n    try:\n        with watched.during('generation'):\n"
        "            took(10); raise KeyError\n    except KeyError: took(30)\n"
    )
    (rank,) = run(recorded, program).ranks
    assert [(phase.name, phase.times, phase.peak and phase.peak // MIB) for phase in rank.phases] == [
        ("training", 2, 30),
        ("generation", 1, 10),
    ]


@pytest.mark.parametrize(
    ("told", "phase"),
    [
        pytest.param("evaluation", "evaluation", id="a known phase"),
        pytest.param("<b>my phase</b>", None, id="a name of the program's own"),
        pytest.param(None, None, id="none"),
    ],
)
def test_a_refusal_is_of_the_phase_that_was_told(told: str | None, phase: str | None) -> None:
    refused = RefusedRequest(driver_request_bytes=1 << 30, phase=told)
    rank = RankEvidence(pid=1, ooms=[refused], snapshots=[])
    evidence = RunEvidence(path="", run=None, samples=(), ranks=(rank,), log=None, environment=None, configs=(), gaps=())
    (event,) = refusal_events(Observer(load_pack()), evidence, rank, refused)
    assert (event.signature, event.phase) == ("watched-refusal", phase)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(b'{"phases": [{"name": 7}]}', id="a name that is no text"),
        pytest.param(b'{"phases": {"name": "x"}}', id="no list"),
        pytest.param(b"[" * 9000, id="deep"),
    ],
)
def test_damaged_phases_are_a_gap(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "ranks").mkdir()
    (tmp_path / "ranks" / "pid-7.phases.json").write_bytes(text)
    found = read_evidence(str(tmp_path))
    assert found.ranks[0].phases == () and [gap.what for gap in found.gaps] == [str(tmp_path / "ranks" / "pid-7.phases.json")]
