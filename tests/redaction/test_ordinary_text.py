"""What is no secret stays readable: hashes, versions, names of models, paths, counts of tokens."""

from __future__ import annotations

from random import Random

import pytest
from redaction.ordinary_lines import fixture_lines, made_lines

from oomdoctor.redaction.redact_secrets import redact_secrets

SEED = Random().getrandbits(32)
_LINES = 1000


@pytest.mark.parametrize("lines", [pytest.param(made_lines, id="made"), pytest.param(fixture_lines, id="of the fixtures")])
def test_of_a_thousand_ordinary_lines_at_most_ten_change(lines: object) -> None:
    assert callable(lines)
    changed = [(line, safe) for line in lines(_LINES, Random(SEED)) if (safe := redact_secrets(line)) != line]
    assert len(changed) <= _LINES // 100, f"seed {SEED}: {changed[:20]}"
