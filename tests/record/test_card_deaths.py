"""Programs that really die on a card (fake_card.py) under `oomdoctor run`: the first finding names the cause, sure only where the evidence is."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from record.died import DeadRun, memory_group

from oomdoctor.case.diagnosis import Diagnosis

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux tells who holds what")

TABLE = Path(__file__).parents[2] / "docs" / "evidence-causes.md"
PAGE = """# What evidence adds to a log

These are the ten causes that logs most often leave open, because a log alone cannot distinguish them. For each, the middle column is the first finding
from the output of a failing program, and the last column the first finding from its [evidence folder](evidence-folder.md). The programs were actually
run, on a simulated GPU whose allocator mimics that of torch. `tests/record/test_card_deaths.py` runs them and generates this page.

| failure | from the log alone | with the evidence |
|---|---|---|
{rows}
"""
AT_ONCE = 4
BATCH = {"per_device_train_batch_size": 144, "max_steps": 100, "learning_rate": 1e-5, "output_dir": "out"}
EVALUATION = {**BATCH, "per_device_train_batch_size": 4, "per_device_eval_batch_size": 128}
SEQUENCE = {**BATCH, "per_device_train_batch_size": 1, "cutoff_len": 32768}
Deaths = dict[str, Callable[[Path], DeadRun]]


def of(
    program: str, config: dict[str, object] | None = None, *, others: int = 0, limit: int | None = None, card: str = "observed"
) -> Callable[[Path], DeadRun]:
    """Return what runs a program in a folder. `others`: GiB of the card that somebody else holds; `limit`: bytes of the host; `card`: how
    a request fails (fake_card.py)."""

    def run(place: Path) -> DeadRun:
        place.mkdir()
        words = [program]
        if config is not None:
            (place / "train.json").write_text(json.dumps(config))
            words.append(str(place / "train.json"))
        if limit is None:
            return DeadRun(place, *words, others=others, card=card)
        with memory_group(limit) as group:
            return DeadRun(place, *words, group=group, card=card)

    return run


def told(diagnosis: Diagnosis) -> tuple[str, str, str]:
    """Return the verdict, and the first finding by its cause, else its rule, and how sure it is."""
    if not diagnosis.findings:
        return diagnosis.case.verdict.kind.value, "nothing", ""
    first = diagnosis.findings[0]
    return diagnosis.case.verdict.kind.value, first.cause or first.id, first.confidence.value


def runs(place: Path, deaths: Deaths) -> dict[str, DeadRun]:
    """Run the programs, some at once: most of their time they wait."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        started = {name: pool.submit(run, place / str(number)) for number, (name, run) in enumerate(deaths.items())}
        return {name: run.result() for name, run in started.items()}


EXPECTED = {
    "too much lives": (of("batch.py", BATCH), ("device-oom", "batch-too-large", "possible")),
    "one large request": (of("loss.py"), ("device-oom", "logits-too-large", "possible")),
    "free memory in pieces": (of("fragmentation.py"), ("device-oom", "fragmentation", "likely")),
    "a list keeps something of every step": (of("leak.py"), ("device-oom", "memory-leak", "certain")),
    "batches get longer": (of("longer_batches.py"), ("device-oom", "variable-length-staircase", "possible")),
    "one batch is longer than all before": (of("longest_batch.py"), ("device-oom", "outlier-sample", "certain")),
    "states at the first step": (of("optimizer_states.py"), ("device-oom", "optimizer-states", "likely")),
    "another process on the GPU": (of("small.py", others=12), ("device-oom", "other-process-on-gpu", "certain")),
    "a fraction is set": (of("limited.py"), ("device-oom", "memory-limit-set", "certain")),
    "an assert of NVML hides the message": (of("batch.py", BATCH, card="masked"), ("device-oom", "nvml-masked", "possible")),
    "a library finds the card full": (of("library.py"), ("masked-device-oom", "library-found-a-full-card", "likely")),
    "the host has no memory, but the card has": (of("host_beside_card.py"), ("host-oom", "memory-limit-set", "likely")),
    "it is caught and tried again": (of("survives.py"), ("none", "near-limit", "certain")),
}


def test_deaths_on_a_card_are_named(tmp_path: Path) -> None:
    dead = runs(tmp_path, {name: run for name, (run, _) in EXPECTED.items()})
    assert {name: told(run.from_the_evidence()) for name, run in dead.items()} == {name: found for name, (_, found) in EXPECTED.items()}
    assert {name: run.status for name, run in dead.items()} == {name: int(found[0] != "none") for name, (_, found) in EXPECTED.items()}


def test_what_is_survived_is_no_failure(tmp_path: Path) -> None:
    verdict = of("survives.py")(tmp_path / "run").from_the_evidence().case.verdict
    assert (verdict.memory_failure, verdict.survived) == ("no", True)


LEFT_OPEN = {
    "a batch size of 144": (of("batch.py", BATCH), "batch-too-large"),
    "a model that does not fit": (of("loads.py"), "model-too-large"),
    "a library that starts on a full GPU": (of("library.py"), "library-found-a-full-card"),
    "host memory up to a container's limit": (of("host.py", limit=160 << 20), "container-memory-limit"),
    "predictions accumulated during evaluation": (of("evaluates.py"), "eval-accumulates-logits"),
    "gradients recorded during validation": (of("validates.py"), "no-torch-no-grad"),
    "a sequence of 32,768 tokens": (of("sequence.py", SEQUENCE), "sequence-too-long"),
    "an evaluation batch size of 128": (of("evaluation_batch.py", EVALUATION), "eval-batch-too-large"),
    "another process on the GPU": (of("small.py", others=12), "other-process-on-gpu"),
    "a checkpoint that stays on the GPU": (of("resumes.py", {}), "stale-checkpoint-loaded"),
}
"""What happens -> program, cause: the ten commonest among reports whose log left the cause open."""


def test_the_table_of_what_evidence_adds_is_fresh(tmp_path: Path, bless: bool) -> None:
    dead = runs(tmp_path, {name: run for name, (run, _) in LEFT_OPEN.items()})
    found = {name: (told(run.from_the_log()), told(run.from_the_evidence())) for name, run in dead.items()}
    rows = [f"| {name} | {_cell(alone)} | {_cell(watched)} |" for name, (alone, watched) in found.items()]
    text = PAGE.format(rows="\n".join(rows))
    if bless:
        TABLE.write_text(text, encoding="utf-8")
    assert TABLE.read_text(encoding="utf-8") == text
    assert sum(watched[1] == LEFT_OPEN[name][1] for name, (_, watched) in found.items()) >= 9


def _cell(found: tuple[str, str, str]) -> str:
    return found[1] if not found[2] else f"{found[1]} ({found[2]})"
