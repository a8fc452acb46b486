"""The settings of a run: what its config files, its command line and its log say, and what of it does not take effect."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Literal, Union, get_args, get_type_hints

from msgspec import Struct, field
from msgspec.structs import replace

from oomdoctor.case.text import Text

Scalar = Union[str, int, float, bool, None]
Severity = Literal["error", "warning", "note"]
_LARGEST = 10**9


class WrittenSetting(Struct, frozen=True, kw_only=True):
    """One setting, as somebody wrote it."""

    key: str
    """The key as written; the keys of the blocks that it stands in come before it, with dots."""
    value: Scalar | tuple[Scalar, ...]
    """None for `null`, for a block of further keys, and for what the file does not say (a shell variable)."""
    file: str
    line: int
    """1-based."""
    framework: str | None = None
    """Whose key it is; None where that is not known."""
    block: bool = False
    """Whether the key holds a block of further keys."""

    @property
    def name(self) -> str:
        """The key as programs compare it: no leading dashes, and underscores for dashes."""
        return self.key.lstrip("-").replace("-", "_")


class ConfigIssue(Struct, frozen=True, kw_only=True):
    """Something in a config that does not do what it seems to do."""

    id: str
    severity: Severity
    """`error`: the run stops or the setting is void; `warning`: memory is lost; `note`: worth knowing."""
    key: str
    file: str
    line: int
    what: Text
    why: Text
    replacement: str | None = None
    """What to write, in the words of the file."""
    mended_by: str | None = None
    """The fix that has the keys for it, where each framework has its own."""
    sets: tuple[tuple[str, Scalar], ...] = ()
    """What that fix is to set, by the names that all frameworks share."""
    cites: tuple[str, ...] = ()


class RunSettings(Struct, frozen=True, kw_only=True):
    """The settings of a run by the names that all frameworks share. None is unknown.

    The tables of frameworks say which of their keys gives each of them, fixes say which of them they set, and rules ask for them as
    `training.NAME`. A whole number is kept as the config has it, also where it is no sensible size (`max_steps: -1`): `positive`.
    """

    # The model and what is trained of it.
    model: str | None = None
    """The model, by its name on a hub or its path."""
    model_sizes: str | None = None
    """The sizes of the model as a config.json has them, in JSON, where a config gives these and no name."""
    method: str | None = None
    """What the run does: `sft`, `pt`, `dpo`, `grpo`, ...; `serve` for a server."""
    finetuning: str | None = None
    """What is trained: `full`, `freeze`, `lora`, `qlora`, `dora`, ..."""
    lora_rank: int | None = None
    """Rank of the adapters."""
    lora_targets: str | None = None
    """Modules that get adapters, with commas; `all` for every linear layer."""
    adapts_mlp: bool | None = None
    """Whether the MLP gets adapters beside the modules that are named."""
    adapts_head: bool | None = None
    """Whether the output projection does."""
    modules_to_save: str | None = None
    """Modules that are trained whole beside adapters, with commas."""
    merge_adapters: bool | None = None
    """Whether adapters are merged into the model at the end."""
    freeze_vision: bool | None = None
    """Whether the vision tower is frozen."""
    load_bits: int | None = None
    """Bits of each weight that is loaded quantised."""
    packs_experts: bool | None = None
    """Whether that takes the routed experts in, which bitsandbytes alone leaves out."""
    precision: str | None = None
    """Type of the computation: `bf16`, `fp16`, `fp32`, `fp8`."""
    weights: str | None = None
    """Type in which the weights are kept, as `pure_bf16` or `torch_dtype` say it; `bf16: true` alone does not."""

    weight_format: str | None = None
    """Format in which the weights lie on the card, whatever loads and casts them: `bf16`, `fp32`, `nf4`, `gptq-int4`, `q4_k_m`."""
    trained_parameters: int | None = None
    """Parameters that are trained beside frozen weights, where a log or a table counts them."""

    framework_version: str | None = None
    """The release of the framework, where its files show one: `0.2.2`."""

    # Processes and batches.
    world_size: int | None = None
    """Processes that work together, on all nodes."""
    processes_per_node: int | None = None
    """Processes on each node."""
    nodes: int | None = None
    """Machines that work together."""
    micro_batch: int | None = None
    """Samples that one card computes at a time."""
    micro_batch_tokens: int | None = None
    """Tokens of those samples together, where a framework counts these."""
    accumulation: int | None = None
    """Micro batches of one update."""
    global_batch: int | None = None
    """Samples of one update on all cards."""
    epochs: float | None = None
    """Passes over the data."""
    max_steps: int | None = None
    """Updates after which the run ends; a negative number is no limit."""
    save_strategy: Union[str, bool, None] = None
    """When a checkpoint is written: `steps`, `epoch`, `no`."""
    save_steps: float | None = None
    """Updates between two checkpoints; below 1 a share of all updates."""
    dataloader_workers: int | None = None
    """Processes that prepare data for one card."""
    pin_memory: bool | None = None
    """Whether the data loader pins host memory."""

    # How the run is spread over cards.
    strategy: str | None = None
    """How, in a few words: `zero3`, `fsdp2`, `fsdp 32 + tp 8`, `device_map`."""
    zero_file: str | None = None
    """Name of a DeepSpeed file that is not at hand."""
    launch_file: str | None = None
    """Name of a config of accelerate that is not at hand."""
    zero_stage: int | None = None
    """ZeRO stage of DeepSpeed, 0 to 3."""
    offload_optimizer: Union[str, bool, None] = None
    """Where optimizer states are offloaded to: `cpu`, `nvme`, `none`."""
    offload_params: Union[str, bool, None] = None
    """Where parameters are offloaded to: `cpu`, `nvme`, `none`."""
    zero_bucket: float | None = None
    """Elements of the bucket in which ZeRO reduces gradients."""
    zero_bucket_auto: bool | None = None
    """Whether that bucket is `auto`: as many elements as the square of the model's width."""
    zero_live: float | None = None
    """Parameters that ZeRO stage 3 keeps gathered at most."""
    zero_overlap: bool | None = None
    """Whether ZeRO sends gradients during the backward pass."""
    zero_saves_whole: bool | None = None
    """Whether ZeRO stage 3 gathers the weights for a checkpoint."""
    fsdp: bool | None = None
    """Whether FSDP shards the run."""
    sharded_copies: int | None = None
    """Groups of cards, each with a sharded copy of its own."""
    fsdp_version: int | None = None
    """Version of FSDP, 1 or 2."""
    fsdp_sharding: Union[str, int, None] = None
    """What FSDP shards, by name or number: `FULL_SHARD` is 1."""
    fsdp_offload: bool | None = None
    """Whether FSDP keeps parameters and optimizer states on the host."""
    fsdp_state_dict: str | None = None
    """How FSDP writes a checkpoint: `FULL_STATE_DICT`, `SHARDED_STATE_DICT`."""
    fsdp_meta_init: bool | None = None
    """Whether only the first process loads the weights into host memory."""
    main_gradients: str | None = None
    """Type in which gradients are summed, where it is not that of the weights: `fp32`, `bf16`."""
    main_weights: str | None = None
    """Type of the copy of the weights that the optimizer keeps: `fp32`, `fp16`, `remainder` (the 16 bits that bf16 lacks)."""
    first_moment: str | None = None
    """Type of Adam's first moment: `fp32`, `bf16`, `fp16`, `fp8`."""
    second_moment: str | None = None
    """Type of Adam's second moment."""
    shards_states: bool | None = None
    """Whether the states of the optimizer are divided among the cards without ZeRO: Megatron's distributed optimizer."""
    syncs_gradients: bool | None = None
    """Whether gradients are reduced after each micro batch."""
    tensor_parallel: int | None = None
    """Cards that share each layer."""
    pipeline_parallel: int | None = None
    """Cards that share the layers of the model, one after the other."""
    context_parallel: int | None = None
    """Cards that share each sample."""
    expert_parallel: int | None = None
    """Cards that share the experts of a layer."""
    sequence_parallel: bool | None = None
    """Whether tensor parallel cards share also what lies between the matrices of a layer."""

    # Samples and what is kept of them.
    sequence_length: int | None = None
    """Tokens at which a sample is cut."""
    packing: bool | None = None
    """Whether several samples fill one sequence."""
    group_by_length: bool | None = None
    """Whether samples of like length make a batch."""
    gradient_checkpointing: bool | None = None
    """Whether activations are computed again in the backward pass."""
    selective_checkpointing: Union[int, str, None] = None
    """What is computed again where not everything is: `op`, chosen operations; a number n, every n-th layer; `no`."""
    recompute_method: str | None = None
    """How layers are computed again: `uniform`, all in groups; `block`, so many of those on a card."""
    recompute_layers: int | None = None
    """Layers of such a group, or those that are computed again."""
    activation_offload: bool | None = None
    """Whether activations are kept on the host."""
    attention: str | None = None
    """Kernel of the attention: `eager`, `sdpa`, `flash_attention_2`, ..."""
    fused_cross_entropy: bool | None = None
    """Whether the loss is computed without the whole logits."""
    optimizer: str | None = None
    """Optimizer, as the framework writes it: `adamw_torch`, `paged_adamw_8bit`."""
    optimizer_in_backward: bool | None = None
    """Whether each gradient is used and freed in the backward pass."""

    # Evaluation.
    eval_strategy: Union[str, bool, None] = None
    """When an evaluation runs: `steps`, `epoch`, `no`."""
    eval_steps: float | None = None
    """Updates between two evaluations; below 1 a share of all updates."""
    eval_batch: int | None = None
    """Samples that one card evaluates at a time."""
    eval_accumulation: int | None = None
    """Steps of an evaluation after which its results go to the host."""
    prediction_loss_only: bool | None = None
    """Whether an evaluation keeps the loss and no logits."""
    predict_with_generate: bool | None = None
    """Whether an evaluation generates text."""

    # Servers.
    server_version: str | None = None
    """The release of the server: `0.8.5`."""
    server_before: str | None = None
    """The first release of the server that refuses one of its options."""
    removed_option: str | None = None
    """That option, as it is written."""
    memory_share: float | None = None
    """Part of the card that a server may take, above 0 and at most 1."""
    max_model_len: int | None = None
    """Tokens of the longest request, prompt and answer together."""
    max_num_seqs: int | None = None
    """Requests that are served at a time."""
    max_batched_tokens: int | None = None
    """Tokens of all requests in one step."""
    kv_cache_dtype: str | None = None
    """Type of the cache of keys and values."""
    value_cache_dtype: str | None = None
    """Type of the cache of values, where llama.cpp is told it apart from that of keys."""
    quantization: str | None = None
    """How the checkpoint is quantised: `awq`, `gptq`, `fp8`."""
    draft_model: str | None = None
    """The model that proposes tokens to a server."""
    draft_method: str | None = None
    """How tokens are proposed: `mtp` is by layers of the model itself."""
    draft_tokens: int | None = None
    """Tokens that are proposed in a step."""
    enforce_eager: bool | None = None
    """Whether a server does without CUDA graphs."""
    graph_requests: int | None = None
    """Requests of the largest CUDA graph, where a server is told it apart from those that it serves."""
    cache_tokens: int | None = None
    """Tokens for which a server makes a cache at most."""
    window_tokens: float | None = None
    """Tokens that layers with a window get in SGLang's cache for each token of the others."""
    state_bytes: float | None = None
    """Bytes that SGLang keeps for states for each byte of keys and values."""
    state_slots: int | None = None
    """States that SGLang has place for."""
    attention_copies: int | None = None
    """Copies of a server's attention, or of its whole model."""
    splits_attention: bool | None = None
    """Whether those copies are of the attention alone, so that tensor parallel cards are divided among them."""
    cpu_offload_gb: float | None = None
    """GiB of weights that each card of a server keeps on the host."""
    cache_memory: int | None = None
    """Bytes of each card that a server gives to the cache, whatever its share leaves."""
    cache_blocks: int | None = None
    """Blocks of the cache, whatever the share leaves."""
    first_engine: bool | None = None
    """Whether vLLM is told to run its first engine (`VLLM_USE_V1=0`) or its second."""
    data_parallel: int | None = None
    """Copies of what is no expert, among which a server divides requests; the experts are divided among all of their cards."""
    decode_context_parallel: int | None = None
    """Tensor parallel cards that divide the tokens of the cache among them."""
    chunked_prefill: bool | None = None
    """Whether a server reads long prompts in several steps."""
    offline: bool | None = None
    """Whether a model answers in the process that loads it (`LLM` of vLLM), and not as a server."""
    cache_connector: str | None = None
    """What a server passes its cache on to."""
    prefix_caching: bool | None = None
    """Whether a server keeps what prompts begin with for the next ones."""
    served_adapters: bool | None = None
    """Whether a server takes LoRA adapters."""
    adapter_slots: int | None = None
    """Adapters that a server computes with at a time."""
    adapter_rank: int | None = None
    """The largest rank of an adapter that is served."""
    text_only: bool | None = None
    """Whether a server leaves out what reads pictures and sounds."""
    skips_pictures: bool | None = None
    """Whether the start of a server is measured without pictures."""
    media_per_prompt: str | None = None
    """How many pictures and videos a request may have: `image=4,video=0`."""
    images_per_prompt: int | None = None
    """How many pictures a request may have."""
    videos_per_prompt: int | None = None
    """How many videos a request may have."""
    picture_pixels: int | None = None
    """Pixels to which a server scales larger pictures."""
    gpu_layers: int | None = None
    """Layers that llama.cpp puts on the card."""
    host_experts: Union[int, bool, None] = None
    """Layers whose experts llama.cpp keeps on the host, the first ones; true is all of them."""
    whole_windows: bool | None = None
    """Whether a program keeps all tokens of layers with a window."""
    tensor_override: str | None = None
    """Where llama.cpp puts matrices, by a pattern of their names: `exps=CPU`."""

    prompt_cache: int | None = None
    """MiB of earlier prompts that llama.cpp keeps on the host."""
    loaded_models: int | None = None
    """Models that a program keeps loaded at a time."""
    swap_space: float | None = None
    """GiB of host memory that each card of a server gets for its cache."""
    beams: int | None = None
    """Beams of a search."""

    # Generation inside training.
    generations: int | None = None
    """Answers for each prompt."""
    prompt_length: int | None = None
    """Tokens at which a prompt is cut."""
    completion_length: int | None = None
    """Tokens at which an answer is cut."""
    rollout_engine: str | None = None
    """Where the engine is that gives the answers: `colocate` on the cards that train, `server` elsewhere."""
    rollout_sleeps: bool | None = None
    """Whether it gives its memory back while weights are updated."""
    rollout_tensor: int | None = None
    """Cards that share each of its layers."""
    kl_weight: float | None = None
    """Weight of the distance to the reference model; without it there is none."""
    critic_model: str | None = None
    """The model from which PPO makes its critic, by its name or path."""
    reward_model: str | None = None
    """The model that scores answers, by its name or path."""
    colocated_models: bool | None = None
    """Whether all models of PPO share the cards, where a program gives each cards of its own."""
    logprob_batch: int | None = None
    """Samples whose log-probabilities one card computes at a time."""
    logprob_tokens: int | None = None
    """Tokens of those samples together, where a framework counts these."""
    dynamic_batch: bool | None = None
    """Whether micro batches are filled up to a number of tokens, so that a number of samples has no effect."""

    # Pictures and videos.
    picture_width: int | None = None
    """Width of what is made or trained on, in pixels."""
    picture_height: int | None = None
    """Height of it, in pixels."""
    picture_side: int | None = None
    """Pixels along the edge to which pictures are scaled."""
    video_frames: int | None = None
    """Frames of a video."""
    picture_batch: int | None = None
    """Pictures that are made at a time."""
    caches_latents: bool | None = None
    """Whether pictures are turned into latents once before training."""
    caches_text: bool | None = None
    """Whether texts are read once before training."""
    swapped_blocks: int | None = None
    """Blocks of what takes the noise away that wait on the host."""
    vae_tile: int | None = None
    """Pixels along the edge of a tile that the VAE decodes at a time."""

    # Preparation of data and builds.
    prefetch_factor: int | None = None
    """Batches that each loader worker keeps ready."""
    map_workers: int | None = None
    """Processes that prepare a data set."""
    map_batch: int | None = None
    """Samples that such a process holds at a time."""
    build_jobs: int | None = None
    """Compilers that run at a time."""

    prompt_logits: bool | None = None
    """Whether a prompt gets logits for each of its tokens: transformers before 4.45 makes them."""

    # What is asked for.
    counter: str | None = None
    """Which figure: `max_allocated` or `max_reserved` of torch, `nvidia-smi`, `unknown` where it may be any of them."""

    # Environment.
    alloc_conf: str | None = None
    """Options of PyTorch's CUDA allocator."""
    visible_devices: Union[str, int, None] = None
    """Cards that the run may use, with commas."""
    card: str | None = None
    """The card that a job asks for, as its file names it: `a100`, `NVIDIA-H100-80GB-HBM3`."""
    cards: int | None = None
    """Cards that a job or a container is given, on all machines."""
    host_limit: int | None = None
    """Bytes of host memory that it is given."""

    def known(self) -> dict[str, Scalar]:
        """Return the settings that are known, by name."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}

    def with_values(self, values: Mapping[str, Scalar]) -> RunSettings:
        """Return the settings with other values; one that does not fit its setting is unknown, a name that is none is left out."""
        return replace(self, **{name: fitting(name, value) for name, value in values.items() if name in self.__struct_fields__})


def is_number(name: str) -> bool:
    """Return whether the setting of this name is a number and nothing else."""
    return _kinds()[name] <= {int, float}


def fitting(name: str, value: Scalar) -> Scalar:
    """Return a value as the setting of this name keeps it; None where it does not fit."""
    kinds = _kinds()[name]
    if isinstance(value, float) and int in kinds and float not in kinds:
        return int(value) if value.is_integer() else None
    return value if type(value) in kinds else None


def positive(number: float | None) -> int | None:
    """Return a number as a size: whole, above 0 and at most a billion; None where it is anything else."""
    return int(number) if number is not None and 0 < number <= _LARGEST and number == int(number) else None


@cache
def _kinds() -> dict[str, frozenset[type]]:
    """By setting the types of its values; an int is a float too."""
    kinds = {name: frozenset(get_args(hint)) - {type(None)} for name, hint in get_type_hints(RunSettings).items()}
    return {name: kind | {int} if float in kind else kind for name, kind in kinds.items()}


class RunConfig(Struct, frozen=True, kw_only=True):
    """The settings of one run, with their places and what is wrong with them."""

    framework: str | None = None
    """The framework whose file a person edits."""
    reason: str | None = None
    """The key or program that shows the framework."""
    version: str | None = None
    written: tuple[WrittenSetting, ...] = ()
    settings: RunSettings = RunSettings()
    places: Mapping[str, WrittenSetting] = field(default_factory=dict)
    """Where each of them stands; one that was worked out from others has no place."""
    stated: tuple[str, ...] = ()
    """Those that only the text around the log says: somebody's word, and not seen in a run."""
    tried: Mapping[str, Scalar] = field(default_factory=dict)
    """What that text says was tried and did not help, by the name that all frameworks share."""
    issues: tuple[ConfigIssue, ...] = ()
    """The worst first."""

    def known_settings(self) -> dict[str, Scalar]:
        """Return the settings that are known, by name: those with a place first, in the order of the files."""
        known = self.settings.known()
        return {**{name: known[name] for name in self.places if name in known}, **known}

    def facts(self) -> dict[str, Scalar]:
        """Return the settings as rules ask for them, `training.micro_batch`. What is missing is unknown."""
        named = {f"training.{name}": value for name, value in self.known_settings().items()}
        return named if self.framework is None else {**named, "training.framework": self.framework}


class ProposedSetting(Struct, frozen=True, kw_only=True):
    """One key of one framework's config, with the value before and after."""

    framework: str
    key: str
    to: str
    """Empty for an option without a value, and where only the direction is known."""
    direction: Literal["lower", "higher"] | None = None
    """Where to go from the value in force, where nobody knows it and no figure leads to another one."""
    file: str | None = None
    line: int | None = None
    before: str | None = None
    """The value in force, as it is written; None where it is unknown."""
    note: Text | None = None
    """What the change keeps or when it applies."""
    example: bool = False
    """Whether `to` only shows what kind of value is meant."""
    sets: str | None = None
    """The setting behind the key, by the name that all frameworks share."""
    dated: bool = False
    """Whether only some versions know it, and which one runs is not known."""
