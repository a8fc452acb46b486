"""What stands under integrations/github, and the hook for pre-commit, run as they are called there."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from script_programs import AT_LOAD, INTEGRATIONS, ROOT, WELL, program, recorder, run, tool

GITHUB = INTEGRATIONS / "github"
MARK = "<!-- oomdoctor:answer -->"


def action(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((GITHUB / name / "action.yml").read_text())
    return loaded


@pytest.mark.parametrize("name", ["diagnose", "answer"])
def test_an_action_hands_texts_over_by_the_environment_alone(name: str) -> None:
    for step in action(name)["runs"]["steps"]:
        assert "${{" not in step["run"]
        scripts = re.findall(r"\$GITHUB_ACTION_PATH/(\S+\.sh)", step["run"])
        assert all(os.access(GITHUB / name / script, os.X_OK) for script in scripts)
        used = {variable for script in scripts for variable in re.findall(r"\$\{?(OOMDOCTOR_\w+)", (GITHUB / name / script).read_text())}
        assert used <= set(step.get("env", {}))


@pytest.mark.parametrize("name", ["diagnose", "answer"])
def test_an_action_uses_inputs_and_outputs_that_it_has(name: str) -> None:
    told = action(name)
    text = (GITHUB / name / "action.yml").read_text()
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(told["inputs"])
    assert (told["runs"]["using"], all(step["shell"] == "bash" for step in told["runs"]["steps"])) == ("composite", True)


LOGS = {
    "a failed job": (AT_LOAD, "yes", "CUDA out of memory"),
    "a job that went well": (WELL, "no", "No failure found in the input"),
    "no log": (None, "unknown", ""),
}


@pytest.mark.parametrize(("text", "failed", "shows"), LOGS.values(), ids=LOGS)
def test_the_log_of_a_failed_job_is_diagnosed(tmp_path: Path, text: str | None, failed: str, shows: str) -> None:
    tool(tmp_path / "bin")
    log, summary, output = tmp_path / "a job.log", tmp_path / "summary", tmp_path / "output"
    if text is not None:
        log.write_text(text)
    done = run(
        "github/diagnose/diagnose.sh", path=tmp_path / "bin",
        OOMDOCTOR_LOGS=f"{log}\n\n", OOMDOCTOR_LANG="en", GITHUB_STEP_SUMMARY=str(summary), GITHUB_OUTPUT=str(output),
    )  # fmt: skip
    assert (done.returncode, output.read_text()) == (0, f"memory-failure={failed}\n")
    assert shows.lower() in summary.read_text().lower()


def comment(number: int, author: str, body: str) -> dict[str, object]:
    return {"id": number, "user": {"login": author}, "body": body}


OURS, THEIRS = comment(11, "github-actions[bot]", f"{MARK}\nold"), comment(12, "somebody", f"{MARK}\nnot ours")
ANSWERS = {
    "an issue with a failure": (AT_LOAD, [THEIRS], ["--method", "POST", "repos/o/r/issues/7/comments"]),
    "an issue that was answered, and is edited": (AT_LOAD, [THEIRS, OURS], ["--method", "PATCH", "repos/o/r/issues/comments/11"]),
    "an issue that was answered, and shows no failure any more": (WELL, [OURS], ["--method", "PATCH", "repos/o/r/issues/comments/11"]),
    "an issue without a failure": ("The docs have a typo.", [THEIRS], None),
    "an issue without a text": ("", [], None),
}


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq")
@pytest.mark.parametrize(("text", "comments", "sent"), ANSWERS.values(), ids=ANSWERS)
def test_an_issue_has_one_answer(tmp_path: Path, text: str, comments: list[dict[str, object]], sent: list[str] | None) -> None:
    tool(tmp_path / "bin")
    calls = recorder(tmp_path / "bin", "gh", json.dumps(comments[:1]) + json.dumps(comments[1:]))
    done = run(
        "github/answer/answer.sh", path=tmp_path / "bin",
        OOMDOCTOR_TEXT=text, OOMDOCTOR_ISSUE="7", OOMDOCTOR_REPOSITORY="o/r", OOMDOCTOR_AUTHOR="github-actions[bot]",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    listed, *written = calls.read_text().split("api\n")[1:]
    assert listed.splitlines() == ["--paginate", "repos/o/r/issues/7/comments"]
    assert [call.splitlines()[:3] for call in written] == ([] if sent is None else [sent])
    assert all(call.splitlines()[3:5] == ["--raw-field", f"body={MARK}"] for call in written)


HOOKED = {
    "configs that are fine": ({"a.yaml": "services: {}\n", "b.yaml": "stage: sft\n"}, 0),
    "a config that stops its run": ({"a.yaml": "services: {}\n", "b.json": '{"zero_optimization": {"stage": 3}, "fp16": {"enabled": true}, "bf16": {"enabled": true}}\n'}, 1),
    "a file that is no config": ({"a.yaml": "services: [\n"}, 0),
}  # fmt: skip


@pytest.mark.parametrize(("files", "status"), HOOKED.values(), ids=HOOKED)
def test_the_hook_of_pre_commit_takes_each_file_as_a_run(tmp_path: Path, files: dict[str, str], status: int) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    tool(tmp_path / "bin")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run([*shlex.split(hook["entry"]), *files], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=600)
    assert done.returncode == status, done.stdout + done.stderr


def test_programs_of_these_tests_are_found_first(tmp_path: Path) -> None:
    assert program(tmp_path, "gh", "exit 0") == Path(shutil.which("gh", path=f"{tmp_path}:{os.environ['PATH']}") or "")
