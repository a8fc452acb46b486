"""The frameworks' own examples raise no alarm. They are not in the repository: CONTRIBUTING.md says how to get them."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from config_files import pack

from oomdoctor.configs.files import read_files
from oomdoctor.configs.resolve import resolve_config

FOLDER = os.environ.get("OOMDOCTOR_EXAMPLES")
_CONFIG = re.compile(r"/(?:examples?|recipes|deepspeed_configs|accelerate_configs|config_templates|config)/.*\.(?:ya?ml|json|sh)\Z")
_OTHER = re.compile(r"/(?:tests?|dataset_info|cloud|docs)\b|/data/")
MISTAKES = {("falcon-h1-1b-qlora-cp.yaml", "context_parapllel_size")}
"""What is really wrong in the examples: axolotl 0.19.0 ships this misspelt key."""


@pytest.mark.skipif(FOLDER is None, reason="needs OOMDOCTOR_EXAMPLES, a folder with unpacked packages")
def test_shipped_examples_are_right() -> None:
    paths = [
        path for path in sorted(Path(FOLDER or ".").rglob("*")) if _CONFIG.search(path.as_posix()) and not _OTHER.search(path.as_posix())
    ]
    alarms = []
    for path in paths:
        found = resolve_config(read_files([str(path)])[0], [], {}, pack())
        complaints = found.issues if found is not None else ()
        alarms += [(path.name, one.key, one.id) for one in complaints if one.severity != "note"]
    assert len(paths) > 300
    assert [(name, key, why) for name, key, why in alarms if (name, key) not in MISTAKES] == []
