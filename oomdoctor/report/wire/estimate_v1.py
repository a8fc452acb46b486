"""The structures of `oomdoctor/estimate/v1`: what a run or a server takes of one card. Additions are allowed, renames are not."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from oomdoctor.case.plan import Fits
from oomdoctor.case.serving import StartupCheckName
from oomdoctor.case.settings import Scalar

Tag = Literal["oomdoctor/estimate/v1"]


class RangeV1(Struct, frozen=True, kw_only=True):
    """Bytes, and what they are at least and at most."""

    expected: int
    low: int
    high: int


class BoundsV1(Struct, frozen=True, kw_only=True):
    """What a figure is at least and at most."""

    low: int
    high: int


class TermV1(Struct, frozen=True, kw_only=True):
    """One part of the memory, in bytes of one card."""

    name: str
    bytes: int
    low: int
    high: int
    basis: str
    """Formula and source."""


class PhaseV1(Struct, frozen=True, kw_only=True):
    """What is there at once at one moment of a run."""

    name: str
    bytes: int
    terms: tuple[TermV1, ...]


class CardV1(Struct, frozen=True, kw_only=True):
    """The card that the run is held against."""

    name: str
    bytes: int
    usable_bytes: int | UnsetType = UNSET
    needed_bytes: RangeV1 | UnsetType = UNSET
    """What must be there so that no request fails; it decides whether the run fits."""
    fits: Fits


class RankV1(Struct, frozen=True, kw_only=True):
    """What the cards from `first` to `last` have of the model, counted from 0 in the order of the layers, and what that takes."""

    first: int
    last: int
    layers: float
    embedding: bool
    head: bool
    micro_batches: int
    per_gpu_bytes: RangeV1
    peak: str
    terms: dict[str, int]


class AssumptionV1(Struct, frozen=True, kw_only=True):
    """Something that was not said and had to be taken as given."""

    id: str
    text: str
    asked: bool
    """Whether the answer would change the figure much."""


class OtherwiseV1(Struct, frozen=True, kw_only=True):
    """What the run needs where something that was assumed is otherwise."""

    assumption: str
    """The id of the assumption."""
    text: str
    """The other way, as a clause."""
    sets: dict[str, Scalar]
    """The same as settings by the names that all frameworks share."""
    needed_bytes: RangeV1
    fits: Fits | None
    """Null where no card was named."""
    turns: bool
    """Whether the verdict is another one then, or would be beyond a limit."""
    limit: bool
    """Whether it is the largest number that fits."""


class StartupCheckV1(Struct, frozen=True, kw_only=True):
    """Something that must fit for a server to start, and the bytes that are left then."""

    name: StartupCheckName
    cleared: Fits
    spare_bytes: int
    range: BoundsV1


class ServerV1(Struct, frozen=True, kw_only=True):
    """What a server makes of one card: its share, and what becomes of it."""

    program: str
    share: float
    max_model_len: int | None
    max_num_seqs: int
    max_batched_tokens: int
    taken_bytes: int
    terms: tuple[TermV1, ...]
    """What comes out of the share before the cache."""
    beside: tuple[TermV1, ...]
    """What the card must have beside the share."""
    cache_bytes: int
    cache_range: BoundsV1
    cache_tokens: int
    token_range: BoundsV1
    request_bytes: int | None
    """One request of full length; null where that length is not known."""
    starts: Fits
    obstacle: StartupCheckName | None
    hurdles: tuple[StartupCheckV1, ...]


class SimulatedPhaseV1(Struct, frozen=True, kw_only=True):
    """The most that was there at once in one phase of one step; step 0 comes before the first."""

    name: str
    step: int
    allocated_bytes: int
    reserved_bytes: int


class FailedRequestV1(Struct, frozen=True, kw_only=True):
    """The request for which nothing was left on the card that was named."""

    phase: SimulatedPhaseV1
    place: str
    """The operation, and the part of the model where it is known."""
    requested_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    free_bytes: int
    largest_free_block_bytes: int


class BlockGroupV1(Struct, frozen=True, kw_only=True):
    """Blocks of one kind that live at the same time."""

    name: str
    """`parameter`, `gradient`, `optimizer state` ..., or the operation and the part of the model that gave them."""
    bytes: int
    blocks: int


class SimulatedV1(Struct, frozen=True, kw_only=True):
    """The first steps of a run, request by request, through a model of torch's allocator."""

    requests: int
    allocated_bytes: int
    """The most in blocks in use: `max_memory_allocated`."""
    reserved_bytes: int
    """The most held of the driver: `max_memory_reserved`."""
    unused_bytes: int
    """What no block in use filled when the last byte of it was reserved."""
    flushes: int
    phases: tuple[SimulatedPhaseV1, ...]
    holders: tuple[BlockGroupV1, ...]
    """What filled the blocks when most was in use, or when the request failed; the largest first."""
    failed: FailedRequestV1 | None


class RefusalV1(Struct, frozen=True, kw_only=True):
    """A check of its settings at which the program ends before it takes any memory."""

    id: str
    message: str
    """What the program prints; `...` stands for what is not known here."""
    why: str
    setting: str
    """The setting to change, by the name that all frameworks share."""
    instead: tuple[int, ...]
    """Values that the program takes, the nearest first."""
    source: str


class EstimateV1(Struct, frozen=True, kw_only=True):
    """What a run takes of a card. Sizes are bytes of one card; `host_` ones are those of the machine."""

    schema: Tag
    model: str
    gpus: int
    counter: str
    """What counts the bytes: `nvidia-smi`, or torch itself."""
    per_gpu_bytes: RangeV1
    host_bytes: int
    host_loading_bytes: int | UnsetType = UNSET
    host_saving_bytes: int | UnsetType = UNSET
    card: CardV1 | None
    """The card that was named."""
    server: ServerV1 | None
    """Of a server only."""
    peak: str
    """The phase that needs the most."""
    phases: tuple[PhaseV1, ...]
    ranks: tuple[RankV1, ...] | UnsetType = UNSET
    assumptions: tuple[AssumptionV1, ...]
    needed_bytes: RangeV1 | UnsetType = UNSET
    """What the run must find on a card so that no request fails, with a card or without; nvidia-smi shows `per_gpu_bytes`."""
    otherwise: tuple[OtherwiseV1, ...] | UnsetType = UNSET
    """What was assumed and decides, taken the other way; what turns the verdict stands first."""
    simulated: SimulatedV1 | UnsetType = UNSET
    """Where somebody asked for it."""
    understood: str | UnsetType = UNSET
    """What was asked, as it was understood, in one line."""
    refused: tuple[RefusalV1, ...] | UnsetType = UNSET
    """Checks at which the program ends before it takes any memory; `starts` and `fits` are about memory alone."""


class AtFailureV1(Struct, frozen=True, kw_only=True):
    """The live tensors at the moment of the failure."""

    phase: str
    expected_bytes: int
    low_bytes: int
    high_bytes: int
    seen_bytes: int


class ExpectedV1(EstimateV1, frozen=True, kw_only=True):
    """The estimate of a failed run, and beside it what its log shows."""

    fits: Fits | None
    settings_known: bool
    """Whether method, batch and length are known and not taken from defaults."""
    at_failure: AtFailureV1 | None
    seen_bytes: dict[str, int] | UnsetType = UNSET
    """Of a server: what the log shows of its parts, by the names of terms."""
    seen_tokens: int | UnsetType = UNSET
    """Of a server: tokens that its cache holds in requests of full length, as the log shows; beside them stands `expected_tokens`."""
    expected_tokens: int | UnsetType = UNSET
    card_is_known: bool | UnsetType = UNSET
    """Of a server: whether the log tells the size of the card; else it was worked out."""
