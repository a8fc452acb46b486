"""What a person and a program see of the config."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from oomdoctor.cli.diagnose import diagnose

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.\n"
FIVE_MISTAKES = (
    "finetuning_type: lora\ncutoff_len: 900\nbf16: true\nfp16: true\nflash_attn: yes please\nquantization_bit: 4\n"
    "per_device_train_batch_sze: 2\nper_device_train_batch_size: 4\ngradient_accumulation_steps: 20\nlora_rnk: 5\n"
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.log").write_text(OOM)
    (tmp_path / "sft.yaml").write_text(FIVE_MISTAKES)
    return tmp_path


def said(*options: str) -> str:
    return CliRunner().invoke(diagnose, ["x.log", "--lang", "en", *options]).output


@pytest.mark.usefixtures("run")
def test_what_stops_the_run_is_shown_and_the_rest_is_folded() -> None:
    text = said("--config", "sft.yaml", "--format", "markdown")
    shown, _, folded = text.partition("<details>")
    assert "sft.yaml:4" in shown
    assert [place for place in ("sft.yaml:5", "sft.yaml:7", "sft.yaml:10") if place in shown] == []
    assert [place for place in ("sft.yaml:4", "sft.yaml:5", "sft.yaml:7", "sft.yaml:10") if place not in folded] == []
    assert "accumulation over 20 steps" in folded


@pytest.mark.usefixtures("run")
def test_without_a_config_nothing_is_said_of_one() -> None:
    assert "Your config" not in said()


def test_a_right_config_is_no_news(run: Path) -> None:
    (run / "sft.yaml").write_text("finetuning_type: lora\ncutoff_len: 900\nbf16: true\n")
    text = said("--config", "sft.yaml")
    assert "Your config" not in text


@pytest.mark.usefixtures("run")
def test_the_settings_and_complaints_as_json() -> None:
    config = json.loads(said("--config", "sft.yaml", "--format", "json"))["training"]["config"]
    assert config["framework"] == "llamafactory"
    assert config["settings"]["micro_batch"] == {"value": 4, "key": "per_device_train_batch_size", "file": "sft.yaml", "line": 8}
    first = config["complaints"][0]
    assert (first["id"], first["severity"], first["line"], first["instead"]) == ("bf16-and-fp16", "error", 4, "fp16: false")


@pytest.mark.usefixtures("run")
def test_a_config_that_is_not_there_is_wrong_use() -> None:
    done = CliRunner().invoke(diagnose, ["x.log", "--config", "nowhere.yaml"])
    assert done.exit_code == 2
    assert "nowhere.yaml" in done.output


def test_escapes_of_a_config_do_not_reach_the_terminal(run: Path) -> None:
    (run / "d.json").write_text('{"zero_optimization": {"stage": 2, "overlap_comm\\u001b[31m": true, "overlap_com": "\x1b]0;x\x07"}}')
    assert "\x1b" not in said("--config", "d.json")
