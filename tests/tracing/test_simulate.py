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

from oomdoctor.case.setup import Layout, Setup
from oomdoctor.cli.main import cli
from oomdoctor.knowledge.hub_configs.decoder import shape_from_config
from oomdoctor.knowledge.tables.memory import known_format
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


def test_packed_matrices_take_their_bytes_and_nothing_else_changes() -> None:
    packed = known_format("nf4")
    sizes = live_at_the_end(record(weights="nf4", adapters=lora(16), framework="llamafactory"))
    linears = count.linears(setup_of().shape)
    plain = count.total(setup_of().shape) - linears
    trained = sizes["optimizer state"] // 2
    assert sizes["parameter"] - trained == pytest.approx(linears * packed.bytes_per_param + plain * 2, rel=0.01)


@pytest.mark.parametrize(("changed", "ranks"), [
    pytest.param(lambda: {"layout": Layout(engine="ddp", cards=4)}, 1, id="whole on each card"),
    pytest.param(lambda: {"layout": zero(2, 4)}, 1, id="stage 2 keeps the weights whole"),
    pytest.param(lambda: {"layout": zero(3, 4)}, 4, id="stage 3 shards them"),
    pytest.param(lambda: {"layout": Layout(engine="fsdp2", cards=4, stage=3)}, 4, id="FSDP too"),
])  # fmt: skip
def test_a_rank_stores_its_part(changed: Callable[[], dict[str, Any]], ranks: int) -> None:
    assert live_at_the_end(record(**changed()))["parameter"] == pytest.approx(2 * count.total(setup_of().shape) / ranks, rel=0.001)


SPREAD = [
    pytest.param({"weights": "nf4", "adapters": lora(16)}, id="QLoRA"),
    pytest.param({"weights": "gptq-int4", "adapters": lora(16)}, id="GPTQ keeps what it unpacks"),
    pytest.param({"layout": Layout(engine="ddp", cards=4), "adapters": lora(16)}, id="DDP"),
    pytest.param({"layout": replace(zero(1, 4), bucket=5_000_000), "length": 512}, id="ZeRO-1"),
    pytest.param({"layout": replace(zero(2, 4), bucket=5_000_000), "length": 512}, id="ZeRO-2"),
    pytest.param({"layout": Layout(engine="fsdp2", cards=4, stage=3)}, id="FSDP"),
    pytest.param({"layout": Layout(engine="fsdp1", cards=4, stage=3), "accumulation": 4}, id="FSDP that waits with its gradients"),
]


@pytest.mark.parametrize("changes", SPREAD)
def test_a_rank_peaks_where_the_formulas_say(changes: dict[str, Any]) -> None:
    """What nothing scales with, such as cuBLAS's workspace, is much of so small a model."""
    from oomdoctor.simulation.replay import replay as replay_requests

    changes = {"length": 4096, "checkpointing": "full", **changes}
    simulated, _ = replay_requests(record(**changes))
    assert simulated.allocated == pytest.approx(estimate(setup_of(**changes)).expected, rel=0.15)


def test_gathered_blocks_of_deepspeed_wait() -> None:
    actions = [request.action for request in record(layout=Layout(engine="deepspeed", cards=4, stage=3, live=1_000_000)).requests]
    assert actions.count("release") > 4
    assert "release" not in {request.action for request in record(layout=Layout(engine="fsdp2", cards=4, stage=3)).requests}


@pytest.mark.parametrize(("changed", "says"), [
    pytest.param(lambda: {"layout": Layout(engine="fsdp2", cards=8, stage=3, tensor=2)}, "tensor parallelism", id="operations that are divided"),
    pytest.param(lambda: {"layout": Layout(engine="device_map", cards=2)}, "not for device_map", id="layers on several cards"),
    pytest.param(lambda: {"task": "infer"}, "for training", id="no training"),
    pytest.param(lambda: {"offload_activations": True}, "stay on the card", id="activations in host memory"),
])  # fmt: skip
def test_what_cannot_be_simulated_says_why(changed: Callable[[], dict[str, Any]], says: str) -> None:
    from oomdoctor.errors import Untraceable

    with pytest.raises(Untraceable, match=says):
        record(**changed())


def test_the_command_writes_what_memory_viz_reads(tmp_path: Path) -> None:
    viz = pytest.importorskip("torch.cuda._memory_viz")
    (tmp_path / "config.json").write_text(json.dumps(SMALL))
    snapshot = tmp_path / "steps.pickle"
    arguments = ["estimate", "--model", str(tmp_path), "--method", "full", "--batch", "4", "--length", "1024", "--snapshot", str(snapshot)]
    done = CliRunner().invoke(cli, [*arguments, "--gpu", "2GB", "--format", "json"])
    assert done.exit_code == 1, done.output
    simulated = json.loads(done.stdout)["simulated"]
    made = pickle.loads(snapshot.read_bytes())
    assert ("OutOfMemoryError" in viz.trace(made)) == (simulated["failed"] is not None) is True
    assert "total_reserved" in viz.segsum(made)
