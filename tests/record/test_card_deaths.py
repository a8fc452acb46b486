"""Deaths on a card whose allocator follows torch's own: the first finding names the cause, and is sure only where the evidence is."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from record.made_evidence import COLLECT, GIB, LOSS, MASKED, MIB, STATES, Card

from oomdoctor import diagnose
from oomdoctor.api.runs.evidence import diagnose_evidence
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.pack import load_pack

TABLE = Path(__file__).parents[2] / "docs" / "evidence-causes.md"
PAGE = """# What evidence adds to a log

A run dies on a simulated card for each of ten causes. The middle column is the first finding from what the program printed (traceback and
message), the last one that from its [evidence folder](evidence-folder.md). `tests/record/test_card_deaths.py` writes this page.

| cause | from the log alone | with the evidence |
|---|---|---|
{rows}
"""


def too_much_live(folder: Path) -> Path:
    card = Card(folder)
    card.ask(14 * GIB)
    return card.dies(3 * GIB)


def one_large_request(folder: Path) -> Path:
    card = Card(folder)
    card.ask(2 * GIB)
    return card.dies(15 * GIB, LOSS)


def fragmented(folder: Path) -> Path:
    card = Card(folder)
    pairs = [(card.ask(760 * MIB), card.ask(380 * MIB)) for _ in range(13)]
    for large, _ in pairs:
        card.give(large)
        card.ask(400 * MIB)
    card.ask(1 * GIB)
    card.tick()
    return card.dies(2 * GIB)


def leaking(folder: Path) -> Path:
    card = Card(folder)
    card.ask(3 * GIB)
    card.steps(28, kept=400 * MIB)
    return card.dies(3 * GIB)


def longer_and_longer(folder: Path) -> Path:
    card = Card(folder)
    card.ask(6 * GIB)
    for size in (4, 5, 7, 9):
        card.steps(15, size * GIB)
    return card.dies(12 * GIB)


def one_long_batch(folder: Path) -> Path:
    card = Card(folder)
    card.ask(4 * GIB)
    card.steps(120)
    card.ask(11 * GIB)
    return card.dies(3 * GIB)


def states(folder: Path) -> Path:
    card = Card(folder)
    card.ask(15 * GIB)
    return card.dies(1200 * MIB, STATES)


def neighbour(folder: Path) -> Path:
    card = Card(folder, others=12 * GIB)
    card.ask(3 * GIB)
    return card.dies(1200 * MIB)


def limited(folder: Path) -> Path:
    card = Card(folder, allowed=6 * GIB)
    card.ask(5 * GIB)
    return card.dies(1200 * MIB)


def masked(folder: Path) -> Path:
    card = Card(folder)
    card.ask(15 * GIB)
    return card.dies(3 * GIB, message=MASKED)


def collecting(folder: Path) -> Path:
    card = Card(folder)
    card.ask(6 * GIB)
    card.steps(20, kept=300 * MIB)
    return card.dies(5 * GIB, COLLECT)


CAUSES = {
    "batch-too-large": too_much_live,
    "logits-too-large": one_large_request,
    "fragmentation": fragmented,
    "memory-leak": leaking,
    "variable-length-staircase": longer_and_longer,
    "outlier-sample": one_long_batch,
    "optimizer-states": states,
    "other-process-on-gpu": neighbour,
    "memory-limit-set": limited,
    "eval-accumulates-logits": collecting,
}


def told(diagnosis: Diagnosis) -> str:
    """Return the first cause and how sure it is, as the table says it."""
    first = diagnosis.findings[0]
    return f"{first.cause} ({first.confidence.value})"


def test_the_table_of_what_evidence_adds_is_fresh(tmp_path: Path, bless: bool) -> None:
    rows, right = [], 0
    for cause, make in CAUSES.items():
        folder = make(tmp_path / cause)
        log = next((folder / "ranks").glob("*.exception.json"))
        alone = diagnose(json.loads(log.read_text())["traceback"])
        watched = diagnose_evidence(str(folder), load_pack())
        right += watched.findings[0].cause == cause
        rows.append(f"| {cause} | {told(alone)} | {told(watched)} |")
    assert right == len(CAUSES)
    text = PAGE.format(rows="\n".join(rows))
    if bless:
        TABLE.write_text(text, encoding="utf-8")
    assert TABLE.read_text(encoding="utf-8") == text


@pytest.mark.parametrize(("make", "cause", "certainty"), [
    pytest.param(too_much_live, "batch-too-large", "possible", id="too much live"),
    pytest.param(one_large_request, "logits-too-large", "possible", id="one large request"),
    pytest.param(fragmented, "fragmentation", "likely", id="fragmentation"),
    pytest.param(leaking, "memory-leak", "likely", id="a leak"),
    pytest.param(longer_and_longer, "variable-length-staircase", "likely", id="batches that get longer"),
    pytest.param(one_long_batch, "outlier-sample", "certain", id="one batch that is longer than all before"),
    pytest.param(states, "optimizer-states", "likely", id="states at the first step"),
    pytest.param(neighbour, "other-process-on-gpu", "certain", id="a neighbour on the card"),
    pytest.param(limited, "memory-limit-set", "certain", id="a fraction is set"),
])  # fmt: skip
def test_a_death_on_the_card_is_named(tmp_path: Path, make: Callable[[Path], Path], cause: str, certainty: str) -> None:
    diagnosis = diagnose_evidence(str(make(tmp_path)), load_pack())
    assert (diagnosis.case.verdict.kind.value, diagnosis.case.verdict.certainty.value) == ("device-oom", "certain")
    assert (diagnosis.findings[0].cause, diagnosis.findings[0].confidence.value) == (cause, certainty)


def test_a_message_that_hides_memory_is_seen_through(tmp_path: Path) -> None:
    diagnosis = diagnose_evidence(str(masked(tmp_path)), load_pack())
    assert diagnosis.case.verdict.memory_failure == "yes"
    assert diagnosis.case.verdict.certainty.value == "certain"


def test_what_is_survived_is_no_failure(tmp_path: Path) -> None:
    card = Card(tmp_path)
    card.ask(14 * GIB)
    diagnosis = diagnose_evidence(str(card.dies(3 * GIB, went_on=True)), load_pack())
    assert (diagnosis.case.verdict.memory_failure, diagnosis.case.verdict.survived) == ("no", True)
