"""`oomdoctor bugs`: by package and version, by program, by a list of packages, by id."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oomdoctor.cli.main import cli


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(cli, ["bugs", *arguments], input=given)


def ids(*arguments: str, given: str | None = None) -> list[str]:
    done = run(*arguments, "--format", "json", given=given)
    assert done.exit_code == 0, done.output
    return [bug["id"] for bug in json.loads(done.output)["bugs"]]


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_without_a_name_the_programs_are_listed(lang: str) -> None:
    done = run("--lang", lang)
    assert done.exit_code == 0
    assert "vLLM" in done.output


def test_a_release_has_the_bugs_of_its_span() -> None:
    assert "torch-conv3d-16-bit" in ids("torch==2.9.0+cu128")
    assert "torch-conv3d-16-bit" not in ids("torch==2.10.0")


def test_a_list_of_packages_counts_all_that_is_installed(tmp_path: Path) -> None:
    text = "deepspeed==0.16.7\ntorch==2.9.1\nnumpy==2.1.0\n"
    path = tmp_path / "freeze.txt"
    path.write_text(text, encoding="utf-8")
    listed = ids(str(path))
    assert {"torch-conv3d-16-bit", "deepspeed-offload-copy-of-another-type"} <= set(listed)
    assert ids("-", given=text) == listed


def test_an_id_names_one_bug() -> None:
    assert ids("torch-conv3d-16-bit") == ["torch-conv3d-16-bit"]


@pytest.mark.parametrize(("name", "message"), [
    pytest.param("deepsped==0.16.7", "did you mean 'deepspeed'", id="a program that is spelled otherwise"),
    pytest.param("torch==new", "'new' is not a version", id="no version"),
])  # fmt: skip
def test_what_is_wrong_use(name: str, message: str) -> None:
    assert message in str(run(name).exception)


def test_a_file_without_packages_is_wrong_use(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("my run is slow\n", encoding="utf-8")
    assert run(str(path)).exception is not None
