"""A plugin of pytest: limits, kept peaks and leaks of device memory as tests, and the diagnosis of those that fail of memory.

pytest loads this module in every session in which the package is installed, so it imports nothing of the rest before it is needed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

_MARKERS = (
    "gpu_memory(limit=None, *, needs=None, estimate=None, of='test', tolerance=None): the maximum device memory the test "
    "may use (limit='8 GiB'; of='process' also counts memory in use before it), and how much it needs, which is compared "
    "with --max-vram",
    (
        "gpu_memory_leak(repeats=5, allowed=0): repeats the test this many times; each run may leave at most this many more "
        "bytes on the device"
    ),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the plugin."""
    group = parser.getgroup("gpu memory", "device memory (oomdoctor)")
    group.addoption("--gpu-memory-baseline", metavar="FILE", help="Compare each test's peak with the one recorded in FILE.")
    group.addoption("--gpu-memory-write", action="store_true", help="Write the peaks of passing tests to the baseline file.")
    group.addoption(
        "--gpu-memory-tolerance",
        metavar="SHARE|SIZE",
        help="How far a peak may exceed the recorded one: 10%% or 64MiB (default: 5%%, and at least 32 MiB).",
    )
    group.addoption("--max-vram", metavar="SIZE", help="Skip tests that need more device memory than this.")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and what measures the tests; an older pytest goes on without."""
    if _is_old():
        return
    for line in _MARKERS:
        config.addinivalue_line("markers", line)
    session = import_module("oomdoctor.pytest_plugin.session")
    config.pluginmanager.register(session.MemoryOfTests(config), "oomdoctor-memory-of-tests")


def _is_old() -> bool:
    """Return whether this pytest is older than 8, whose hooks have another form: it must work wherever the package is installed."""
    return int(getattr(sys.modules.get("pytest"), "__version__", "8").partition(".")[0]) < 8
