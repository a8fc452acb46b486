"""`env --from`: other people's machines, from what their tools printed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oomdoctor.cli.main import cli

ENVIRONMENTS = Path(__file__).parents[2] / "fixtures" / "environments"
FILES = sorted(path for path in ENVIRONMENTS.iterdir() if path.suffix != ".yaml" and path.name != "README.md")


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["env", *arguments], input=given)


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in FILES])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_described_machine_has_a_report(path: Path, lang: str) -> None:
    done = run("--from", str(path), "--lang", lang)
    assert (done.exit_code, done.exception) == (0, None)
    assert path.name in done.output


def test_our_own_json_gives_the_same_environment_again(tmp_path: Path) -> None:
    first = json.loads(run("--from", str(ENVIRONMENTS / "torch-2.3-wsl.txt"), "--format", "json").output)
    path = tmp_path / "env.json"
    path.write_text(json.dumps(first), encoding="utf-8")
    assert json.loads(run("--from", str(path), "--format", "json").output)["environment"] == first["environment"]
    assert first["environment"]["packages"]["nvidia-cublas-cu12"]["version"] == "12.1.3.1"


def test_a_driver_that_is_too_old_for_torch_is_found_in_a_pasted_text() -> None:
    text = "PyTorch version: 2.13.0+cu130\nCUDA used to build PyTorch: 13.0\nNvidia driver version: 470.82.01\n"
    done = run("--from", "-", "--format", "json", "--check", given=text)
    assert done.exit_code == 1
    assert "driver-below-torch-build" in [finding["id"] for finding in json.loads(done.output)["findings"]]


@pytest.mark.parametrize(
    "text",
    [pytest.param("my run is slow\n", id="prose"), pytest.param("", id="nothing"), pytest.param('{"a": 1}', id="JSON of something else")],
)
def test_a_text_about_no_machine_is_wrong_use(text: str) -> None:
    done = run("--from", "-", given=text)
    assert "nothing in it describes a machine" in str(done.exception)


def test_a_file_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    assert "no such file" in str(run("--from", str(tmp_path / "none.txt")).exception)


TORCH = "PyTorch version: {torch}\nIs CUDA available: {seen}\n"
CARD = "GPU models and configuration: GPU 0: {card}\nNvidia driver version: 570.124.06\n"


@pytest.mark.parametrize(("text", "first", "said"), [
    pytest.param(TORCH.format(torch="2.5.1+cu121", seen=True) + CARD.format(card="NVIDIA GeForce RTX 5090"), "1 problem here will make a run fail.", ["CUDA 12.1", "12.0", "CUDA is available"], id="a card that came after the CUDA of torch"),
    pytest.param(TORCH.format(torch="2.9.1+cu128", seen=True) + CARD.format(card="NVIDIA GeForce RTX 5090"), "Nothing here would keep a run from working.", ["CUDA is available"], id="a torch that has code for it"),
    pytest.param(TORCH.format(torch="2.6.0+cpu", seen=False) + CARD.format(card="NVIDIA GeForce RTX 4070"), "1 problem here will make a run fail.", ["a CPU-only build"], id="a build for the CPU beside a card"),
    pytest.param(TORCH.format(torch="2.6.0+cu124", seen=False) + CARD.format(card="NVIDIA GeForce RTX 4070"), "1 problem here will make a run fail.", ["torch sees none"], id="a torch that sees no card"),
    pytest.param("torch==2.14.1\ntorchvision==0.15.0\n", "1 problem here will make a run fail.", ["torch==2.0.*"], id="packages of different years"),
    pytest.param("torch==2.6.0\ntransformers==4.57.1\n", "Nothing in the input would keep a run from working; it does not show which card", [], id="packages without a card are not called fine"),
    pytest.param(CARD.format(card="NVIDIA GeForce RTX 4070"), "No torch was found", [], id="a card without torch is not called fine"),
])  # fmt: skip
def test_what_makes_runs_fail_is_the_first_line(text: str, first: str, said: list[str]) -> None:
    done = run("--from", "-", "--lang", "en", given=text)
    assert done.output.startswith(first)
    assert [part for part in said if part not in " ".join(done.output.split())] == []
