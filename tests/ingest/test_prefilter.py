"""Both engines find every occurrence of every literal, and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor.ingest.prefilter import SMALL, FindPrefilter, Hit, HyperscanPrefilter, Prefilter, make_prefilter, use

pytest.importorskip("hyperscan", reason="the engine for large inputs has no wheel here")
ENGINES = [FindPrefilter, HyperscanPrefilter]
ENGINE = pytest.mark.parametrize("engine", ENGINES, ids=["one search per literal", "hyperscan"])


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


def naive(literals: list[bytes], data: bytes, start: int, end: int) -> list[Hit]:
    hits = []
    for last in range(start, end + 1):
        for number, literal in enumerate(literals):
            if last - len(literal) >= start and data[last - len(literal) : last] == literal:
                hits.append((number, last))
    return hits


@ENGINE
@pytest.mark.parametrize(("literals", "data"), [
    pytest.param([b"out of memory"], b"CUDA out of memory", id="a literal at the end"),
    pytest.param([b"Killed"], b"Killed", id="a literal that is all there is"),
    pytest.param([b"out of memory"], b"out of memor", id="a literal without its last byte"),
    pytest.param([b"out of memory"], b"OUT OF MEMORY", id="another case is another literal"),
    pytest.param([b"aa"], b"aaaa", id="occurrences that overlap"),
    pytest.param([b"memory", b"out of memory", b"of mem"], b"out of memory", id="literals inside each other"),
    pytest.param([b"abc", b"c"], b"abcabc", id="literals with the same end"),
    pytest.param([b"CUDA error (2): [out] of {memory}?", b"^a.b*c+$|\\d"], b"x CUDA error (2): [out] of {memory}? ^a.b*c+$|\\d", id="characters with a meaning in patterns"),
    pytest.param([b"a.c"], b"abc", id="a dot is a dot"),
    pytest.param([b"two\nlines", b"tab\there"], b"two\nlines\r\ntab\there", id="line ends and tabs"),
    pytest.param(["显存不足".encode(), "é".encode()[1:]], "é 显存不足".encode(), id="characters of several bytes, and half of one"),
    pytest.param([b"\xff\xfe\xfd"], b"\x00\xff\xfe\xfd\x00", id="bytes that are no UTF-8"),
    pytest.param([b"literal"], b"\x00literal\x00literal", id="NUL bytes in the data"),
    pytest.param([b"a\x00b"], b"aXb a\x00b a", id="a NUL byte in a literal"),
])  # fmt: skip
def test_finds_what_a_naive_search_finds(engine: type[FindPrefilter | HyperscanPrefilter], literals: list[bytes], data: bytes) -> None:
    found = engine(literals).find(bytearray(data), 0, len(data))
    assert sorted(found) == sorted(naive(literals, data, 0, len(data)))
    assert [end for _, end in found] == sorted(end for _, end in found)


SOME_BYTES = st.one_of(st.binary(min_size=1, max_size=6), st.text("ab .(", min_size=1, max_size=5).map(str.encode))


@settings(max_examples=40, deadline=None)
@given(
    literals=st.lists(SOME_BYTES.filter(lambda one: b"\0" not in one), min_size=1, max_size=12, unique=True),
    noise=st.lists(st.one_of(SOME_BYTES, st.integers(0, 11)), max_size=40),
    start=st.integers(0, 30),
    missing=st.integers(0, 30),
)
def test_engines_agree_with_a_naive_search(literals: list[bytes], noise: list[bytes | int], start: int, missing: int) -> None:
    data = b"".join(literals[one % len(literals)] if isinstance(one, int) else one for one in noise) + b"."
    start = min(start, len(data) - 1)
    end = max(start + 1, len(data) - missing)
    wanted = sorted(naive(literals, data, start, end))
    assert sorted(FindPrefilter(literals).find(data, start, end)) == wanted
    assert sorted(HyperscanPrefilter(literals).find(bytearray(data), start, end)) == wanted


@ENGINE
def test_hits_carry_the_numbers_of_a_longer_list(engine: type[FindPrefilter | HyperscanPrefilter]) -> None:
    assert engine([b"first", b"second"], [7, 3]).find(b"second first", 0, 12) == [(3, 6), (7, 12)]


@ENGINE
def test_a_twin_finds_the_same(engine: type[FindPrefilter | HyperscanPrefilter]) -> None:
    one: Prefilter = engine([b"first", b"second"], [7, 3])
    assert one.twin().find(b"second first", 0, 12) == one.find(b"second first", 0, 12) == [(3, 6), (7, 12)]


@pytest.mark.parametrize(("size", "engine"), [
    pytest.param(SMALL, FindPrefilter, id="a small input is not worth loading hyperscan"),
    pytest.param(SMALL + 1, HyperscanPrefilter, id="a larger one is"),
    pytest.param(None, HyperscanPrefilter, id="an unknown size may be large"),
])  # fmt: skip
def test_the_size_chooses_the_engine(size: int | None, engine: type[object]) -> None:
    assert type(make_prefilter([b"literal"], [0], size)) is engine


class _BroughtPrefilter(FindPrefilter):
    """An engine of the program around."""


def test_an_engine_that_the_program_brings_is_used_for_larger_inputs() -> None:
    use(_BroughtPrefilter)
    try:
        assert type(make_prefilter([b"literal"], [0], SMALL + 1)) is _BroughtPrefilter
        assert type(make_prefilter([b"literal"], [0], SMALL)) is FindPrefilter
    finally:
        use(None)
    assert type(make_prefilter([b"literal"], [0], SMALL + 1)) is HyperscanPrefilter


def test_without_hyperscan_the_plain_search_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    assert type(make_prefilter([b"literal"], [0], None)) is FindPrefilter


@pytest.mark.parametrize("damage", [
    pytest.param(lambda _data: b"", id="empty"),
    pytest.param(lambda _data: b"not a database at all", id="something else"),
    pytest.param(lambda data: data[: len(data) // 2], id="cut off"),
    pytest.param(lambda data: data[:100] + bytes([data[100] ^ 255]) + data[101:], id="one byte near the start is wrong"),
    pytest.param(lambda data: data[:-50] + bytes([data[-50] ^ 255]) + data[-49:], id="one byte near the end is wrong"),
])  # fmt: skip
def test_a_damaged_kept_database_is_compiled_again(
    damage: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    literals = [b"kept literal", b"another one"]
    HyperscanPrefilter(literals)
    (kept,) = tmp_path.rglob("*.db")
    whole = kept.read_bytes()
    kept.write_bytes(damage(whole))
    assert kept.read_bytes() != whole
    assert HyperscanPrefilter(literals).find(b"a kept literal", 0, 14) == [(0, 14)]
