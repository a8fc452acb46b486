"""`estimate --trace` where it cannot work says what is missing."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner

from oomdoctor.cli.main import cli

HAS_TORCH = all(importlib.util.find_spec(name) is not None for name in ("torch", "transformers"))


@pytest.mark.skipif(HAS_TORCH, reason="torch and transformers are installed")
def test_what_to_install_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "llama"}')
    done = CliRunner().invoke(cli, ["estimate", "--model", str(tmp_path), "--trace"])
    assert done.exit_code != 0
    assert "oomdoctor[trace]" in str(done.exception)


@pytest.mark.skipif(not HAS_TORCH, reason="needs torch and transformers")
def test_a_name_is_no_config() -> None:
    done = CliRunner().invoke(cli, ["estimate", "--model", "Qwen2.5-7B", "--trace"])
    assert done.exit_code != 0
    assert "config.json" in str(done.exception)
