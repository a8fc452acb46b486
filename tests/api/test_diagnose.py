"""What a log can be given as: a text, a path, several paths; and what is beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

import oomdoctor
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.environment import Environment, Gpu
from oomdoctor.errors import UsageError

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.50 GiB."
NO_OOM = "step 1 loss 2.0"


def sources(diagnosis: Diagnosis) -> list[str]:
    return [Path(source.name).name for source in diagnosis.case.sources]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "rank0.log").write_text(OOM)
    (tmp_path / "rank1.log").write_text(NO_OOM)
    return tmp_path


def test_a_string_that_names_no_file_is_a_log() -> None:
    assert sources(oomdoctor.diagnose(OOM)) == ["<text>"]


def test_bytes_are_a_log_under_the_name_that_they_are_given() -> None:
    assert sources(oomdoctor.diagnose(OOM.encode(), name="issue")) == ["issue"]


def test_a_string_that_names_a_file_is_read(folder: Path) -> None:
    assert sources(oomdoctor.diagnose(str(folder / "rank0.log"))) == ["rank0.log"]


def test_a_path_is_read_also_where_nothing_is_there(folder: Path) -> None:
    diagnosis = oomdoctor.diagnose(folder / "rank9.log")
    assert [(Path(gap.what).name, gap.why) for gap in diagnosis.case.gaps] == [("rank9.log", "no such file")]


def test_the_items_of_a_list_are_paths(folder: Path) -> None:
    assert sources(oomdoctor.diagnose([folder / "rank0.log", str(folder / "rank1.log")])) == ["rank0.log", "rank1.log"]


def test_a_folder_is_read_without_what_is_excluded(folder: Path) -> None:
    assert sources(oomdoctor.diagnose(folder, exclude=["*1.log"])) == ["rank0.log"]


def test_one_config_needs_no_list(folder: Path) -> None:
    config = folder / "sft.yaml"
    config.write_text("model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nper_device_train_batch_size: 3\n")
    run = oomdoctor.diagnose(OOM, config=config).case.training
    assert run is not None
    assert run.settings.micro_batch == 3


def test_a_machine_can_be_given_as_it_is() -> None:
    machine = Environment(gpus=(Gpu(index=0, name="NVIDIA L40S", vendor="nvidia", total_bytes=48 << 30),))
    case = oomdoctor.diagnose(OOM, environment=machine).case
    assert case.environment == machine
    assert case.environment_note is not None
    assert "<environment>" in case.environment_note.en


def test_the_file_of_a_machine_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--env .*gone\.txt: no such file"):
        oomdoctor.diagnose(OOM, environment=tmp_path / "gone.txt")
