"""The examples of docs/callbacks.md run with the frameworks themselves, on a CPU; tests/record/test_callbacks.py needs none of them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from oomdoctor.record.read_folder import read_evidence

pytest.importorskip("torch")
ROOT = Path(__file__).parents[2]
EXAMPLES = re.findall(r"^```python\n(.*?)^```", (ROOT / "docs/callbacks.md").read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("is_recorded", [pytest.param(True, id="a recorder begins"), pytest.param(False, id="no recorder")])
@pytest.mark.parametrize(
    ("library", "number", "phases"),
    [
        pytest.param("transformers", 0, {"training", "evaluation", "checkpoint-save"}, id="transformers"),
        pytest.param("lightning", 1, {"training", "evaluation", "checkpoint-save"}, id="Lightning"),
        pytest.param("accelerate", 2, {"training", "evaluation", "checkpoint-save"}, id="accelerate"),
    ],
)
def test_an_example_tells_its_phases(tmp_path: Path, library: str, number: int, phases: set[str], is_recorded: bool) -> None:
    pytest.importorskip(library)
    code = EXAMPLES[number] if is_recorded else EXAMPLES[number].replace('"evidence")', '"evidence", record=False)')
    (tmp_path / "example.py").write_text(code)
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = read_evidence(str(tmp_path / "evidence"))
    assert {phase.name for rank in found.ranks for phase in rank.phases} == (phases if is_recorded else set())
    assert all(phase.last_step == 4 for rank in found.ranks for phase in rank.phases if phase.name == "training" and number != 2)
