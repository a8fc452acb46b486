"""The examples of docs/pytest.md do what stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pytest_plugin.sessions import Run, outcomes, text_of

pytest_plugins = ["pytester"]
DOCUMENT = (Path(__file__).parents[2] / "docs/pytest.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
CODE = [text for language, text in BLOCKS if language == "python"]
PRINTED = [line for language, text in BLOCKS if not language for line in text.splitlines()]
NAMES = """
KEPT = []
def train_step(batch): mib(2304 * batch)
def generate(prompt): KEPT.append(mib(2))
def load(name): pass
"""


@pytest.fixture
def examples() -> str:
    return "torch.cuda.allocator.capacity = 16 << 30\n" + NAMES + "".join(CODE)


def test_the_examples_run(run: Run, examples: str) -> None:
    result = run(examples)
    assert outcomes(result) == {"passed": 2, "failed": 2}
    assert [line for line in PRINTED[:2] if line not in text_of(result)] == []


def test_the_examples_are_skipped_on_a_small_card(run: Run, examples: str) -> None:
    result = run(examples, "--max-vram", "24GiB", "-rs")
    assert outcomes(result) == {"skipped": 2, "failed": 2} and "(as marked)" in text_of(result) and "(estimated)" in text_of(result)


def test_what_a_traceback_held_is_said_as_in_the_document(run: Run) -> None:
    code = "#\n" * 9 + "def test_a():\n    x = mib(3000)\n    ys = [mib(2000), mib(100)]\n    assert 0\n"
    text = " ".join(text_of(run(code)).split()).replace("test_memory.py", "test_train.py")
    assert PRINTED[2] in text


@pytest.mark.parametrize("option", sorted(set(re.findall(r"--(?:gpu-memory|max-vram)[\w-]*", DOCUMENT))))
def test_an_option_of_the_document_is_one(run: Run, option: str) -> None:
    assert option in text_of(run("", "--help"))
