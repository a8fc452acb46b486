"""A simulated card in place of torch."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from pytest_plugin.sessions import Run, runner
from simulated_torch import simulated_torch


@pytest.fixture(scope="session", autouse=True)
def without_options_of_this_session() -> Iterator[None]:
    """Sessions inside a test know nothing of the options that the outer one was given, as the plugins that know them are off."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTEST_ADDOPTS", raising=False)
        yield


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setitem(sys.modules, "torch", simulated_torch())
    return runner(pytester)
