"""`oomdoctor triage` as a person and a timer call it."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator
from report.published import SCHEMAS, validate

from oomdoctor.cli.main import cli
from oomdoctor.errors import UsageError

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {size} GiB. GPU 0 has a total capacity of 39.39 GiB.\n"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a folder with the log of a job that died of memory."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "sft-glm-771234.out").write_text(OOM.format(size="3.00"))
    return tmp_path / "logs"


def call(logs: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["triage", *arguments, "--store", str(logs.parent / "store")])


def test_fail_on_new_group_fails_once_for_each_group(logs: Path) -> None:
    statuses = [call(logs, str(logs), "--fail-on", "new-group").exit_code for _ in range(2)]
    (logs / "eval-qwen-771300.out").write_text(OOM.format(size="24.00"))
    statuses += [call(logs, str(logs), "--fail-on", "new-group").exit_code for _ in range(2)]
    assert statuses == [1, 0, 1, 0]
    assert call(logs, str(logs)).exit_code == 1


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("terminal", "  native     name        kind\n  771234  sft-glm  device-oom\n"),
        ("csv", "native,name,kind\n771234,sft-glm,device-oom\n"),
        ("json", '{"native":"771234","name":"sft-glm","kind":"device-oom"}\n'),
    ],
)
def test_a_question_is_answered_from_the_store(logs: Path, form: str, told: str) -> None:
    call(logs, str(logs))
    asked = call(logs, "sql", "SELECT native, name, kind FROM jobs", "--format", form)
    assert asked.output == told


def test_an_answer_of_one_column_is_shown(logs: Path) -> None:
    call(logs, str(logs))
    assert call(logs, "sql", "SELECT count(*) AS n FROM jobs").output == "  n\n  1\n"


def test_new_rows_are_asked_after_the_next_run(logs: Path) -> None:
    call(logs, str(logs))
    assert call(logs, "sql", "SELECT count(*) AS n FROM jobs", "-f", "csv").output == "n\n1\n"
    (logs / "eval-qwen-771300.out").write_text(OOM.format(size="24.00"))
    call(logs, str(logs))
    answer = call(logs, "sql", "SELECT count(*) AS n FROM jobs", "-f", "csv")
    assert answer.output == "n\n2\n"
    assert len(list((logs.parent / "store").glob("rows-*"))) == 1


def test_the_report_is_written_to_a_file(logs: Path) -> None:
    call(logs, str(logs))
    page = logs.parent / "triage.html"
    assert call(logs, "report", "--html", "-o", str(page), "--lang", "zh").exit_code == 0
    assert "给用户的消息" in page.read_text(encoding="utf-8")
    assert "#### " in call(logs, "report", "--lang", "en").output


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_the_summary_and_the_rows_fit_their_schemas(logs: Path, lang: str) -> None:
    (logs / "eval-qwen-771300.out").write_text("")
    rows = logs.parent / "rows.jsonl"
    summary = json.loads(call(logs, str(logs), "--format", "json", "--lang", lang, "-o", str(rows)).output)
    validate(summary)
    assert (summary["jobs"], summary["failed"], summary["unread"], summary["groups"][0]["is_new"]) == (2, 1, 1, True)
    told = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    for row in told:
        Draft202012Validator({**SCHEMAS["oomdoctor/triage/v1"], "additionalProperties": False}).validate(row)
    assert summary["groups"][0]["id"] in {row["group"] for row in told}


def test_jobs_that_bear_one_name_and_end_at_once_are_all_shown(logs: Path) -> None:
    with zipfile.ZipFile(logs / "old.zip", "w") as archive:
        for folder in ("a", "b"):
            archive.writestr(zipfile.ZipInfo(f"{folder}/sft-glm-771200.out", (2025, 6, 1, 0, 0, 0)), OOM.format(size="24.00"))
    call(logs, str(logs))
    assert call(logs, "report", "--lang", "en").output.count("771200") >= 2


def test_a_path_that_is_not_there_is_said_and_makes_no_row(logs: Path) -> None:
    alone = call(logs, str(logs / "gone"))
    beside = call(logs, str(logs), str(logs / "gone*"), "--format", "json")
    assert alone.exit_code == 1
    assert isinstance(alone.exception, UsageError)
    assert "no such file or folder" in str(alone.exception)
    assert "no such file or folder" in beside.stderr
    assert json.loads(beside.stdout)["jobs"] == 1


@pytest.mark.parametrize(("names", "status"), [
    pytest.param(["junk.log"], 2, id="nothing could be read"),
    pytest.param(["junk.log", "well.log"], 0, id="a log that could be read beside it"),
])  # fmt: skip
def test_where_nothing_could_be_read_nothing_is_said_to_be_well(tmp_path: Path, names: list[str], status: int) -> None:
    (tmp_path / "junk.log").write_bytes(bytes(range(128)) * 80)
    (tmp_path / "well.log").write_text("step 1 loss 2.0\ndone\n")
    done = call(tmp_path, *(str(tmp_path / name) for name in names), "--lang", "en")
    assert (done.exit_code, "No job ran out" in done.output) == (status, status == 0)


def test_a_folder_that_is_called_like_the_command_is_read(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(logs.parent)
    assert call(logs, "logs").output.startswith("1 job in 1 file.")
    monkeypatch.chdir(logs)
    with pytest.raises(UsageError, match="which logs"):
        CliRunner().invoke(cli, ["triage", "logs"], standalone_mode=False, catch_exceptions=False)


def test_a_group_is_shown_with_its_log_from_any_folder(
    logs: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(logs.parent)
    store = str(logs.parent / "store")
    call(logs, logs.name)
    here = call(logs, "show", "1", "--full", "--lang", "en").output
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    there = call(logs, "show", "1", "--full", "--lang", "en").output
    assert there == here
    joined = "".join(there.split())  # a long path is broken where the line ends
    assert store in joined and str(logs) in joined and "notthereanymore" not in joined


def test_users_and_mails_are_told_of_the_last_triage(logs: Path) -> None:
    records = logs.parent / "sacct.psv"
    records.write_text(
        "JobID|JobName|User|State|Start|End|AllocTRES\n771234|sft-glm|ada|FAILED|2025-06-01T00:00:00|2025-06-01T02:00:00|gres/gpu=8\n"
    )
    call(logs, str(logs), "--records", str(records))
    (user,) = map(json.loads, call(logs, "users", "--format", "json").output.splitlines())
    assert user == {"user": "ada", "jobs": 1, "failed": 1, "groups": 1, "gpu_hours_lost": 16.0}
    assert call(logs, "users", "--lang", "en").output.splitlines()[-1].split() == ["ada", "1", "1", "100", "%", "1", "16.0"]
    (mail,) = map(json.loads, call(logs, "mails", "--format", "json", "--lang", "en").output.splitlines())
    assert (mail["user"], mail["jobs"], "Your job 771234 (sft-glm) ran out of GPU memory" in mail["text"]) == ("ada", 1, True)
    assert call(logs, "mails", "--lang", "en").output.startswith("To: ada\nSubject: 1 of your jobs ran out of memory")


def test_a_group_is_shown_with_the_triage_that_it_is_of(logs: Path) -> None:
    call(logs, str(logs))
    shown = "".join(call(logs, "show", "1", "--lang", "en").output.split())
    assert "Fromthetriagethatendedat20" in shown
    assert "".join(str(logs.parent / "store").split()) in shown
