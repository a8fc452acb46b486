"""What a snapshot shows is named by its cause, and nothing is named where nothing is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from snapshots.made_snapshots import (
    COPY,
    LAYER,
    LOSS,
    MIB,
    STATE,
    WEIGHT,
    Program,
    filled,
    filling,
    fragmented,
    leaking,
    leaking_unmarked,
    masked,
    other_stream,
    pickled,
    survived,
    training,
    without_history,
)

from oomdoctor.api.runs.snapshot import SnapshotReport, snapshot
from oomdoctor.knowledge.fact_names import SNAPSHOT
from oomdoctor.snapshots.facts import snapshot_facts

_PREDICTIONS = ("/opt/env/lib/python3.12/site-packages/transformers/trainer_pt_utils.py:120:nested_concat", "/home/ann/app/fit.py:90:check")
_UNTOLD = ("/home/ann/app/odd.py:9:hold", "/home/ann/app/fit.py:66:main")


def explained(tmp_path: Path, *programs: Program, totals: dict[int, int] | None = None) -> SnapshotReport:
    file = tmp_path / "made.pickle"
    file.write_bytes(pickled(*programs))
    return snapshot(file, totals=totals)


@pytest.mark.parametrize(("make", "found"), [
    pytest.param(leaking, [("memory-leak", "certain")], id="a metric keeps its inputs"),
    pytest.param(leaking_unmarked, [("memory-leak", "likely")], id="the same where no step is marked"),
    pytest.param(filling, [], id="a loop fills the card and frees nothing"),
    pytest.param(fragmented, [("fragmentation", "likely")], id="free pieces between blocks of a table"),
    pytest.param(other_stream, [(None, "certain")], id="the free memory is another stream's"),
    pytest.param(lambda: filled(LOSS, asking=LOSS), [("logits-too-large", "likely")], id="the loss fills the card"),
    pytest.param(lambda: filled(LAYER), [("batch-too-large", "possible")], id="activations fill the card"),
    pytest.param(lambda: filled(WEIGHT, asking=WEIGHT), [("model-too-large", "likely")], id="weights fill the card"),
    pytest.param(lambda: filled(WEIGHT, size=600, asking=STATE, request=100), [("optimizer-states", "likely")], id="the first step asks for its states on a card full of weights"),
    pytest.param(lambda: filled(_PREDICTIONS, asking=_PREDICTIONS), [("eval-accumulates-logits", "certain")], id="predictions are joined"),
    pytest.param(lambda: filled(_UNTOLD, request=9000), [("request-above-card", "certain")], id="one request asks for more than there is"),
    pytest.param(lambda: filled(_UNTOLD, asking=_UNTOLD, free=900), [("memory-limit-set", "likely")], id="refused although the driver had it"),
    pytest.param(lambda: filled(_UNTOLD, asking=_UNTOLD), [], id="what fills the card is not known"),
    pytest.param(masked, [("nvml-masked", "possible")], id="the cache goes back and nothing follows"),
    pytest.param(survived, [(None, "certain")], id="the program caught it and went on"),
    pytest.param(training, [], id="a steady run"),
    pytest.param(without_history, [], id="nothing was recorded"),
])  # fmt: skip
def test_the_cause_is_named(tmp_path: Path, make: Callable[[], Program], found: list[tuple[str | None, str]]) -> None:
    findings = explained(tmp_path, make()).findings
    assert [(finding.cause, finding.confidence.value) for finding in findings] == found


def test_others_are_named_where_the_card_is_known(tmp_path: Path) -> None:
    report = explained(tmp_path, filled(_UNTOLD, asking=_UNTOLD), totals={0: 8000 * MIB})
    assert [finding.cause for finding in report.findings] == ["other-process-on-gpu"]


def test_every_fact_that_rules_may_ask_is_given_by_some_recording(tmp_path: Path) -> None:
    given: set[str] = set()
    for make in (leaking, fragmented, masked, lambda: filled(COPY)):
        given |= set(snapshot_facts(explained(tmp_path, make()).files[0].devices))
    assert sorted(name for name in SNAPSHOT if f"snapshot.{name}" not in given) == []
