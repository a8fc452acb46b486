"""Known bugs of releases are named where symptom and version fit, and nowhere else."""

from __future__ import annotations

import pytest

from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.bug import BUGS

CONV3D = """Traceback (most recent call last):
  File "/opt/venv/lib/python3.12/site-packages/torch/nn/modules/conv.py", line 717, in _conv_forward
    return F.conv3d(
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 14.34 GiB. GPU 0 has a total capacity of 15.56 GiB of which 2.74 GiB is free.
"""
GROWTH = "Host memory of the server keeps growing with every request.\n"


def diagnosed(text: str) -> Diagnosis:
    return diagnose_logs(["run.log"], load_pack(), text=text.encode())


def named(text: str) -> list[tuple[str, str | None]]:
    return [(bug.id, bug.version) for bug in diagnosed(text).bugs]


@pytest.mark.parametrize(("version", "expected"), [
    pytest.param("2.8.0+cu128", [], id="the release before"),
    pytest.param("2.9.0+cu128", [("torch-conv3d-16-bit", "2.9.0")], id="the first"),
    pytest.param("2.9.1+cu128", [("torch-conv3d-16-bit", "2.9.1")], id="the last"),
    pytest.param("2.10.0+cu128", [], id="the release that is mended"),
])  # fmt: skip
def test_a_bug_is_named_by_the_releases_that_have_it(version: str, expected: list[tuple[str, str]]) -> None:
    assert named(f"PyTorch version: {version}\n{CONV3D}") == expected


def test_the_bug_stands_first_among_the_steps() -> None:
    diagnosis = diagnosed(f"PyTorch version: 2.9.0+cu128\n{CONV3D}")
    assert diagnosis.findings[0].fixes[0].id == "torch-conv3d-16-bit"


def test_a_release_alone_names_nothing() -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.56 GiB.\n"
    assert named(f"torch==2.9.0\nvllm==0.16.0\ndeepspeed==0.16.7\n{text}") == []


def test_the_symptom_of_another_program_names_nothing() -> None:
    assert named(f"torch==2.9.0\n{GROWTH}") == []


def test_a_run_that_ended_well_names_nothing() -> None:
    assert named("PyTorch version: 2.9.0+cu128\nstep 10 loss 2.1\nstep 20 loss 2.0\nTraining finished\n") == []


def test_every_program_is_known_by_some_line_of_its_own() -> None:
    for bug in load_pack().records(BUGS):
        assert bug.facts, bug.id
