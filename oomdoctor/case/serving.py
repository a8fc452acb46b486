"""A server that takes its share of a card in advance (`Server`), and what becomes of that share (`Served`)."""

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
"""The moments of a start at which memory can be short, each with a message of its own."""
EngineName = Literal["vllm", "sglang", "free-share"]
"""The kinds of start-up arithmetic; oomdoctor/memory/servers/engines.py has them."""


class ServerProgram(Struct, frozen=True, kw_only=True):
    """What distinguishes one server from another that has the same engine."""

    name: str
    """Its framework."""
    title: str
    """Its name as people write it."""
    engine: EngineName
    fraction_option: str
    """Its name for the memory fraction."""
    messages: Mapping[str, str] = {}
    """The last line of a log at a check, where it is not plainly the allocator's; with `{requests}`, `{length}`, `{batched}`."""
    graphs_inside_since: str | None = None
    """The first version in which CUDA graphs come out of the share; None where its version does not decide it."""

    @property
    def checks_request(self) -> bool:
        """Whether a start fails where the cache does not hold one request of full length: it has a message for it."""
        return "request" in self.messages


class StartupProfile(Struct, frozen=True, kw_only=True):
    """What the start of a server takes and looks at; it differs from version to version."""

    logit_bytes: float = 14
    """Bytes of one score of the sampler while the start measures its peak."""
    outside: int = round(0.25 * GIB)
    """Bytes that grow outside of torch, on each card, until the cache is sized."""
    context_inside: bool = False
    """Whether the CUDA context comes out of the share."""
    checks_free: bool = True
    """Whether a start ends where less of the card is free than the share."""
    keeps_workspace: bool = True
    """Whether the workspace of experts stays while the sampler runs."""
    caches_latent: bool = True
    """Whether latent attention keeps its narrow middle in the cache, and not whole heads."""
    graph_layer: int = round(0.05 * MIB)
    """Bytes of one CUDA graph for each layer."""
    graph_requests: int = 2
    """The largest batch with a CUDA graph, for each request that may run."""
    largest_graph: int = 512
    """That batch at most."""
    step_states: int = 4
    """Hidden states of a step at its peak, which no tensor parallel card divides."""
    exact_sampler: bool = False
    """Whether the bytes of a score are those that releases with this sampler print."""
    caches_prefixes: bool = False
    """Whether layers with states keep them for prompts that begin alike, where nobody says it."""
    whole_windows: bool = False
    """Whether layers with a window keep all tokens beside layers that do."""
    whole_with_connector: bool = False
    """Whether they do where the cache is passed on to something else."""
    prints_requests: bool = True
    """Whether the printed tokens are those of requests of full length, and not blocks of one group of layers."""
    steps_ahead: int = 1
    """Steps whose tokens a window keeps beside its own, as they are under way."""
    checks_states: bool = False
    """Whether a start ends where the cache has fewer blocks for states than requests may run at a time."""
    of_free: bool = False
    """Whether the memory fraction is of what the start leaves free, and not of the whole card."""
    measures_step: bool = True
    """Whether a step is run before the cache is sized; else it must find room beside the share."""
    card_margin: float = 1.0
    """The part of the card that is taken for the whole when the cache is sized."""
    cache_margin: float = 1.0
    """The part of what is left for the cache that it gets."""
    caps_step: bool = False
    """Whether a step has no more tokens by default than the longest of all requests together."""
    loads_wide: bool = False
    """Whether weights that the server packs itself lie on the card in 16 bit until all are loaded."""
    whole_prompts: bool = False
    """Whether the trial step is made of whole prompts, each with all the pictures that it may have."""
    drops_long: bool = False
    """Whether such a prompt goes without pictures where they are more than its part of the step."""
    rounds_items_up: bool = False
    """Whether as many pictures are tried as more than fill a step, and not as many as it has room for."""
    items_of_step: bool = False
    """Whether the video that is tried is no longer than a step, whatever the longest request may bring."""
    expands_items: bool = False
    """Whether what the encoder makes of each picture is kept as wide as all that may be kept."""
    encoder_states: float = 8
    """Hidden states of a patch, in 16 bit, that tensor parallel cards of an encoder with rotary positions divide."""
    graph_sizes: int = 0
    """For how many sizes of batches CUDA graphs are captured, where requests do not decide it."""
    prefill_graphs: bool = False
    """Whether SGLang captures graphs of prefills too, and leaves room for them."""
    tower_share: float = 1.0
    """The part of the default share that a model which reads images keeps; 0 where SGLang works it out from the size of its tower."""
    draft_beside: int = 0
    """Bytes that the default share leaves for what proposes tokens."""
    replicas_beside: int = 0
    """Bytes that the default share leaves for data parallel attention."""
    drafts_inside: bool = True
    """Whether what proposes tokens, and its cache, come out of the share."""
    scale_bytes: float = 0.0
    """Bytes beside each 4-bit parameter of experts next to compressed keys (DeepSeek V4): scales that loading leaves behind."""
    states_by_request: bool = True
    """Whether the states of the widest compression of keys are for so many requests, and not for so many tokens."""


class CachePools(Struct, frozen=True, kw_only=True):
    """How SGLang divides what its share leaves among pools."""

    window_tokens: float | None = None
    """Tokens of layers with a window for each token of the others; None where every layer keeps all tokens."""
    state_bytes: float = 0.9
    """Bytes for states for each byte of keys and values: mamba_full_memory_ratio (sglang/srt/server_args.py)."""
    state_slots: int | None = None
    """States that there is place for, where somebody says it or a release has a number."""
    tokens: int | None = None
    """Tokens that the cache is made for at most."""
    running: int | None = None
    """Requests that run at a time, where that is limited."""


class MediaItem(Struct, frozen=True, kw_only=True):
    """The largest picture, or the longest video, that a request may bring."""

    patches: int
    """Patches that the encoder reads of it in a trial step."""
    tokens: int
    """Tokens that the server counts for it; 0 where the text only looks at it from beside."""
    limit: int
    """How many of them a request may bring."""
    values: int = 0
    """Values of a patch as it goes in."""
    widths: int = 1
    """What comes out for a token, in hidden states of the text."""
    rotary: bool = False
    """Whether positions are rotated, which makes new tensors of queries and keys."""


class Server(Struct, frozen=True, kw_only=True):
    """What a server is told, or takes by default."""

    program: ServerProgram
    memory_fraction: float
    """gpu_memory_utilization of the whole card, or mem_fraction_static of what is free at the start."""
    batched: int
    """Tokens of one step at most: max_num_batched_tokens, chunked_prefill_size."""
    requests: int
    """Requests that run at a time: max_num_seqs; for SGLang the largest batch with a CUDA graph."""
    length: int | None
    """Tokens of one request at most; None is the model's own limit, which is not known."""
    takes_whole: bool = False
    """Whether a step takes the longest request whole, so that it has as many tokens (vLLM before 0.8)."""
    graphs: bool = True
    """Whether CUDA graphs are captured."""
    graphs_inside: bool = False
    """Whether what they take comes out of the share (vLLM 0.20 and newer)."""
    offload: int = 0
    """Bytes of the weights of each card that stay in host memory."""
    media: tuple[MediaItem, ...] = ()
    """What is tried of the kinds that the model reads; none where the start leaves them out."""
    cache_told: int | None = None
    """Bytes of the cache on each card, where the server is told them."""
    blocks_told: int | None = None
    """Blocks of the cache, where the server is told them."""
    dealt: int = 1
    """Tensor parallel cards that divide the tokens of the cache among them."""
    packs: bool = False
    """Whether the server packs weights itself that the checkpoint has in 16 bit."""
    adapters: int = 0
    """LoRA adapters for which the weights have room on the card."""
    adapter_rank: int = 16
    caches_prefixes: bool = False
    """Whether a request holds the state that it came from beside its own, for other prompts that begin alike."""
    whole_windows: bool = False
    """Whether layers with a window keep all tokens, like those beside them that have none."""
    drafted: int = 0
    """Tokens that layers of the model itself propose in a step (MTP); 0 where these layers are not loaded."""
    profile: StartupProfile = StartupProfile()
    pools: CachePools = CachePools()


class ByteRange(Struct, frozen=True):
    """A figure that may be negative, and what it is at least and at most."""

    expected: int
    low: int
    high: int

    def less(self, size: int) -> ByteRange:
        """All three without `size`."""
        return ByteRange(self.expected - size, self.low - size, self.high - size)


class StartupCheck(Struct, frozen=True):
    """Something that must fit for a server to start, and the bytes that are left then."""

    name: StartupCheckName
    spare: ByteRange

    @property
    def passes(self) -> Fits:
        """`no`: even the most that may be left is less than nothing."""
        return "no" if self.spare.high < 0 else "close" if self.spare.low < 0 else "yes"


class TurnedRelease(Struct, frozen=True):
    """A release before which the verdict is another one."""

    before: str
    starts: Fits
    """What it is there; `close`: it may be another one."""


class Served(Struct, frozen=True, kw_only=True):
    """What a server makes of one card. Sizes are bytes."""

    setup: Setup
    server: Server
    total: int
    """The card, as programs see it."""
    card: str = ""
    """Its name; empty where only its size is known."""
    taken: int
    """The share of it."""
    terms: tuple[Term, ...]
    """What comes out of the share before the cache."""
    beside: tuple[Term, ...]
    """What the card must have beside the share."""
    cache: ByteRange
    """What is left of the share for the KV cache; negative where it is overdrawn."""
    token: float
    """Bytes of one token in the cache, on one card."""
    request: int | None
    """Bytes of one request of full length; None where that length is not known."""
    checks: tuple[StartupCheck, ...]
    """In the order in which a start meets them."""
    phases: tuple[Phase, ...]
    request_is_open: bool = False
    """Whether a start fails where the cache does not hold the longest request, and how long that is is not known."""
    turned: TurnedRelease | None = None
    """Where the version is not known: an older release that can be meant, and that starts where the newest does not or the reverse."""
    assumptions: tuple[Assumption, ...] = ()

    @property
    def starts(self) -> Fits:
        """Whether it starts in every release that can be meant; where they differ, that is open."""
        return "close" if self.releases_differ else self.newest_starts

    @property
    def releases_differ(self) -> bool:
        """Whether one release that can be meant surely starts and another surely does not."""
        return self.turned is not None and self.turned.starts != "close"

    @property
    def newest_starts(self) -> Fits:
        """Whether the newest release that can be meant passes all checks; one that cannot be looked at leaves that open."""
        verdicts = {check.passes for check in self.checks}
        return "no" if "no" in verdicts else "close" if "close" in verdicts or self.request_is_open else "yes"

    @property
    def failed_check(self) -> StartupCheck | None:
        """The check that ends the start, or may end it: the first that surely fails, else the first that may."""
        failed = (check for verdict in ("no", "close") for check in self.checks if check.passes == verdict)
        return next(failed, None)

    @property
    def tokens(self) -> ByteRange:
        """Tokens that the cache holds."""
        if not self.token:
            # States of a fixed size are no tokens.
            return ByteRange(0, 0, 0)
        return ByteRange(*(max(0, int(size / self.token)) for size in (self.cache.expected, self.cache.low, self.cache.high)))

    @property
    def full_tokens(self) -> int:
        """Tokens of requests of full length that the cache holds."""
        return max(0, int(self.cache.expected / self.full_token)) if self.full_token else 0

    @property
    def full_token(self) -> float:
        """Bytes of a token of a request of full length, on one card; where that length is not known, those of any token."""
        return self.request / self.server.length if self.request and self.server.length else self.token


AnyPlan = Union[Plan[Estimate], Plan[Served]]
AnyPlans = Union[Plans[Estimate], Plans[Served]]


def is_of_server(plans: AnyPlans) -> TypeIs[Plans[Served]]:
    """Return whether plans are a server's."""
    return isinstance(plans.now, Served)


class ServedRun(Struct, frozen=True, kw_only=True):
    """A failed server: what the arithmetic says of it, beside what it printed."""

    served: Served
    """With the cache that was seen in place of the expected one, where the log has it."""
    expected: Served
    seen: Mapping[str, int]
    """What the log shows of the parts, by the names of terms, and of the cache as `kv cache`. Bytes of one card."""
    seen_tokens: int | None = None
    """Tokens that the cache holds in requests of full length, as the log shows; None where it does not."""
    total_is_known: bool
    """Whether the log tells the size of the card; else it was worked out from what was seen."""
    has_served: bool = False
    """Whether the log shows that it had started and answered."""
