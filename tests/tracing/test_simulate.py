"""The steps of a run through the allocator: what is asked for, in which order, and what is left (skipped where torch is missing)."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from memory.runs import lora, run, zero
from msgspec.structs import replace

from oomdoctor.case.setup import Setup
from oomdoctor.cli.main import cli
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config
from oomdoctor.memory.estimate import estimate
from oomdoctor.memory.model import parameters as count
from oomdoctor.simulation.requests import RequestLog

pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("peft")
pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = {
    "model_type": "llama", "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 4, "num_attention_heads": 8,
    "num_key_value_heads": 4, "vocab_size": 32000,
}  # fmt: skip


def setup_of(**changes: Any) -> Setup:
    shape = shape_from_config(SMALL, "small")
    assert shape is not None
    return replace(run(**{"length": 512, "checkpointing": "none", **changes}), shape=shape)


def record(**changes: Any) -> RequestLog:
    from oomdoctor.tracing.steps import record_steps

    return record_steps(SMALL, setup_of(**changes))


def live_at_the_end(log: RequestLog) -> dict[str, int]:
    """Bytes by what they are."""
    live = {}
    for request in log.requests:
        if request.action == "alloc":
            live[request.tensor] = request
        elif request.action == "free":
            del live[request.tensor]
    sizes: dict[str, int] = {}
    for request in live.values():
        name = log.sites[request.site].operation
        sizes[name] = sizes.get(name, 0) + request.size
    return sizes


def test_weights_and_states_are_what_stays() -> None:
    sizes = live_at_the_end(record())
    params = count.total(setup_of().shape)
    assert sizes["parameter"] == 2 * params
    assert sizes["optimizer state"] == 4 * params
    assert sum(sizes.values()) - 6 * params < 16 << 20


def test_gradients_are_as_large_as_what_is_trained() -> None:
    log = record(adapters=lora(16))
    gradients = [request.size for request in log.requests if log.sites[request.site].operation == "gradient"]
    assert sum(gradients) == 2 * 4 * sum(
        16 * (into + out) * 4 for into, out in [(512, 512), (512, 256), (512, 256), (512, 512), (512, 1408), (512, 1408), (1408, 512)]
    )


def test_a_micro_batch_more_finds_gradients_there() -> None:
    assert len(record(accumulation=4).requests) > 1.5 * len(record().requests)


@pytest.mark.parametrize("changes", [
    pytest.param({"length": 2048}, id="activations kept"),
    pytest.param({"length": 2048, "checkpointing": "full"}, id="layers computed again"),
    pytest.param({"length": 2048, "checkpointing": "full", "adapters": lora(8)}, id="adapters"),
])  # fmt: skip
def test_the_peak_is_that_of_the_formulas(changes: dict[str, Any]) -> None:
    from oomdoctor.simulation.replay import replay as replay_requests

    simulated, _ = replay_requests(record(**changes))
    counted = estimate(setup_of(**changes))
    assert simulated.allocated == pytest.approx(counted.expected, rel=0.08)


@pytest.mark.parametrize(("changed", "says"), [
    pytest.param(lambda: {"layout": zero(3, 8)}, "on one card", id="several cards"),
    pytest.param(lambda: {"task": "infer"}, "on one card", id="no training"),
    pytest.param(lambda: {"weights": "nf4"}, "16 or 32 bit", id="packed weights"),
])  # fmt: skip
def test_what_cannot_be_simulated_says_why(changed: Callable[[], dict[str, Any]], says: str) -> None:
    from oomdoctor.tracing.failure import Untraceable

    with pytest.raises(Untraceable, match=says):
        record(**changed())


@pytest.mark.parametrize(("card", "status"), [pytest.param("24GB", 0, id="it fits"), pytest.param("2GB", 1, id="it fails")])
def test_the_command_writes_what_memory_viz_reads(tmp_path: Path, card: str, status: int) -> None:
    viz = pytest.importorskip("torch.cuda._memory_viz")
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    snapshot = tmp_path / "steps.pickle"
    arguments = ["estimate", "--model", str(tmp_path), "--method", "full", "--batch", "4", "--length", "1024", "--snapshot", str(snapshot)]
    done = CliRunner().invoke(cli, [*arguments, "--gpu", card, "--format", "json"])
    assert done.exit_code == status, done.output
    simulated = json.loads(done.stdout)["simulated"]
    made = pickle.loads(snapshot.read_bytes())
    assert ("OutOfMemoryError" in viz.trace(made)) == (simulated["failed"] is not None) == bool(status)
    assert "total_reserved" in viz.segsum(made)
