"""`--bless` writes the goldens anew; a person reads the difference."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A busy machine is no failure: nothing here is judged by how long it took.
settings.register_profile("oomdoctor", deadline=None)
settings.load_profile("oomdoctor")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write golden files instead of comparing them")


@pytest.fixture
def bless(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--bless"))
