"""`oomdoctor rules`: what a person who adds a message meets."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from oomdoctor.cli.main import cli


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["rules", *arguments])
    return done.exit_code, done.output


def test_list_by_kind() -> None:
    status, text = run("list", "--kind", "shm-oom")
    assert status == 0
    assert {line.split()[1] for line in text.splitlines()} == {"shm-oom"}


def test_a_kind_that_there_is_not_is_no_empty_list() -> None:
    status, text = run("list", "--kind", "shm")
    assert status == 2
    assert "shm-oom" in text


@pytest.mark.parametrize("name", ["nvml-procs-assert", "device-memory-full", "smaller-batch", "article-nvml-assert"])
def test_show_a_signature_a_problem_a_fix_and_a_source(name: str) -> None:
    status, text = run("show", name)
    assert status == 0
    assert f'"id": "{name}"' in text


def test_a_new_file_passes_its_own_test(tmp_path: Path) -> None:
    status, text = run("new", "my-program", "my-program-is-full")
    path = tmp_path / "my.yaml"
    path.write_text(text, encoding="utf-8")
    assert status == 0
    assert run("test", str(path)) == (0, "1 signature tested, 0 complaints\n")


@pytest.mark.parametrize(("change", "message"), [
    pytest.param(("fields: {requested_bytes: 2147483648}", "fields: {requested_bytes: 1}"), "requested_bytes", id="a wrong figure"),
    pytest.param(("    near_misses:", "    extra:"), "unknown key 'extra'", id="an unknown key"),
    pytest.param(("a rare part of the message, six letters at least']", "rare']"), "too short", id="a short literal"),
])  # fmt: skip
def test_a_mistake_is_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(run("new", "my-program", "my-program-is-full")[1].replace(*change), encoding="utf-8")
    done = CliRunner().invoke(cli, ["rules", "test", str(path)])
    assert done.exit_code != 0
    assert message in done.output + str(done.exception or "")
