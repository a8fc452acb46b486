"""Patterns from the cache are those that `re` compiles, whatever lies in the cache."""

from __future__ import annotations

import marshal
import os
import re
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from oomdoctor import kept_patterns
from oomdoctor.kept_patterns import KeptPatterns
from oomdoctor.knowledge.pack import load_pack

FORMS: tuple[tuple[Any, int], ...] = (
    (r"(?P<size>\d{1,9})\s?(?:MiB|(GiB))", 0),
    (r"^(?i:cuda)[^\n]{0,200}?(?<=\bout) of memory$", re.MULTILINE),
    (rb"File \"(?P<file>[^\"\n]{1,300})\", line (?P<line>\d{1,7})", 0),
    (r"[^\W\d_]{2,}(?:张|块)(?!x)(a)?(?(1)b|c)", re.IGNORECASE | re.DOTALL),
    ("", 0),
    (b"", 0),
)


def with_sum(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(4, "big") + body


DAMAGED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "of another kind": lambda _: bytes(range(256)),
    "cut": lambda data: data[:-9],
    "nothing but its sum": lambda data: data[:4],
    "one bit is another": lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:],
    "cut, with the sum of what is left": lambda data: with_sum(data[4:-9]),
    "more groups than signs": lambda data: with_sum(
        marshal.dumps({key: (*kept[:2], 1 << 40, kept[3]) for key, kept in marshal.loads(data[4:]).items()})
    ),
    "no code": lambda data: with_sum(marshal.dumps({key: (kept[0], b"", *kept[2:]) for key, kept in marshal.loads(data[4:]).items()})),
    "no patterns": lambda _: with_sum(marshal.dumps([1])),
}


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "oomdoctor"


def test_a_kept_pattern_is_what_re_compiles() -> None:
    rules = [(branch.pattern, int(re.MULTILINE)) for core in load_pack().signatures for branch in core.alternatives]
    first = KeptPatterns()
    for pattern, flags in (*FORMS, *rules[::8]):
        assert first.compile(pattern, flags) == re.compile(pattern, flags)
    first.keep()
    second = KeptPatterns()
    for pattern, flags in FORMS:
        kept, compiled = second.compile(pattern, flags), re.compile(pattern, flags)
        assert kept == compiled
        assert (kept.groups, kept.groupindex, kept.flags) == (compiled.groups, compiled.groupindex, compiled.flags)


def test_what_is_kept_finds_the_groups_by_their_names() -> None:
    KeptPatterns().compile(*FORMS[0])
    match = KeptPatterns().compile(*FORMS[0]).search("of 80 GiB")
    assert (match["size"], match.lastindex, match.groupdict()) == ("80", 2, {"size": "80"})


def test_a_pattern_that_is_wrong_is_refused_as_by_re() -> None:
    with pytest.raises(re.error, match="missing"):
        KeptPatterns().compile("(")


@pytest.mark.parametrize("damaged", [pytest.param(damage, id=what) for what, damage in DAMAGED.items()])
def test_a_damaged_cache_is_made_anew(damaged: Callable[[bytes], bytes], cache: Path) -> None:
    patterns = KeptPatterns()
    patterns.compile(*FORMS[0])
    patterns.keep()
    (file,) = cache.iterdir()
    good = file.read_bytes()
    file.write_bytes(damaged(good))
    again = KeptPatterns()
    assert again.compile(*FORMS[0]) == re.compile(*FORMS[0])
    again.keep()
    assert file.read_bytes() == good


def test_of_very_many_patterns_those_are_kept_that_the_last_run_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_patterns, "_MOST", 2)
    for words in (("one", "two"), ("one", "three"), ("four",)):
        patterns = KeptPatterns()
        for word in words:
            patterns.compile(word)
        patterns.keep()
    assert sorted(key[1] for key in kept_patterns._read()) == ["four"]


def test_the_next_start_compiles_nothing(cache: Path) -> None:
    told = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "oomdoctor", "diagnose", "-"], input="CUDA error: out of memory", env=os.environ,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        (file,) = [path for path in cache.iterdir() if path.name.startswith("patterns-")]
        told.append((done.stdout, done.returncode, file.stat().st_ino))
    assert told[0] == told[1]


@pytest.mark.parametrize("version", [pytest.param((3, 15, 0), id="a later CPython"), pytest.param((4, 0, 0), id="one of the future")])
def test_a_python_that_compiles_otherwise_is_left_alone(version: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    before = kept_patterns._compiler.compile
    monkeypatch.setattr(sys, "version_info", version)
    assert kept_patterns.keep_compiled() is None
    assert kept_patterns._compiler.compile is before
