"""What grows from step to step is found in loops of every kind, and what fills up by design is not accused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from snapshots.made_loops import (
    COMPILED,
    LIBRARY_LOOP,
    ONE_FUNCTION,
    Card,
    evaluates,
    fills_up,
    first_forward,
    first_step,
    generated,
    keeps,
    keeps_the_last_five,
    loaded,
    trained,
)
from snapshots.made_snapshots import MIB, pickled

from oomdoctor.api.runs.snapshot import SnapshotReport, snapshot

_LEAKING: dict[str, tuple[Callable[[], Card], int]] = {
    "torch names the steps": (lambda: trained(is_annotated=True, extra=keeps(60)), 60),
    "nothing names the steps": (lambda: trained(extra=keeps(60)), 60),
    "each second step, as it logs": (lambda: trained(16, extra=keeps(60, every=2)), 60),
    "batches are gathered": (lambda: trained(batches=4, extra=keeps(60)), 60),
    "the loop lies in a library": (lambda: trained(lines=LIBRARY_LOOP, extra=keeps(60)), 60),
    "the loop calls one function": (lambda: trained(lines=ONE_FUNCTION, extra=keeps(60)), 60),
    "compiled code": (lambda: trained(lines=COMPILED, extra=keeps(60)), 60),
    "little in each step": (lambda: trained(extra=keeps(3)), 3),
}
_STEADY: dict[str, Callable[[], Card]] = {
    "torch names the steps": lambda: trained(is_annotated=True),
    "nothing names the steps": trained,
    "batches are gathered": lambda: trained(batches=4),
    "the loop lies in a library": lambda: trained(lines=LIBRARY_LOOP),
    "the loop calls one function": lambda: trained(lines=ONE_FUNCTION),
    "compiled code": lambda: trained(lines=COMPILED),
    "batches get longer": lambda: trained(longer=20),
    "buffers fill up at the start": lambda: trained(20, extra=fills_up),
    "the last five are kept": lambda: trained(30, extra=keeps_the_last_five),
    "evaluation in between": lambda: trained(12, extra=evaluates),
    "a cache that grows with each token": lambda: generated(1, 60),
    "caches of one request after another": lambda: generated(4, 15),
    "weights are loaded one by one": loaded,
    "activations of layer after layer": first_forward,
    "states of the first step": first_step,
}


def explained(tmp_path: Path, card: Card) -> SnapshotReport:
    file = tmp_path / "made.pickle"
    file.write_bytes(pickled(card))
    return snapshot(file)


@pytest.mark.parametrize("name", _LEAKING)
def test_what_grows_is_found(tmp_path: Path, name: str) -> None:
    make, size = _LEAKING[name]
    growth = explained(tmp_path, make()).files[0].devices[0].growth
    assert [(grows.site, grows.bytes_per_step) for grows in growth] == [("/srv/app/hist.py:7:keep", size * MIB)]


@pytest.mark.parametrize("name", _STEADY)
def test_what_does_not_grow_is_not_accused(tmp_path: Path, name: str) -> None:
    report = explained(tmp_path, _STEADY[name]())
    assert report.files[0].devices[0].growth == ()
    assert "memory-leak" not in [finding.cause for finding in report.findings]
