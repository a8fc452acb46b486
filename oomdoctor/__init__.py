"""oomdoctor: from what is left of a run that died to what ran out, where first, why, and what to change.

The functions of this module are the library; each is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomdoctor.api.bugs import bugs
    from oomdoctor.api.check import check
    from oomdoctor.api.compare import compare
    from oomdoctor.api.diagnose import diagnose
    from oomdoctor.api.environment import environment
    from oomdoctor.api.estimate import estimate
    from oomdoctor.api.fix import apply_fix, fix
    from oomdoctor.api.plan import plan
    from oomdoctor.api.runs.callbacks import memory_callback, watch_accelerator
    from oomdoctor.api.runs.watch import watch
    from oomdoctor.api.sizing.alternatives import compare_cards, compare_formats
    from oomdoctor.api.sizing.sweep import sweep

__all__ = [
    "apply_fix",
    "bugs",
    "check",
    "compare",
    "compare_cards",
    "compare_formats",
    "diagnose",
    "environment",
    "estimate",
    "fix",
    "memory_callback",
    "plan",
    "sweep",
    "watch",
    "watch_accelerator",
]
_MODULES = {
    "apply_fix": "fix",
    "compare_cards": "sizing.alternatives",
    "compare_formats": "sizing.alternatives",
    "load_ipython_extension": "runs.watch",
    "memory_callback": "runs.callbacks",
    "sweep": "sizing.sweep",
    "watch": "runs.watch",
    "watch_accelerator": "runs.callbacks",
}
"""The modules of those that are not called like them."""
__version__ = "0.2.0"

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load a function of the library."""
        if name not in __all__ and name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(f"oomdoctor.api.{_MODULES.get(name, name)}"), name)
        return globals()[name]
