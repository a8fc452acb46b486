"""The shape of rules/servers: what a server takes by default, and what it says where a start fails."""

from typing import Annotated, Literal

from msgspec import Meta

from oomdoctor.case.serving import EngineName
from oomdoctor.knowledge.records.base import Record, RecordKind


class ServerDefault(Record, frozen=True, kw_only=True):
    """A default value, and where it holds."""

    value: int | float | bool
    since: str | None = None
    """The first version that has it."""
    until: str | None = None
    """The first version that has another one."""
    card_gb: float = 0
    """GiB that a card must have."""
    only_card: str | None = None
    """A part of the names of the cards for which alone it holds, in lower case."""
    except_card: str | None = None
    """A part of the names of cards, in lower case, for which it does not hold."""
    tensor: int = 1
    """Cards over which tensors must be split."""
    each_card: float = 0
    """What every card over which the model is spread adds to a number."""
    source: str


Defaults = Annotated[list[ServerDefault], Meta(min_length=1)]
"""Of several the first that holds counts; the last one holds for every card of the newest version, but of those that are computed."""


COMPUTED = frozenset({"memory_share", "beside_gb", "state_slots"})
"""Defaults that the engine computes where no row holds."""


class ServerDefaults(Record, frozen=True, kw_only=True):
    """The defaults of a server, by the names that all frameworks share."""

    max_batched_tokens: Defaults
    max_num_seqs: Defaults
    offline_batched_tokens: Defaults | None = None
    """Tokens of a step where the model answers in the process that loads it; where no row holds, as many as in a server."""
    whole_requests: Defaults | None = None
    """Tokens of the longest request that a step takes whole where nobody says how many it takes."""
    memory_share: Defaults | None = None
    beside_gb: Defaults | None = None
    """GiB of the card beside the share, where that decides the share."""
    graphs_inside: Defaults | None = None
    """Whether CUDA graphs come out of the share."""
    logit_bytes: Defaults | None = None
    outside_mb: Defaults | None = None
    graph_mb: Defaults | None = None
    exact_sampler: Defaults | None = None
    context_inside: Defaults | None = None
    checks_free: Defaults | None = None
    keeps_workspace: Defaults | None = None
    caches_latent: Defaults | None = None
    caches_prefixes: Defaults | None = None
    steps_ahead: Defaults | None = None
    whole_windows: Defaults | None = None
    whole_with_connector: Defaults | None = None
    prints_requests: Defaults | None = None
    checks_states: Defaults | None = None
    caps_step: Defaults | None = None
    loads_wide: Defaults | None = None
    whole_prompts: Defaults | None = None
    drops_long: Defaults | None = None
    rounds_items_up: Defaults | None = None
    items_of_step: Defaults | None = None
    expands_items: Defaults | None = None
    encoder_states: Defaults | None = None
    of_free: Defaults | None = None
    measures_step: Defaults | None = None
    card_margin: Defaults | None = None
    cache_margin: Defaults | None = None
    graph_sizes: Defaults | None = None
    graph_requests: Defaults | None = None
    largest_graph: Defaults | None = None
    step_states: Defaults | None = None
    prefill_graphs: Defaults | None = None
    tower_share: Defaults | None = None
    draft_beside_gb: Defaults | None = None
    replicas_beside_gb: Defaults | None = None
    drafts_inside: Defaults | None = None
    scale_bytes: Defaults | None = None
    states_by_request: Defaults | None = None
    """These are of `StartupProfile`; MiB and GiB are its bytes."""
    state_slots: Defaults | None = None
    """States that there is place for; where no row holds, they are a part of the cache."""


FirstEngineReason = Literal[
    "told",
    "old_card",
    "packed_cache",
    "packed_cache_elsewhere",
    "first_options",
    "offload",
    "adapters",
    "pipeline",
    "bitsandbytes",
    "gguf",
    "drafts",
    "draft_model",
    "states",
    "pictures_beside",
]
"""What a start may have that one engine alone can do: oomdoctor/setups/programs/engine.py says how each is told."""


class FirstEngine(Record, frozen=True, kw_only=True):
    """Where a release that has two engines runs the first."""

    reason: FirstEngineReason
    since: str
    until: str
    """The first release in which that runs the other engine, or fails."""
    source: str


class RemovedOptions(Record, frozen=True, kw_only=True):
    """Options that a release refuses, so that whoever writes one runs an older release."""

    until: str
    """The first release that refuses them."""
    options: list[str]
    """As programs compare them: without leading dashes, with underscores."""
    source: str


class ServerRecord(Record, frozen=True, kw_only=True):
    """rules/servers/<server>.yaml: a server that takes its share of a card in advance."""

    server: str
    """Its framework, which reads its options and its logs."""
    title: str
    engine: EngineName
    """The start-up arithmetic that it has: a module of oomdoctor/memory/servers."""
    fraction_option: str
    """Its name for the memory fraction."""
    messages: dict[str, str] = {}
    """The last line of a log at a check, where it is not plainly the allocator's; with `{requests}`, `{length}`, `{batched}`."""
    newest: str | None = None
    """The newest release that was read; an unknown version counts as this one."""
    oldest: str | None = None
    """The oldest release that is meant where nobody names one and nothing says since when the model is loaded."""
    removed: list[RemovedOptions] = []
    """The oldest first."""
    first_engine: list[FirstEngine] = []
    first_engine_as: str | None = None
    """The release whose defaults the first engine has where the second is the default."""
    defaults: ServerDefaults


SERVERS = RecordKind("servers", ServerRecord)
