"""Every command line of ours that a document shows is one that the program takes: its words and options are there, whatever the files are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import click
import pytest

from oomdoctor.cli.main import cli

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "bench/README.md",
    *sorted(path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "catalogue"),
    *sorted((ROOT / "skills").rglob("*.md")),
    *sorted((ROOT / "integrations").rglob("*.md")),
]
_BLOCK = re.compile(r"^```(?:sh|console|bash)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`(oomdoctor [a-z]+ [^`\n]+)`")
"""A command with what it is given; its name alone is a mention."""
_HERE_DOCUMENT = re.compile(r"<<-?\s*'?(\w+)'?.*?^\s*\1$", re.MULTILINE | re.DOTALL)
_PLACEHOLDERS = re.compile(r"[A-Z]{2,}|\.\.\.|…|[<\[]")
"""What stands for something else: such a line is a form, not a command."""


def commands(text: str) -> Iterator[list[str]]:
    """Yield the arguments of each call of oomdoctor in a document's blocks, and between its backquotes."""
    blocks = [_HERE_DOCUMENT.sub("", block).replace("\\\n", " ") for block in _BLOCK.findall(text)]
    lines = [line for block in blocks for line in block.splitlines()]
    for line in (*lines, *_INLINE.findall(re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))):
        for words in calls(line):
            if "--" in words and words[0] == "run":
                words = [*words[: words.index("--")], "--", "true"]
            if words and not any(_PLACEHOLDERS.search(word) for word in words):
                yield words


def calls(line: str) -> Iterator[list[str]]:
    """Yield the arguments of oomdoctor wherever it is called in a line of a shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # an open quote: no line of a shell
        return
    parts: list[list[str]] = [[]]
    for word in words:
        if set(word) <= set("|&;()"):
            parts.append([])
        else:
            parts[-1].append(word)
    for part in parts:
        names = [at for at, word in enumerate(part) if word == "oomdoctor" or word.endswith("/oomdoctor")]
        if names and (names[0] == 0 or "=" in part[0] or part[:3][1:2] == ["-m"] or part[0] in ("exec", "sudo", "time")):
            rest = part[names[0] + 1 :]
            cut = next((at for at, word in enumerate(rest) if set(word) <= set("<>") and word), len(rest))
            yield rest[:cut]


SHOWN = [(path, words) for path in DOCUMENTS for words in commands(path.read_text(encoding="utf-8"))]


@pytest.fixture
def only_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands do nothing, and files need not be there."""
    invoke = click.Command.invoke

    def parsed(self: click.Command, ctx: click.Context) -> object:
        return invoke(self, ctx) if isinstance(self, click.Group) else None

    monkeypatch.setattr(click.Command, "invoke", parsed)
    monkeypatch.setattr(click.Path, "convert", lambda *given: given[1])


@pytest.mark.usefixtures("only_parsed")
@pytest.mark.parametrize("words", [pytest.param(words, id=f"{path.relative_to(ROOT)}: {shlex.join(words)}") for path, words in SHOWN])
def test_a_command_that_is_shown_is_taken(words: list[str]) -> None:
    with suppress(click.exceptions.Exit):
        cli.main(words, prog_name="oomdoctor", standalone_mode=False)


def test_the_documents_show_many() -> None:
    assert len(SHOWN) > 100
    assert {words[0] for _, words in SHOWN} >= {"diagnose", "run", "triage", "fix", "snapshot", "mcp", "completion"}
