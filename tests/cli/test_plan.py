"""`oomdoctor plan` as people call it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oomdoctor.cli.main import cli

CONFIG = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct
stage: sft
finetuning_type: lora
lora_target: all
dataset: ours
cutoff_len: 2048
per_device_train_batch_size: {batch}
gradient_accumulation_steps: 4
bf16: true
"""
LOG = """\
trainable params: 20,185,088 || all params: 7,635,801,600 || trainable%: 0.2643
  File "/opt/env/lib/python3.11/site-packages/torch/_tensor.py", line 521, in backward
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.16 GiB. GPU 0 has a total capacity of 23.65 GiB of which 1.02 GiB is free. \
Including non-PyTorch memory, this process has 22.62 GiB memory in use. Of the allocated memory 21.70 GiB is allocated by PyTorch, and \
419.04 MiB is reserved by PyTorch but unallocated.
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "sft.yaml"
    path.write_text(CONFIG.format(batch=8))
    return str(path)


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "train.log"
    path.write_text(LOG)
    return str(path)


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, ["plan", *args])


def test_a_plan_names_file_line_and_both_values(config: str) -> None:
    done = run(config, "--gpu", "RTX 4090", "--format", "json")
    report = json.loads(done.output)
    assert (done.exit_code, report["schema"], report["fits"]) == (0, "oomdoctor/plan/v1", "no")
    settings = {setting["key"]: setting for measure in report["plans"][0]["measures"] for setting in measure["settings"]}
    batch = settings["per_device_train_batch_size"]
    assert (batch["framework"], Path(batch["file"]).name, batch["line"], batch["from"]) == ("llamafactory", "sft.yaml", 7, "8")
    assert int(batch["to"]) * int(settings["gradient_accumulation_steps"]["to"]) == 32
    assert report["plans"][0]["per_gpu_bytes"]["high"] <= report["card"]["usable_bytes"]


def test_every_plan_is_there_up_to_the_number_asked_for(config: str) -> None:
    many, single = (json.loads(run(config, "--gpu", "24GB", "--gpus", "4", "--top", top, "--format", "json").output) for top in ("9", "1"))
    assert len(single["plans"]) == 1 <= len(many["plans"]) <= 9
    assert single["plans"][0] == many["plans"][0]
    assert many["combinations"] > 100


@pytest.mark.parametrize(("lang", "expected"), [
    pytest.param("en", ["It does not fit.", "What to change", "as is", "plan 1", "Costs: "], id="English"),
    pytest.param("zh", ["放不下。", "怎么改", "现在", "方案 1", "代价："], id="Chinese"),
])  # fmt: skip
@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_it_is_said_in_words(config: str, lang: str, expected: list[str], form: str) -> None:
    done = run(config, "--gpu", "RTX 4090", "--lang", lang, "--format", form)
    assert [part for part in expected if part not in done.output] == []


@pytest.mark.parametrize(("gpu", "status"), [
    pytest.param("A100-80GB", 0, id="it fits as it is"),
    pytest.param("RTX 4090", 0, id="something fits"),
    pytest.param("1GB", 1, id="nothing fits"),
])  # fmt: skip
def test_the_status_says_whether_something_fits(config: str, gpu: str, status: int) -> None:
    assert run(config, "--gpu", gpu).exit_code == status


def test_where_nothing_fits_it_says_what_would(config: str) -> None:
    done = run(config, "--gpu", "1GB", "--format", "json")
    wall = json.loads(done.output)["wall"]
    assert wall["closest"]["per_gpu_bytes"]["high"] > 1 << 30
    assert wall["card"]
    assert "a card like" in run(config, "--gpu", "1GB", "--lang", "en").output


def test_a_log_tells_the_card_and_what_it_has_beside_torch(log: str, config: str) -> None:
    done = run(log, "--config", config, "--format", "json")
    report = json.loads(done.output)
    assert done.exit_code == 0
    assert report["card"]["bytes"] == pytest.approx(23.65 * (1 << 30), rel=1e-6)
    assert report["card"]["usable_bytes"] < 0.97 * report["card"]["bytes"]
    assert report["model"] == "Qwen/Qwen2.5-7B"


def test_an_unknown_length_is_worked_out_from_what_was_on_the_card(log: str, tmp_path: Path) -> None:
    path = tmp_path / "sft.yaml"
    path.write_text(CONFIG.format(batch=1).replace("cutoff_len: 2048\n", ""))
    report = json.loads(run(log, str(path), "--format", "json").output)
    assumptions = {assumption["id"]: assumption["text"] for assumption in report["assumptions"]}
    assert "explain what was on the card" in assumptions["sequence_length"]


@pytest.mark.parametrize(("args", "says"), [
    pytest.param(["CONFIG"], "which card", id="no card"),
    pytest.param(["CONFIG", "--gpu", "RTX 9999"], "GPU RTX 9999: unknown or ambiguous; did you mean", id="an unknown card"),
    pytest.param(["CONFIG", "--gpu", "24GB", "--model", "nobody/knows"], "the model nobody/knows is not in the table", id="an unknown model"),
    pytest.param(["CONFIG", "--gpu", "24GB", "--model", "Qwne2.5-7B"], "did you mean Qwen/Qwen2.5-7B", id="a mistyped one"),
    pytest.param(["Qwne2.5-7B", "--gpu", "24GB"], "did you mean Qwen/Qwen2.5-7B", id="a mistyped one alone"),
    pytest.param(["no.log", "--gpu", "24GB"], "no.log: no such file", id="no such log"),
    pytest.param(["--gpu", "24GB"], "what to plan?", id="nothing"),
])  # fmt: skip
def test_wrong_use_says_what_to_do(config: str, args: list[str], says: str) -> None:
    done = run(*[config if argument == "CONFIG" else argument for argument in args])
    assert done.exit_code != 0
    assert says in str(done.exception)


def test_a_model_is_planned_for_without_a_config() -> None:
    named = run("Qwen2.5-14B", "--gpu", "24GB", "--format", "json")
    assert named.stdout == run("--model", "Qwen2.5-14B", "--gpu", "24GB", "--format", "json").stdout
    assert json.loads(named.stdout)["plans"]


def test_no_model_is_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "sft.yaml"
    path.write_text(CONFIG.format(batch=1).split("\n", 1)[1])
    assert "which model?" in str(run(str(path), "--gpu", "24GB").exception)
