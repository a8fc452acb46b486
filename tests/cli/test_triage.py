"""`oomdoctor triage` as a person and a timer call it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from oomdoctor.cli.main import cli

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
