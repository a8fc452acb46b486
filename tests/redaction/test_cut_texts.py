"""A text that is cut before its secrets are taken out is not cut within one: half a token is not known for one any more."""

from __future__ import annotations

from random import Random

import pytest
from redaction.drawn_secrets import MAKERS, drawn_token
from redaction.leaks import shown

from oomdoctor.report.safety.redact import redact_text
from oomdoctor.snapshots.places import short_place

SEED = Random().getrandbits(32)


@pytest.mark.parametrize("folder", ["/srv/app/", "/home/ann/app/", "/opt/python/site-packages/", "/tmp/torchinductor_ann/"])
def test_a_place_in_a_program_is_not_cut_within_a_token(folder: str) -> None:
    random = Random(f"{SEED} {folder}")
    for row in MAKERS:
        token = drawn_token(row, random)
        place = redact_text(short_place(f"{folder}{token}.py:7:hold"))
        assert shown(token, place) == [], f"seed {SEED}, {row['maker']}: {token}"
