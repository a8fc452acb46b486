"""Changes are worked out first and written only when they are applied."""

from __future__ import annotations

from pathlib import Path

import pytest

import oomdoctor
from oomdoctor.errors import NothingReadError, UsageError

CONFIG = """\
model_name_or_path: Qwen/Qwen2.5-7B-Instruct  # the base
stage: sft
do_train: true
finetuning_type: lora
cutoff_len: 6144
per_device_train_batch_size: 1
bf16: true
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "sft.yaml"
    path.write_text(CONFIG)
    return path


def test_nothing_is_written_before_it_is_applied(config: Path) -> None:
    changes = oomdoctor.fix(config, gpu="RTX 4090", review=True)
    assert config.read_text() == CONFIG
    applied = oomdoctor.apply_fix(changes)
    assert config.read_bytes() == changes.applied.files[str(config)]
    assert {path: Path(copy).read_text() for path, copy in applied.copies.items()} == {str(config): CONFIG}
    assert applied.created == ()


def test_a_second_fix_changes_nothing(config: Path) -> None:
    oomdoctor.apply_fix(oomdoctor.fix(config, gpu="RTX 4090", review=True))
    assert oomdoctor.fix(config, gpu="RTX 4090", review=True).applied.files == {}


def test_a_file_that_changed_in_the_meantime_is_left_alone(config: Path) -> None:
    changes = oomdoctor.fix(config, gpu="RTX 4090", review=True)
    config.write_text(CONFIG + "seed: 1\n")
    with pytest.raises(UsageError, match="was changed by something else in the meantime; nothing was written"):
        oomdoctor.apply_fix(changes)
    assert config.read_text() == CONFIG + "seed: 1\n"


def test_a_log_that_cannot_be_read_is_told_line_by_line(config: Path, tmp_path: Path) -> None:
    with pytest.raises(NothingReadError) as error:
        oomdoctor.fix(config, log=[tmp_path / "a.log", tmp_path / "b.log"])
    assert error.value.lines == (f"{tmp_path}/a.log: no such file", f"{tmp_path}/b.log: no such file")
