"""The memory model's inputs for a run: model, format, optimizer, adapters, layout, batch."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from oomdoctor.case.pictures import PictureRun
from oomdoctor.case.shape import Shape

Task = Literal["train", "infer", "serve"]


Counter = Literal["max_allocated", "max_reserved", "nvidia-smi", "unknown"]
"""Which figure is predicted: torch's peak of live tensors, torch's peak of reserved memory, or what the driver reports."""


Checkpointing = Literal["none", "selective", "full"]


Engine = Literal["none", "dp", "ddp", "deepspeed", "fsdp1", "fsdp2", "device_map"]
"""`dp` is torch.nn.DataParallel: one process, which copies the model to all GPUs in every step."""


class WeightFormat(Struct, frozen=True, kw_only=True):
    """How weights are stored."""

    name: str
    bytes_per_param: float
    """For packed weights, including scales."""
    packed: bool = False
    """Whether only the matrices inside layers have it and the rest stays 16-bit."""
    kept_wide: int | None = None
    """How many layer parameters stay in 16 bit, if the checkpoint gives it; None is all those outside matrices."""
    embedding_bytes: float = 2.0
    """Per embedding parameter, if the checkpoint gives it."""
    head_bytes: float | None = None
    """Per parameter of the output projection, if the checkpoint gives it; None is 16 bit."""
    attention_bytes: float | None = None
    """Per parameter of the matrices that mix tokens, if the checkpoint gives it."""
    packs_tower: bool = False
    """Whether the matrices of a vision tower are packed too."""
    unties: bool = False
    """Whether tied models get a separate output projection."""
    unpacks: bool = False
    """Whether a matrix is unpacked to 16 bit when it is used."""
    rebuilds: bool = False
    """Whether a matrix is materialized in 16 bit when many tokens go through it, while kernels for a few read it packed."""
    keeps_unpacked: bool = False
    """Whether the unpacked matrix is kept for the backward pass, since it is an operand of a plain product."""
    source: str = ""


class Optimizer(Struct, frozen=True, kw_only=True):
    """What an optimizer keeps."""

    name: str
    states: float = 2.0
    """Copies of the parameters, in their own type."""
    bytes_per_param: float | None = None
    """Bytes per parameter whatever their type; None if `states` gives it."""
    copy_bytes: float = 4.0
    """Per weight in the copy that DeepSpeed and Megatron keep: K = 12 = 4 + 8 of the ZeRO paper (arXiv 1910.02054)."""
    foreach_temporary: bool = False
    """Whether a step needs another copy of the parameters."""
    paged: bool = False
    """Whether the states may be moved to host memory."""
    in_backward: bool = False
    """Whether gradients are consumed as they are produced."""
    source: str = ""


_PEFT_RANK = 8
"""LoraConfig.r of peft 0.4.0 tuners/lora.py:69, 0.21.2 tuners/lora/config.py:632."""


class FrameworkTraits(Struct, frozen=True, kw_only=True):
    """Framework behavior that no setting controls."""

    name: str
    title: str = ""
    """As people write it; empty if the framework is unknown."""
    version: str = ""
    """The version these defaults belong to; empty if they are not known by version."""
    logits: float
    """Bytes per logit at the peak around the loss, all copies."""
    logits_low: float
    logits_high: float
    converts: float = 0.0
    """The part of that used by accelerate's fp32 copy; DeepSpeed runs without it."""
    upcasts: bool = False
    """Whether its scripts prepare packed models with peft's prepare_model_for_kbit_training: what is not packed becomes fp32, and so
    does everything between the layers."""
    freezes_tower: bool = False
    """Whether a vision tower is frozen by default."""
    full_weights: str = "fp32"
    """The default format of the weights in full training."""
    frozen_weights: str = "bf16"
    """The default format of the base weights with adapters, if they are not packed."""
    wide_ends: bool = False
    """Whether embedding and output projection are trained in fp32 alongside layers in 16 bit."""
    wide_experts: bool = False
    """Whether routed experts stay wide when bitsandbytes packs a model: it packs linear layers, and they are one parameter."""
    wide_gradients: bool = False
    """Whether gradients are fp32 over 16-bit weights, of which the optimizer has an fp32 copy, as in Megatron."""
    unties: bool = False
    """Whether tied models get a separate output projection."""
    packs_head: bool = False
    """Whether a packed format includes the output projection too."""
    adapter_bytes: int = 4
    """Bytes of one adapter weight."""
    lora_rank: int | None = None
    """Default rank of adapters; None: peft decides."""
    lora_targets: str = "all"
    """Default modules that get adapters, as people write them."""
    adapter_input: float = 3.0
    """Bytes that an adapter saves per element of its input."""
    autocast: bool = True
    """Whether passes run under torch.autocast, which widens norms to fp32 and casts the input of each matrix."""
    keeps_unpacked_input: bool = False
    """Whether frozen packed matrices keep their input (bitsandbytes before 0.43)."""
    flat_gradients: bool = False
    """Whether FSDP creates gradients for frozen parameters too, since they share flat tensors with trained ones."""
    fused_qkv: bool = False
    """Whether q, k and v come from one matrix in every model."""
    repeats_kv: bool = False
    """Whether keys and values are materialized for every query head."""
    compiled: float = 1.0
    """The fraction of the activations left by torch.compile, if the framework uses it."""
    offloads_checkpoints: bool = False
    """Whether the inputs of checkpointed layers wait in host memory."""
    accumulates: bool = False
    """Whether its example configs accumulate gradients by default."""
    shards: bool = False
    """Whether it shards across all GPUs with FSDP by default."""
    longest_first: bool = False
    """Whether batches have one length, or the longest comes first, so that blocks are reused."""
    batch: int = 1
    """Default samples per GPU."""
    length: int | None = None
    """Default tokens per sample: cutoff_len of llamafactory/hparams/data_args.py, sequence_len of axolotl/utils/schemas/config.py. None:
    the data or the model decide."""
    checkpointing: bool = False
    """Whether activations are checkpointed by default."""
    selective: bool = False
    """Whether that excludes what is costly to recompute."""
    fused_loss: bool = False
    """Whether the loss is computed without materializing all logits by default."""
    checkpoints_always: bool = False
    """Whether the framework's own code checkpoints them whatever the config says."""
    finetuning: str = "full"
    """What is trained by default: finetuning_type of llamafactory/hparams/finetuning_args.py, tuner_type of
    swift/arguments/base_args/base_args.py, full_finetuning of unsloth/models/loader.py."""
    optimizer: str = "adamw"
    source: str = ""

    @property
    def rank(self) -> int:
        """Return the default rank of adapters."""
        return self.lora_rank or _PEFT_RANK


class Adapters(Struct, frozen=True, kw_only=True, cache_hash=True):
    """What is trained alongside the frozen weights."""

    rank: int
    targets: frozenset[str]
    """From `q k v o gate up down head`."""
    full: frozenset[str] = frozenset()
    """Whole modules that are trained as copies: `embed`, `head`."""
    count: int | None = None
    """The number of trained parameters, if known."""
    blocks: int = 0
    """Whole layers that are trained (freeze tuning, LLaMA-Pro)."""
    scales_outputs: bool = False
    """Whether every matrix's output is multiplied by something trained (Adapter v2, IA3), so that it is kept."""


class Layout(Struct, frozen=True, kw_only=True):
    """How a run is distributed across GPUs."""

    engine: Engine = "none"
    cards: int = 1
    stage: int = 0
    """ZeRO stage; FSDP is 3."""
    tensor: int = 1
    pipeline: int = 1
    replicas: int = 1
    """The number of attention copies among which the tensor parallel GPUs are divided (data parallel attention of SGLang)."""
    context: int = 1
    expert: int = 1
    bucket: int | None = None
    """Elements of DeepSpeed's reduce bucket; None is unknown."""
    overlaps: bool | None = None
    """Whether DeepSpeed overlaps communication, with a second bucket; None is unknown."""
    live: int | None = None
    """Maximum number of parameters that ZeRO-3 keeps gathered; None is DeepSpeed's default."""
    wide_gradients: bool = False
    """Whether gradients have their own type, by default fp32 (accumulate_allreduce_grads_in_fp32 of Megatron), and the optimizer has a copy
    of the weights."""
    gradient_bytes: int = 4
    """Per gradient, if gradients have their own type."""
    copies: int = 1
    """Groups of GPUs within which FSDP shards, each with a copy of the whole (HSDP)."""
    sequence_parallel: bool = True
    """Whether tensor parallel GPUs also divide what is between the matrices: hidden states and norms."""
    syncs: bool = False
    """Whether FSDP exchanges gradients after every micro-batch."""
    meta_init: bool | None = None
    """Whether FSDP builds the model without memory and only one process reads it; None is unknown."""

    @property
    def stages(self) -> int:
        """The number of GPUs, or groups, that the layers are divided among: those of a pipeline, or those `device_map` fills in turn."""
        return self.cards if self.engine == "device_map" else self.pipeline

    @property
    def data(self) -> int:
        """The number of GPUs that states can be sharded across: context ranks are part of that group (torchtitan, DeepSpeed Ulysses)."""
        return max(1, self.cards // (self.tensor * self.pipeline))

    def sharded(self, stage: int) -> int:
        """The number of GPUs across which anything sharded from stage `stage` up is distributed."""
        shards = self.wide_gradients or self.engine in ("deepspeed", "fsdp1", "fsdp2")
        return max(1, self.data // self.copies) if shards and self.stage >= stage else 1


class Placement(Struct, frozen=True, kw_only=True):
    """The part of a run that is on one GPU, if not all GPUs have the same."""

    first: int = 0
    last: int = 0
    """The GPUs that have no more than this, or the stages of a pipeline: from `first` to `last`, counted from 0."""
    layers: float
    """Fractional if it is unknown how an uneven number is divided."""
    embeds: bool = True
    """Whether the embedding is here, and the vision tower."""
    scores: bool = True
    """Whether the output projection is here, and with it the logits and the loss."""
    in_flight: int = 1
    """Micro-batches whose activations are kept at once."""
    outputs: int = 1
    """GPUs whose outputs are gathered here."""
    steps: bool = True
    """Whether the optimizer is here."""


class GgmlRun(Struct, frozen=True, kw_only=True):
    """How llama.cpp, or a program built on it, puts a model on a GPU."""

    layers: int | None = None
    """Layers on the GPU, counting the output projection as one more (`-ngl`); None is all of them."""
    host_experts: float = 0.0
    """Layers whose experts stay on the host (`--n-cpu-moe`)."""
    layers_key: str = "-ngl"
    """The option its users write for the number of layers."""
    fits_itself: bool = False
    """Whether the program itself determines how many layers fit on the GPU."""
    whole_windows: bool = False
    """Whether layers with a window keep all tokens (`--swa-full`)."""
    chunk: int = 512
    """Tokens that are computed at once (`-ub`): llama.cpp common/common.h, n_ubatch."""


class RolloutEngine(Struct, frozen=True, kw_only=True):
    """The engine that generates completions on the training GPUs."""

    share: float
    """Fraction of a GPU that it uses."""
    sleeps: bool
    """Whether it releases that while weights are updated."""
    tensor: int = 1
    """GPUs that share each of its layers."""
    bytes: int = 0
    """The corresponding bytes on the GPU in question; 0 if none is specified."""


class ScoringModel(Struct, frozen=True, kw_only=True):
    """A model alongside the trained one that scores each completion, or each of its tokens: a critic or a reward model."""

    shape: Shape
    weights: WeightFormat
    takes_turns: bool = False
    """Whether it is on the host while the trained model is working, and vice versa."""
    one_pass: bool = False
    """Whether both are trained in one pass, so that the activations of both exist at once."""


class TracedMemory(Struct, frozen=True, kw_only=True):
    """What a trace of the model's own code found, for one GPU with nothing sharded. Sizes are bytes."""

    forward: int
    """The maximum in addition to weights and gradients in both passes, or while a prompt is read, including its cache."""
    backward: int
    """The maximum in addition to weights and gradients while the last gradients are computed."""
    params: int
    trained: int
    layers: tuple[int, int] | None = None
    """The depths that were traced; None if the whole model was."""
    depth: int | None = None
    """The depth that they were extrapolated to."""


class Setup(Struct, frozen=True, kw_only=True):
    """All inputs of the arithmetic for one run. Sizes are numbers of elements, samples or tokens."""

    shape: Shape
    task: Task
    stack: FrameworkTraits
    weights: WeightFormat
    optimizer: Optimizer
    given_weights: str | None = None
    """The type that the config gives the weights; None if the framework and the distribution strategy decide."""
    adapters: Adapters | None = None
    """None is full training."""
    layout: Layout = Layout()
    batch: int = 1
    """Samples on one GPU in one forward pass."""
    length: int = 2048
    """Tokens per sample, including image tokens."""
    written: int | None = None
    """Tokens per sample that get logits, if it has other positions too; None is all of them."""
    sequences: int = 1
    """Sequences per sample: two if completions are compared."""
    reference: bool = False
    """Whether an untrained reference model is loaded alongside the trained one."""
    critic: ScoringModel | None = None
    """The model that PPO trains alongside; None if the model just has one more output, or the critic has its own GPUs."""
    reward: ScoringModel | None = None
    """The untrained model that judges completions on the same GPUs."""
    accumulation: int = 1
    checkpointing: Checkpointing = "full"
    checkpointed_every: float = 1
    """One in this many layers is checkpointed, the others keep all; 1.6 is five of eight."""
    checkpointed_together: int = 1
    """Layers in a group of which only the first one's input is kept, so that all of them are recomputed at once."""
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
    """Samples whose logits are kept on the GPU until the evaluation ends; None is none."""
    saves_whole: bool | None = None
    """Whether a checkpoint of a sharded model is written in full (stage3_gather_16bit_weights_on_model_save, FULL_STATE_DICT); None is
    unknown."""
    merges: bool = False
    """Whether adapters are merged into their base model at the end."""
    prompt_logits: bool | None = None
    """Whether a prompt gets logits for each of its tokens rather than just the last one, in 16 bit and in fp32, as in transformers before
    4.45; None is unknown."""
    traced: TracedMemory | None = None
    """Counted in the model's own code; None if the formulas are used."""
    ggml: GgmlRun | None = None
    """None if the program is not of llama.cpp's kind."""
    pictures: PictureRun | None = None
    """How images or videos are generated or trained on; None for models that read and write text."""
    rollout: RolloutEngine | None = None
    """None if no engine shares the GPUs."""
    placement: Placement | None = None
    """The part of the model on the GPU in question; None is as much as any GPU can have."""
