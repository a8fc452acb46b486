"""What was held, part by part, beside what the settings lead to expect, and what fixes free of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace
from record.made_evidence import GIB, MIB, SITE, Card
from record.test_evaluations import LAYERS, TRAIN, WEIGHT

from oomdoctor import diagnose
from oomdoctor.api.runs.evidence import diagnose_evidence
from oomdoctor.case.diagnosis import Diagnosis, Fix
from oomdoctor.case.recorded.parts import MeasuredPart
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.diagnosis.do_this import do_this
from oomdoctor.report.document import BriefSteps
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wording.wording import Wording

STATES = (f"{SITE}/optim/adamw.py:152:_init_group", f"{SITE}/optim/optimizer.py:500:wrapper", "/srv/fit.py:44:main")
HELD = ("/srv/cache.py:9:hold", "/srv/fit.py:9:main")
CACHE = ("/opt/venv/lib/python3.12/site-packages/transformers/cache_utils.py:120:update", *TRAIN)
FULL = """
model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
do_train: true
finetuning_type: full
cutoff_len: 2048
per_device_train_batch_size: 4
gradient_accumulation_steps: 1
bf16: true
pure_bf16: true
disable_gradient_checkpointing: true
output_dir: out
"""
"""Weights 15 GiB, gradients 15, states 30, activations about 59 (8.03e9 parameters, 32 layers)."""


def died(folder: Path, held: Sequence[tuple[int, int, tuple[str, ...]]], config: str | None = FULL) -> Diagnosis:
    """Return the diagnosis of a card of 80 GiB that held blocks (number, MiB, frames) when a request failed."""
    card = Card(folder, total=80 * GIB)
    for number, size, frames in held:
        for _ in range(number):
            card.ask(size * MIB, *frames)
    card.tick()
    card.dies(79 * GIB, (*LAYERS[0], *TRAIN))
    written = [str(folder / "run.yaml")] if config else []
    for path in written:
        Path(path).write_text(str(config))
    return diagnose_evidence(str(folder), load_pack(), config=written)


def part(diagnosis: Diagnosis, name: str) -> MeasuredPart:
    assert diagnosis.case.measured is not None
    return next(part for part in diagnosis.case.measured.parts if part.name == name)


def fix(diagnosis: Diagnosis, name: str) -> Fix:
    return next(fix for finding in diagnosis.findings for fix in finding.fixes if fix.id == name)


WEIGHTS, ACTIVATIONS = (32, 480, WEIGHT), (40, 380, (*LAYERS[0], *TRAIN))


@pytest.mark.parametrize(("held", "name", "says"), [
    pytest.param([WEIGHTS, ACTIVATIONS], "gradients-and-backward", "before the backward pass", id="gradients are expected and none are there"),
    pytest.param([WEIGHTS, ACTIVATIONS], "optimizer-states", "first optimizer step", id="so are states"),
    pytest.param([(1, 1024, WEIGHT), (64, 1000, STATES)], "optimizer-states", "master copies", id="states twice as large as expected"),
    pytest.param([(64, 960, WEIGHT)], "weights", "more than one copy", id="four times the weights"),
    pytest.param([WEIGHTS, (20, 500, CACHE)], "kv-cache", "nothing in the settings explains it: srv/fit.py:70:main", id="a cache that training does not need"),
])  # fmt: skip
def test_a_large_difference_says_what_it_means(
    tmp_path: Path, held: Sequence[tuple[int, int, tuple[str, ...]]], name: str, says: str
) -> None:
    meaning = part(died(tmp_path, held), name).meaning
    assert meaning is not None
    assert says in meaning.en


@pytest.mark.parametrize(("held", "name"), [
    pytest.param([WEIGHTS, ACTIVATIONS], "weights", id="weights as expected"),
    pytest.param([WEIGHTS, (80, 380, (*LAYERS[0], *TRAIN))], "activations", id="half of the activations"),
    pytest.param([WEIGHTS, ACTIVATIONS, (1, 200, CACHE)], "kv-cache", id="a part that decides nothing"),
    pytest.param([WEIGHTS, (30, 1000, HELD)], "gradients-and-backward", id="what nobody can name may be the gradients"),
])  # fmt: skip
def test_a_small_difference_means_nothing(tmp_path: Path, held: Sequence[tuple[int, int, tuple[str, ...]]], name: str) -> None:
    assert part(died(tmp_path, held), name).meaning is None


def test_parts_add_up_to_what_was_live_and_say_where_they_are_from(tmp_path: Path) -> None:
    diagnosis = died(tmp_path, [WEIGHTS, ACTIVATIONS, (3, 1024, HELD)])
    measured = diagnosis.case.measured
    assert measured is not None
    assert measured.at == "failure"
    assert sum(part.bytes for part in measured.parts) == pytest.approx(
        diagnosis.case.incidents[0].root.size("allocated_bytes"), abs=0.01 * GIB
    )
    assert (part(diagnosis, "weights").source, part(diagnosis, "unknown").site) == ("measured", "srv/cache.py:9:hold")


def test_without_a_config_what_is_there_stands_alone(tmp_path: Path) -> None:
    diagnosis = died(tmp_path, [WEIGHTS, ACTIVATIONS], config=None)
    assert part(diagnosis, "weights").expected is None
    assert diagnosis.case.measured is not None
    assert [part.name for part in diagnosis.case.measured.parts] == ["weights", "activations"]


def test_a_recording_without_frames_has_no_parts(tmp_path: Path) -> None:
    assert died(tmp_path, [(40, 380, ())]).case.measured is None


def test_half_a_batch_frees_half_of_what_it_was_measured_to_take(tmp_path: Path) -> None:
    saving = fix(died(tmp_path, [WEIGHTS, ACTIVATIONS], config=None), "smaller-batch").frees_measured
    assert saving is not None
    assert (saving.by, saving.of, saving.bytes) == ("half", 40 * 380 * MIB, 20 * 380 * MIB)


def test_the_settings_say_how_much_less_a_batch_takes(tmp_path: Path) -> None:
    saving = fix(died(tmp_path, [WEIGHTS, ACTIVATIONS]), "smaller-batch").frees_measured
    assert saving is not None
    assert saving.by == "model"
    assert saving.bytes / saving.of == pytest.approx(0.5, abs=0.01)


def test_checkpointing_frees_at_most_what_layers_keep(tmp_path: Path) -> None:
    saving = fix(died(tmp_path, [WEIGHTS, ACTIVATIONS], config=None), "gradient-checkpointing").frees_measured
    assert saving is not None
    assert (saving.by, saving.bytes) == ("at-most", saving.of)


def test_what_was_not_measured_is_not_freed(tmp_path: Path) -> None:
    diagnosis = died(tmp_path, [WEIGHTS], config=None)
    assert {fix.frees_measured for finding in diagnosis.findings for fix in finding.fixes if fix.terms == ("activations",)} <= {None}


def test_a_snapshot_can_stand_beside_a_log(tmp_path: Path) -> None:
    died(tmp_path, [WEIGHTS, ACTIVATIONS])
    log = tmp_path / "train.log"
    log.write_text(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 60.00 GiB. GPU 0 has a total capacity of 80.00 GiB of which 50.16 GiB is free. Of the allocated memory 29.84 GiB is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.\n"
    )
    snapshot = next((tmp_path / "ranks").glob("*.pickle"))
    diagnosis = diagnose([log], snapshot=snapshot)
    assert part(diagnosis, "activations").bytes == 40 * 380 * MIB
    assert part(diagnosis, "weights").site == "srv/fit.py:12:main"


@pytest.mark.parametrize(("lang", "sentence"), [
    ("en", "frees ≈7.42 GiB if halved"),
    ("zh", "减半约省 7.42 GiB"),
])  # fmt: skip
def test_a_step_says_in_short_what_it_frees(tmp_path: Path, lang: str, sentence: str) -> None:
    diagnosis = died(tmp_path, [WEIGHTS, ACTIVATIONS], config=None)
    finding = diagnosis.findings[0]
    batch = fix(diagnosis, "smaller-batch")
    first = replace(batch, id="first", frees_measured=None)
    shown = do_this(replace(diagnosis, findings=(replace(finding, fixes=(first, batch)),), open_cause=None), Wording(lang))
    brief = [step for block in shown if isinstance(block, BriefSteps) for step in block.steps]
    assert sentence in brief[1].aside


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_json_says_which_figure_is_read_derived_or_estimated(tmp_path: Path, lang: str) -> None:
    measured = convert_diagnosis(died(tmp_path, [WEIGHTS, ACTIVATIONS]), Wording(lang), "0").measured
    assert measured is not None
    weights = next(part for part in measured.parts if part.what == "weights")
    assert weights.expected is not None
    assert weights.difference_bytes == weights.bytes - weights.expected.bytes
    assert weights.source == "measured"
