"""The frameworks' own loaders read the changed files as meant. They are large, so somebody must name an interpreter that has them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from changes.test_patches import CASES, Case, patched

LOADERS = os.environ.get("OOMDOCTOR_LOADERS")
"""An interpreter with omegaconf, ruamel.yaml and transformers, and as far as possible torch, accelerate and deepspeed."""
SCRIPT = Path(__file__).with_name("framework_loaders.py")

pytestmark = pytest.mark.skipif(LOADERS is None, reason="needs OOMDOCTOR_LOADERS, an interpreter that has the frameworks")


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


@pytest.mark.parametrize("case", [pytest.param(case, id=case["says"]) for case in CASES])
def test_the_framework_reads_the_wanted_values(case: Case, read: dict[str, dict[str, Any]]) -> None:
    found = read[case["says"]]
    if "missing" in found or not found:
        pytest.skip(f"{found['missing']} is not installed" if found else "no loader of these frameworks takes this file")
    assert "refused" not in found, found
    for key, to in case["set"].items():
        if key.isupper() or to == "":
            continue
        wanted = yaml.safe_load(to)
        got = reached(found["settings"], key.lstrip("-"))
        assert got == wanted or str(got) == str(wanted) or isinstance(got, dict), key


def reached(settings: Any, key: str) -> Any:
    """The value at a dotted key; what the loader moved elsewhere or does not know is a skip."""
    for name in key.split("."):
        if not isinstance(settings, dict) or name not in settings:
            pytest.skip(f"the loader does not keep {key}")
        settings = settings[name]
    return settings
