"""What the memory model asks about a run: model, format, optimizer, adapters, layout, batch."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.case.pictures import PictureRun
from oomdoctor.case.shape import Shape

Task = Literal["train", "infer", "serve"]


Counter = Literal["max_allocated", "max_reserved", "nvidia-smi", "unknown"]
"""Which figure is predicted: torch's peak of live tensors, torch's peak of reserved memory, or what the driver says."""


Checkpointing = Literal["none", "selective", "full"]


Engine = Literal["none", "dp", "ddp", "deepspeed", "fsdp1", "fsdp2", "device_map"]
"""`dp` is torch.nn.DataParallel: one process, which copies the model to all cards in every step."""


class WeightFormat(Struct, frozen=True, kw_only=True):
    """How weights are stored."""

    name: str
    bytes_per_param: float
    """Of what is packed, scales included."""
    packed: bool = False
    """Whether only the matrices inside layers have it and the rest stays 16-bit."""
    kept_wide: int | None = None
    """How many parameters of the layers stay in 16 bit, where the checkpoint says it; None is all that are no matrices."""
    embedding_bytes: float = 2.0
    """Of a parameter of the embedding, where the checkpoint says it."""
    head_bytes: float | None = None
    """Of a parameter of the output projection, where the checkpoint says it; None is 16 bit."""
    attention_bytes: float | None = None
    """Of a parameter of the matrices that mix tokens, where the checkpoint says it."""
    packs_tower: bool = False
    """Whether the matrices of a vision tower are packed too."""
    unties: bool = False
    """Whether tied models get an output projection of their own."""
    unpacks: bool = False
    """Whether a matrix is unpacked to 16 bit when it is used."""
    rebuilds: bool = False
    """Whether a matrix is written out in 16 bit where many tokens go through it, while kernels for a few read it packed."""
    keeps_unpacked: bool = False
    """Whether the unpacked matrix is kept for the backward pass, as it is an operand of a plain product."""
    source: str = ""


class Optimizer(Struct, frozen=True, kw_only=True):
    """What an optimizer keeps."""

    name: str
    states: float = 2.0
    """Copies of the parameters, in their own type."""
    bytes_per_param: float | None = None
    """Bytes for each parameter whatever their type; None where `states` says it."""
    copy_bytes: float = 4.0
    """Of a weight's copy, which DeepSpeed and Megatron keep: K = 12 = 4 + 8 of the ZeRO paper (arXiv 1910.02054)."""
    foreach_temporary: bool = False
    """Whether a step needs another copy of the parameters."""
    paged: bool = False
    """Whether the states may move to host memory."""
    in_backward: bool = False
    """Whether gradients are used up as they come."""
    source: str = ""


_PEFT_RANK = 8
"""LoraConfig.r of peft 0.4.0 tuners/lora.py:69, 0.21.2 tuners/lora/config.py:632."""


class FrameworkTraits(Struct, frozen=True, kw_only=True):
    """What a framework does that no setting says."""

    name: str
    title: str = ""
    """As people write it; empty where nobody knows the framework."""
    version: str = ""
    """The version whose defaults these are; empty where they are not known by version."""
    logits: float
    """Bytes that one logit takes at the peak around the loss, all copies."""
    logits_low: float
    logits_high: float
    converts: float = 0.0
    """Bytes of them that accelerate's fp32 copy takes; DeepSpeed runs without it."""
    upcasts: bool = False
    """Whether its scripts prepare packed models with peft's prepare_model_for_kbit_training: what is not packed becomes fp32, and so
    does everything between the layers."""
    freezes_tower: bool = False
    """Whether a vision tower is frozen where the config does not say."""
    full_weights: str = "fp32"
    """The format of the weights in full training, where the config does not say."""
    frozen_weights: str = "bf16"
    """The format of the weights below adapters, where the config does not say and they are not packed."""
    wide_ends: bool = False
    """Whether embedding and output projection are trained in fp32 beside layers in 16 bit."""
    wide_experts: bool = False
    """Whether routed experts stay wide where bitsandbytes packs a model: it packs linear layers, and they are one parameter."""
    wide_gradients: bool = False
    """Whether gradients are fp32 over 16-bit weights, of which the optimizer has an fp32 copy, as Megatron does."""
    unties: bool = False
    """Whether tied models get an output projection of their own."""
    packs_head: bool = False
    """Whether a packed format holds the output projection too."""
    adapter_bytes: int = 4
    """Bytes of one adapter weight."""
    lora_rank: int | None = None
    """Rank of adapters where the config does not say; None: peft decides."""
    lora_targets: str = "all"
    """Modules that get adapters where the config does not say, as people write them."""
    adapter_input: float = 3.0
    """Bytes that an adapter saves for each element of its input."""
    autocast: bool = True
    """Whether passes run under torch.autocast, which widens norms to fp32 and casts the input of each matrix."""
    keeps_unpacked_input: bool = False
    """Whether frozen packed matrices keep their input (bitsandbytes before 0.43)."""
    flat_gradients: bool = False
    """Whether FSDP makes gradients for frozen parameters too, as they share flat tensors with trained ones."""
    fused_qkv: bool = False
    """Whether q, k and v come from one matrix in every model."""
    repeats_kv: bool = False
    """Whether keys and values are written out for every query head."""
    compiled: float = 1.0
    """What torch.compile leaves of the activations, where the framework uses it."""
    offloads_checkpoints: bool = False
    """Whether the inputs of checkpointed layers wait in host memory."""
    accumulates: bool = False
    """Whether its example configs accumulate gradients, where the config does not say."""
    shards: bool = False
    """Whether it shards over all cards with FSDP where nothing says otherwise."""
    longest_first: bool = False
    """Whether batches have one length, or the longest comes first, so that blocks are reused."""
    batch: int = 1
    """Samples on one card where the config does not say: the framework's default."""
    length: int | None = None
    """Tokens of a sample where the config does not say: cutoff_len of llamafactory/hparams/data_args.py, sequence_len of
    axolotl/utils/schemas/config.py. None: the data or the model decide."""
    checkpointing: bool = False
    """Whether activations are checkpointed where the config does not say."""
    selective: bool = False
    """Whether that leaves out what is costly to compute again."""
    fused_loss: bool = False
    """Whether the loss is computed without the whole logits where the config does not say."""
    checkpoints_always: bool = False
    """Whether the framework's own code checkpoints them whatever the config says."""
    finetuning: str = "full"
    """What is trained where the config does not say: finetuning_type of llamafactory/hparams/finetuning_args.py, tuner_type of
    swift/arguments/base_args/base_args.py, full_finetuning of unsloth/models/loader.py."""
    optimizer: str = "adamw"
    source: str = ""

    @property
    def rank(self) -> int:
        """Return the rank of adapters where the config does not say."""
        return self.lora_rank or _PEFT_RANK


class Adapters(Struct, frozen=True, kw_only=True, cache_hash=True):
    """What is trained beside the frozen weights."""

    rank: int
    targets: frozenset[str]
    """Of `q k v o gate up down head`."""
    full: frozenset[str] = frozenset()
    """Whole modules that are trained as copies: `embed`, `head`."""
    count: int | None = None
    """The number of trained parameters, where it is known."""
    blocks: int = 0
    """Whole layers that are trained (freeze tuning, LLaMA-Pro)."""
    scales_outputs: bool = False
    """Whether every matrix's output is scaled by something trained (Adapter v2, IA3), so that it is kept."""


class Layout(Struct, frozen=True, kw_only=True):
    """How a run is spread over cards."""

    engine: Engine = "none"
    cards: int = 1
    stage: int = 0
    """ZeRO stage; FSDP is 3."""
    tensor: int = 1
    pipeline: int = 1
    replicas: int = 1
    """Among how many copies of the attention the tensor parallel cards are divided (data parallel attention of SGLang)."""
    context: int = 1
    expert: int = 1
    bucket: int | None = None
    """Elements of DeepSpeed's reduce bucket; None is unknown."""
    overlaps: bool | None = None
    """Whether DeepSpeed overlaps communication, with a second bucket; None is unknown."""
    live: int | None = None
    """Parameters that ZeRO-3 keeps gathered at most; None is DeepSpeed's default."""
    wide_gradients: bool = False
    """Whether gradients are of a type of their own, by default fp32 (accumulate_allreduce_grads_in_fp32 of Megatron), and the optimizer
    has a copy of the weights."""
    gradient_bytes: int = 4
    """Of one gradient, where they are of a type of their own."""
    copies: int = 1
    """Groups of cards that FSDP shards among, each with a copy of the whole (HSDP)."""
    sequence_parallel: bool = True
    """Whether tensor parallel cards divide also what lies between the matrices: hidden states and norms."""
    syncs: bool = False
    """Whether FSDP exchanges gradients after every micro batch."""
    meta_init: bool | None = None
    """Whether FSDP builds the model without memory and only one process reads it; None is unknown."""

    @property
    def stages(self) -> int:
        """Among how many cards, or groups of them, the layers are divided: a pipeline's, or those that `device_map` fills in turn."""
        return self.cards if self.engine == "device_map" else self.pipeline

    @property
    def data(self) -> int:
        """Over how many cards states can be sharded: context ranks are part of that group (torchtitan, DeepSpeed Ulysses)."""
        return max(1, self.cards // (self.tensor * self.pipeline))

    def sharded(self, stage: int) -> int:
        """Over how many cards something is spread that stage `stage` and higher shard."""
        shards = self.wide_gradients or self.engine in ("deepspeed", "fsdp1", "fsdp2")
        return max(1, self.data // self.copies) if shards and self.stage >= stage else 1


class Placement(Struct, frozen=True, kw_only=True):
    """What of a run one card has, where not all cards have the same."""

    first: int = 0
    last: int = 0
    """The cards that have no more than this, or the stages of a pipeline: from `first` to `last`, counted from 0."""
    layers: float
    """Not whole where nobody says how a number is divided that does not divide evenly."""
    embeds: bool = True
    """Whether the embedding is here, and the vision tower."""
    scores: bool = True
    """Whether the output projection is here, and with it the logits and the loss."""
    in_flight: int = 1
    """Micro batches whose activations are kept at once."""
    outputs: int = 1
    """Cards whose outputs come together here."""
    steps: bool = True
    """Whether the optimizer is here."""


class GgmlRun(Struct, frozen=True, kw_only=True):
    """How llama.cpp, or a program that is built on it, puts a model on a card."""

    layers: int | None = None
    """Layers on the card, the output projection counts as one more (`-ngl`); None is all of them."""
    host_experts: float = 0.0
    """Layers whose experts stay on the host (`--n-cpu-moe`)."""
    layers_key: str = "-ngl"
    """What its users write for the number of layers."""
    fits_itself: bool = False
    """Whether the program finds by itself how many layers the card takes."""
    whole_windows: bool = False
    """Whether layers with a window keep all tokens (`--swa-full`)."""
    chunk: int = 512
    """Tokens that are computed at once (`-ub`): llama.cpp common/common.h, n_ubatch."""


class RolloutEngine(Struct, frozen=True, kw_only=True):
    """The engine that answers prompts on the cards that train."""

    share: float
    """Part of a card that it takes."""
    sleeps: bool
    """Whether it gives that back while weights are updated."""
    tensor: int = 1
    """Cards that share each of its layers."""
    bytes: int = 0
    """What that is of the card in question; 0 where none is named."""


class ScoringModel(Struct, frozen=True, kw_only=True):
    """A model beside the trained one that gives each answer, or each of its tokens, a figure: a critic or a reward model."""

    shape: Shape
    weights: WeightFormat
    takes_turns: bool = False
    """Whether it is on the host while the trained model works, and the other way round."""
    one_pass: bool = False
    """Whether both are trained in one pass, so that the activations of both exist at once."""


class TracedMemory(Struct, frozen=True, kw_only=True):
    """What a trace of the model's own code found, for one card and nothing sharded. Sizes are bytes."""

    forward: int
    """The most beside weights and gradients in both passes, or while a prompt is read, its cache included."""
    backward: int
    """The most beside weights and gradients while the last gradients are made."""
    params: int
    trained: int
    layers: tuple[int, int] | None = None
    """The depths that were traced; None where the whole model was."""
    depth: int | None = None
    """The depth that they were carried on to."""


class Setup(Struct, frozen=True, kw_only=True):
    """Everything that the arithmetic asks about one run. Sizes are numbers of elements, samples or tokens."""

    shape: Shape
    task: Task
    stack: FrameworkTraits
    weights: WeightFormat
    optimizer: Optimizer
    given_weights: str | None = None
    """The type that the config gives the weights; None where the framework and what spreads the run decide."""
    adapters: Adapters | None = None
    """None is full training."""
    layout: Layout = Layout()
    batch: int = 1
    """Samples on one card in one forward."""
    length: int = 2048
    """Tokens of a sample, image tokens included."""
    written: int | None = None
    """Tokens of a sample that get scores of words, where it has other positions too; None is all of them."""
    sequences: int = 1
    """Sequences that a sample brings: two where answers are compared."""
    reference: bool = False
    """Whether a model that is not trained lies beside the trained one."""
    critic: ScoringModel | None = None
    """What PPO trains beside the model; None where the model has only one more output, or the critic has cards of its own."""
    reward: ScoringModel | None = None
    """What judges answers on the same cards, untrained."""
    accumulation: int = 1
    checkpointing: Checkpointing = "full"
    checkpointed_every: float = 1
    """Of so many layers one is checkpointed, the others keep all; 1.6 is five of eight."""
    checkpointed_together: int = 1
    """Layers of which the input of the first alone is kept, so that all of them are computed again at once."""
    eager_attention: bool = False
    fused_loss: bool = False
    offload_params: bool = False
    offload_optimizer: bool = False
    offload_activations: bool = False
    even_lengths: bool | None = None
    """Whether batches have one length; None is unknown."""
    tower_trained: bool | None = False
    """Whether gradients go through the vision tower; None is unknown, as with LoRA targets that may name its matrices too."""
    counter: Counter = "max_reserved"
    cache_bytes: float = 2.0
    """Bytes of one value in the KV cache."""
    eval_batch: int | None = None
    eval_samples: int | None = None
    """Samples whose logits are kept on the card until the evaluation ends; None is none."""
    saves_whole: bool | None = None
    """Whether a checkpoint of a sharded model is written as one (stage3_gather_16bit_weights_on_model_save, FULL_STATE_DICT); None is
    unknown."""
    merges: bool = False
    """Whether adapters are joined with their base at the end."""
    prompt_logits: bool | None = None
    """Whether a prompt gets logits for each of its tokens and not for the last one alone, in 16 bit and in fp32, as in transformers before
    4.45; None is unknown."""
    traced: TracedMemory | None = None
    """Counted in the model's own code; None where the formulas count."""
    ggml: GgmlRun | None = None
    """None where the program is none of llama.cpp's kind."""
    pictures: PictureRun | None = None
    """How pictures or films are made or trained on; None for what reads and writes text."""
    rollout: RolloutEngine | None = None
    """None where no engine shares the cards."""
    placement: Placement | None = None
    """What of the model the card in question has; None is as much as any card can have."""
