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
