"""The memory of the largest images and videos in the trial step of a startup: the encoder at its peak, and what it leaves.

Sources: vllm/v1/worker/gpu_model_runner.py, profile_run and MultiModalBudget; vllm 0.7.3 worker/model_runner.py, _dummy_run.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from oomdoctor.case.serving import MediaItem, Server
from oomdoctor.case.setup import Setup
from oomdoctor.memory.model.weights import HALF

_WHOLE = 3
"""Hidden states per patch that are not divided among tensor parallel GPUs: the input, its norm, and the attention output."""
_PLAIN = 5
"""Those that are divided without rotary positions: queries, keys and values, a copy and the attention result."""


class TriedMedia(Struct, frozen=True):
    """A trial with media. Sizes are bytes."""

    encoder: int = 0
    """The maximum while the encoder runs."""
    kept: int = 0
    """What remains live of it while the text is computed: the encoder's input and output."""
    requests: int | None = None
    """How many requests the trial step has, if media limit that."""


def tried_media(setup: Setup, server: Server) -> TriedMedia:
    """Return what the trial step has in media."""
    if not server.media:
        return TriedMedia()
    return _in_prompts(setup, server) if server.profile.whole_prompts else _in_budget(setup, server)


def _in_budget(setup: Setup, server: Server) -> TriedMedia:
    """Return items of the one kind that has the most tokens, as many as the encoder budget has room for."""
    item = max(server.media, key=lambda item: item.tokens)
    if not item.tokens:
        return TriedMedia()
    budget = max(server.batched, item.tokens)
    fits = -(-budget // item.tokens) if server.profile.rounds_items_up else budget // item.tokens
    each = max(1, min(item.limit, (server.length or item.tokens) // item.tokens))
    count = max(1, min(fits, server.requests * each))
    width = max(budget, item.tokens) if server.profile.expands_items else item.tokens
    made = count * width * item.widths * HALF * setup.shape.hidden
    read = HALF * count * item.patches * item.values
    return TriedMedia(encoder=round(read + made + count * item.patches * _patch(setup, server, item)), kept=read + made)


def _in_prompts(setup: Setup, server: Server) -> TriedMedia:
    """Return prompts that each have the maximum number of media items; if those are too long, prompts without any."""
    tokens = sum(item.limit * item.tokens for item in server.media)
    requests = max(1, min(server.requests, server.batched // tokens)) if tokens else server.requests
    if server.profile.drops_long and tokens >= server.batched // requests:
        return TriedMedia(requests=requests)
    made = [requests * item.limit * (item.tokens or item.patches) * item.widths * HALF * setup.shape.hidden for item in server.media]
    read = [requests * item.limit * item.patches * item.values * HALF for item in server.media]
    run = [requests * item.limit * item.patches * _patch(setup, server, item) for item in server.media]
    kept = sum(made) + sum(read)
    return TriedMedia(encoder=round(kept + max(run)), kept=kept, requests=requests)


def _patch(setup: Setup, server: Server, item: MediaItem) -> float:
    """Return the bytes per patch at the peak of a layer of the encoder: in its attention, or in its MLP."""
    return HALF * max(_layer(setup, server, item), default=0.0)


def _layer(setup: Setup, server: Server, item: MediaItem) -> Iterator[float]:
    vision = setup.shape.vision
    if vision is None:
        return
    cards = setup.layout.tensor if vision.heads and vision.heads % setup.layout.tensor == 0 else 1
    states = server.profile.encoder_states if item.rotary else _PLAIN
    for divided in (states * vision.hidden, (3 if vision.gated else 2) * vision.intermediate):
        yield _WHOLE * vision.hidden + divided / cards
