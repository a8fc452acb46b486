"""The settings of a run: what its config files, command line and log say, and which of those have no effect."""

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
    """One setting, as someone wrote it."""

    key: str
    """The key as written; the keys of the enclosing blocks come before it, separated by dots."""
    value: Scalar | tuple[Scalar, ...]
    """None for `null`, for a block of further keys, and for what the file does not give (a shell variable)."""
    file: str
    line: int
    """1-based."""
    framework: str | None = None
    """Whose key it is; None if unknown."""
    block: bool = False
    """Whether the key contains a block of further keys."""

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
    """What to write instead, in the file's own syntax."""
    mended_by: str | None = None
    """The fix that has the keys for it, if each framework has its own."""
    sets: tuple[tuple[str, Scalar], ...] = ()
    """What that fix is to set, by the names that all frameworks share."""
    cites: tuple[str, ...] = ()


class RunSettings(Struct, frozen=True, kw_only=True):
    """The settings of a run by the names that all frameworks share. None is unknown.

    The tables of frameworks map their keys to these settings, fixes say which of them they set, and rules query them as
    `training.NAME`. A whole number is kept as the config has it, even if it is not a sensible size (`max_steps: -1`): see `positive`.
    """

    # The model and what is trained in it.
    model: str | None = None
    """The model, by its name on a hub or its path."""
    model_sizes: str | None = None
    """The model sizes as in a config.json, in JSON, if a config gives these and no name."""
    method: str | None = None
    """What the run does: `sft`, `pt`, `dpo`, `grpo`, ...; `serve` for a server."""
    finetuning: str | None = None
    """What is trained: `full`, `freeze`, `lora`, `qlora`, `dora`, ..."""
    lora_rank: int | None = None
    """Rank of the adapters."""
    lora_targets: str | None = None
    """Modules that get adapters, with commas; `all` for every linear layer."""
    adapts_mlp: bool | None = None
    """Whether the MLP gets adapters in addition to the named modules."""
    adapts_head: bool | None = None
    """Whether the output projection does."""
    modules_to_save: str | None = None
    """Modules that are trained in full alongside adapters, with commas."""
    merge_adapters: bool | None = None
    """Whether adapters are merged into the model at the end."""
    freeze_vision: bool | None = None
    """Whether the vision tower is frozen."""
    load_bits: int | None = None
    """Bits per weight if the model is loaded quantized."""
    packs_experts: bool | None = None
    """Whether that includes the routed experts, which bitsandbytes alone leaves out."""
    precision: str | None = None
    """Compute type: `bf16`, `fp16`, `fp32`, `fp8`."""
    weights: str | None = None
    """Type in which the weights are kept, as set by `pure_bf16` or `torch_dtype`; `bf16: true` alone does not set it."""

    weight_format: str | None = None
    """Format of the weights on the GPU, whatever loads and casts them: `bf16`, `fp32`, `nf4`, `gptq-int4`, `q4_k_m`."""
    trained_parameters: int | None = None
    """Parameters that are trained alongside frozen weights, if a log or a table counts them."""

    framework_version: str | None = None
    """The release of the framework, if its files show one: `0.2.2`."""

    # Processes and batches.
    world_size: int | None = None
    """Processes that work together, across all nodes."""
    processes_per_node: int | None = None
    """Processes on each node."""
    nodes: int | None = None
    """Machines that work together."""
    micro_batch: int | None = None
    """Samples that one GPU processes at a time."""
    micro_batch_tokens: int | None = None
    """Total tokens of those samples, if a framework counts these."""
    accumulation: int | None = None
    """Micro-batches per update."""
    global_batch: int | None = None
    """Samples per update across all GPUs."""
    epochs: float | None = None
    """Passes over the data."""
    max_steps: int | None = None
    """Updates after which the run ends; a negative number is no limit."""
    save_strategy: Union[str, bool, None] = None
    """When a checkpoint is written: `steps`, `epoch`, `no`."""
    save_steps: float | None = None
    """Updates between two checkpoints; below 1, a share of all updates."""
    dataloader_workers: int | None = None
    """Processes that prepare data for one GPU."""
    pin_memory: bool | None = None
    """Whether the data loader pins host memory."""

    # How the run is distributed across GPUs.
    strategy: str | None = None
    """How, in a few words: `zero3`, `fsdp2`, `fsdp 32 + tp 8`, `device_map`."""
    zero_file: str | None = None
    """Name of a DeepSpeed file that is not available."""
    launch_file: str | None = None
    """Name of an accelerate config that is not available."""
    zero_stage: int | None = None
    """ZeRO stage of DeepSpeed, 0 to 3."""
    offload_optimizer: Union[str, bool, None] = None
    """Where optimizer states are offloaded: `cpu`, `nvme`, `none`."""
    offload_params: Union[str, bool, None] = None
    """Where parameters are offloaded: `cpu`, `nvme`, `none`."""
    zero_bucket: float | None = None
    """Elements in ZeRO's gradient reduction bucket."""
    zero_bucket_auto: bool | None = None
    """Whether that bucket is `auto`: as many elements as the square of the model's width."""
    zero_live: float | None = None
    """Maximum number of parameters that ZeRO stage 3 keeps gathered."""
    zero_overlap: bool | None = None
    """Whether ZeRO sends gradients during the backward pass."""
    zero_saves_whole: bool | None = None
    """Whether ZeRO stage 3 gathers the weights for a checkpoint."""
    fsdp: bool | None = None
    """Whether FSDP shards the run."""
    sharded_copies: int | None = None
    """Groups of GPUs, each with its own sharded copy."""
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
    """Type in which gradients are summed, if it differs from that of the weights: `fp32`, `bf16`."""
    main_weights: str | None = None
    """Type of the optimizer's copy of the weights: `fp32`, `fp16`, `remainder` (the 16 bits that bf16 lacks)."""
    first_moment: str | None = None
    """Type of Adam's first moment: `fp32`, `bf16`, `fp16`, `fp8`."""
    second_moment: str | None = None
    """Type of Adam's second moment."""
    shards_states: bool | None = None
    """Whether optimizer states are divided among GPUs without ZeRO: Megatron's distributed optimizer."""
    syncs_gradients: bool | None = None
    """Whether gradients are reduced after each micro-batch."""
    tensor_parallel: int | None = None
    """GPUs that share each layer."""
    pipeline_parallel: int | None = None
    """GPUs that share the layers of the model, one after the other."""
    context_parallel: int | None = None
    """GPUs that share each sample."""
    expert_parallel: int | None = None
    """GPUs that share the experts of a layer."""
    sequence_parallel: bool | None = None
    """Whether tensor parallel GPUs also share what is between the matrices of a layer."""

    # Samples and what is kept of them.
    sequence_length: int | None = None
    """Tokens at which a sample is truncated."""
    packing: bool | None = None
    """Whether several samples fill one sequence."""
    group_by_length: bool | None = None
    """Whether batches are made of samples of similar length."""
    gradient_checkpointing: bool | None = None
    """Whether activations are recomputed in the backward pass."""
    selective_checkpointing: Union[int, str, None] = None
    """What is recomputed if not everything is: `op`, chosen operations; a number n, every n-th layer; `no`."""
    recompute_method: str | None = None
    """How layers are recomputed: `uniform`, all in groups; `block`, this many of those on a GPU."""
    recompute_layers: int | None = None
    """Layers in such a group, or those that are recomputed."""
    activation_offload: bool | None = None
    """Whether activations are kept on the host."""
    attention: str | None = None
    """Attention kernel: `eager`, `sdpa`, `flash_attention_2`, ..."""
    fused_cross_entropy: bool | None = None
    """Whether the loss is computed without materializing all logits."""
    optimizer: str | None = None
    """Optimizer, as the framework writes it: `adamw_torch`, `paged_adamw_8bit`."""
    optimizer_in_backward: bool | None = None
    """Whether each gradient is used and freed in the backward pass."""

    # Evaluation.
    eval_strategy: Union[str, bool, None] = None
    """When an evaluation runs: `steps`, `epoch`, `no`."""
    eval_steps: float | None = None
    """Updates between two evaluations; below 1, a share of all updates."""
    eval_batch: int | None = None
    """Samples that one GPU evaluates at a time."""
    eval_accumulation: int | None = None
    """Evaluation steps after which results are moved to the host."""
    prediction_loss_only: bool | None = None
    """Whether an evaluation keeps the loss but not the logits."""
    predict_with_generate: bool | None = None
    """Whether an evaluation generates text."""

    # Servers.
    server_version: str | None = None
    """The release of the server: `0.8.5`."""
    server_before: str | None = None
    """The first release of the server that rejects one of its options."""
    removed_option: str | None = None
    """That option, as written."""
    memory_share: float | None = None
    """Fraction of the GPU that a server may use, above 0 and at most 1."""
    max_model_len: int | None = None
    """Tokens of the longest request, prompt and answer together."""
    max_num_seqs: int | None = None
    """Requests that are served at a time."""
    max_batched_tokens: int | None = None
    """Tokens of all requests in one step."""
    kv_cache_dtype: str | None = None
    """Type of the KV cache."""
    value_cache_dtype: str | None = None
    """Type of the value cache, if llama.cpp is given it separately from that of keys."""
    quantization: str | None = None
    """How the checkpoint is quantized: `awq`, `gptq`, `fp8`."""
    draft_model: str | None = None
    """The model that drafts tokens for a server."""
    draft_method: str | None = None
    """How tokens are drafted: `mtp` uses layers of the model itself."""
    draft_tokens: int | None = None
    """Tokens drafted per step."""
    enforce_eager: bool | None = None
    """Whether a server runs without CUDA graphs."""
    graph_requests: int | None = None
    """Requests in the largest CUDA graph, if a server is given it separately from those that it serves."""
    cache_tokens: int | None = None
    """Maximum number of tokens for which a server creates a cache."""
    window_tokens: float | None = None
    """Tokens that layers with a window get in SGLang's cache per token of the others."""
    state_bytes: float | None = None
    """Bytes that SGLang keeps for states per byte of keys and values."""
    state_slots: int | None = None
    """States that SGLang has room for."""
    attention_copies: int | None = None
    """Copies of a server's attention, or of its whole model."""
    splits_attention: bool | None = None
    """Whether those copies are only of the attention, so that tensor parallel GPUs are divided among them."""
    cpu_offload_gb: float | None = None
    """GiB of weights that each GPU of a server keeps on the host."""
    cache_memory: int | None = None
    """Bytes on each GPU that a server gives to the cache, whatever its share leaves."""
    cache_blocks: int | None = None
    """Blocks of the cache, whatever the share leaves."""
    first_engine: bool | None = None
    """Whether vLLM is set to run its first engine (`VLLM_USE_V1=0`) or its second."""
    data_parallel: int | None = None
    """Copies of the non-expert layers, among which a server divides requests; the experts are divided among all of their GPUs."""
    decode_context_parallel: int | None = None
    """Tensor parallel GPUs that divide the tokens of the cache among them."""
    chunked_prefill: bool | None = None
    """Whether a server reads long prompts in several steps."""
    offline: bool | None = None
    """Whether a model runs in the process that loads it (`LLM` of vLLM), rather than as a server."""
    cache_connector: str | None = None
    """What a server passes its cache on to."""
    prefix_caching: bool | None = None
    """Whether a server keeps prompt prefixes for later prompts."""
    served_adapters: bool | None = None
    """Whether a server accepts LoRA adapters."""
    adapter_slots: int | None = None
    """Adapters that a server computes with at a time."""
    adapter_rank: int | None = None
    """The largest rank of an adapter that is served."""
    text_only: bool | None = None
    """Whether a server leaves out what reads images and audio."""
    skips_pictures: bool | None = None
    """Whether a server's startup is measured without images."""
    media_per_prompt: str | None = None
    """How many images and videos a request may have: `image=4,video=0`."""
    images_per_prompt: int | None = None
    """How many images a request may have."""
    videos_per_prompt: int | None = None
    """How many videos a request may have."""
    picture_pixels: int | None = None
    """Pixels to which a server scales down larger images."""
    gpu_layers: int | None = None
    """Layers that llama.cpp puts on the GPU."""
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
    """GiB of host memory that each GPU of a server gets for its cache."""
    beams: int | None = None
    """Beams in beam search."""

    # Generation inside training.
    generations: int | None = None
    """Completions per prompt."""
    prompt_length: int | None = None
    """Tokens at which a prompt is truncated."""
    completion_length: int | None = None
    """Tokens at which a completion is truncated."""
    rollout_engine: str | None = None
    """Where the generation engine is: `colocate` on the training GPUs, `server` elsewhere."""
    rollout_sleeps: bool | None = None
    """Whether it releases its memory while weights are updated."""
    rollout_tensor: int | None = None
    """GPUs that share each of its layers."""
    kl_weight: float | None = None
    """Weight of the KL divergence from the reference model; without it there is none."""
    critic_model: str | None = None
    """The model from which PPO creates its critic, by its name or path."""
    reward_model: str | None = None
    """The model that scores answers, by its name or path."""
    colocated_models: bool | None = None
    """Whether all PPO models share the GPUs, in a program that otherwise gives each its own."""
    logprob_batch: int | None = None
    """Samples whose log-probabilities one GPU computes at a time."""
    logprob_tokens: int | None = None
    """Total tokens of those samples, if a framework counts these."""
    dynamic_batch: bool | None = None
    """Whether micro-batches are filled up to a number of tokens, so that a number of samples has no effect."""

    # Images and videos.
    picture_width: int | None = None
    """Width of what is generated or trained on, in pixels."""
    picture_height: int | None = None
    """Height of it, in pixels."""
    picture_side: int | None = None
    """Pixels along the edge to which images are scaled."""
    video_frames: int | None = None
    """Frames of a video."""
    picture_batch: int | None = None
    """Images that are generated at a time."""
    caches_latents: bool | None = None
    """Whether images are encoded to latents once before training."""
    caches_text: bool | None = None
    """Whether texts are encoded once before training."""
    swapped_blocks: int | None = None
    """Blocks of the denoiser that wait on the host."""
    vae_tile: int | None = None
    """Pixels along the edge of a tile that the VAE decodes at a time."""

    # Data preparation and builds.
    prefetch_factor: int | None = None
    """Batches that each loader worker keeps ready."""
    map_workers: int | None = None
    """Processes that prepare a data set."""
    map_batch: int | None = None
    """Samples that such a process holds at a time."""
    build_jobs: int | None = None
    """Compilers that run at a time."""

    prompt_logits: bool | None = None
    """Whether a prompt gets logits for each of its tokens, as in transformers before 4.45."""

    # The requested figure.
    counter: str | None = None
    """Which figure: `max_allocated` or `max_reserved` of torch, `nvidia-smi`, `unknown` if it may be any of them."""

    # Environment.
    alloc_conf: str | None = None
    """Options of PyTorch's CUDA allocator."""
    visible_devices: Union[str, int, None] = None
    """GPUs that the run may use, with commas."""
    card: str | None = None
    """The GPU that a job requests, as its file names it: `a100`, `NVIDIA-H100-80GB-HBM3`."""
    cards: int | None = None
    """GPUs allocated to a job or a container, on all machines."""
    host_limit: int | None = None
    """Bytes of host memory allocated to it."""

    def known(self) -> dict[str, Scalar]:
        """Return the settings that are known, by name."""
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}

    def with_values(self, values: Mapping[str, Scalar]) -> RunSettings:
        """Return the settings with other values; a value that does not fit its setting is unknown, an unknown name is left out."""
        return replace(self, **{name: fitting(name, value) for name, value in values.items() if name in self.__struct_fields__})


def is_number(name: str) -> bool:
    """Return whether the setting of this name is a number and nothing else."""
    return _kinds()[name] <= {int, float}


def fitting(name: str, value: Scalar) -> Scalar:
    """Return a value as the setting of this name stores it; None if it does not fit."""
    kinds = _kinds()[name]
    if isinstance(value, float) and int in kinds and float not in kinds:
        return int(value) if value.is_integer() else None
    return value if type(value) in kinds else None


def positive(number: float | None) -> int | None:
    """Return a number as a size: whole, above 0 and at most a billion; None for anything else."""
    return int(number) if number is not None and 0 < number <= _LARGEST and number == int(number) else None


@cache
def _kinds() -> dict[str, frozenset[type]]:
    """Return the value types of each setting; an int is a float too."""
    kinds = {name: frozenset(get_args(hint)) - {type(None)} for name, hint in get_type_hints(RunSettings).items()}
    return {name: kind | {int} if float in kind else kind for name, kind in kinds.items()}


class RunConfig(Struct, frozen=True, kw_only=True):
    """The settings of one run, with their locations and any errors in them."""

    framework: str | None = None
    """The framework whose file a person edits."""
    reason: str | None = None
    """The key or program that shows the framework."""
    version: str | None = None
    written: tuple[WrittenSetting, ...] = ()
    settings: RunSettings = RunSettings()
    places: Mapping[str, WrittenSetting] = field(default_factory=dict)
    """Where each of them is; one that was derived from others has no location."""
    stated: tuple[str, ...] = ()
    """Those given only by the text around the log: someone's statement, not observed in a run."""
    tried: Mapping[str, Scalar] = field(default_factory=dict)
    """What that text says was tried and did not help, by the name that all frameworks share."""
    issues: tuple[ConfigIssue, ...] = ()
    """The worst first."""

    def known_settings(self) -> dict[str, Scalar]:
        """Return the settings that are known, by name: those with a location first, in the order of the files."""
        known = self.settings.known()
        return {**{name: known[name] for name in self.places if name in known}, **known}

    def facts(self) -> dict[str, Scalar]:
        """Return the settings as rules query them, `training.micro_batch`. What is missing is unknown."""
        named = {f"training.{name}": value for name, value in self.known_settings().items()}
        return named if self.framework is None else {**named, "training.framework": self.framework}


class ProposedSetting(Struct, frozen=True, kw_only=True):
    """One key of one framework's config, with the value before and after."""

    framework: str
    key: str
    to: str
    """Empty for an option without a value, and if only the direction is known."""
    direction: Literal["lower", "higher"] | None = None
    """Which way to go from the value in force, if it is unknown and no figure leads to another one."""
    file: str | None = None
    line: int | None = None
    before: str | None = None
    """The value in force, as written; None if unknown."""
    note: Text | None = None
    """What the change keeps or when it applies."""
    example: bool = False
    """Whether `to` only shows what kind of value is meant."""
    sets: str | None = None
    """The setting behind the key, by the name that all frameworks share."""
    dated: bool = False
    """Whether only some versions know it, and it is unknown which one is running."""
