"""How a server divides its cache among pools, according to its command."""

from __future__ import annotations

from oomdoctor.case.serving import CachePools
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.server_defaults import window_tokens


def cache_pools(settings: RunSettings, shape: Shape, version: str | None, slots: int | None) -> CachePools:
    """Return the pools; `slots` are the states that a release makes room for by default."""
    running = positive(settings.max_num_seqs)
    told, own = settings.window_tokens, window_tokens(version, settings.model, shape.name)
    ratio = told if own is not None and told is not None and 0 < told <= 1 else own
    share = settings.state_bytes
    return CachePools(
        window_tokens=ratio,
        state_bytes=share if share is not None and share > 0 else CachePools().state_bytes,
        state_slots=positive(settings.state_slots) or (None if slots is None else min(slots, running or slots)),
        tokens=positive(settings.cache_tokens),
        running=running,
    )


def attention_copies(settings: RunSettings, tensor: int) -> int:
    """Return the number of attention copies that the tensor parallel GPUs are divided among; 1 if it does not divide evenly."""
    copies = positive(settings.attention_copies) or 1
    return copies if settings.splits_attention is True and tensor % copies == 0 else 1
