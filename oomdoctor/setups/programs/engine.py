"""Which of vLLM's two engines a server starts, and so the release whose defaults it has (`first_engine` of rules/servers/vllm.yaml)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from msgspec import Struct

from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.records.server import FirstEngineReason, ServerRecord
from oomdoctor.knowledge.tables.cards import commonest_card
from oomdoctor.versions import at_least, in_span

_HOPPER = ("9.0", "10.0")
_FIRST_OPTIONS = frozenset({"num_scheduler_steps", "preemption_mode", "disable_async_output_proc", "scheduler_delay_factor"})
"""Options that the second engine never had."""
_FIRST_WITH_FLASH_ATTENTION = "8.0"


class _Start(Struct, frozen=True):
    settings: RunSettings
    shape: Shape
    capability: str
    """The compute capability of the GPU; empty if unknown."""

    @property
    def packs_cache(self) -> bool:
        return (self.settings.kv_cache_dtype or "auto").lower() != "auto"

    @property
    def drafts(self) -> bool:
        return bool(self.settings.draft_model or self.settings.draft_method)


_CONDITIONS: Mapping[FirstEngineReason, Callable[[_Start], bool | None]] = MappingProxyType(
    {
        "told": lambda start: start.settings.first_engine,
        "old_card": lambda start: at_least(start.capability, _FIRST_WITH_FLASH_ATTENTION) is False,
        "packed_cache": lambda start: start.packs_cache,
        "packed_cache_elsewhere": lambda start: start.packs_cache and bool(start.capability) and not in_span(start.capability, *_HOPPER),
        "first_options": lambda start: (start.settings.removed_option or "").lstrip("-").replace("-", "_") in _FIRST_OPTIONS,
        "offload": lambda start: bool(start.settings.cpu_offload_gb),
        "adapters": lambda start: start.settings.served_adapters,
        "pipeline": lambda start: (positive(start.settings.pipeline_parallel) or 1) > 1,
        "bitsandbytes": lambda start: start.settings.quantization == "bitsandbytes",
        "gguf": lambda start: start.settings.quantization == "gguf",
        "drafts": lambda start: start.drafts,
        "draft_model": lambda start: bool(start.settings.draft_model) and not start.settings.draft_method,
        "states": lambda start: any(layer.state for layer in start.shape.each),
        "pictures_beside": lambda start: start.shape.vision is not None and start.shape.vision.family == "mllama",
    }
)
"""Whether a startup has each reason; None is unknown."""


def release_of_engine(version: str | None, record: ServerRecord, settings: RunSettings, shape: Shape, card: str) -> str | None:
    """Return the release whose defaults count: the running one, or the last that had its engine alone.

    The newest release does not let users choose an engine, so a startup of unknown version that is set to use the first one has it.
    """
    if version is None:
        return record.first_engine_as if settings.first_engine else None
    known = commonest_card(card) if card else None
    start = _Start(settings, shape, known.capability if known else "")
    reasons = (row.reason for row in record.first_engine if in_span(version, row.since, row.until))
    if settings.first_engine is False:
        return version
    return record.first_engine_as if any(_CONDITIONS[reason](start) for reason in reasons) else version
