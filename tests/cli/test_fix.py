"""`oomdoctor fix` as a person uses it: the difference, the question, the copy, the second run, the exit status."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from in_process import Done, oomdoctor

LOG = """\
***** Running training *****
  Instantaneous batch size per device = 8
  Gradient Accumulation steps = 2
Traceback (most recent call last):
  File "/x/torch/_tensor.py", line 581, in backward
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.02 GiB is free. \
Of the allocated memory 21.50 GiB is allocated by PyTorch, and 310.00 MiB is reserved by PyTorch but unallocated.
"""
CONFIG = """\
### model
model_name_or_path: Qwen/Qwen2.5-7B
stage: sft
finetuning_type: lora
bf16: true
per_device_train_batch_size: 8   # as on the big card
gradient_accumulation_steps: 2
disable_gradient_checkpointing: true
"""


def run(*arguments: str, here: Path, text: str = "") -> Done:
    return oomdoctor(["fix", *arguments], here=here, text=text)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "train.log").write_text(LOG, encoding="utf-8")
    (tmp_path / "sft.yaml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def files(here: Path) -> list[str]:
    return sorted(path.name for path in here.iterdir())


def test_a_dry_run_prints_the_difference_and_writes_nothing(here: Path) -> None:
    done = run("train.log", "--config", "sft.yaml", "--dry-run", here=here)
    assert (done.returncode, (here / "sft.yaml").read_text()) == (0, CONFIG)
    assert "-per_device_train_batch_size: 8   # as on the big card\n" in done.stdout
    assert "+per_device_train_batch_size: 2   # as on the big card\n" in done.stdout
    assert files(here) == ["sft.yaml", "train.log"] and "\x1b" not in done.stdout


def test_the_difference_is_one_that_patch_takes(here: Path) -> None:
    done = run("train.log", "--config", "sft.yaml", "--dry-run", here=here)
    diff = done.stdout[: done.stdout.index("\n\n") + 1]
    applied = subprocess.run(["git", "apply", "-p0", "-"], input=diff, cwd=here, text=True, capture_output=True)
    if applied.returncode:
        pytest.fail(applied.stderr)
    assert "per_device_train_batch_size: 2 " in (here / "sft.yaml").read_text()


def test_it_asks_and_writes_after_yes(here: Path) -> None:
    done = run("train.log", "--config", "sft.yaml", here=here, text="y\n")
    assert done.returncode == 0 and "Write these changes?" in done.stdout
    assert (here / "sft.yaml.bak-1").read_text() == CONFIG
    new = (here / "sft.yaml").read_text()
    assert "per_device_train_batch_size: 2   # as on the big card\ngradient_accumulation_steps: 8\n" in new
    assert "disable_gradient_checkpointing: false\n" in new and "quantization_bit" not in new


@pytest.mark.parametrize(
    "answer", [pytest.param("n\n", id="no"), pytest.param("\n", id="only the return key"), pytest.param("", id="nobody there")]
)
def test_without_a_yes_nothing_is_written(here: Path, answer: str) -> None:
    done = run("train.log", "--config", "sft.yaml", here=here, text=answer)
    assert (done.returncode, files(here)) == (1, ["sft.yaml", "train.log"])
    assert (here / "sft.yaml").read_text() == CONFIG


def test_the_second_time_changes_nothing(here: Path) -> None:
    assert run("train.log", "--config", "sft.yaml", here=here, text="y\n").returncode == 0
    new = (here / "sft.yaml").read_text()
    again = run("train.log", "--config", "sft.yaml", here=here)
    assert (again.returncode, (here / "sft.yaml").read_text(), files(here)) == (0, new, ["sft.yaml", "sft.yaml.bak-1", "train.log"])
    assert "already" in again.stdout


def test_a_log_of_the_changed_config_changes_it_further(here: Path) -> None:
    run("train.log", "--config", "sft.yaml", here=here, text="y\n")
    (here / "second.log").write_text(LOG.replace("= 8", "= 2").replace("steps = 2", "steps = 8"), encoding="utf-8")
    run("second.log", "--config", "sft.yaml", here=here, text="y\n")
    assert "per_device_train_batch_size: 1 " in (here / "sft.yaml").read_text()
    assert files(here) == ["second.log", "sft.yaml", "sft.yaml.bak-1", "sft.yaml.bak-2", "train.log"]


def test_what_a_person_decides_waits_for_yes(here: Path) -> None:
    waiting = run("train.log", "--config", "sft.yaml", "--only", "zero2-zero3", here=here)
    assert (waiting.returncode, files(here)) == (1, ["sft.yaml", "train.log"]) and "zero2-zero3" in waiting.stdout
    done = run("train.log", "--config", "sft.yaml", "--only", "zero2-zero3", "--yes", here=here)
    assert done.returncode == 0 and "FORCE_TORCHRUN=1 llamafactory-cli train sft.yaml" in done.stdout
    assert (here / "sft.yaml").read_text() == f"{CONFIG}deepspeed: ds_zero3.json\n"
    assert json.loads((here / "ds_zero3.json").read_text())["zero_optimization"]["stage"] == 3
    assert run("train.log", "--config", "sft.yaml", "--only", "zero2-zero3", "--yes", here=here).returncode == 0
    assert files(here) == ["ds_zero3.json", "sft.yaml", "sft.yaml.bak-1", "train.log"]


def test_only_what_was_named(here: Path) -> None:
    assert run("train.log", "--config", "sft.yaml", "--only", "gradient-checkpointing", "--yes", here=here).returncode == 0
    assert (here / "sft.yaml").read_text() == CONFIG.replace("checkpointing: true", "checkpointing: false")


def test_into_another_folder(here: Path) -> None:
    arguments = ("train.log", "--config", "sft.yaml", "--output", "out", "--yes", "--only", "smaller-batch")
    assert run(*arguments, here=here).returncode == 0
    assert (files(here), (here / "sft.yaml").read_text()) == (["out", "sft.yaml", "train.log"], CONFIG)
    assert "size: 2 " in (here / "out" / "sft.yaml").read_text()
    assert run(*arguments, here=here).returncode == 0
    (here / "out" / "sft.yaml").write_text("mine: 1\n")
    assert run(*arguments, here=here).returncode == 2
    assert (here / "out" / "sft.yaml").read_text() == "mine: 1\n"


def test_a_config_alone_is_put_right(here: Path) -> None:
    (here / "sft.yaml").write_text(CONFIG + "cutoff_length: 2048\n")
    done = run("sft.yaml", here=here, text="y\n")
    assert (done.returncode, (here / "sft.yaml").read_text()) == (0, CONFIG + "cutoff_len: 2048\n")
    again = run("sft.yaml", here=here)
    assert (again.returncode, again.stdout) == (0, "Nothing to change.\n")


def test_a_config_that_is_broken_is_not_called_fine(here: Path) -> None:
    (here / "sft.yaml").write_text(CONFIG + "\tdeepspeed: x\n")
    done = run("sft.yaml", here=here)
    assert done.returncode == 1 and "by hand" in done.stdout and "sft.yaml:9" in done.stdout


def test_a_script_gets_options_and_variables(here: Path) -> None:
    script = "torchrun --nproc_per_node 2 src/train.py --stage sft --finetuning_type lora \\\n  --per_device_train_batch_size 8 \\\n  --bf16 true\n"
    (here / "train.sh").write_text(script)
    run("train.log", "--config", "train.sh", here=here, text="y\n")
    assert "--per_device_train_batch_size 2 \\\n" in (here / "train.sh").read_text()


def test_what_cannot_be_written_is_said_as_a_line(here: Path) -> None:
    (here / "sft.yaml").write_text(CONFIG.replace("size: 8", "size: &b 8"))
    done = run("train.log", "--config", "sft.yaml", "--only", "smaller-batch", "--yes", here=here)
    assert done.returncode == 1 and "per_device_train_batch_size: 2" in done.stdout and "anchor" in done.stdout
    assert files(here) == ["sft.yaml", "train.log"]


def test_in_chinese(here: Path) -> None:
    done = run("train.log", "--config", "sft.yaml", "--lang", "zh", here=here, text="y\n")
    assert "减小每卡批大小" in done.stdout and "写入这些改动？" in done.stdout and "原文件保存为 sft.yaml.bak-1" in done.stdout


@pytest.mark.parametrize("arguments", [
    pytest.param(["train.log"], id="a log without a config"),
    pytest.param(["train.log", "--config", "no.yaml"], id="a config that is not there"),
    pytest.param(["no.log", "--config", "sft.yaml"], id="a log that is not there"),
    pytest.param(["train.log", "--config", "sft.yaml", "--only", "no-such-fix"], id="a fix that is not proposed"),
    pytest.param(["-", "--config", "sft.yaml"], id="a log from standard input, where nothing can be asked"),
    pytest.param([], id="nothing named"),
])  # fmt: skip
def test_wrong_use_ends_with_two_and_changes_nothing(here: Path, arguments: list[str]) -> None:
    done = run(*arguments, here=here, text=LOG)
    assert done.returncode == 2 and done.stderr.strip() and "Traceback" not in done.stderr
    assert (files(here), (here / "sft.yaml").read_text()) == (["sft.yaml", "train.log"], CONFIG)


def test_escapes_of_a_config_do_not_reach_the_terminal(here: Path) -> None:
    (here / "sft.yaml").write_text(CONFIG.replace("# as on the big card", "# \x1b[31mred\x07"))
    assert "\x1b" not in run("train.log", "--config", "sft.yaml", "--dry-run", here=here).stdout
