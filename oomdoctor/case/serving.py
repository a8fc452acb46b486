"""A server that reserves its share of a GPU in advance (`Server`), and how that share is used (`Served`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, Union

from msgspec import Struct

from oomdoctor.case.estimate import Assumption, Estimate, Phase, Term
from oomdoctor.case.plan import Fits, Plan, Plans
from oomdoctor.case.setup import Setup
from oomdoctor.units import GIB, MIB

if TYPE_CHECKING:
    from typing_extensions import TypeIs

StartupCheckName = Literal["start", "load", "profile", "sampler", "blocks", "request", "states", "graphs", "rest"]
"""The points during startup at which memory can be short, each with its own message."""
EngineName = Literal["vllm", "sglang", "free-share"]
"""The kinds of startup arithmetic, implemented in oomdoctor/memory/servers/engines.py."""


class ServerProgram(Struct, frozen=True, kw_only=True):
    """What distinguishes one server from another with the same engine."""

    name: str
    """Its framework."""
    title: str
    """Its name as people write it."""
    engine: EngineName
    fraction_option: str
    """Its name for the memory fraction."""
    messages: Mapping[str, str] = {}
    """The last line of a log at a check, if it is not simply the allocator's; with `{requests}`, `{length}`, `{batched}`."""
    graphs_inside_since: str | None = None
    """The first version in which CUDA graphs come out of the share; None if its version does not decide it."""

    @property
    def checks_request(self) -> bool:
        """Whether startup fails if the cache does not hold one full-length request: it has a message for it."""
        return "request" in self.messages


class StartupProfile(Struct, frozen=True, kw_only=True):
    """What a server's startup uses and checks; it differs between versions."""

    logit_bytes: float = 14
    """Bytes per score of the sampler while startup measures its peak."""
    outside: int = round(0.25 * GIB)
    """Bytes that grow outside torch, on each GPU, until the cache is sized."""
    context_inside: bool = False
    """Whether the CUDA context comes out of the share."""
    checks_free: bool = True
    """Whether startup ends if less of the GPU is free than the share."""
    keeps_workspace: bool = True
    """Whether the workspace of experts stays while the sampler runs."""
    caches_latent: bool = True
    """Whether latent attention caches its narrow latent, rather than whole heads."""
    graph_layer: int = round(0.05 * MIB)
    """Bytes of one CUDA graph per layer."""
    graph_requests: int = 2
    """The largest batch with a CUDA graph, per request that may run."""
    largest_graph: int = 512
    """The maximum of that batch."""
    step_states: int = 4
    """Hidden states of a step at its peak, which are not divided among tensor parallel GPUs."""
    exact_sampler: bool = False
    """Whether the bytes per score are those printed by releases with this sampler."""
    caches_prefixes: bool = False
    """Whether layers with states keep them for prompts with a common prefix by default."""
    whole_windows: bool = False
    """Whether layers with a window keep all tokens when there are also layers that do."""
    whole_with_connector: bool = False
    """Whether they do if the cache is passed on to something else."""
    prints_requests: bool = True
    """Whether the printed tokens are those of full-length requests, and not blocks of one group of layers."""
    steps_ahead: int = 1
    """Steps in flight whose tokens a window keeps in addition to its own."""
    checks_states: bool = False
    """Whether startup ends if the cache has fewer blocks for states than requests may run at a time."""
    of_free: bool = False
    """Whether the memory fraction is of what startup leaves free, and not of the whole GPU."""
    measures_step: bool = True
    """Whether a step is run before the cache is sized; otherwise it must find room outside the share."""
    card_margin: float = 1.0
    """The fraction of the GPU that is taken as the whole when the cache is sized."""
    cache_margin: float = 1.0
    """The fraction of what is left for the cache that it gets."""
    caps_step: bool = False
    """Whether the default token limit of a step is the maximum length of all requests together."""
    loads_wide: bool = False
    """Whether weights that the server quantizes itself are on the GPU in 16 bit until all are loaded."""
    whole_prompts: bool = False
    """Whether the trial step consists of whole prompts, each with the maximum number of images."""
    drops_long: bool = False
    """Whether such a prompt has no images if they exceed its part of the step."""
    rounds_items_up: bool = False
    """Whether enough images to overfill a step are tried, rather than as many as it has room for."""
    items_of_step: bool = False
    """Whether the video that is tried is no longer than a step, whatever the longest request may contain."""
    expands_items: bool = False
    """Whether the encoder output of each image is kept as wide as everything that may be kept."""
    encoder_states: float = 8
    """Hidden states of a patch, in 16 bit, divided among the tensor parallel GPUs of an encoder with rotary positions."""
    graph_sizes: int = 0
    """The number of batch sizes for which CUDA graphs are captured, if requests do not decide it."""
    prefill_graphs: bool = False
    """Whether SGLang captures graphs of prefills too, and leaves room for them."""
    tower_share: float = 1.0
    """The part of the default share that a vision-language model keeps; 0 if SGLang calculates it from the size of its tower."""
    draft_beside: int = 0
    """Bytes that the default share leaves for the draft model."""
    replicas_beside: int = 0
    """Bytes that the default share leaves for data parallel attention."""
    drafts_inside: bool = True
    """Whether the draft model and its cache come out of the share."""
    scale_bytes: float = 0.0
    """Bytes per 4-bit expert parameter in a model with compressed keys (DeepSeek V4): scales that loading leaves behind."""
    states_by_request: bool = True
    """Whether the states of the widest key compression are for this many requests, and not for this many tokens."""


class CachePools(Struct, frozen=True, kw_only=True):
    """How SGLang divides what its share leaves among pools."""

    window_tokens: float | None = None
    """Tokens of layers with a window per token of the others; None if every layer keeps all tokens."""
    state_bytes: float = 0.9
    """Bytes for states per byte of keys and values: mamba_full_memory_ratio (sglang/srt/server_args.py)."""
    state_slots: int | None = None
    """Number of states that fit, if it is set or a release fixes it."""
    tokens: int | None = None
    """Maximum number of tokens for which the cache is made."""
    running: int | None = None
    """Requests that run at a time, if that is limited."""


class MediaItem(Struct, frozen=True, kw_only=True):
    """The largest image, or the longest video, that a request may contain."""

    patches: int
    """Patches of it that the encoder reads in a trial step."""
    tokens: int
    """Tokens that the server counts for it; 0 if the text only reads it through cross-attention."""
    limit: int
    """How many of them a request may contain."""
    values: int = 0
    """Values of a patch as input."""
    widths: int = 1
    """Output per token, in hidden states of the text."""
    rotary: bool = False
    """Whether positions are rotated, which creates new tensors for queries and keys."""


class Server(Struct, frozen=True, kw_only=True):
    """A server's settings, given or default."""

    program: ServerProgram
    memory_fraction: float
    """gpu_memory_utilization of the whole GPU, or mem_fraction_static of what is free at startup."""
    batched: int
    """Maximum number of tokens per step: max_num_batched_tokens, chunked_prefill_size."""
    requests: int
    """Requests that run at a time: max_num_seqs; for SGLang the largest batch with a CUDA graph."""
    length: int | None
    """Maximum number of tokens per request; None is the model's own limit, which is unknown."""
    takes_whole: bool = False
    """Whether a step takes the longest request whole, so that it has at least that many tokens (vLLM before 0.8)."""
    graphs: bool = True
    """Whether CUDA graphs are captured."""
    graphs_inside: bool = False
    """Whether their memory comes out of the share (vLLM 0.20 and newer)."""
    offload: int = 0
    """Bytes of each GPU's weights that stay in host memory."""
    media: tuple[MediaItem, ...] = ()
    """What is tried of each modality that the model reads; empty if startup leaves them out."""
    cache_told: int | None = None
    """Bytes of the cache on each GPU, if given to the server."""
    blocks_told: int | None = None
    """Blocks of the cache, if given to the server."""
    dealt: int = 1
    """Tensor parallel GPUs that divide the tokens of the cache among them."""
    packs: bool = False
    """Whether the server itself quantizes weights that the checkpoint has in 16 bit."""
    adapters: int = 0
    """LoRA adapters for which there is weight space on the GPU."""
    adapter_rank: int = 16
    caches_prefixes: bool = False
    """Whether a request keeps, besides its own state, the one it started from, for other prompts with a common prefix."""
    whole_windows: bool = False
    """Whether layers with a window keep all tokens, like those without one."""
    drafted: int = 0
    """Tokens per step proposed by the model's own layers (MTP); 0 if these layers are not loaded."""
    profile: StartupProfile = StartupProfile()
    pools: CachePools = CachePools()


class ByteRange(Struct, frozen=True):
    """A figure that may be negative, with its minimum and maximum."""

    expected: int
    low: int
    high: int

    def less(self, size: int) -> ByteRange:
        """Return all three minus `size`."""
        return ByteRange(self.expected - size, self.low - size, self.high - size)


class StartupCheck(Struct, frozen=True):
    """Something that must fit for a server to start, and the bytes then left."""

    name: StartupCheckName
    spare: ByteRange

    @property
    def passes(self) -> Fits:
        """`no`: even the maximum that may be left is negative."""
        return "no" if self.spare.high < 0 else "close" if self.spare.low < 0 else "yes"


class TurnedRelease(Struct, frozen=True):
    """A release before which the verdict is different."""

    before: str
    starts: Fits
    """The verdict there; `close`: it may be different."""


class Served(Struct, frozen=True, kw_only=True):
    """How a server uses one GPU. Sizes are bytes."""

    setup: Setup
    server: Server
    total: int
    """The GPU, as programs see it."""
    card: str = ""
    """Its name; empty if only its size is known."""
    taken: int
    """The share of it."""
    terms: tuple[Term, ...]
    """What comes out of the share before the cache."""
    beside: tuple[Term, ...]
    """What the GPU must have outside the share."""
    cache: ByteRange
    """What is left of the share for the KV cache; negative if it is overdrawn."""
    token: float
    """Bytes of one token in the cache, on one GPU."""
    request: int | None
    """Bytes of one full-length request; None if that length is unknown."""
    checks: tuple[StartupCheck, ...]
    """In the order in which startup reaches them."""
    phases: tuple[Phase, ...]
    request_is_open: bool = False
    """Whether startup fails if the cache does not hold the longest request, whose length is unknown."""
    turned: TurnedRelease | None = None
    """If the version is unknown: an older possible release that starts where the newest does not, or the reverse."""
    assumptions: tuple[Assumption, ...] = ()

    @property
    def starts(self) -> Fits:
        """Whether it starts in every possible release; if they differ, that is open."""
        return "close" if self.releases_differ else self.newest_starts

    @property
    def releases_differ(self) -> bool:
        """Whether one possible release certainly starts and another certainly does not."""
        return self.turned is not None and self.turned.starts != "close"

    @property
    def newest_starts(self) -> Fits:
        """Whether the newest possible release passes all checks; a check that cannot be evaluated leaves that open."""
        verdicts = {check.passes for check in self.checks}
        return "no" if "no" in verdicts else "close" if "close" in verdicts or self.request_is_open else "yes"

    @property
    def failed_check(self) -> StartupCheck | None:
        """The check that ends startup, or may end it: the first that certainly fails, or otherwise the first that may."""
        failed = (check for verdict in ("no", "close") for check in self.checks if check.passes == verdict)
        return next(failed, None)

    @property
    def tokens(self) -> ByteRange:
        """Tokens that the cache holds."""
        if not self.token:
            # Fixed-size states are not tokens.
            return ByteRange(0, 0, 0)
        return ByteRange(*(max(0, int(size / self.token)) for size in (self.cache.expected, self.cache.low, self.cache.high)))

    @property
    def full_tokens(self) -> int:
        """Tokens of full-length requests that the cache holds."""
        return max(0, int(self.cache.expected / self.full_token)) if self.full_token else 0

    @property
    def full_token(self) -> float:
        """Bytes per token of a full-length request, on one GPU; if that length is unknown, those of any token."""
        return self.request / self.server.length if self.request and self.server.length else self.token


AnyPlan = Union[Plan[Estimate], Plan[Served]]
AnyPlans = Union[Plans[Estimate], Plans[Served]]


def is_of_server(plans: AnyPlans) -> TypeIs[Plans[Served]]:
    """Return whether plans are a server's."""
    return isinstance(plans.now, Served)


class ServedRun(Struct, frozen=True, kw_only=True):
    """A failed server: what the arithmetic says about it, compared with what it printed."""

    served: Served
    """With the observed cache in place of the expected one, if the log has it."""
    expected: Served
    seen: Mapping[str, int]
    """What the log shows about the parts, by the names of terms, and about the cache as `kv cache`. Bytes on one GPU."""
    seen_tokens: int | None = None
    """Tokens that the cache holds in full-length requests, as the log shows; None if it does not."""
    total_is_known: bool
    """Whether the log gives the size of the GPU; otherwise it was calculated from what was observed."""
    has_served: bool = False
    """Whether the log shows that it had started and answered."""
