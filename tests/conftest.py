"""`--bless` writes the goldens anew; a person reads the difference."""

from __future__ import annotations

import gc
import inspect
import re
import signal

import pytest
from hypothesis import settings

# A busy machine is no failure: nothing here is judged by how long it took.
settings.register_profile("oomdoctor", deadline=None)
settings.load_profile("oomdoctor")


_TORCH = re.compile(r"^(?P<inside>[ ]*)[^\n]*importorskip\(\"(?:torch|transformers|accelerate|peft|deepspeed)\b", re.MULTILINE)
"""What a test asks for that only a separate step of CI has; at the beginning of a file all its tests do."""


def pytest_configure(config: pytest.Config) -> None:
    # As the program itself does: the suite makes millions of objects, of which hardly any is circular garbage.
    gc.set_threshold(200_000)
    # A shell without job control lets what it starts in the background ignore these: what the tests start would inherit it.
    # `nohup` does the same with SIGHUP.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("SIGQUIT", "SIGHUP"):
        if hasattr(signal, name) and signal.getsignal(getattr(signal, name)) is signal.SIG_IGN:
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    config.addinivalue_line("markers", "torch: asks torch or a library on top of it, as its `importorskip` says")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config) -> None:
    """Give each worker a part of the suite as it stands, and one that is done tests of another: what a file makes is made once."""
    if config.option.dist == "load":
        config.option.dist = "worksteal"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what asks torch, where somebody selects by marks."""
    for item in items if config.option.markexpr else ():
        if isinstance(item, pytest.Function):
            asked = any(not match["inside"] for match in _TORCH.finditer(inspect.getsource(item.module)))
            if asked or _TORCH.search(inspect.getsource(item.function)):
                item.add_marker(pytest.mark.torch)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--bless", action="store_true", help="write golden files instead of comparing them")


@pytest.fixture
def bless(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--bless"))
