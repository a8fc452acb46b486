"""What the forward pass keeps for the backward pass, counted tensor by tensor.

The counts were taken from the programs themselves: torch.autograd.graph.saved_tensors_hooks around a Llama, a Qwen3 and a
GPT-NeoX of two and of four layers (transformers 5.23, peft 0.21, litgpt 0.5.13, torch 2.13), without gradients of frozen
weights and with them. They agree with the coefficients measured in stas00/ml-engineering, training/performance.
"""

from __future__ import annotations

from oomdoctor.case.estimate import Adapters, Setup, Term
from oomdoctor.case.shape import Latent, Shape
from oomdoctor.memory.part import part
from oomdoctor.memory.term import term
from oomdoctor.memory.trained import adapted, linears
from oomdoctor.memory.weights import HALF

_BASIS = "saved tensors of transformers and peft, counted with torch.autograd.graph.saved_tensors_hooks"


_SHORTER = 0.5
"""How long the longest sample is at least, as a share of where samples are cut, where they differ in length: many sets of data have
none that reaches it."""


def shortest(setup: Setup) -> float:
    """The least share of the tokens that a batch has in truth."""
    return 1.0 if setup.even_lengths is not False or setup.stack.longest_first else _SHORTER


def tokens(setup: Setup) -> float:
    """Tokens that one card holds in one forward."""
    return setup.batch * setup.length / setup.layout.context


def kept(setup: Setup) -> Term:
    """Everything that is kept when the forward pass ends."""
    layers = part(setup).layers * part(setup).in_flight
    if setup.checkpointing == "full":
        size = 0.0 if setup.offload_activations else layers * boundary(setup)
        basis = "layers x tokens x 2 hidden: the inputs of checkpointed layers"
        return term("activations", size, basis, low=0.9 * shortest(setup), high=1.3 * _interleaved(setup))
    if setup.checkpointing == "selective":
        basis = "every second matrix product, the attention and the layer's input: torchtitan/distributed/activation_checkpoint.py"
        return term("activations", layers * saved_by_choice(setup), basis, low=0.8 * shortest(setup), high=1.25 * _interleaved(setup))
    return term("activations", layers * layer(setup), _BASIS, low=0.85 * shortest(setup), high=1.15 * _interleaved(setup))


def working_set(setup: Setup) -> Term | None:
    """One layer, computed again in the backward pass, and the gradients inside it."""
    if setup.checkpointing != "full":
        return None
    return term(
        "recomputed layer", layer(setup) + gradients_inside(setup), f"one layer recomputed: {_BASIS}", low=0.8 * shortest(setup), high=1.3
    )


def saved_by_choice(setup: Setup) -> float:
    """Bytes that selective checkpointing keeps of one layer: the products q, v, gate and down of the seven, what attention gives
    and what the layer gets."""
    shape = setup.shape
    each = 2 * shape.query + shape.value + width(shape) + 2 * shape.hidden
    return tokens(setup) * HALF * each / setup.layout.tensor


def boundary(setup: Setup) -> float:
    """Bytes of the hidden states between two layers; tensor parallel ranks hold them split with sequence parallelism only."""
    return tokens(setup) * HALF * setup.shape.hidden / setup.layout.tensor


def gradients_inside(setup: Setup) -> float:
    """The gradients that are alive at once inside a layer: of two products as wide as the MLP, and of the hidden states."""
    return tokens(setup) * HALF * (2 * width(setup.shape) + setup.shape.hidden) / setup.layout.tensor


def layer(setup: Setup) -> float:
    """Bytes that one layer keeps."""
    shape, frozen = setup.shape, setup.adapters is not None
    each = (
        _norms(shape, frozen=frozen)
        + _attention(setup)
        + _mlp(shape, frozen=frozen)
        + (_adapters(setup, setup.adapters) if setup.adapters else 0)
        + (_unpacked_inputs(setup) if frozen else 0)
    ) * (setup.stack.compiled if not setup.eager_attention else 1.0)
    if setup.eager_attention:
        # Scores, their fp32 softmax and its 16-bit copy for every pair of tokens.
        each += shape.heads * setup.length * (2 + 4 + 2)
    return tokens(setup) * each / setup.layout.tensor


def width(shape: Shape) -> int:
    """How wide the MLP is for one token: of all experts that it goes through."""
    experts = shape.experts
    return shape.intermediate if experts is None else experts.intermediate * (experts.active + experts.shared)


def _norms(shape: Shape, *, frozen: bool) -> int:
    """RMSNorm: an fp32 copy (4), the normalised values (2, for the scale's gradient) and the output (2, for the next matrix).

    LayerNorm: input and output, 16-bit. Frozen: neither the scale nor the next matrix needs them.
    """
    number = 4 if shape.sandwich_norm else 1 if shape.shared_norm else 2
    each = (4 if frozen else 8) if shape.rms else (2 if frozen else 4)
    heads = (6 if not frozen else 4) * (shape.query + shape.key) if shape.qk_norm else 0
    return number * each * shape.hidden + heads


def _attention(setup: Setup) -> int:
    """Queries, keys, values and the output, which is the next matrix's input too.

    Rotated queries and keys are tensors of their own; values are a view, and of a fused matrix's output they keep the whole.
    """
    shape = setup.shape
    if shape.latent is not None:
        return _latent_attention(shape, shape.latent)
    fused = shape.query + shape.key if setup.stack.fused_qkv or shape.fused_qkv else 0
    key = shape.query if setup.stack.repeats_kv else shape.key
    value = shape.query if setup.stack.repeats_kv else shape.value
    return HALF * (2 * shape.query + key + value + fused)


def _latent_attention(shape: Shape, latent: Latent) -> int:
    """Queries, keys with their rotary part, the output, what keys and values come from (values are a view), and two small norms."""
    values, narrow = shape.heads * latent.value, (latent.q_rank or 0) + latent.kv_rank
    return HALF * (2 * shape.query + values + shape.heads * latent.nope + values) + 8 * narrow


def _mlp(shape: Shape, *, frozen: bool) -> int:
    """Before and after the activation, the other half, their product; the last only where its matrix is trained.

    Experts that are trained keep what they were given and what they gave, for each token and each expert it goes through.
    """
    copies = (3 if frozen else 4) if shape.gated else (1 if frozen else 2)
    passed = 0 if shape.experts is None or frozen else 2 * shape.hidden * shape.experts.active
    return HALF * (copies * width(shape) + passed)


def _adapters(setup: Setup, own: Adapters) -> float:
    """What adapters keep of their inputs: the 16-bit copy and the dropout mask (with autocast), or an fp32 copy."""
    shape = setup.shape
    # litgpt's LoRAQKVLinear makes one product for q and v and keeps the padded outputs too: about an input of each.
    names = (own.targets if setup.stack.fused_qkv else adapted(shape, own)) - {"head"}
    per_layer = sum(into * _times(shape, name, times) for name in names for into, _, times in linears(shape, name))
    scaled = shape.query + shape.key + shape.value + 2 * shape.hidden + (2 if shape.gated else 1) * width(shape)
    return setup.stack.adapter_input * per_layer + (HALF * scaled if own.scales_outputs else 0)


def _unpacked_inputs(setup: Setup) -> int:
    """Inputs of q, k and v (one tensor), of o, of gate and up (one), and of down: MatMul4Bit of bitsandbytes before 0.43 kept them."""
    if not (setup.weights.unpacks and setup.stack.keeps_unpacked_input):
        return 0
    return HALF * (2 * setup.shape.hidden + setup.shape.query + width(setup.shape))


def _times(shape: Shape, name: str, times: int) -> float:
    """How many of the matrices one token goes through in one layer."""
    if shape.experts is None or name not in ("gate", "up", "down"):
        return 1.0
    return times / shape.layers * (shape.experts.active + shape.experts.shared) / (shape.experts.routed + shape.experts.shared)


def _interleaved(setup: Setup) -> float:
    """How much more an interleaved schedule can hold than 1F1B: (p - 1) half stages more, with two pieces of the model on a card
    (2 x (stages to come) + p + 1 pieces in all: schedules.py of Megatron-LM, arXiv 2104.04473)."""
    return 1 + (setup.layout.pipeline - 1) / (2 * part(setup).in_flight)


def tower(setup: Setup) -> Term | None:
    """What the vision tower keeps where gradients go through it: it is not checkpointed unless somebody does it."""
    vision = setup.shape.vision
    if vision is None or setup.tower_trained is False or not vision.patches or not part(setup).embeds:
        return None
    each = 8 * vision.hidden + HALF * 4 * vision.hidden + HALF * (4 if vision.gated else 2) * vision.intermediate
    size = setup.batch * vision.patches * vision.layers * each
    basis = "patches x layers of the tower, counted like the text"
    if setup.tower_trained is None:
        return Term(name="vision tower", bytes=0, low=0, high=round(size), basis=basis)
    return term("vision tower", size, basis, low=0.6, high=1.3)
