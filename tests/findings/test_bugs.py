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
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.56 GiB.\n"
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


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param(
        "Severe OOM in 0.6.4 but 0.6.3 is working\n"
        "Traceback (most recent call last):\n"
        '  File "/opt/venv/lib/python3.11/site-packages/vllm/worker/worker.py", line 9, in f\n'
        "    y = x @ w\n" + OOM,
        [("vllm-memory-counted-anew-0.6.4", "0.6.4")],
        id="a release without its program is that of the program in the frames",
    ),
    pytest.param(
        "Training with Unsloth needs more memory after updating to 2025.10.1\n",
        [("unsloth-more-memory-2025.10", "2025.10.1")],
        id="a release without its program is that of the program that is named in prose",
    ),
    pytest.param("Training needs more memory after updating to 2025.10.1\n", [], id="a release of nobody knows what"),
    pytest.param(
        "unsloth==2025.10.1\nTraining needs more memory after updating the data\n", [], id="a row of a list is not what was changed"
    ),
    pytest.param(
        "PyTorch version: 2.10.0\nComfyUI needs more memory after updating to 0.3.49\n", [], id="a library beside the program that was changed"
    ),
])  # fmt: skip
def test_a_bug_that_came_with_a_release_needs_no_more_than_another_release_that_fits(text: str, expected: list[tuple[str, str]]) -> None:
    assert named(text) == expected


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("### vLLM version\n\n0.16.0\nllm.sleep(level=1)\n", [("vllm-sleep-keeps-weights", "0.16.0")], id="a version below the heading of a form"),
    pytest.param("Swift3.7.0.dev0的显存占用翻倍\nmegatron sft\n", [("ms-swift-megatron-3.7-first-step", "3.7.0.dev0")], id="Chinese right behind a version"),
])  # fmt: skip
def test_versions_as_reporters_write_them(text: str, expected: list[tuple[str, str]]) -> None:
    assert named(f"{text}{OOM}") == expected


def test_every_program_is_known_by_some_line_of_its_own() -> None:
    for bug in load_pack().records(BUGS):
        assert bug.facts, bug.id
