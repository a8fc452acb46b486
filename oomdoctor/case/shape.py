"""The shape of a model: what its config.json says and the arithmetic needs."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.case.pictures import PictureModel


class Latent(Struct, frozen=True, kw_only=True):
    """Multi-head latent attention (DeepSeek V2, V3): keys and values go through a narrow latent."""

    q_rank: int | None
    """None if queries are projected directly."""
    kv_rank: int
    nope: int
    rope: int
    value: int


class Experts(Struct, frozen=True, kw_only=True):
    """A mixture of experts."""

    routed: int
    active: int
    """How many of them one token uses."""
    intermediate: int
    """Width of one expert."""
    shared: int = 0
    """Experts that every token uses, in units of `intermediate`."""
    shared_gate: bool = False
    dense_layers: int = 0
    """The number of leading layers that have an ordinary MLP."""
    correction_bias: bool = False
    """Whether the router has a bias for each expert (DeepSeek V3, GLM-4.5)."""


class Vision(Struct, frozen=True, kw_only=True):
    """The tower that reads images."""

    params: int
    hidden: int = 0
    layers: int = 0
    hidden_layers: int = 0
    """The number of layers if a config calls it num_hidden_layers; 0 if it uses another name."""
    heads: int = 0
    intermediate: int = 0
    gated: bool = False
    patches: int = 0
    """Patches of one image at its largest; 0 if that depends on the image."""
    modules: frozenset[str] = frozenset()
    """Names of its matrices, as written in adapter targets; empty is unknown."""
    tokens: int = 0
    """Text tokens per image; 0 if that depends on the image."""
    family: str = ""
    """The name in rules/tables/served_items.csv for models that read images in this way."""


class Part(Struct, frozen=True):
    """A matrix of a layer, or the non-matrix part of a layer, by its name in checkpoints."""

    name: str
    """Relative to the layer: `self_attn.q_proj`."""
    size: int
    is_matrix: bool = True
    """Whether a quantizer packs it: norms, biases and routers stay as they are."""
    routed: bool = False
    """Whether it is the routed experts."""


class CompressedKeys(Struct, frozen=True, kw_only=True):
    """Keys that are shared by several tokens (DeepSeek V4)."""

    ratio: int
    """Tokens that share a key; 0 if a layer has only its window."""
    head: int
    rope: int
    """The part of it that is rotated."""
    index: int
    """Width of the keys of an indexer; 0 without one."""
    window: int


class ModelLayer(Struct, frozen=True, kw_only=True, cache_hash=True):
    """One layer of a model whose layers differ."""

    parts: tuple[Part, ...]
    cache: int = 0
    """Values that it keeps per token: keys and values; 0 if it keeps none, or those of an earlier layer."""
    indexed: int = 0
    """Additional bytes that it keeps per token, whatever the type of the cache: the keys of an indexer."""
    window: int | None = None
    """Maximum number of tokens that it keeps; None is all of them."""
    state: int = 0
    """Bytes that it keeps per sequence, whatever its length: linear attention, state space models."""
    compression: CompressedKeys | None = None


class PackedGroup(Struct, frozen=True):
    """Matrices of one format in a checkpoint."""

    bytes_per_param: float
    """Including scales."""
    targets: tuple[str, ...] = ()
    """Their names, as configs write them; empty is every matrix."""


class Checkpoint(Struct, frozen=True, kw_only=True, cache_hash=True):
    """The formats of a checkpoint's weights: the quantization_config of its config.json."""

    format: str
    """A name of rules/tables/weight_formats.csv."""
    groups: tuple[PackedGroup, ...]
    """The first one that names a matrix counts."""
    kept: tuple[str, ...] = ()
    """Names of modules that stay in 16 bit, as configs write them."""
    embedding_bytes: float | None = None
    """Per embedding parameter, if a file gives it."""
    head_bytes: float | None = None
    """Per parameter of the output projection, if a file gives it."""


class Shape(Struct, frozen=True, kw_only=True, cache_hash=True):
    """A model. Sizes are numbers of elements."""

    name: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head: int
    """Width of one head."""
    intermediate: int
    vocab: int
    tied: bool = False
    """Whether the embedding is the output projection too."""
    gated: bool = True
    rms: bool = True
    """RMSNorm; False is LayerNorm with a bias."""
    attention_bias: bool = False
    """On q, k and v."""
    output_bias: bool = False
    """On the attention's output projection."""
    mlp_bias: bool = False
    head_bias: bool = False
    fused_qkv: bool = False
    """Whether q, k and v come from one matrix; then anything kept of one keeps them all."""
    fused_gate: bool = False
    """Whether both halves of the MLP come from one matrix."""
    activation: str = ""
    """The function inside the MLP, as configs name it; empty is a fused one."""
    qk_norm: bool = False
    qk_norm_full: bool = False
    """Whether that norm spans all heads (OLMo 2) rather than one."""
    sandwich_norm: bool = False
    """Four norms per layer (Gemma 2 and 3, GLM-4-0414)."""
    post_norm: bool = False
    """Norms after attention and MLP only (OLMo 2)."""
    shared_norm: bool = False
    """One norm per layer for attention and MLP."""
    parallel: bool = False
    """Whether attention and MLP of a layer read the same hidden states (GPT-NeoX, Falcon)."""
    wide_norm: bool = False
    """Whether RMSNorm multiplies by its scale in fp32 (Gemma, OLMo 2)."""
    rotary: bool = True
    """Whether queries and keys are rotated, which creates new tensors for them."""
    eager_only: bool = False
    """Whether the class has no fused attention (GPT-J, BLOOM)."""
    residual_dropout: bool = False
    """Whether the outputs of attention and MLP go through dropout."""
    positions: int = 0
    """Learned positions."""
    extra: int = 0
    """Parameters not covered by any rule here (the norm after BLOOM's embedding)."""
    window: int | None = None
    """Sliding window of attention, in tokens."""
    windowed_layers: int | None = None
    """How many layers have the window; None is all of them."""
    experts: Experts | None = None
    latent: Latent | None = None
    vision: Vision | None = None
    each: tuple[ModelLayer, ...] = ()
    """Every layer, if they differ in more than a window; empty if the fields above describe all of them."""
    scores: bool = True
    """Whether it produces logits: encoders and image generators do not."""
    heard: int = 0
    """Positions that the first layers read of every sample, however much of it is written (Whisper: 30 seconds of audio)."""
    heard_layers: int = 0
    longest: int | None = None
    """The maximum number of tokens in a sequence, from the config."""
    checkpoint: Checkpoint | None = None
    """The formats of its weights, if they are packed."""
    pictures: PictureModel | None = None
    """The image or video generator; the sizes above are then those of its denoiser."""
    guessed: bool = False
    """Whether only the number of parameters is known and the rest is scaled from a similar model."""

    @property
    def query(self) -> int:
        """Width of all query heads."""
        return self.heads * (self.latent.nope + self.latent.rope if self.latent else self.head)

    @property
    def key(self) -> int:
        """Width of all key heads."""
        return self.kv_heads * (self.latent.nope + self.latent.rope if self.latent else self.head)

    @property
    def value(self) -> int:
        """Width of all value heads."""
        return self.kv_heads * (self.latent.value if self.latent else self.head)
