"""Models that read and do not write: BERT and its kin, towers for pictures, CLIP, T5; and Whisper, whose decoder is a small part.

Counts are those of the classes in transformers 5.23: BertModel, ModernBertModel, ViTModel, T5EncoderModel,
WhisperForConditionalGeneration.
"""

from __future__ import annotations

from msgspec.structs import replace

from oomdoctor.case.shape import ModelLayer, Part, Shape, Vision
from oomdoctor.knowledge.hub_configs.sizes import HubConfig, part_of, size, texts

_BERT = {
    "bert",
    "roberta",
    "xlm-roberta",
    "camembert",
    "distilbert",
    "electra",
    "mpnet",
    "nomic_bert",
    "xlm-roberta-xl",
    "deberta-v2",
    "clip_text_model",
}
_UNPOOLED = {"distilbert", "electra", "nomic_bert", "deberta-v2", "clip_text_model"}
_PICTURES = {"vit", "deit", "dinov2", "clip_vision_model", "siglip_vision_model", "dinov2_with_registers"}
_HALF = 2
_HEARD = 1500
"""Positions of 30 seconds of sound, which the decoder attends to (modeling_whisper.py)."""
_EMBEDDERS = ("Model", "ForSequenceClassification", "ForTokenClassification", "ForRewardModeling", "EncoderModel")


def gives_scores(config: HubConfig) -> bool:
    """Return whether a decoder's class scores words: embedding models, rerankers and reward models have another head or none."""
    named = texts(config, "architectures")
    return not named or not named[0].endswith(_EMBEDDERS)


def encoder_shape(config: HubConfig, name: str) -> Shape | None:
    """Return the shape of a model that only reads, or of Whisper; None for any other, or where a size is missing."""
    family = str(config.get("model_type") or "").lower()
    if family in ("clip", "siglip") and part_of(config, "vision_config"):
        return _pair(config, name, family)
    if family == "modernbert":
        return _modern(config, name)
    if family in _BERT:
        return _bert(config, name, family)
    if family in _PICTURES:
        return _pictures(config, name)
    if family == "whisper":
        return _whisper(config, name)
    return _t5(config, name) if family in ("t5", "mt5", "umt5") else None


def _shape(
    name: str, layers: tuple[ModelLayer, ...], of: tuple[int, int, int, int], *, extra: int, positions: int = 0, scores: bool = False
) -> Shape:
    hidden, heads, width, vocab = of
    return Shape(
        name=name,
        hidden=hidden,
        layers=len(layers),
        heads=heads,
        kv_heads=heads,
        head=max(1, hidden // heads),
        intermediate=width,
        vocab=vocab,
        tied=True,
        gated=False,
        rms=False,
        attention_bias=True,
        output_bias=True,
        mlp_bias=True,
        rotary=False,
        positions=positions,
        extra=extra,
        each=layers,
        scores=scores,
        longest=positions or None,
    )


def _of(config: HubConfig) -> tuple[int, int, int, int] | None:
    """Return hidden size, layers, heads and width of the MLP; None where one is missing."""
    hidden, layers = size(config, "hidden_size", "dim", "n_embd"), size(config, "num_hidden_layers", "n_layers", "n_layer")
    heads = size(config, "num_attention_heads", "n_heads", "n_head")
    if not hidden or not layers or not heads:
        return None
    return hidden, layers, heads, size(config, "intermediate_size", "hidden_dim", "n_inner") or hidden * (size(config, "mlp_ratio") or 4)


def _block(hidden: int, width: int, beside: int = 0) -> ModelLayer:
    """Return a layer with biases and two LayerNorms."""
    attends = tuple(Part(f"attention.{part}", hidden * hidden) for part in ("query", "key", "value", "output"))
    wide = (Part("intermediate.dense", hidden * width), Part("output.dense", width * hidden))
    return ModelLayer(parts=(*attends, *wide, Part("norms", 4 * hidden + width + hidden + 4 * hidden + beside, is_matrix=False)))


def _bert(config: HubConfig, name: str, family: str) -> Shape | None:
    of, vocab = _of(config), size(config, "vocab_size")
    if of is None or not vocab:
        return None
    hidden, layers, heads, width = of
    types = (size(config, "type_vocab_size") or 0) * hidden
    pooler = 0 if family in _UNPOOLED else hidden * hidden + hidden
    positions = size(config, "max_position_embeddings") or 0
    # One more norm: that of the embeddings stands for the final one, which only CLIP has.
    return _shape(name, (_block(hidden, width),) * layers, (hidden, heads, width, vocab), extra=types + pooler, positions=positions)


def _pair(config: HubConfig, name: str, family: str) -> Shape | None:
    """Return a model that brings pictures and texts into one space: the text's tower, the picture's, and what projects both."""
    reads, sees = part_of(config, "text_config"), part_of(config, "vision_config")
    shape, seen = _bert(reads, name, "clip_text_model"), _pictures({**sees, "model_type": f"{family}_vision_model"}, name)
    if shape is None or seen is None:
        return None
    # Two more rows of the hidden size: the last norm of SigLIP, a norm's half and the position of CLIP's own token.
    tower = sum(part.size for layer in seen.each for part in layer.parts) + seen.extra + (seen.positions + 2) * seen.hidden
    if family == "siglip":
        head = (shape.hidden + 1) * (size(reads, "projection_size") or shape.hidden)
        return replace(shape, extra=shape.extra + head + 2, vision=Vision(params=tower))
    target = size(config, "projection_dim") or shape.hidden
    return replace(shape, extra=shape.extra + 1, vision=Vision(params=tower + (seen.hidden + shape.hidden) * target))


def _modern(config: HubConfig, name: str) -> Shape | None:
    of, vocab = _of(config), size(config, "vocab_size")
    if of is None or not vocab:
        return None
    hidden, layers, heads, width = of
    matrices = (
        Part("attn.Wqkv", 3 * hidden * hidden),
        Part("attn.Wo", hidden * hidden),
        Part("mlp.Wi", 2 * hidden * width),
        Part("mlp.Wo", width * hidden),
    )
    layer = ModelLayer(parts=(*matrices, Part("norms", 2 * hidden, is_matrix=False)))
    first = ModelLayer(parts=(*matrices, Part("norms", hidden, is_matrix=False)))
    # Norms without a shift: those of the embeddings and the last are as many as one with it.
    return _shape(name, (first, *(layer,) * (layers - 1)), (hidden, heads, width, vocab), extra=0)


def _pictures(config: HubConfig, name: str) -> Shape | None:
    of = _of(config)
    if of is None:
        return None
    hidden, layers, heads, width = of
    patch, image = size(config, "patch_size") or 16, size(config, "image_size") or 224
    patches = (image // patch) ** 2
    family = str(config.get("model_type"))
    scales = 2 * hidden if family.startswith("dinov2") else 0
    extra = 3 * patch * patch * hidden + _beside_patches(family, hidden, width)
    each = (_block(hidden, width, scales),) * layers
    return _shape(name, each, (hidden, heads, width, 0), extra=extra, positions=patches)


def _beside_patches(family: str, hidden: int, width: int) -> int:
    """Return what a tower has beside patches, positions and layers: a token of its own, a bias, a head that pools."""
    if family.startswith("siglip"):
        return hidden + 4 * hidden * (hidden + 1) + 2 * hidden * width + width + hidden + 3 * hidden
    if family == "clip_vision_model":
        return 4 * hidden
    return 4 * hidden if family.startswith("dinov2") else hidden * hidden + 4 * hidden


def _whisper(config: HubConfig, name: str) -> Shape | None:
    hidden, vocab, heads = size(config, "d_model"), size(config, "vocab_size"), size(config, "encoder_attention_heads")
    encoders, decoders = size(config, "encoder_layers"), size(config, "decoder_layers")
    if not hidden or not vocab or not heads or not encoders or not decoders:
        return None
    width, mels = size(config, "encoder_ffn_dim") or 4 * hidden, size(config, "num_mel_bins") or 80
    reads = _block(hidden, width, -hidden)  # keys have no bias
    crossed = tuple(Part(f"encoder_attn.{part}_proj", hidden * hidden) for part in "qkvo")
    writes = ModelLayer(
        parts=(*reads.parts, *crossed, Part("encoder_attn", 3 * hidden + 2 * hidden, is_matrix=False)),
        cache=2 * hidden,
        state=_HEARD * 2 * hidden * _HALF,
    )
    heard, written = size(config, "max_source_positions") or _HEARD, size(config, "max_target_positions") or 448
    extra = 3 * mels * hidden + hidden + 3 * hidden * hidden + hidden + 2 * hidden
    of = (hidden, heads, width, vocab)
    shape = _shape(name, (reads,) * encoders + (writes,) * decoders, of, extra=extra, positions=heard + written, scores=True)
    return replace(shape, heard=heard, heard_layers=encoders, longest=written)


def _t5(config: HubConfig, name: str) -> Shape | None:
    """Return T5's encoder, as pipelines for pictures have it; with its decoder where the class is not the encoder alone."""
    hidden, layers, vocab = size(config, "d_model"), size(config, "num_layers"), size(config, "vocab_size")
    heads, head, width = size(config, "num_heads"), size(config, "d_kv"), size(config, "d_ff")
    if not hidden or not layers or not vocab or not heads or not head or not width:
        return None
    gated = "gated" in str(config.get("feed_forward_proj") or "")
    inner = heads * head
    attends = tuple(Part(f"SelfAttention.{part}", hidden * inner) for part in "qkvo")
    wide = tuple(Part(f"DenseReluDense.{part}", hidden * width) for part in (("wi_0", "wi_1", "wo") if gated else ("wi", "wo")))
    reads = ModelLayer(parts=(*attends, *wide, Part("layer_norm", 2 * hidden, is_matrix=False)))
    buckets = (size(config, "relative_attention_num_buckets") or 32) * heads
    each, tables = (reads,) * layers, buckets * (layers if config.get("model_type") == "umt5" else 1)
    if not any(named.endswith("EncoderModel") for named in texts(config, "architectures")):
        crossed = tuple(Part(f"EncDecAttention.{part}", hidden * inner) for part in "qkvo")
        writes = ModelLayer(parts=(*reads.parts, *crossed, Part("cross_norm", hidden, is_matrix=False)), cache=2 * inner)
        decoders = size(config, "num_decoder_layers") or layers
        head_beside = 0 if config.get("tie_word_embeddings", True) else hidden * vocab
        each, tables = each + (writes,) * decoders, tables + buckets * (decoders if config.get("model_type") == "umt5" else 1) + head_beside
    # The norm of a LayerNorm with its shift stands for T5's one or two without.
    return _shape(name, each, (hidden, heads, width, vocab), extra=tables - hidden * (len(each) == layers))
