"""Packages that do not go together, by the table of what they ask for."""

from __future__ import annotations

import pytest

from oomdoctor.case.environment import Package
from oomdoctor.machine.conflicts import find_conflicts
from oomdoctor.versions import satisfies


def conflicts(packages: dict[str, str], cuda: str | None = None) -> list[tuple[str, bool]]:
    installed = {name: Package(version=version) for name, version in packages.items()}
    return [(str(conflict), conflict.binds) for conflict in find_conflicts(installed, cuda)]


@pytest.mark.parametrize(("packages", "cuda", "expected"), [
    pytest.param({"torch": "2.5.1+cu121", "torchvision": "0.20.1+cu121", "torchaudio": "2.5.1+cu121"}, "12.1", [], id="one release"),
    pytest.param({"torch": "2.7.0", "torchvision": "0.19.0"}, None, [("torchvision 0.19.0: torch==2.4.0 ≠ 2.7.0", True)], id="torchvision of another torch"),
    pytest.param({"torch": "2.4.1", "torchvision": "0.19.0"}, None, [("torchvision 0.19.0: torch==2.4.0 ≠ 2.4.1", False)], id="another patch is a mismatch only"),
    pytest.param({"torch": "2.14.1", "torchvision": "0.15.0"}, None, [("torchvision 0.15.0: torch==2.0.* ≠ 2.14.1", True)], id="a patch that nobody looked at, and another torch"),
    pytest.param({"torch": "2.0.1", "torchvision": "0.15.0"}, None, [], id="a patch that nobody looked at, and its torch"),
    pytest.param({"torch": "2.5.0a0+e000cf0ad9.nv24.10", "torchvision": "0.19.0"}, "12.6", [], id="a build of one's own"),
    pytest.param({"torch": "99.1", "torchvision": "77.0.0"}, None, [], id="versions that are not in the table"),
    pytest.param({"torchvision": "0.19.0"}, None, [], id="no torch beside it"),
    pytest.param({"peft": "0.17.0", "transformers": "4.30.0"}, None, [("peft 0.17.0: transformers>=4.44,<5 ≠ 4.30.0", True)], id="one line for a pair, the narrower"),
    pytest.param({"peft": "0.17.1", "transformers": "5.2.0"}, None, [("peft 0.17.1: transformers>=4.44,<5 ≠ 5.2.0", True)], id="what a newer library dropped"),
    pytest.param({"peft": "0.18.1", "transformers": "5.2.0"}, None, [], id="the release that no longer needs it"),
    pytest.param({"transformers": "4.44.2", "tokenizers": "0.20.3"}, None, [("transformers 4.44.2: tokenizers<0.20,>=0.19 ≠ 0.20.3", True)], id="tokenizers that transformers refuses"),
    pytest.param({"bitsandbytes": "0.41.1", "torch": "2.9.1+cu128"}, "12.8", [("bitsandbytes 0.41.1: CUDA<=12.2 ≠ 12.8", True)], id="a library for an older CUDA"),
    pytest.param({"bitsandbytes": "0.49.0", "torch": "2.9.1+cu128"}, "12.8", [], id="and one that has it"),
    pytest.param({"bitsandbytes": "0.41.1"}, None, [], id="an unknown CUDA"),
])  # fmt: skip
def test_what_does_not_go_together(packages: dict[str, str], cuda: str | None, expected: list[tuple[str, bool]]) -> None:
    assert conflicts(packages, cuda) == expected


def test_what_stops_a_run_comes_first() -> None:
    found = conflicts({"trl": "0.24.0", "transformers": "4.40.0", "torch": "2.14.1", "torchvision": "0.19.0"})
    assert [binds for _, binds in found] == sorted((binds for _, binds in found), reverse=True)
    assert len(found) == 2


@pytest.mark.parametrize(("version", "specifier", "met"), [
    pytest.param("2.5.1+cu121", "==2.5.1", True, id="the build does not count"),
    pytest.param("2.5.1", "==2.5.0", False, id="another patch"),
    pytest.param("2.5.1", "==2.5.*", True, id="a series"),
    pytest.param("0.19.1", "!=0.19.0,<0.20,>=0.19", True, id="several clauses"),
    pytest.param("0.20.0", "<0.20,>=0.19", False, id="an end that does not belong to it"),
    pytest.param("12.2", "<=12.2", True, id="an end that does"),
    pytest.param("1.4.9", "~=1.4.2", True, id="compatible"),
    pytest.param("1.5.0", "~=1.4.2", False, id="no longer compatible"),
    pytest.param("0.21.0rc1", ">=0.21", False, id="a candidate is older than its release"),
    pytest.param(None, ">=1", None, id="unknown"),
])  # fmt: skip
def test_versions_that_a_requirement_takes(version: str | None, specifier: str, met: bool | None) -> None:
    assert satisfies(version, specifier) is met
