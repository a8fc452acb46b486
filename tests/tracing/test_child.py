"""A trace runs in a process of its own, whose death is an answer (skipped where torch is missing)."""

from __future__ import annotations

import pytest
from memory.runs import run

from oomdoctor.errors import Untraceable
from oomdoctor.tracing import child

pytest.importorskip("torch")
pytest.importorskip("transformers")


def test_what_it_refuses_is_refused_here() -> None:
    with pytest.raises(Untraceable, match="no model class for model_type unheard-of"):
        child.trace({"model_type": "unheard-of"}, run(length=16))


@pytest.mark.parametrize(("code", "said", "says"), [
    pytest.param(-11, "", "killed the process that traced it (SIGSEGV)", id="a kernel that crashes"),
    pytest.param(-6, "terminate called\n\n", "(SIGABRT): terminate called", id="a library that aborts"),
    pytest.param(1, "Traceback\nMemoryError\n", "more than 8 GiB of host memory", id="a loop that takes memory"),
    pytest.param(1, "Traceback\nImportError: no kernels\n", "(exit status 1): ImportError: no kernels", id="a library that is broken"),
])  # fmt: skip
def test_a_death_is_told(code: int, said: str, says: str) -> None:
    assert says in child._death(code, said)
