"""One way to read config files, and one way to fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoctor.api.configs import read_configs
from oomdoctor.errors import UsageError


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "sft.yaml"
    path.write_text("stage: sft\ndeepspeed: ds.json\n")
    return str(path)


def test_a_file_that_another_one_names_and_that_is_not_there_is_a_gap(config: str) -> None:
    configs, gaps = read_configs([config])
    assert ([read.file for read in configs], [gap.what for gap in gaps]) == ([config], ["ds.json"])


def test_a_file_that_was_named_must_be_read(config: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.yaml: no such file"):
        read_configs([config, str(tmp_path / "gone.yaml")])


def test_one_of_several_is_enough_where_not_all_are_needed(config: str, tmp_path: Path) -> None:
    configs, gaps = read_configs([config, str(tmp_path / "gone.yaml")], all_needed=False)
    assert (len(configs), len(gaps)) == (1, 2)


def test_at_least_one_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"a\.yaml: no such file; .*b\.yaml: no such file"):
        read_configs([str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")], all_needed=False)
