"""oomdoctor: from what is left of a run that died to what ran out, where first, why, and what to change.

The functions of this module are the library; each is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oomdoctor.api.check import check
    from oomdoctor.api.compare import compare
    from oomdoctor.api.diagnose import diagnose
    from oomdoctor.api.environment import environment
    from oomdoctor.api.estimate import estimate
    from oomdoctor.api.fix import apply_fix, fix
    from oomdoctor.api.plan import plan
    from oomdoctor.api.sizing.sweep import sweep

__all__ = ["apply_fix", "check", "compare", "diagnose", "environment", "estimate", "fix", "plan", "sweep"]
_MODULES = {"apply_fix": "fix", "sweep": "sizing.sweep"}
"""The modules of those that are not called like them."""
__version__ = "0.1.0"

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load a function of the library."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = getattr(import_module(f"oomdoctor.api.{_MODULES.get(name, name)}"), name)
        return globals()[name]
