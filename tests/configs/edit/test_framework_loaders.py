"""The frameworks' own loaders read the changed files as meant. They are large, so somebody must name an interpreter that has them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from configs.edit.test_patches import CASES, Case, patched

MADE = Path(__file__).parents[3] / ".loaders" / "bin" / "python"
LOADERS = os.environ.get("OOMDOCTOR_LOADERS") or (str(MADE) if MADE.exists() else None)
"""An interpreter that has the frameworks, as tools/loaders.sh makes one."""
SCRIPT = Path(__file__).with_name("framework_loaders.py")

pytestmark = pytest.mark.skipif(LOADERS is None, reason="needs an interpreter that has the frameworks: tools/loaders.sh makes one")


@pytest.fixture(scope="module")
def read(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What says -> what the loader of its file read, all in one process."""
    paths = {}
    for number, case in enumerate(CASES):
        path = tmp_path_factory.mktemp(f"case{number}") / case["file"]
        path.write_bytes(patched(case).data)
        paths[case["says"]] = str(path)
    done = subprocess.run([str(LOADERS), str(SCRIPT), *paths.values()], capture_output=True, text=True, check=True)
    told = json.loads(done.stdout.splitlines()[-1])
    return {says: told[path] for says, path in paths.items()}


NOT_TAKEN = {"two-documents.yaml": "no framework takes a file of two documents"}


@pytest.mark.parametrize("case", [pytest.param(case, id=case["says"]) for case in CASES])
def test_the_framework_reads_the_wanted_values(case: Case, read: dict[str, dict[str, Any]]) -> None:
    if case["file"] in NOT_TAKEN:
        pytest.skip(NOT_TAKEN[case["file"]])
    found = read[case["says"]]
    if "missing" in found:
        pytest.skip(f"{found['missing']} is not installed")
    assert "settings" in found, found
    for key, to in case["set"].items():
        wanted, got = yaml.safe_load(to or "true"), reached(found["settings"], key.lstrip("-"))
        # LLaMA-Factory makes a list of a name.
        assert got in (wanted, [wanted]) or str(got) == str(wanted), key


def reached(settings: Any, key: str) -> Any:
    """The value at a dotted key, which parsers of options spell with underscores."""
    for name in key.split("."):
        settings = settings[name if name in settings else name.replace("-", "_")]
    return settings
