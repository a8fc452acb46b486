"""Every example of the library is true: those of the functions, and those of the page about it."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import oomdoctor

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "library.md"


@pytest.fixture(autouse=True)
def in_the_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("name", oomdoctor.__all__)
def test_a_function_of_the_library_has_an_example_that_is_true(name: str) -> None:
    function = getattr(oomdoctor, name)
    module = import_module(function.__module__)
    examples = doctest.DocTestFinder(recurse=False).find(function, name, module)
    assert examples[0].examples
    assert doctest.DocTestRunner().run(examples[0]).failed == 0


def test_the_page_about_the_library_is_true() -> None:
    done = doctest.testfile(str(PAGE), module_relative=False)
    assert (done.failed, done.attempted > 20) == (0, True)


def test_the_page_shows_every_function() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert [name for name in oomdoctor.__all__ if f"oomdoctor.{name}(" not in page] == []
