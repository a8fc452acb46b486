"""`oomdoctor env`: formats, languages, exit status, and what never leaves the machine."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from oomdoctor.case.environment import Environment


def env(*arguments: str, environ: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    variables = {"PATH": os.environ["PATH"], "COLUMNS": "100", **(environ or {})}
    return subprocess.run(
        [sys.executable, "-m", "oomdoctor", "env", *arguments], env=variables, capture_output=True, text=True, timeout=600
    )


def site(folder: Path, torch: str) -> dict[str, str]:
    """A folder on the path with a torch whose import would end the program."""
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "version.py").write_text(torch)
    (folder / "torch" / "__init__.py").write_text("raise SystemExit('torch was imported')")
    return {"PYTHONPATH": str(folder)}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param(["--lang", "en"], ["Cards", "Software", "Machine", "RAM"], id="terminal, English"),
        pytest.param(["--lang", "zh"], ["显卡", "软件", "机器", "内存"], id="terminal, Chinese"),
        pytest.param(["--format", "markdown", "--lang", "en"], ["#### Cards", "| RAM |"], id="Markdown"),
        pytest.param(["--format", "html", "--lang", "zh"], ["<html", "显卡"], id="HTML"),
    ],
)
def test_a_report_in_each_form(arguments: list[str], expected: list[str]) -> None:
    done = env(*arguments)
    assert done.returncode == 0, done.stderr
    assert all(part in done.stdout for part in expected)
    assert "\x1b" not in done.stdout


def test_json_reads_back_as_the_same_environment() -> None:
    report = json.loads(env("--format", "json").stdout)
    assert report["schema"] == "oomdoctor/environment/v1"
    again = msgspec.convert(report["environment"], Environment)
    assert json.loads(msgspec.json.encode(again)) == report["environment"]
    assert again.host.ram_bytes
    assert again.origins["host.ram_bytes"] == "/proc/meminfo"


def test_torch_is_read_and_not_imported(tmp_path: Path) -> None:
    environ = site(tmp_path, "__version__ = '2.6.0+cu124'\ncuda = '12.4'\n")
    report = json.loads(env("--format", "json", environ=environ).stdout)
    assert report["environment"]["torch"]["version"] == "2.6.0+cu124"
    assert "torch_run" not in report["environment"]


def test_deep_says_that_torch_cannot_be_imported_and_check_fails(tmp_path: Path) -> None:
    environ = site(tmp_path, "__version__ = '2.6.0+cpu'\ncuda = None\n")
    done = env("--deep", "--check", "--format", "json", environ=environ)
    assert done.returncode == 1
    report = json.loads(done.stdout)
    assert report["environment"]["torch_run"]["error"] == "SystemExit: torch was imported"
    assert "torch-does-not-import" in [finding["id"] for finding in report["findings"]]


def test_without_check_the_status_is_0_whatever_was_found(tmp_path: Path) -> None:
    assert env("--deep", environ=site(tmp_path, "")).returncode == 0


def test_a_wrong_option_of_the_allocator_is_found_by_the_check_that_reads_configs() -> None:
    done = env("--lang", "en", "--check", environ={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments=True"})
    assert "use :, not =" in done.stdout
    assert "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True" in done.stdout
    assert done.returncode == 1


def test_an_interpreter_that_is_not_there_is_wrong_use(tmp_path: Path) -> None:
    done = env("--python", str(tmp_path / "nothing"))
    assert done.returncode == 2
    assert "no interpreter found there" in done.stderr
    assert "Traceback" not in done.stderr


def test_another_interpreter_is_asked(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -S "$@"\n')
    python.chmod(0o755)
    report = json.loads(env("--python", str(tmp_path), "--format", "json").stdout)
    assert report["environment"]["python"]["version"] == ".".join(map(str, sys.version_info[:3]))
    assert "packages" not in report["environment"]


def test_an_interpreter_that_crashes_still_gives_a_report(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -SEGV $$\n")
    python.chmod(0o755)
    report = json.loads(env("--python", str(python), "--format", "json").stdout)
    assert ["the interpreter of the run", "killed by SIGSEGV"] in [[gap["what"], gap["why"]] for gap in report["environment"]["gaps"]]


SECRETS = {
    "HF_TOKEN": "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "NCCL_API_KEY": "nccl-api-key-value-77",
    "WANDB_API_KEY": "0123456789abcdef0123456789abcdef01234567",
    "VLLM_AUTH_TOKEN": "vllm-auth-token-value-78",
    "OPENAI_API_KEY": "sk-proj-AbCdEfGhIjKlMnOpQrStUvWx",
    "DB_PASSWORD": "correct horse battery",
}


@pytest.mark.parametrize("form", ["terminal", "markdown", "json", "html"])
def test_no_secret_of_the_environment_leaves_in_any_form(form: str) -> None:
    environ = {**SECRETS, "LD_LIBRARY_PATH": "/home/alicesmith/cuda/lib64", "OMP_NUM_THREADS": "8"}
    output = env("--format", form, environ=environ).stdout
    assert "OMP_NUM_THREADS" in output
    assert not [name for name, secret in SECRETS.items() if secret in output]
    assert "alicesmith" not in output


def test_a_read_only_home_and_cache_are_no_hindrance(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    done = env("--lang", "en", environ={"HOME": str(home), "XDG_CACHE_HOME": "/proc/nowhere"})
    assert done.returncode == 0, done.stderr
    assert "RAM" in done.stdout


def test_output_goes_to_a_file(tmp_path: Path) -> None:
    target = tmp_path / "env.json"
    done = env("--format", "json", "--output", str(target))
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(target.read_text(encoding="utf-8"))["schema"] == "oomdoctor/environment/v1"
