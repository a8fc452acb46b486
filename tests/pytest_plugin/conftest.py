"""A simulated card in place of torch."""

from __future__ import annotations

import sys

import pytest
from pytest_plugin.sessions import Run, runner
from simulated_torch import simulated_torch


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.setitem(sys.modules, "torch", simulated_torch())
    return runner(pytester)
