"""`oomdoctor check`: what of a config is wrong, whether it fits, and what CI gets of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from in_process import Done, oomdoctor

GOOD = (
    "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\nbf16: true\ncutoff_len: 1024\nper_device_train_batch_size: 1\n"
)
WARNED = GOOD.replace("cutoff_len", "cutoff_length")
WRONG = GOOD + "fp16: true\n"


def run(*arguments: str, here: Path, **environ: str) -> Done:
    return oomdoctor(["check", *arguments], here=here, environ=environ)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    for name, text in (("good.yaml", GOOD), ("warned.yaml", WARNED), ("wrong.yaml", WRONG)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("arguments", "status"), [
    pytest.param(["good.yaml"], 0, id="a good config"),
    pytest.param(["warned.yaml"], 0, id="a warning"),
    pytest.param(["warned.yaml", "--strict"], 1, id="a warning, strictly"),
    pytest.param(["wrong.yaml"], 1, id="an error"),
    pytest.param(["good.yaml", "--gpu", "H100 80GB"], 0, id="a card with room"),
    pytest.param(["good.yaml", "--gpu", "8GB"], 1, id="a card that is too small"),
    pytest.param(["good.yaml", "--gpu", "no such card"], 2, id="a card that nobody knows"),
    pytest.param(["no.yaml"], 2, id="a file that is not there"),
    pytest.param(["Qwen3-8B"], 2, id="a model without a config"),
    pytest.param([], 2, id="no file"),
])  # fmt: skip
def test_exit_status(here: Path, arguments: list[str], status: int) -> None:
    done = run(*arguments, here=here)
    assert done.returncode == status, done.stdout + done.stderr
    assert "Traceback" not in done.stderr and bool(done.stderr) is (status == 2)


def test_the_worst_comes_first_with_file_and_line(here: Path) -> None:
    (here / "both.yaml").write_text(WARNED + "fp16: true\n", encoding="utf-8")
    done = run("both.yaml", here=here, COLUMNS="200").stdout
    assert done.index("both.yaml:7") < done.index("both.yaml:5") and "1 error, 1 warning." in done


def test_whether_it_fits_is_said_with_the_range(here: Path) -> None:
    done = run("good.yaml", "--gpu", "8GB", here=here).stdout
    assert "It does not fit." in done and " to " in done
    assert "放不下。" in run("good.yaml", "--gpu", "8GB", "--lang", "zh", here=here).stdout


def test_an_unknown_model_is_no_verdict(here: Path) -> None:
    (here / "own.yaml").write_text(GOOD.replace("Qwen/Qwen2.5-7B", "./our-own-model"), encoding="utf-8")
    done = run("own.yaml", "--gpu", "24GB", here=here)
    assert done.returncode == 2 and "our-own-model" in done.stderr and "no problems found" in done.stdout


@pytest.mark.parametrize(("gpu", "expected"), [
    pytest.param("Tesla P4", ["bf16-before-ampere"], id="a card without bf16"),
    pytest.param("V100-16GB", ["bf16-before-ampere"], id="one that is sold in two sizes"),
    pytest.param("RTX 4090", [], id="a card with bf16"),
    pytest.param("24GB", [], id="a size alone"),
])  # fmt: skip
def test_settings_are_held_against_the_card(here: Path, gpu: str, expected: list[str]) -> None:
    report = json.loads(run("good.yaml", "--gpu", gpu, "--format", "json", here=here).stdout)
    assert [complaint["id"] for complaint in report["complaints"]] == expected


def test_json(here: Path) -> None:
    report = json.loads(run("wrong.yaml", "--gpu", "80GB", "--format", "json", here=here).stdout)
    assert (report["schema"], report["framework"], report["counts"]) == (
        "oomdoctor/check/v1",
        "llamafactory",
        {"error": 1, "warning": 0, "note": 0},
    )
    assert report["fits"] == "yes" and report["estimate"]["per_gpu_bytes"]["low"] < report["estimate"]["per_gpu_bytes"]["high"]
    assert [(complaint["id"], complaint["file"], complaint["line"]) for complaint in report["complaints"]] == [
        ("bf16-and-fp16", "wrong.yaml", 7)
    ]


def test_markdown_and_a_file(here: Path) -> None:
    printed = run("wrong.yaml", "--format", "markdown", here=here)
    assert printed.stdout and run("wrong.yaml", "--format", "markdown", "--output", "r.md", here=here).stdout == ""
    assert (here / "r.md").read_text(encoding="utf-8") == printed.stdout


def test_several_files_of_one_run(here: Path) -> None:
    (here / "ds.json").write_text('{"zero_optimization": {"stage": 2}, "fp16": {"enabled": "auto"}}', encoding="utf-8")
    done = run("good.yaml", "ds.json", here=here)
    assert done.returncode == 1 and "bf16" in done.stdout


def test_sarif(here: Path) -> None:
    report = json.loads(run("wrong.yaml", "--format", "sarif", here=here).stdout)
    result = report["runs"][0]["results"][0]
    assert (report["version"], result["ruleId"], result["level"]) == ("2.1.0", "bf16-and-fp16", "error")


@pytest.mark.parametrize(("card", "level", "message"), [
    pytest.param("8GB", ("does-not-fit", "error", 1), "It does not fit. The run needs", id="a run that does not fit"),
    pytest.param("80GB", None, "", id="a run that fits"),
])  # fmt: skip
def test_sarif_has_the_verdict_where_the_model_is_named(here: Path, card: str, level: tuple[str, str, int] | None, message: str) -> None:
    results = json.loads(run("good.yaml", "--gpu", card, "--format", "sarif", here=here).stdout)["runs"][0]["results"]
    if level is None:
        assert results == []
        return
    (finding,) = results
    line = finding["locations"][0]["physicalLocation"]["region"]["startLine"]
    assert (finding["ruleId"], finding["level"], line) == level
    assert finding["message"]["text"].startswith(message)


def test_sarif_has_what_stops_a_server(here: Path) -> None:
    (here / "serve.sh").write_text("vllm serve Qwen/Qwen2.5-7B --max-model-len 900000\n", encoding="utf-8")
    memory, length = json.loads(run("serve.sh", "--gpu", "RTX 4090", "--format", "sarif", here=here).stdout)["runs"][0]["results"]
    assert (memory["ruleId"], memory["level"]) == ("does-not-fit", "error")
    assert "KV cache is needed" in memory["message"]["text"]
    assert (length["ruleId"], length["level"]) == ("refused-length", "error")
    assert "is greater than the derived max_model_len" in length["message"]["text"]


@pytest.mark.parametrize(("command", "fits", "status"), [
    pytest.param("vllm serve Qwen/Qwen2.5-7B --max-model-len 8192", "yes", 0, id="a server that starts"),
    pytest.param("vllm serve Qwen/Qwen2.5-7B --max-model-len 900000", "no", 1, id="a server whose cache is too small"),
])  # fmt: skip
def test_a_server_is_checked_by_its_own_budget(here: Path, command: str, fits: str, status: int) -> None:
    (here / "serve.sh").write_text(command + "\n", encoding="utf-8")
    done = run("serve.sh", "--gpu", "RTX 4090", "--format", "json", here=here)
    report = json.loads(done.stdout)
    assert (report["fits"], report["estimate"]["server"]["program"], done.returncode) == (fits, "vllm", status)
    assert "KV cache" in run("serve.sh", "--gpu", "RTX 4090", "--lang", "en", here=here).stdout


def test_what_is_wrong_with_the_form_of_no_config_is_said(here: Path) -> None:
    (here / "broken.yaml").write_text("a: [1, 2\n", encoding="utf-8")
    done = run("broken.yaml", here=here)
    assert done.returncode == 2
    assert "broken.yaml is not a known config (broken.yaml:2: this is not valid YAML" in done.stderr


def test_settings_of_nobody_are_no_clean_bill(here: Path) -> None:
    (here / "own.sh").write_text("python own.py --size 3 --colour red\n", encoding="utf-8")
    done = run("own.sh", here=here)
    assert (done.returncode, done.stdout.startswith("The framework for these settings is unknown")) == (0, True)
    assert run("own.sh", "--lang", "zh", here=here).stdout.startswith("不知道这是哪个框架的配置")
