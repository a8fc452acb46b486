"""What must hold of every run: more of anything never takes less, sharding never raises the shard, and parts add up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from memory.runs import known
from msgspec.structs import replace

from oomdoctor.case.setup import Adapters, Layout, Setup
from oomdoctor.knowledge.tables.memory import framework_traits, known_format, known_optimizer
from oomdoctor.memory import optimizer
from oomdoctor.memory.allocator import segment
from oomdoctor.memory.estimate import estimate
from oomdoctor.memory.model import weights

MODELS = (
    "Qwen/Qwen2.5-0.5B",
    "Qwen/Qwen-7B",
    "meta-llama/Llama-3.1-8B",
    "Qwen/Qwen3-30B-A3B",
    "deepseek-ai/DeepSeek-V2-Lite",
    "zai-org/glm-4v-9b",
    "bigscience/bloom-3b",
)
LAYOUTS = st.one_of(
    st.just(Layout()),
    st.builds(Layout, engine=st.just("ddp"), cards=st.integers(2, 16)),
    st.builds(Layout, engine=st.just("deepspeed"), cards=st.integers(1, 64), stage=st.integers(0, 3)),
    st.builds(Layout, engine=st.sampled_from(["fsdp1", "fsdp2"]), cards=st.integers(2, 64), stage=st.just(3)),
    st.builds(Layout, engine=st.just("device_map"), cards=st.integers(2, 4)),
    st.builds(
        Layout,
        engine=st.just("fsdp2"),
        cards=st.just(64),
        stage=st.just(3),
        tensor=st.sampled_from([1, 2, 8]),
        context=st.sampled_from([1, 2]),
    ),
)
ADAPTERS = st.none() | st.builds(
    Adapters,
    rank=st.integers(1, 256),
    targets=st.frozensets(st.sampled_from(["q", "k", "v", "o", "gate", "up", "down"]), min_size=1),
    full=st.frozensets(st.sampled_from(["embed", "head"])),
)
SETUPS = st.builds(
    Setup,
    shape=st.sampled_from(MODELS).map(known),
    task=st.sampled_from(["train", "infer"]),
    stack=st.sampled_from(["transformers", "litgpt", "torchtune", "ms-swift", "torchtitan", "unknown"]).map(framework_traits),
    weights=st.sampled_from(["bf16", "fp32", "nf4", "gptq-int4", "int8"]).map(known_format),
    optimizer=st.sampled_from(["adamw", "adamw-fused", "adamw-8bit", "adafactor", "sgd"]).map(known_optimizer),
    adapters=ADAPTERS,
    layout=LAYOUTS,
    batch=st.integers(1, 64),
    length=st.integers(1, 65536),
    accumulation=st.integers(1, 16),
    checkpointing=st.sampled_from(["none", "selective", "full"]),
    eager_attention=st.booleans(),
    fused_loss=st.booleans(),
    offload_params=st.booleans(),
    offload_optimizer=st.booleans(),
    offload_activations=st.booleans(),
    even_lengths=st.none() | st.booleans(),
    tower_trained=st.booleans(),
    counter=st.sampled_from(["max_allocated", "max_reserved", "nvidia-smi", "unknown"]),
)


@settings(max_examples=200, deadline=None)
@given(SETUPS)
def test_parts_add_up_and_the_range_holds_the_figure(setup: Setup) -> None:
    result = estimate(setup)
    assert result.expected == sum(result.terms.values()) == max(phase.bytes for phase in result.phases)
    assert 0 <= result.low <= result.expected <= result.high
    assert all(0 <= term.low <= term.bytes <= term.high for phase in result.phases for term in phase.terms)


@settings(max_examples=300, deadline=None)
@given(SETUPS, st.sampled_from(["batch", "length", "layers", "accumulation"]), st.integers(1, 4))
def test_more_never_takes_less(setup: Setup, what: str, more: int) -> None:
    # One layer more can move another one to the next card.
    assume(what != "layers" or setup.layout.engine != "device_map")
    larger = _grown(setup, what, more)
    assert estimate(larger).expected >= estimate(setup).expected


def _grown(setup: Setup, what: str, more: int) -> Setup:
    if what == "layers":
        return replace(setup, shape=replace(setup.shape, layers=setup.shape.layers + more))
    changes: dict[str, Any] = {what: getattr(setup, what) * (1 + more)}
    return replace(setup, **changes)


@settings(max_examples=100, deadline=None)
@given(SETUPS, st.integers(1, 64))
def test_a_higher_rank_never_takes_less(setup: Setup, more: int) -> None:
    low = replace(setup, adapters=Adapters(rank=8, targets=frozenset({"q", "v"})))
    high = replace(setup, adapters=Adapters(rank=8 + more, targets=frozenset({"q", "v"})))
    assert estimate(high).expected >= estimate(low).expected


@settings(max_examples=100, deadline=None)
@given(SETUPS, st.integers(1, 32), st.integers(0, 2))
def test_sharding_never_raises_the_shard(setup: Setup, cards: int, stage: int) -> None:
    setup = replace(setup, task="train", offload_params=False, offload_optimizer=False)

    def shard(stage: int, cards: int) -> int:
        spread = replace(setup, layout=Layout(engine="deepspeed", cards=cards, stage=stage))
        return weights.weights(spread).bytes + optimizer.gradients(spread).bytes + optimizer.states(spread).bytes

    assert shard(stage + 1, cards) <= shard(stage, cards) + 1
    assert shard(stage, 2 * cards) <= shard(stage, cards) + 1


@given(st.integers(1, 1 << 40))
def test_a_segment_holds_its_request_and_little_more(size: int) -> None:
    given_ = segment(size)
    assert given_ >= size
    assert given_ - size < 20 << 20
    assert given_ % (2 << 20) == 0


@pytest.mark.parametrize(("size", "asked"), [
    pytest.param(512, 2 << 20, id="small requests share 2 MiB"),
    pytest.param(5 << 20, 20 << 20, id="middle ones share 20 MiB"),
    pytest.param((10 << 20) + 1, 12 << 20, id="large ones round to 2 MiB"),
])  # fmt: skip
def test_segments_are_those_of_the_caching_allocator(size: int, asked: int) -> None:
    assert segment(size) == asked


def test_an_evaluation_has_no_gradients_but_may_have_more_logits() -> None:
    training = replace(SMALL, eval_batch=None)
    evaluated = replace(SMALL, eval_batch=8)
    collected = replace(evaluated, eval_samples=100)
    assert estimate(training).peak.name == "forward"
    assert estimate(evaluated).peak.name == "evaluation"
    assert "gradients" not in estimate(evaluated).terms
    # 100 samples x 2048 tokens x 152064 words x 4 bytes: transformers/trainer.py keeps them unless eval_accumulation_steps is set.
    assert estimate(collected).terms["collected logits"] == 100 * 2048 * 152064 * 4


SMALL = Setup(
    shape=known("Qwen/Qwen2.5-7B"),
    task="train",
    stack=framework_traits("transformers"),
    weights=known_format("bf16"),
    optimizer=known_optimizer("adamw"),
    adapters=Adapters(rank=8, targets=frozenset({"q", "v"})),
    counter="max_allocated",
)
