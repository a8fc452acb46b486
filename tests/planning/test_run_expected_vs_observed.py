"""What a diagnosis says where the log tells the model, and that others pay nothing for it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from planning.runs import a_run
from report.published import validate

from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.diagnosis import Diagnosis, Fix
from oomdoctor.case.event import Certainty, Event, Kind, Outcome, Place
from oomdoctor.case.incident import Incident
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.planning.observed.run_expected_vs_observed import at_failure, explaining_length
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.render.markdown import render
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording

PARAMETERS = "trainable params: 20,185,088 || all params: 7,635,801,600 || trainable%: 0.2643\n"
"""Qwen2.5-7B has 7,615,616,512 parameters; LoRA of rank 8 adds the rest."""
FAILURE = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 23.65 GiB of which 1.02 GiB is free. "
    "Including non-PyTorch memory, this process has 22.62 GiB memory in use. Of the allocated memory 21.70 GiB is allocated by PyTorch, "
    "and 419.04 MiB is reserved by PyTorch but unallocated.\n"
)
TRACE = """\
Traceback (most recent call last):
  File "/opt/env/lib/python3.11/site-packages/transformers/models/qwen2/modeling_qwen2.py", line 287, in forward
    hidden_states = self.mlp(hidden_states)
"""
CONFIG = """\
model_name_or_path: {model}
stage: sft
finetuning_type: lora
lora_target: all
lora_rank: 8
dataset: ours
cutoff_len: 1536
per_device_train_batch_size: {batch}
gradient_accumulation_steps: 4
flash_attn: sdpa
bf16: true
"""


def of(log: str, tmp_path: object = None, model: str = "models/ours", batch: int = 4) -> Diagnosis:
    config = []
    if tmp_path is not None:
        path = tmp_path / "sft.yaml"  # type: ignore[operator]
        path.write_text(CONFIG.format(model=model, batch=batch))
        config = [str(path)]
    return diagnose_logs(["train.log"], load_pack(), text=log.encode(), config=config)


def fixes(diagnosis: Diagnosis) -> dict[str, Fix]:
    return {fix.id: fix for finding in diagnosis.findings for fix in finding.fixes}


def test_the_number_of_parameters_tells_the_model(tmp_path: object) -> None:
    expected = of(PARAMETERS + TRACE + FAILURE.format(asked="1.16 GiB"), tmp_path).case.estimate
    assert expected is not None
    assert expected.estimate.setup.shape.name == "Qwen/Qwen2.5-7B"
    assert expected.estimate.setup.adapters is not None
    assert expected.estimate.setup.adapters.count == 20_185_088
    assert expected.is_told


def test_expected_stands_beside_seen(tmp_path: object) -> None:
    expected = of(PARAMETERS + TRACE + FAILURE.format(asked="1.16 GiB"), tmp_path).case.estimate
    assert expected is not None
    assert expected.at is not None
    assert expected.at.phase == "forward"
    assert expected.at.low <= expected.at.expected <= expected.at.high
    assert expected.at.seen == pytest.approx((21.70 + 1.16) * (1 << 30), rel=1e-3)
    assert expected.budget is not None
    assert expected.budget.outside == pytest.approx((22.62 - 21.70) * (1 << 30) - 419.04 * (1 << 20), rel=1e-3)


def test_a_fix_says_what_it_frees_and_whether_the_run_would_fit(tmp_path: object) -> None:
    by_id = fixes(of(PARAMETERS + TRACE + FAILURE.format(asked="1.16 GiB"), tmp_path))
    batch = by_id["smaller-batch"]
    assert batch.fits in ("yes", "close")
    assert batch.frees_bytes is not None
    assert batch.frees_bytes > 4 << 30


def test_a_run_that_should_have_fitted_gets_no_promise(tmp_path: object) -> None:
    full = FAILURE.replace("23.65", "79.15").replace("22.62", "78.12").replace("21.70", "77.20")
    diagnosis = of(PARAMETERS + TRACE + full.format(asked="1.16 GiB"), tmp_path)
    assert diagnosis.case.estimate is not None
    assert diagnosis.case.estimate.fits == "yes"
    assert fixes(diagnosis)["smaller-batch"].frees_bytes
    assert {fix.fits for fix in fixes(diagnosis).values()} <= {None, "no"}


def test_without_batch_and_length_nothing_is_compared() -> None:
    diagnosis = of(PARAMETERS + TRACE + FAILURE.format(asked="1.16 GiB"))
    assert diagnosis.case.estimate is not None
    assert (diagnosis.case.estimate.is_told, diagnosis.case.estimate.at) == (False, None)
    assert {fix.fits for fix in fixes(diagnosis).values()} == {None}


@pytest.mark.parametrize("log", [
    pytest.param(FAILURE.format(asked="1.16 GiB"), id="no word of a model"),
    pytest.param("trainable params: 1,000 || all params: 7,000,000,000\n" + FAILURE.format(asked="1.16 GiB"), id="a number of no known model"),
    pytest.param(PARAMETERS + "training went well\n", id="no failure"),
])  # fmt: skip
def test_what_is_not_known_is_not_estimated(log: str) -> None:
    assert of(log).case.estimate is None


def test_json_has_the_estimate_and_what_was_seen(tmp_path: object) -> None:
    report = json.loads(
        json_text(convert_diagnosis(of(PARAMETERS + TRACE + FAILURE.format(asked="1.16 GiB"), tmp_path), Wording("en"), "0"), redact=True)
    )
    validate(report)
    estimate = report["estimate"]
    assert (estimate["schema"], estimate["model"], estimate["settings_known"]) == ("oomdoctor/estimate/v1", "Qwen/Qwen2.5-7B", True)
    assert estimate["at_failure"]["seen_bytes"] > 22 << 30
    batch = next(fix for finding in report["findings"] for fix in finding["fixes"] if fix["id"] == "smaller-batch")
    assert (batch["fits"], batch["fits_word"]) == (True, "yes")


@pytest.mark.parametrize(("lang", "words"), [
    pytest.param("en", ["Expected from the settings", "With it the run should fit."], id="English"),
    pytest.param("zh", ["按设置推算，此刻张量应占", "这样改之后应该放得下。"], id="Chinese"),
])  # fmt: skip
def test_the_report_says_it(tmp_path: object, lang: str, words: list[str]) -> None:
    report = render(compose(of(PARAMETERS + TRACE + FAILURE.format(asked="1.16 GiB"), tmp_path), Wording(lang), "0"))
    assert [word for word in words if word not in report] == []


def test_weights_that_exceed_the_card_are_the_finding() -> None:
    log = "trainable params: 8,650,752 || all params: 14,778,684,416\n" + FAILURE.format(asked="136.00 MiB")
    diagnosis = of(log)
    assert diagnosis.findings[0].id == "weights-exceed-card"
    assert "27.5" in diagnosis.findings[0].why.en


@pytest.mark.parametrize("log", [
    pytest.param(FAILURE.format(asked="1.16 GiB"), id="a failure without a model"),
    pytest.param("epoch 3 done", id="a log without a failure"),
])  # fmt: skip
def test_a_log_that_names_no_model_loads_nothing_of_the_arithmetic(log: str) -> None:
    check = (
        f"import oomdoctor, sys; oomdoctor.diagnose({log!r})\n"
        "parts = ('oomdoctor.memory', 'oomdoctor.planning', 'oomdoctor.setups.')\n"
        "print([name for name in sys.modules if name.startswith(parts) and not name.startswith('oomdoctor.setups.words')])"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


RUN = a_run(gradient_checkpointing=True)


def a_failure(allocated: int, phase: str | None = "backward") -> Incident:
    root = Event(
        signature="torch-cuda-oom",
        kind=Kind.DEVICE_OOM,
        certainty=Certainty.CERTAIN,
        outcome=Outcome.FAILURE,
        place=Place("train.log", 0),
        text="",
        fields={"allocated_bytes": allocated, "requested_bytes": 0},
    )
    return Incident(kind=Kind.DEVICE_OOM, root=root, certainty=Certainty.CERTAIN, phase=phase)


@given(st.integers(2, 512))
def test_the_length_that_was_there_is_found_again(steps: int) -> None:
    length = steps * 64
    at = at_failure(replace(RUN, length=length), a_failure(1))
    assert at is not None
    assert explaining_length(RUN, a_failure(at.expected)) == length


def test_less_than_the_weights_or_more_than_any_sample_has_another_reason() -> None:
    assert explaining_length(RUN, a_failure(1 << 30)) is None
    assert explaining_length(RUN, a_failure(1 << 50)) is None


def test_without_a_known_moment_nothing_is_said() -> None:
    assert at_failure(RUN, a_failure(20 << 30, None)) is None
    assert explaining_length(RUN, a_failure(20 << 30, None)) is None
