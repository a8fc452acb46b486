"""Sessions of pytest inside a test, with the plugin and a simulated card."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

# Loaded once: a session inside a test forgets what it imported, and yaml does not bear being imported twice.
from oomdoctor.pytest_plugin import baseline, diagnosis, messages, needs, peaks, tracebacks  # noqa: F401

PLUGIN = ("-p", "oomdoctor.pytest_plugin", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
HEAD = "import pytest, torch\nmib = torch.mib\n"
Run = Callable[..., pytest.RunResult]


def runner(pytester: pytest.Pytester) -> Run:
    """Return what runs code as a file of tests."""

    def run(code: str, *options: str) -> pytest.RunResult:
        pytester.makepyfile(test_memory=HEAD + code)
        return pytester.runpytest_inprocess(*PLUGIN, *options)

    return run


def text_of(result: pytest.RunResult) -> str:
    """Return what a session printed on standard output and, where it could not start, on standard error."""
    return f"{result.stdout}\n{result.stderr}"


def outcomes(result: pytest.RunResult) -> dict[str, Any]:
    """Return how many tests came to what."""
    return dict(result.parseoutcomes())
