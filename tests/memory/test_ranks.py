"""Cards that hold different parts of a model: pipelines, and what `device_map` fills one after another."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory.runs import known, lora, run
from memory.test_properties import SETUPS
from msgspec.structs import replace

from oomdoctor.case.estimate import Estimate
from oomdoctor.case.setup import Layout, Placement, Setup
from oomdoctor.memory import optimizer
from oomdoctor.memory.estimate import estimate, needed
from oomdoctor.memory.model import parameters as count
from oomdoctor.memory.model import weights
from oomdoctor.memory.ranks import ranks

CUT = st.one_of(
    st.builds(Layout, engine=st.just("device_map"), cards=st.integers(2, 12)),
    st.integers(2, 16).flatmap(lambda stages: st.builds(Layout, cards=st.just(stages), pipeline=st.just(stages))),
    st.builds(Layout, engine=st.just("fsdp2"), cards=st.just(64), stage=st.just(3), pipeline=st.sampled_from([2, 4]), tensor=st.just(2)),
)
COPIES = st.builds(Layout, engine=st.just("dp"), cards=st.integers(2, 8))
UNLIKE_SETUPS = st.builds(lambda setup, layout: replace(setup, layout=layout), SETUPS, CUT | COPIES)
CUT_SETUPS = st.builds(lambda setup, layout: replace(setup, layout=layout, offload_params=False), SETUPS, CUT)


def parts(setup: Setup) -> list[Placement]:
    return [rank.placement for rank in ranks(setup) if rank.placement is not None]


def on_cards(model: str, cards: int) -> list[tuple[int, int, float, bool, bool]]:
    held = parts(run(model, layout=Layout(engine="device_map", cards=cards)))
    return [(part.first, part.last, part.layers, part.embeds, part.scores) for part in held]


@pytest.mark.parametrize(("model", "cards", "expected"), [
    pytest.param("Qwen/Qwen2.5-7B", 2, [(0, 0, 12, True, False), (1, 1, 16, False, True)], id="the first card keeps room free"),
    pytest.param("Qwen/Qwen2.5-7B", 4, [(0, 0, 4, True, False), (1, 2, 9, False, False), (3, 3, 6, False, True)], id="the middle has more"),
    pytest.param(
        "Qwen/Qwen2.5-7B", 8,
        [(0, 0, 0, True, False), (1, 5, 5, False, False), (6, 6, 3, False, False), (7, 7, 0, False, True)],
        id="a large embedding has a card of its own",
    ),
    pytest.param("Qwen/Qwen2.5-3B", 2, [(0, 0, 16, True, True), (1, 1, 20, False, False)], id="a tied head lies on the first card"),
    pytest.param(
        "Qwen/Qwen2.5-0.5B", 5, [(0, 3, 0, False, False), (4, 4, 24, True, True)], id="all is on the last, as no other takes the embedding"
    ),
    pytest.param(
        "Qwen/Qwen2.5-3B", 8, [(0, 0, 1, True, True), (1, 5, 6, False, False), (6, 6, 5, False, False)], id="a card can stay empty"
    ),
    pytest.param(
        "meta-llama/Llama-3.1-70B", 8, [(0, 0, 9, True, False), (1, 6, 11, False, False), (7, 7, 5, False, True)], id="the last has the rest"
    ),
])  # fmt: skip
def test_device_map_fills_cards_as_accelerate_does(model: str, cards: int, expected: list[tuple[int, int, float, bool, bool]]) -> None:
    """What infer_auto_device_map of accelerate 1.15 gives for these models on the meta device, all cards being large enough."""
    assert on_cards(model, cards) == expected


@pytest.mark.parametrize("cards", [2, 3, 5, 8])
@pytest.mark.parametrize("model", ["Qwen/Qwen2.5-0.5B", "Qwen/Qwen2.5-7B", "meta-llama/Llama-3.1-8B"])
def test_the_installed_accelerate_fills_cards_the_same_way(model: str, cards: int) -> None:
    accelerate, transformers = pytest.importorskip("accelerate"), pytest.importorskip("transformers")
    import torch

    shape = known(model)
    config = transformers.Qwen2Config(
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.kv_heads,
        intermediate_size=shape.intermediate,
        vocab_size=shape.vocab,
        tie_word_embeddings=shape.tied,
    )
    with accelerate.init_empty_weights():
        made = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    made.tie_weights()
    whole = dict.fromkeys(range(cards), 1 << 40)
    room = accelerate.utils.get_balanced_memory(made, whole, no_split_module_classes=["Qwen2DecoderLayer"], dtype=torch.bfloat16)
    placed = accelerate.infer_auto_device_map(made, room, no_split_module_classes=["Qwen2DecoderLayer"], dtype=torch.bfloat16)
    theirs = [sum(name.startswith("model.layers.") and card == own for name, card in placed.items()) for own in range(cards)]
    if placed == {"": cards - 1}:
        theirs[-1] = shape.layers
    ours = [
        one.layers for one in parts(run(model, layout=Layout(engine="device_map", cards=cards))) for _ in range(one.first, one.last + 1)
    ]
    assert ours + [0] * (cards - len(ours)) == theirs


def test_a_pipeline_holds_fewer_micro_batches_from_stage_to_stage() -> None:
    found = parts(run(layout=Layout(cards=4, pipeline=4), accumulation=16))
    assert [(one.first, one.last, one.in_flight, one.embeds, one.scores) for one in found] == [
        (0, 0, 4, True, False),
        (1, 2, 3, False, False),
        (3, 3, 1, False, True),
    ]


@pytest.mark.parametrize("layout", [
    pytest.param(Layout(), id="one card"),
    pytest.param(Layout(engine="ddp", cards=8), id="copies"),
    pytest.param(Layout(engine="deepspeed", cards=8, stage=3), id="shards"),
    pytest.param(Layout(engine="fsdp2", cards=64, stage=3, tensor=8, context=2), id="tensor and context parallel ranks"),
])  # fmt: skip
def test_other_cards_are_alike(layout: Layout) -> None:
    setup = run(layout=layout)
    assert ranks(setup) == (setup,)
    assert estimate(setup).ranks == ()


def test_logits_and_loss_are_on_one_card() -> None:
    found = estimate(run(layout=Layout(cards=4, pipeline=4), accumulation=4, checkpointing="full"))
    with_logits = ["logits" in {term.name for phase in one.phases for term in phase.terms} for one in found.ranks]
    assert with_logits == [False, False, True]


def test_data_parallel_gathers_and_steps_on_the_first_card() -> None:
    found = estimate(run(layout=Layout(engine="dp", cards=4), batch=2, length=1024, checkpointing="full"))
    first, copy = found.ranks
    one = estimate(run(batch=2, length=1024, checkpointing="full"))
    of = {name: [{term.name: term.bytes for phase in rank.phases for term in phase.terms}.get(name, 0) for rank in (first, copy, one)]
          for name in ("weights", "gradients", "optimizer", "gathered logits")}  # fmt: skip
    assert of["weights"][0] == of["weights"][1] == of["weights"][2]
    assert of["gradients"][0] == of["gradients"][1] == of["gradients"][2]
    assert of["optimizer"] == [one.terms["optimizer"], 0, one.terms["optimizer"]]
    # Four cards x 2 samples x 1024 tokens x 152064 words x 4 bytes.
    assert of["gathered logits"] == [4 * 2 * 1024 * 152064 * 4, 0, 0]
    assert found.expected == first.expected > copy.expected


def test_a_tied_head_is_a_copy_on_the_last_stage_and_is_trained_there_too() -> None:
    setup = run("Qwen/Qwen2.5-3B", layout=Layout(cards=2, pipeline=2))
    first, last = ranks(setup)
    copied = count.embedding(setup.shape)
    assert weights.weights(first).bytes == weights.weights(last).bytes
    assert weights.weights(first).bytes + weights.weights(last).bytes == pytest.approx(weights.stored(setup) + 2 * copied, abs=2)
    assert optimizer.gradients(first).bytes == optimizer.gradients(last).bytes


def test_a_trained_copy_of_the_head_is_on_the_card_that_has_the_head() -> None:
    adapters = replace(lora(), full=frozenset({"head"}))
    first, last = ranks(run(adapters=adapters, layout=Layout(cards=2, pipeline=2)))
    apart = optimizer.gradients(last).bytes - optimizer.gradients(first).bytes
    assert apart == 2 * count.embedding(first.shape)


def test_pipelines_of_torch_keep_whole_gradients_between_micro_batches() -> None:
    """A stage of 8 with FSDP over 8 cards: fp32 gradients of its layers, not an eighth of them."""
    layout = Layout(engine="fsdp2", cards=64, stage=3, pipeline=8)
    middle = ranks(run("meta-llama/Llama-3.1-70B", weights="fp32", layout=layout, accumulation=8))[1]
    ends = count.embedding(middle.shape) + count.output(middle.shape)
    assert optimizer.gradients(middle).bytes == pytest.approx(4 * (count.total(middle.shape) - ends) / 8, rel=1e-6)


def everywhere(result: Estimate) -> int:
    """The weights of all cards that have one copy of the model between them."""
    out = 0
    for rank in result.ranks:
        assert rank.setup.placement is not None
        out += weights.weights(rank.setup).bytes * (rank.setup.placement.last - rank.setup.placement.first + 1)
    return out


@settings(max_examples=200, deadline=None)
@given(UNLIKE_SETUPS)
def test_no_card_is_fuller_than_the_fullest(setup: Setup) -> None:
    for result in (estimate(setup), needed(setup)):
        assert result.expected == max(rank.expected for rank in result.ranks) == sum(result.terms.values())
        assert result.low == max(rank.low for rank in result.ranks)
        assert result.high == max(rank.high for rank in result.ranks)
        assert result.low <= result.expected <= result.high
        assert result.setup == setup


@settings(max_examples=200, deadline=None)
@given(CUT_SETUPS)
def test_all_cards_together_have_the_whole_model(setup: Setup) -> None:
    result = estimate(setup)
    covered = [number for part in parts(setup) for number in range(part.first, part.last + 1)]
    assert covered == list(range(len(covered))) and len(covered) <= setup.layout.stages
    assert sum(part.layers * (part.last - part.first + 1) for part in parts(setup)) == pytest.approx(setup.shape.layers)
    assert sum(part.embeds for part in parts(setup)) == sum(part.scores for part in parts(setup)) == 1
    whole = weights.stored(setup) / setup.layout.tensor / setup.layout.sharded(weights.SHARDS_ALL)
    copy = 0 if weights.head(setup) or setup.layout.engine == "device_map" else weights.embedding(setup)
    assert everywhere(result) == pytest.approx(whole + copy / setup.layout.tensor / setup.layout.sharded(weights.SHARDS_ALL), rel=1e-6)


@settings(max_examples=100, deadline=None)
@given(SETUPS, st.integers(2, 32), st.integers(1, 32))
def test_more_stages_never_raise_the_weights_of_the_first(setup: Setup, stages: int, more: int) -> None:
    few, many = (ranks(replace(setup, layout=Layout(cards=n, pipeline=n)))[0] for n in (stages, stages + more))
    assert weights.weights(many).bytes <= weights.weights(few).bytes


@settings(max_examples=200, deadline=None)
@given(CUT_SETUPS)
def test_where_no_part_is_named_an_upper_bound_is_meant(setup: Setup) -> None:
    if setup.layout.engine != "device_map":
        assert all(weights.weights(rank).bytes <= weights.weights(setup).bytes for rank in ranks(setup))
