"""What the forward pass keeps for the backward pass, counted tensor by tensor.

The counts were taken from the programs themselves: torch.autograd.graph.saved_tensors_hooks around a Llama, a Qwen3 and a
GPT-NeoX with two and with four layers (transformers 5.23, peft 0.21, litgpt 0.5.13, torch 2.13), without gradients for frozen
weights and with them, and traces of some thirty families (tests/tracing). They agree with the coefficients measured in
stas00/ml-engineering, training/performance.
"""

from __future__ import annotations

from oomdoctor.case.estimate import Term
from oomdoctor.case.setup import Adapters, Setup
from oomdoctor.case.shape import Experts, Latent, Shape
from oomdoctor.knowledge.tables.memory import activation_function
from oomdoctor.memory.model.placement import card_placement
from oomdoctor.memory.model.trained import adapted, adapter_width, linears
from oomdoctor.memory.model.weights import HALF, is_upcast
from oomdoctor.memory.term import term

_BASIS = "saved tensors of transformers and peft, counted with torch.autograd.graph.saved_tensors_hooks"
_FP32 = 4
_WIDENED_GRADIENTS = 12
"""Bytes of an adapter's input: its gradient after dropout and before it, both fp32, and those of the matrix and the sum, 16-bit."""
_SCORE_GRADIENTS = 8
"""Bytes per pair of tokens for the gradients around a softmax: 5 in traces, 8 as used by a T4 (fixtures/measured)."""
_SHORTER = 0.5
"""Minimum length of the longest sample, as a share of the truncation length, if samples differ in length: many data sets have none that
reaches it."""


def shortest(setup: Setup) -> float:
    """Return the smallest fraction of its nominal tokens that a batch actually has."""
    return 1.0 if setup.even_lengths is not False or setup.stack.longest_first else _SHORTER


def tokens(setup: Setup) -> float:
    """Return the tokens that one GPU holds in one forward pass."""
    return setup.batch * setup.sequences * setup.length / setup.layout.context


def kept(setup: Setup) -> Term:
    """Return the activations that exist when the forward pass ends."""
    layers = card_placement(setup).layers * card_placement(setup).in_flight
    if setup.checkpointing == "full":
        checkpoints = 0.0 if setup.offload_activations else boundary(setup) / setup.checkpointed_together
        size = layers * (checkpoints + (setup.checkpointed_every - 1) * layer(setup)) / setup.checkpointed_every
        basis = "layers x tokens x 2 hidden: the inputs of checkpointed layers"
        low = 0.9 * shortest(setup) * (0.5 if is_upcast(setup) else 1.0)
        return term("activations", size, basis, low=low, high=1.3 * _interleaved(setup))
    if setup.checkpointing == "selective":
        basis = "every other matrix product, the attention and the layer's input: torchtitan/distributed/activation_checkpoint.py"
        return term("activations", layers * saved_by_choice(setup), basis, low=0.8 * shortest(setup), high=1.25 * _interleaved(setup))
    return term("activations", layers * layer(setup), _BASIS, low=0.85 * shortest(setup), high=1.15 * _interleaved(setup))


def working_set(setup: Setup) -> Term | None:
    """Return one layer, recomputed in the backward pass, with the gradients inside it."""
    if setup.checkpointing != "full":
        return None
    size = layer(setup) * setup.checkpointed_together + gradients_inside(setup)
    return term("recomputed layer", size, f"whatever is recomputed at one time: {_BASIS}", low=0.8 * shortest(setup), high=1.3)


def saved_by_choice(setup: Setup) -> float:
    """Return the bytes that selective checkpointing keeps from one layer.

    The products q, v, gate and down of the seven, the output of attention and the input of the layer.
    """
    shape = setup.shape
    each = 2 * shape.query + shape.value + width(shape) + 2 * shape.hidden
    return tokens(setup) * HALF * each / setup.layout.tensor


def boundary(setup: Setup) -> float:
    """Return the bytes of the hidden states between two layers; tensor parallel ranks split them only with sequence parallelism."""
    return tokens(setup) * (_FP32 if _is_wide(setup) else HALF) * setup.shape.hidden / _between(setup)


def gradients_inside(setup: Setup) -> float:
    """Return the gradients that are live at once inside a layer (counted in traces).

    Those of two products as wide as the MLP, and of the hidden states; with fp32 adapters after the MLP, those of their widened
    input; with eager attention, those of its softmax.
    """
    shape, adapters = setup.shape, setup.adapters
    behind = adapters is not None and "down" in adapters.targets and adapter_width(setup) == _FP32 and setup.stack.adapter_input > HALF
    mlp = (_WIDENED_GRADIENTS if behind else 2 * HALF) * width(shape) + HALF * shape.hidden
    scores = _SCORE_GRADIENTS * shape.heads * setup.length if _is_eager(setup) else 0
    return tokens(setup) * max(mlp, scores) / setup.layout.tensor


def layer(setup: Setup) -> float:
    """Return the bytes that one layer keeps."""
    shape, frozen = setup.shape, setup.adapters is not None
    between = _norms(setup, frozen=frozen) + (2 * shape.hidden if shape.residual_dropout else 0)
    inside = (
        _attention(setup, frozen=frozen)
        + _mlp(setup, frozen=frozen)
        + (_adapters(setup, setup.adapters) if setup.adapters else 0)
        + (_unpacked_inputs(setup) if frozen else 0)
    )
    each = (between / _between(setup) + inside / setup.layout.tensor) * (setup.stack.compiled if not _is_eager(setup) else 1.0)
    if _is_eager(setup):
        # The fp32 softmax and its 16-bit copy for every pair of tokens; the scores themselves are not needed again.
        each += shape.heads * setup.length * (4 + 2) / setup.layout.tensor
    return tokens(setup) * each


def _between(setup: Setup) -> int:
    """Return the number of GPUs that share what is between the matrices: arXiv 2205.05198, formulas 2 and 4."""
    return setup.layout.tensor if setup.layout.sequence_parallel else 1


def width(shape: Shape) -> int:
    """Return the width of the MLP for one token: of all experts that it goes through."""
    experts = shape.experts
    return shape.intermediate if experts is None else experts.intermediate * (experts.active + experts.shared)


def _norms(setup: Setup, *, frozen: bool) -> int:
    """Return what the norms of a layer keep, and the inputs of the matrices after them.

    RMSNorm: the input in fp32 (4), the normalized values for the scale's gradient (2, or 4 if the scale is applied in fp32).
    LayerNorm: its input, 16-bit, or fp32 under autocast, which has it on its list of widened operations. After them, each trained
    matrix keeps its input: all one 16-bit tensor, or a separate copy each if autocast casts a wide one.
    """
    shape, wide = setup.shape, _is_wide(setup)
    readers = _readers(shape)
    number = 4 if shape.sandwich_norm else len(readers)
    scaled = 0 if frozen else 4 if shape.wide_norm or wide else 2
    casts = wide if shape.rms else _autocasts(setup)
    each = 4 + scaled if shape.rms else 4 if casts else 2
    inputs = 0 if frozen else HALF * (sum(readers) if casts else len(readers))
    heads = (4 + scaled) * (shape.query + shape.key) if shape.qk_norm else 0
    # What two norms read is kept once, unless each widens it for itself; this applies to transformers' classes, litgpt's were not counted.
    same = each if shape.parallel and number > 1 and not shape.rms and casts == wide and not setup.stack.fused_qkv else 0
    return (number * each - same + inputs) * shape.hidden + heads


def _readers(shape: Shape) -> tuple[int, ...]:
    """Return how many matrices read each norm's output: those of attention, and those of the MLP."""
    attention = 2 if shape.latent is not None else 1 if shape.fused_qkv else 3
    mlp = 1 if shape.fused_gate or not shape.gated else 2
    return (attention + mlp,) if shape.shared_norm else (attention, mlp)


def _autocasts(setup: Setup) -> bool:
    """Return whether autocast is active: accelerate leaves precision to DeepSpeed's engine."""
    return setup.stack.autocast and setup.layout.engine != "deepspeed"


def _is_wide(setup: Setup) -> bool:
    """Return whether hidden states are fp32: the embedding's weights are, and nothing but autocast narrows what follows.

    Packed matrices output 16 bit, which becomes fp32 again when added to the existing values.
    """
    if is_upcast(setup):
        return True
    whole = not setup.weights.packed and setup.weights.bytes_per_param == _FP32
    # BLOOM's embedding is followed by a LayerNorm, which autocast widens.
    normed = not setup.shape.rms and setup.shape.extra > 0
    return (whole or normed) and _autocasts(setup) and setup.layout.engine not in ("fsdp1", "fsdp2")


def _is_eager(setup: Setup) -> bool:
    return setup.eager_attention or setup.shape.eager_only


def _attention(setup: Setup, *, frozen: bool) -> int:
    """Return queries, keys, values and the output, which is the next matrix's input too.

    Rotated queries and keys are separate tensors; values are a view, and of a fused matrix's output they keep the whole.
    """
    shape = setup.shape
    if shape.latent is not None:
        return _latent_attention(shape, shape.latent, frozen=frozen)
    # A single head of keys and values is copied out of the fused product (Falcon 7B).
    fused = shape.query + shape.key if (setup.stack.fused_qkv or shape.fused_qkv) and shape.rotary and shape.kv_heads > 1 else 0
    repeats = setup.stack.repeats_kv or _is_eager(setup)
    key, value = (shape.query, shape.query) if repeats else (shape.key, shape.value)
    return HALF * (2 * shape.query + key + value + fused)


def _latent_attention(shape: Shape, latent: Latent, *, frozen: bool) -> int:
    """Return queries, keys with their rotary part, the output, the source of keys and values (values are a view), and two small norms."""
    values, narrow = shape.heads * latent.value, (latent.q_rank or 0) + latent.kv_rank
    return HALF * (2 * shape.query + values + shape.heads * latent.nope + values) + (4 if frozen else 8) * narrow


def _mlp(setup: Setup, *, frozen: bool) -> int:
    """Return what the activation keeps, its output, the other half, and their product if the next matrix is trained."""
    shape = setup.shape
    # litgpt's own model classes know fused activations only.
    function = activation_function("" if setup.stack.fused_qkv else shape.activation)
    inside = function.inside_autocast if _autocasts(setup) else function.inside
    if shape.gated:
        each = inside + HALF * (2 if frozen else 3)
    else:
        each = inside + (HALF if function.keeps_output or not frozen else 0)
    return each * width(shape) + (_routed(shape, shape.experts, frozen=frozen) if shape.experts else 0)


def _routed(shape: Shape, experts: Experts, *, frozen: bool) -> int:
    """Return what routed experts keep for each token and each expert that it goes through.

    Their output, which the gradient of the routing weights needs and, if they are trained, their input. A gated shared expert's
    output is needed too; DeepSeek's trained router keeps its own input.
    """
    beside = experts.shared_gate or (experts.shared > 0 and not frozen)
    return HALF * shape.hidden * ((1 if frozen else 2) * experts.active + beside)


def _adapters(setup: Setup, adapters: Adapters) -> float:
    """Return what adapters keep of their inputs: the 16-bit copy and the dropout mask (with autocast), or an fp32 copy."""
    shape = setup.shape
    # litgpt's LoRAQKVLinear makes one product for q and v and keeps the padded outputs too: about one input of each.
    names = (adapters.targets if setup.stack.fused_qkv else adapted(shape, adapters)) - {"head"}
    per_layer = sum(into * _times(shape, name, times) for name in names for into, _, times in linears(shape, name))
    scaled = shape.query + shape.key + shape.value + 2 * shape.hidden + (2 if shape.gated else 1) * width(shape)
    return setup.stack.adapter_input * per_layer + (HALF * scaled if adapters.scales_outputs else 0)


def _unpacked_inputs(setup: Setup) -> int:
    """Return the inputs of q, k and v (one tensor), o, gate and up (one), and down, which MatMul4Bit of bitsandbytes before 0.43 kept."""
    if not (setup.weights.unpacks and setup.stack.keeps_unpacked_input):
        return 0
    return HALF * (2 * setup.shape.hidden + setup.shape.query + width(setup.shape))


def _times(shape: Shape, name: str, times: int) -> float:
    """Return how many of the matrices one token goes through in one layer."""
    if shape.experts is None or name not in ("gate", "up", "gate_up", "down"):
        return 1.0
    return times / shape.layers * (shape.experts.active + shape.experts.shared) / (shape.experts.routed + shape.experts.shared)


def _interleaved(setup: Setup) -> float:
    """Return how much more an interleaved schedule can hold than 1F1B, as a factor.

    (p - 1) half stages more, with two pieces of the model on a GPU: 2 x (stages to come) + p + 1 pieces in all (schedules.py of
    Megatron-LM, arXiv 2104.04473).
    """
    return 1 + (setup.layout.pipeline - 1) / (2 * card_placement(setup).in_flight)


def tower(setup: Setup) -> Term | None:
    """Return what the vision tower keeps if gradients go through it; it is not checkpointed by default."""
    vision = setup.shape.vision
    if vision is None or setup.tower_trained is False or not vision.patches or not card_placement(setup).embeds:
        return None
    each = 8 * vision.hidden + HALF * 4 * vision.hidden + HALF * (4 if vision.gated else 2) * vision.intermediate
    size = setup.batch * setup.sequences * vision.patches * vision.layers * each
    basis = "patches x layers of the tower, counted like text"
    if setup.tower_trained is None:
        return Term(name="vision tower", bytes=0, low=0, high=round(size), basis=basis)
    return term("vision tower", size, basis, low=0.6, high=1.3)
