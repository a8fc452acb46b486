"""What an evaluation or a generation left on the card tells what it died of: results that are kept, gradients, one batch, a cache."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from record.made_evidence import GIB, MIB, SITE, Card

from oomdoctor.api.runs.evidence import diagnose_evidence
from oomdoctor.knowledge.pack import load_pack

CALL = f"{SITE}/nn/modules/module.py:1775:_call_impl"
WEIGHT = (f"{SITE}/nn/modules/module.py:1355:convert", "/srv/fit.py:12:main")
EVALUATE = (CALL, "/srv/score.py:31:evaluate", "/srv/score.py:90:main")
NO_GRADIENTS = (CALL, "/srv/embed.py:31:main", f"{SITE}/utils/_contextlib.py:124:decorate_context", "/srv/embed.py:90:<module>")
TRAIN = (CALL, "/srv/fit.py:70:main")
LIB = "/opt/venv/lib/python3.12/site-packages/transformers"
GENERATE = (CALL, f"{LIB}/generation/utils.py:2800:_sample", f"{SITE}/utils/_contextlib.py:124:decorate_context", "/srv/ask.py:20:main")
CACHE = (f"{LIB}/cache_utils.py:120:update", f"{LIB}/models/llama/modeling_llama.py:260:forward")
CHECKPOINT = (f"{SITE}/utils/checkpoint.py:496:checkpoint", "/srv/net.py:60:forward")
MODULES = ("linear.py:125", "activation.py:140", "normalization.py:229", "linear.py:126", "dropout.py:60", "linear.py:127")
LAYERS = [(f"{SITE}/nn/modules/{line}:forward", f"/srv/net.py:{30 + at}:forward") for at, line in enumerate(MODULES)]
RESULT = LAYERS[-1]


def died(
    folder: Path, blocks: list[tuple[int, int, tuple[str, ...]]], below: tuple[str, ...], *, weights: int = 4, gradients: bool | None = None
) -> Path:
    """Return the evidence of a card that holds weights and blocks (number, MiB, frames above `below`) when a request fails."""
    card = Card(folder)
    card.ask(weights * GIB, *WEIGHT)
    for number, size, frames in blocks:
        for _ in range(number):
            card.ask(size * MIB, *frames, *below)
    card.tick()
    return card.dies(3 * GIB, (*blocks[-1][2], *below), gradients=gradients)


Make = Callable[[Path], Path]


def kept(below: tuple[str, ...]) -> Make:
    """Return a run that keeps the results of 25 batches."""
    return lambda folder: died(folder, [(25, 380, RESULT)], below)


def graph(below: tuple[str, ...]) -> Make:
    """Return a run in which each of six operations of twelve layers keeps a result."""
    return lambda folder: died(folder, [(12, 140, frames) for frames in LAYERS], below)


def one_batch(below: tuple[str, ...], *, gradients: bool | None = None) -> Make:
    """Return a run with two results of one batch."""
    return lambda folder: died(folder, [(1, 4700, frames) for frames in LAYERS[:2]], below, gradients=gradients)


def unseen(stack: tuple[str, ...], *, gradients: bool) -> Make:
    """Return a run whose blocks have no frames, as at level 0."""

    def make(folder: Path) -> Path:
        card = Card(folder)
        card.ask(14 * GIB)
        card.tick()
        return card.dies(3 * GIB, stack, gradients=gradients)

    return make


def checkpointed(folder: Path) -> Path:
    return died(folder, [(25, 380, (*RESULT, CALL, *CHECKPOINT))], TRAIN)


def cached(folder: Path) -> Path:
    return died(folder, [(76, 128, CACHE)], GENERATE)


def small_cache(folder: Path) -> Path:
    return died(folder, [(8, 12, CACHE)], GENERATE, weights=13)


@pytest.mark.parametrize(("make", "cause", "certainty"), [
    pytest.param(kept(EVALUATE), "eval-accumulates-logits", "certain", id="an evaluation keeps the outputs of all batches"),
    pytest.param(kept(NO_GRADIENTS), "eval-accumulates-logits", "likely", id="a script without gradients does"),
    pytest.param(kept(TRAIN), "batch-too-large", "possible", id="many results of one line in training are no outputs"),
    pytest.param(checkpointed, "batch-too-large", "possible", id="nor is what checkpointing keeps of each layer"),
    pytest.param(graph(EVALUATE), "no-torch-no-grad", "certain", id="an evaluation records gradients"),
    pytest.param(graph(TRAIN), "batch-too-large", "possible", id="training does so by rights"),
    pytest.param(graph(NO_GRADIENTS), "batch-too-large", "possible", id="where gradients are off, they are not what is kept"),
    pytest.param(one_batch(EVALUATE), "eval-batch-too-large", "certain", id="one batch of an evaluation fills the card"),
    pytest.param(unseen(EVALUATE, gradients=True), "no-torch-no-grad", "certain", id="an evaluation asked with gradients, no stacks recorded"),
    pytest.param(unseen(EVALUATE, gradients=False), "eval-accumulates-logits", "likely", id="without gradients something else fills it"),
    pytest.param(unseen(TRAIN, gradients=True), "batch-too-large", "possible", id="training records them by rights"),
    pytest.param(one_batch(EVALUATE, gradients=True), "eval-batch-too-large", "certain", id="one batch does also where they are on"),
    pytest.param(cached, "kv-cache-too-small", "certain", id="the cache of what is generated fills the card"),
    pytest.param(small_cache, "model-too-large", "likely", id="a small cache beside weights that fill it does not"),
])  # fmt: skip
def test_what_was_left_tells_the_cause(tmp_path: Path, make: Make, cause: str, certainty: str) -> None:
    first = diagnose_evidence(str(make(tmp_path)), load_pack()).findings[0]
    assert (first.cause, first.confidence.value) == (cause, certainty)


def test_a_cache_that_grows_with_an_answer_is_no_leak(tmp_path: Path) -> None:
    card = Card(tmp_path)
    card.ask(3 * GIB)
    card.steps(28, kept=400 * MIB)
    assert diagnose_evidence(str(card.dies(3 * GIB, (*CACHE, *GENERATE))), load_pack()).findings[0].cause == "kv-cache-too-small"


def test_the_line_that_keeps_outputs_is_named(tmp_path: Path) -> None:
    first = diagnose_evidence(str(kept(EVALUATE)(tmp_path)), load_pack()).findings[0]
    assert "srv/score.py:31:evaluate" in first.why.en
