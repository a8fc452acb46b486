"""Planted regressions and leaks fail, steady tests do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from memory_tests import PLANTED, STEADY, Planted, name_of, run_tests


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("planted")
    run_tests(folder, PLANTED + STEADY, now=False)
    return dict(run_tests(folder, PLANTED + STEADY, now=True))


@pytest.mark.parametrize("test", PLANTED, ids=[test.name for test in PLANTED])
def test_a_planted_one_fails(test: Planted, outcomes: dict[str, str]) -> None:
    assert outcomes[name_of(test)] == "FAILED"


@pytest.mark.parametrize("test", STEADY, ids=[test.name for test in STEADY])
def test_a_steady_one_passes(test: Planted, outcomes: dict[str, str]) -> None:
    assert outcomes[name_of(test)] == "PASSED"
