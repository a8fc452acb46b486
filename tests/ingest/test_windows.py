"""Windows hold what stands around a hit, however the bytes come and wherever a block ends."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oomdoctor.ingest import windows
from oomdoctor.ingest.prefilter import FindPrefilter
from oomdoctor.ingest.windows import CONTEXT, COURSE, FAILURES, Engines, KeptText, LiteralCount, Window, last_mib_start, walk_windows

HIT, NOTE = b"FAILURE-WORD", b"CONTEXT-WORD"
LITERALS = [HIT, NOTE]
QUOTAS = [FAILURES, CONTEXT]
MIB = 1 << 20


class Pieces:
    """A reader that gives the data in pieces of its own choice, as a pipe does."""

    def __init__(self, data: bytes, most: list[int]) -> None:
        self._data, self._at, self._most, self._turn = data, 0, most, 0

    def readinto(self, buffer: memoryview, /) -> int:
        self._turn += 1
        count = min(len(buffer), self._most[self._turn % len(self._most)], len(self._data) - self._at)
        buffer[:count] = self._data[self._at : self._at + count]
        self._at += count
        return count


def found(data: bytes, *, pieces: list[int] | None = None, closely_from: int | None = 0, start: int = 0) -> tuple[list[Window], list[int]]:
    every = FindPrefilter(LITERALS)
    engines = Engines(every, FindPrefilter([HIT], [0]), max(map(len, LITERALS)))
    out: list[Window] = []
    done = walk_windows(Pieces(data, pieces or [1 << 30]), engines, LiteralCount(QUOTAS, closely_from), out.append, line=1, start=start)
    return out, done.counts


def lines(count: int, mark: str = "line") -> bytes:
    return b"".join(f"{mark} {number}\n".encode() for number in range(count))


def test_a_log_without_a_hit_opens_no_window() -> None:
    assert found(lines(1000)) == ([], [0, 0])


def test_the_empty_input() -> None:
    assert found(b"") == ([], [0, 0])


def test_a_window_has_lines_before_and_after_its_hit() -> None:
    (window,), counts = found(lines(100) + b"here: " + HIT + b"\n" + lines(100, "after"))
    assert counts == [1, 0]
    text = window.raw.decode().splitlines()
    assert text[0].startswith("line 9") and text[-1].startswith("after ")
    assert window.line == 1 + int(text[0].split()[1])
    assert HIT in window.raw and not window.context
    assert (window.before + window.raw).startswith(b"line 0\n")


def test_the_base_of_a_window_is_its_place_in_the_source() -> None:
    data = lines(50_000) + HIT + lines(50_000) + b"\r\n" + HIT
    for window in found(data)[0]:
        assert data[window.base : window.base + len(window.raw)] == window.raw
        assert data[: window.base].endswith(window.before)
        assert window.line == 1 + data[: window.base].count(b"\n")


@pytest.mark.parametrize(("data", "count"), [
    pytest.param(HIT + b"\n" + NOTE, 1, id="hits on neighbouring lines share a window"),
    pytest.param(HIT + b"\n" + lines(400) + HIT, 2, id="hits far from each other have their own"),
    pytest.param((HIT + b"\n") * 500, 1, id="five hundred neighbours share one"),
])  # fmt: skip
def test_hits_near_each_other_share_a_window(data: bytes, count: int) -> None:
    assert len(found(data)[0]) == count


def test_a_window_with_only_context_is_marked_so_and_smaller() -> None:
    ((note,), _), ((hit,), _) = (found(lines(100) + word + lines(100)) for word in (NOTE, HIT))
    assert note.context and not hit.context
    assert len(note.raw) < len(hit.raw)


def test_a_line_without_an_end_gives_a_window_of_bounded_size() -> None:
    data = b"x" * MIB + HIT + b"y" * MIB
    (window,), _ = found(data)
    assert HIT in window.raw and len(window.raw) < 64 << 10


@pytest.mark.parametrize("length", range(1, 80, 7))
def test_what_is_read_of_a_long_line_begins_with_a_whole_word(length: int) -> None:
    """Of a key whose first half is missing nobody sees that it is one."""
    (window,), _ = found(b"ab-/+_=." * length + b" word" * 1000 + HIT)
    assert window.raw.startswith((b"word", b" word"))
    (window,), _ = found(b"word " * 1000 + b"key-" * length + b" word" * 300 + HIT)
    assert window.raw.startswith((b"word", b" word", b"key-" * length + b" "))


def test_a_message_that_is_repeated_opens_few_windows_and_is_counted_whole() -> None:
    count = 12 * MIB // (len(HIT) + 1)
    opened, counts = found((HIT + b"\n") * count, closely_from=None)
    assert counts[0] == count
    assert sum(len(window.raw) for window in opened) < 8 * MIB


def test_context_is_not_looked_for_everywhere() -> None:
    stride = lines(6000)
    data = b"".join(NOTE + b"\n" + stride for _ in range(12 * MIB // len(stride)))
    _, counts = found(data, closely_from=None)
    assert 0 < counts[1] < data.count(NOTE)


def test_a_hit_is_counted_once_where_a_mebibyte_ends() -> None:
    for shift in range(len(HIT) + 2):
        data = b"." * (MIB - shift) + HIT + b"." * 100
        assert found(data)[1] == [1, 0], f"a literal that starts {shift} bytes before the border"


BLOCKS = [48 << 10, 64 << 10, 100_003, 256 << 10, 1 << 20]
GAPS = st.lists(st.one_of(st.integers(0, 3000), st.integers(0, 60_000)), min_size=1, max_size=40)


def scattered(gaps: list[int], filler: bytes) -> bytes:
    """Hits with so many bytes of filler between them."""
    parts = []
    for number, gap in enumerate(gaps):
        parts.append((filler * (gap // len(filler) + 1))[:gap])
        parts.append((HIT, NOTE, HIT + b" " + NOTE)[number % 3])
    return b"".join(parts)


@settings(max_examples=60, deadline=None)
@example(gaps=[700] * 1200, filler=b"a line of a log\n", block=48 << 10)
@example(gaps=[200] * 3000, filler=b"no end of line ", block=100_003)
@example(gaps=[0, 0, 0, 17752, 60000, 8167], filler=b"a line of a log\n", block=64 << 10)  # a hit that waits needs what is before it too
@example(
    gaps=[50_000, *[900] * 30, 20_000], filler=b"a line of a log\n", block=64 << 10
)  # hits that share a window over the end of a block
@given(gaps=GAPS, filler=st.sampled_from([b"a line of a log\n", b"no end of line ", b"\r\x1b[1m|"]), block=st.sampled_from(BLOCKS))
def test_windows_do_not_depend_on_the_block_size(gaps: list[int], filler: bytes, block: int) -> None:
    data = scattered(gaps, filler)
    wanted = found(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "BLOCK", block)
        assert found(data) == wanted


@settings(max_examples=60, deadline=None)
@given(gaps=GAPS, pieces=st.lists(st.integers(1, 70_000), min_size=1, max_size=6))
def test_hits_and_lines_do_not_depend_on_how_the_bytes_come(gaps: list[int], pieces: list[int]) -> None:
    data = scattered(gaps, b"a line of a log\n")
    pieces = [max(one, len(data) // 2000 + 1) for one in pieces]
    whole, counts = found(data)
    parted, parted_counts = found(data, pieces=pieces)
    assert parted_counts == counts
    assert covered(parted) >= covered(whole)


def covered(opened: list[Window]) -> set[int]:
    """The places of all hits that stand in a window."""
    out = set()
    for window in opened:
        at = window.raw.find(b"-WORD")
        while at >= 0:
            out.add(window.base + at)
            at = window.raw.find(b"-WORD", at + 1)
    return out


@settings(max_examples=60, deadline=None)
@given(gaps=GAPS, data=st.data())
def test_each_hit_belongs_to_one_part_of_a_split_walk(gaps: list[int], data: st.DataObject) -> None:
    whole = scattered(gaps, b"a line of a log\n")
    cut = data.draw(st.integers(0, len(whole)))
    engines = Engines(FindPrefilter(LITERALS), FindPrefilter([HIT], [0]), max(map(len, LITERALS)))
    counts = [0, 0]
    for first, until in ((0, cut), (cut, len(whole))):
        start = max(0, first - 20_000)
        done = walk_windows(
            Pieces(whole[start:], [1 << 30]), engines, LiteralCount(QUOTAS, 0), lambda _window: None, start=start, first=first, until=until,
        )  # fmt: skip
        counts = [one + other for one, other in zip(counts, done.counts)]
    assert counts == found(whole)[1]


@pytest.mark.parametrize(("data", "count"), [
    pytest.param(b"ALARM first\n", 1, id="the first bytes of a source begin a line"),
    pytest.param(b"\nALARM second\n", 1, id="a real line end is counted once"),
    pytest.param(b"ALARM\nALARM\n", 2, id="the first line and the second"),
    pytest.param(b" ALARM\n", 0, id="not at the start of a line"),
])  # fmt: skip
@pytest.mark.parametrize("piece", [1, 3, 5, 1 << 20])
def test_a_source_begins_like_a_line(data: bytes, count: int, piece: int) -> None:
    every = FindPrefilter([b"\nALARM"])
    done = walk_windows(Pieces(data, [piece]), Engines(every, every, 6, [(0, b"ALARM")]), LiteralCount([FAILURES], 0), lambda _window: None)
    assert done.counts == [count]


def test_a_line_that_would_be_cut_is_left_out_of_a_window() -> None:
    """Half a message can read like another message."""
    (window,), _ = found(b"a" * 3000 + b"\nshort\n" + HIT + b"\n" + b"b" * 5000)
    assert window.raw == b"short\n" + HIT + b"\n"


@settings(max_examples=60, deadline=None)
@given(pieces=st.lists(st.binary(max_size=3 * windows.BLOCK), max_size=8), least=st.integers(1, 4 * windows.BLOCK))
def test_what_is_kept_is_the_end(pieces: list[bytes], least: int) -> None:
    whole = b"".join(pieces)
    kept = KeptText(least)
    for piece in pieces:
        kept.add(memoryview(piece))
    assert min(least, len(whole)) <= kept.size < least + max([windows.BLOCK, *map(len, pieces)])
    assert kept.lines() == whole[len(whole) - kept.size :].count(b"\n")
    assert whole.endswith(kept.last(least)) and len(kept.last(least)) == min(least, len(whole))
    buffer, out = bytearray(1000), b""
    size = kept.size
    while count := kept.readinto(memoryview(buffer)):
        out += buffer[:count]
    assert (kept.size, out) == (0, whole[len(whole) - size :])


@pytest.mark.parametrize(("size", "start"), [
    pytest.param(0, 0, id="an empty source"),
    pytest.param(MIB - 1, 0, id="less than one MiB"),
    pytest.param(2 * MIB, MIB, id="whole MiB"),
    pytest.param(2 * MIB + 1, MIB, id="a little more: the last MiB begins in the one before it"),
])  # fmt: skip
def test_the_last_mib(size: int, start: int) -> None:
    assert last_mib_start(size) == start


def accepted(ends: list[int], size: int, split: int) -> list[int]:
    """Return the hits of one course that may open a window, given in two parts."""
    tally = LiteralCount([COURSE], max(0, size - windows.TAIL), size)
    out: list[int] = []
    for part in (ends[:split], ends[split:]):
        for mib in sorted({end >> 20 for end in part}):
            out += [end for _, end in tally.accept([(0, end) for end in part if end >> 20 == mib], 0, mib)]
    return out


@given(st.lists(st.integers(1, 3 * MIB), max_size=400).map(sorted), st.integers(0, 400))
def test_what_is_read_of_a_course_hangs_on_positions_alone(ends: list[int], split: int) -> None:
    assert accepted(ends, 3 * MIB, split) == accepted(ends, 3 * MIB, 0)


def test_a_course_is_read_from_its_start_to_its_end() -> None:
    size = 900_000
    ends = list(range(100, size, 100))
    read = accepted(ends, size, 0)
    assert (read[0], read[-1]) == (ends[0], ends[-1])
    assert max(after - before for before, after in zip(read, read[1:])) <= 2 * (64 << 10)
    assert [end for end in ends if end > size - (8 << 10)] == [end for end in read if end > size - (8 << 10)]
    assert len(read) < 200
