"""Sources -> events: each source is read once, several at a time, the end of a large one first."""

from __future__ import annotations

import itertools
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct, field
from msgspec.structs import replace

from oomdoctor.case.case import Source
from oomdoctor.case.event import Event, Kind
from oomdoctor.case.gap import Gap
from oomdoctor.ingest.encodings import NOT_TEXT, is_binary
from oomdoctor.ingest.prefilter import SMALL, FindPrefilter, make_prefilter
from oomdoctor.ingest.streams import Opened, Unreadable, open_bytes, open_path, read_beginning, wrap_bytes
from oomdoctor.ingest.windows import (
    CLOSELY,
    LEAD,
    NUMBERED,
    STREAM_TAIL,
    TAIL,
    Engines,
    LiteralCount,
    Walk,
    Window,
    last_mib_start,
    open_part,
    tail_start,
    walk_windows,
)
from oomdoctor.knowledge.pack import Pack
from oomdoctor.parse.recogniser import Recogniser
from oomdoctor.parse.traceback import whole_traceback
from oomdoctor.reading.progress import find_last_steps, find_steps_passed

_LAST = 64 << 10
"""How much of a source's end is kept to see whether a run continued."""
_MOST_EVENTS = 20_000
_MOST_STEPS = 64
_MOST_TRACEBACKS = 8
_MOST_NEARBY = 16
_BEFORE, _AFTER = 4 << 10, 2 << 10
_BAR = 300
"""This much text before a failure shows how far the run had progressed."""
_WITH_CONTEXT = 64
"""With very many logs, only the first ones are searched for settings and memory series."""
_SPLIT = 32 << 20
"""From this size, the threads read a file together."""
_COUNTED = 256 << 10
"""Line ends are counted in blocks of this many bytes."""
_PICKLES = (b"\x80\2", b"\x80\3", b"\x80\4", b"\x80\5")
"""How files written by Python's pickle begin, such as memory snapshots."""
CAN_START_THREADS = sys.platform != "emscripten"
_PARTS = 4
"""Parts of a large file per thread, so that one delayed thread does not delay all."""

Progress = Callable[[int], None]
Early = Callable[[Sequence[Event]], None]


class SourceEvents(Struct):
    """The result of reading one source."""

    source: Source
    events: list[Event] = field(default_factory=list)
    before: dict[int, bytes] = field(default_factory=dict)
    """Offset of a failure -> the text before it, to detect progress after it."""
    steps: dict[int, int] = field(default_factory=dict)
    """Offset of a failure -> the last step that progress showed before it."""
    passed: dict[int, int] = field(default_factory=dict)
    """Offset of a failure -> the number of training steps completed."""
    tracebacks: dict[int, bytes] = field(default_factory=dict)
    """Offset of a failure -> the traceback that ends in it, for the first few."""
    nearby: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)
    """Offset of a failure -> the text before it and from it on, for the first few."""
    first: bytes = b""
    """Its beginning, which contains the command that was typed."""
    last: bytes = b""
    unread: int = 0
    gaps: list[Gap] = field(default_factory=list)


_UNTOLD = (Kind.CONTEXT, Kind.OTHER_ERROR, Kind.CONSEQUENCE)
"""Kinds of messages that leave open whether memory failed."""


class LogReader:
    """One run of the tool: the rules, the prefilter for the current size, and how many threads may read."""

    def __init__(self, pack: Pack, *, jobs: int = 1, progress: Progress | None = None, early: Early | None = None) -> None:
        self.pack = pack
        self.recogniser = Recogniser(pack)
        self.jobs = max(1, jobs) if CAN_START_THREADS else 1
        self.progress = progress
        self.early = early
        self._local = threading.local()
        self._shared: Engines | None = None
        self._lock = threading.Lock()

    def engines(self, size: int | None) -> Engines:
        """Return the engines for an input of this size; databases are built once, their scratch space once per thread."""
        engines: Engines | None = getattr(self._local, "engines", None)
        if engines is not None:
            return engines
        with self._lock:
            if self._shared is None:
                made = make_engines(self.recogniser, size)
                if isinstance(made.every, FindPrefilter):
                    return made
                self._shared = made
            copy = replace(self._shared, every=self._shared.every.twin(), failures=self._shared.failures.twin())
            self._local.engines = copy
        return copy

    def read(self, names: Sequence[str]) -> list[SourceEvents]:
        """Read all sources, several at once if there are many."""
        if len(names) > 1:
            self.engines(None)
        if self.jobs == 1 or len(names) < 8:
            return [self.read_one(name, context=number < _WITH_CONTEXT) for number, name in enumerate(names)]
        out: list[SourceEvents | None] = [None] * len(names)
        numbers = iter(range(len(names)))
        jobs, self.jobs = self.jobs, 1

        def work() -> None:
            while True:
                with self._lock:
                    batch = [number for _, number in zip(range(32), numbers)]
                if not batch:
                    return
                for number in batch:
                    out[number] = self.read_one(names[number], context=number < _WITH_CONTEXT)

        _run_together([work] * jobs, jobs)
        self.jobs = jobs
        return [source for source in out if source is not None]

    def read_one(self, name: str, data: bytes | None = None, *, context: bool = True, at: str | None = None) -> SourceEvents:
        """Read one source, with its events in file order; anything unreadable is a gap.

        Without `context` only failures are searched for: the settings of a run are in its first logs too.
        `at` is the location of the bytes, if it differs from the name of the source.
        """
        opened = open_path(at or name) if data is None else open_bytes(data)
        read = SourceEvents(Source(name=name, size=0, complete=False))
        if isinstance(opened, Unreadable):
            read.gaps.append(Gap(what=name, why=opened.reason, how=opened.how))
            return read
        try:
            if opened.descriptor is not None and opened.size is not None and opened.size > CLOSELY:
                self._by_ranges(opened, read)
            else:
                self._in_order(opened, read, len(data) if data is not None else opened.size, context)
        finally:
            opened.close()
        read.gaps += [Gap(what=name, why=why) for why in opened.broken]
        read.source = replace(read.source, complete=not opened.broken)
        return read

    def read_alone(self, name: str) -> SourceEvents:
        """Return what a source says if it is the only one: if it is not text, its silence means nothing."""
        read = self.read_one(name)
        if read.events or read.gaps or not os.path.isfile(name):
            return read
        start = read_beginning(name, _LAST)
        is_pickle = start.startswith(_PICKLES)
        if is_pickle or is_binary(start):
            read.gaps.append(Gap(what=name, why=NOT_TEXT, how=f"oomdoctor snapshot {name}" if is_pickle else None))
            read.source = replace(read.source, complete=False)
        return read

    def _in_order(self, opened: Opened, read: SourceEvents, size: int | None, context: bool) -> None:
        engines, literals = self.engines(size), self.recogniser.literals
        if not context and engines.failures is not engines.every:
            openings = [opening for opening in engines.openings if literals.failing[opening[0]]]
            engines = replace(engines, every=engines.failures, openings=openings)
        collector = _EventCollector(self.recogniser, read.source.name)
        tally = LiteralCount(literals.quotas, None if size is None else tail_start(size), size)
        done = walk_windows(
            opened.reader, engines, tally, collector.window,
            line=1, keep=STREAM_TAIL + LEAD if size is None else 0, progress=self.progress,
        )  # fmt: skip
        last = done.tail.last(_LAST) if size is None else b""
        if size is None and tally.limited:
            self._end_of_stream(done, engines, collector)
        read.source = replace(read.source, size=done.end)
        collector.finish(read, [done.counts])
        if not tally.limited:
            read.unread = 0
        read.last = last if size is None else _read_end(opened, done.end)
        read.first = read.last if len(read.last) == done.end else _read_start(opened)
        self._last_words(read)

    def _end_of_stream(self, done: Walk, engines: Engines, collector: _EventCollector) -> None:
        """Read the end of a stream like that of a file, now that it is known."""
        tally = LiteralCount(self.recogniser.literals.quotas, 0, done.end)
        start = done.end - done.tail.size
        # What is kept may begin inside a message: its first bytes are only context.
        walk_windows(done.tail, engines, tally, collector.window, start=start, first=last_mib_start(done.end), line=done.line)

    def _by_ranges(self, opened: Opened, read: SourceEvents) -> None:
        """Read the end first, and the rest in parts shared by the threads."""
        assert opened.descriptor is not None  # noqa: S101 - the caller looked
        assert opened.size is not None  # noqa: S101
        descriptor, size = opened.descriptor, opened.size
        self.engines(size)
        end = tail_start(size)
        parts = _PARTS * self.jobs if end > _SPLIT and self.jobs > 1 else 1
        # Cut at whole MiB: limits are counted in each, so the events do not depend on the number of threads.
        cuts = [end * number // parts >> 20 << 20 for number in range(parts)] + [end]
        ranges = [(end, size), *zip(cuts, cuts[1:])]
        collectors = [_EventCollector(self.recogniser, read.source.name) for _ in ranges]
        counts: list[list[int]] = [[] for _ in ranges]

        def read_range(number: int) -> None:
            first, until = ranges[number]
            tally = LiteralCount(self.recogniser.literals.quotas, end, size)
            reader, start = open_part(descriptor, first, until, size)
            emit = collectors[number].window
            done = walk_windows(reader, self.engines(None), tally, emit, start=start, first=first, until=until, progress=self.progress)
            counts[number] = done.counts
            if number == 0 and self.early is not None:
                failures = sorted(
                    (event for event in collectors[0].events.values() if event.is_failure), key=lambda event: event.place.offset
                )
                self.early(_numbered(failures[:1], descriptor, size))

        _run_together([partial(read_range, number) for number in range(len(ranges))], self.jobs)
        whole = _EventCollector(self.recogniser, read.source.name)
        for collector in collectors:
            whole.add(collector)
        read.source = replace(read.source, size=size)
        whole.finish(read, counts)
        read.events = _numbered(read.events, descriptor, size)
        read.first, read.last = _read_start(opened), _read_end(opened, size)
        self._last_words(read)

    def _last_words(self, read: SourceEvents) -> None:
        """Add what the end of a source says if none of its messages mentions memory."""
        read.events = _with_last_words(read.events, self.recogniser, read.last, read.source)


def _with_last_words(events: list[Event], recogniser: Recogniser, last: bytes, source: Source) -> list[Event]:
    """Return the events of a source with what its end says, if none of them shows whether memory failed."""
    if not all(event.kind in _UNTOLD for event in events):
        return events
    last_words = recogniser.last_words(last, source.name, source.size)
    of_memory = {event.place.offset for event in last_words if event.kind.is_memory}
    known = {event.place.offset for event in events if event.kind is not Kind.CONTEXT}
    kept = [event for event in events if event.kind is Kind.CONTEXT or event.place.offset not in of_memory]
    new = [event for event in last_words if event.kind.is_memory or event.place.offset not in known]
    return sorted([*kept, *new], key=lambda event: event.place.offset)


class _EventCollector:
    """The events of one walk; a message that appears in two windows is kept once."""

    def __init__(self, recogniser: Recogniser, source: str) -> None:
        self._recogniser = recogniser
        self._source = source
        self.events: dict[tuple[str, int, str], Event] = {}
        self.before: dict[int, bytes] = {}
        self.steps: dict[int, int] = {}
        self.passed: dict[int, int] = {}
        self.tracebacks: dict[int, bytes] = {}
        self.nearby: dict[int, tuple[bytes, bytes]] = {}

    def window(self, window: Window) -> None:
        if len(self.events) >= _MOST_EVENTS:
            return
        for event in self._recogniser.events(window, self._source):
            key = (event.signature, event.place.offset, event.text[:200])
            known = self.events.get(key)
            if known is None or _informativeness(event) > _informativeness(known):
                self.events[key] = event
            if event.is_failure and len(self.steps) < _MOST_STEPS:
                self._progress(window, event)

    def _progress(self, window: Window, event: Event) -> None:
        """Record how far the run had progressed; the text before a failure is kept unless the program is known to have ended with it."""
        reached = window.before + window.raw[: max(0, event.place.offset - window.base)]
        before = reached[-_BEFORE:]
        if len(self.nearby) < _MOST_NEARBY:
            at = max(0, event.place.offset - window.base)
            self.nearby[event.place.offset] = before, window.raw[at : at + _AFTER]
        # A bar and the message can share a line: an event's text begins where its line does.
        steps = find_last_steps(before + event.text[:_BAR].encode())
        if steps:
            self.steps[event.place.offset] = max(steps.values())
        if len(self.tracebacks) < _MOST_TRACEBACKS and (traceback := whole_traceback(reached)):
            self.tracebacks[event.place.offset] = traceback
        if (passed := find_steps_passed(reached)) is not None:
            self.passed[event.place.offset] = passed
        if event.caught or event.frame is None:
            self.before[event.place.offset] = before

    def add(self, other: _EventCollector) -> None:
        self.events = {**other.events, **self.events}
        self.before.update(other.before)
        self.steps.update(other.steps)
        self.passed.update(other.passed)
        self.tracebacks.update(other.tracebacks)
        self.nearby.update(other.nearby)

    def finish(self, read: SourceEvents, counts: list[list[int]]) -> None:
        read.events = sorted(self.events.values(), key=lambda event: event.place.offset)
        read.before = self.before
        own = {event.place.offset for event in read.events if event.kind is not Kind.CONTEXT and not self._recogniser.is_general(event)}
        read.events = [event for event in read.events if event.place.offset not in own or not self._recogniser.is_general(event)]
        read.steps, read.passed, read.tracebacks, read.nearby = self.steps, self.passed, self.tracebacks, self.nearby
        total = counts[0] if len(counts) == 1 else [sum(column) for column in zip(*counts)]
        if any(total):
            most = max(itertools.compress(total, self._recogniser.literals.failing), default=0)
            read.unread = max(0, most - len(read.events))


def around(read: SourceEvents, offset: int) -> tuple[bytes, bytes]:
    """Return the text before a failure and from it on, as far as it was kept."""
    if offset in read.nearby:
        return read.nearby[offset]
    at = offset - (read.source.size - len(read.last))
    return (read.last[max(0, at - _BEFORE) : at], read.last[at : at + _AFTER]) if at >= 0 else (read.before.get(offset, b""), b"")


def _informativeness(event: Event) -> tuple[int, bool, bool]:
    """Return how informative an event is: a window that ends soon after a message shows less of it than the next one."""
    return len(event.fields), event.frame is not None, event.phase is not None


def make_engines(recogniser: Recogniser, size: int | None) -> Engines:
    """Return the prefilters of all literals and of failure literals, for an input of `size` bytes."""
    literals = recogniser.literals
    if size is not None and size <= SMALL:
        return Engines(literals.search, literals.search, literals.longest, literals.openings)
    every = failures = make_prefilter(literals.texts, list(range(len(literals.texts))), size)
    if not isinstance(every, FindPrefilter) and (size is None or size > 1 << 20):  # the first MiB gets all literals anyway
        everywhere = [number for number, is_failing in enumerate(literals.failing) if is_failing]
        failures = make_prefilter([literals.texts[number] for number in everywhere], everywhere, size)
    return Engines(every, failures, literals.longest, literals.openings)


def read_events(text: str, recogniser: Recogniser) -> list[Event]:
    """Return the messages in a given text, without weighing them."""
    data = text.encode("utf-8", "surrogatepass")
    collector = _EventCollector(recogniser, "<text>")
    tally = LiteralCount(recogniser.literals.quotas, 0, len(data))
    walk_windows(wrap_bytes(data).reader, make_engines(recogniser, 0), tally, collector.window, line=1)
    events = sorted(collector.events.values(), key=lambda event: event.place.offset)
    return _with_last_words(events, recogniser, data[-_LAST:], Source(name="<text>", size=len(data)))


def _read_end(opened: Opened, size: int) -> bytes:
    if opened.descriptor is None:
        held = getattr(opened.reader, "_reader", opened.reader)
        value = held.getvalue() if hasattr(held, "getvalue") else b""
        return bytes(value[-_LAST:])
    try:
        return os.pread(opened.descriptor, _LAST, max(0, size - _LAST))
    except OSError:
        return b""


def _read_start(opened: Opened) -> bytes:
    """Return the beginning of a source; nothing is kept of a stream that has been consumed."""
    if opened.descriptor is None:
        held = getattr(opened.reader, "_reader", opened.reader)
        return bytes(held.getbuffer()[:_LAST]) if hasattr(held, "getbuffer") else b""
    try:
        return os.pread(opened.descriptor, _LAST, 0)
    except OSError:
        return b""


def _numbered(events: list[Event], descriptor: int, size: int) -> list[Event]:
    """Return the events with line numbers near the start of a large file, and lines from the end for those near its end."""
    out = dict(enumerate(events))
    line, at = 1, 0
    for number, event in enumerate(events):
        if event.place.offset > NUMBERED:
            break
        line += _newlines(descriptor, at, event.place.offset)
        at = event.place.offset
        out[number] = replace(event, place=replace(event.place, line=line))
    from_end, at = 0, size
    for number, event in reversed(list(enumerate(events))):
        if event.place.offset <= NUMBERED or size - event.place.offset > TAIL:
            break
        from_end += _newlines(descriptor, event.place.offset, at)
        at = event.place.offset
        out[number] = replace(event, place=replace(event.place, from_end=from_end))
    return list(out.values())


def _newlines(descriptor: int, start: int, end: int) -> int:
    count = 0
    while start < end:
        data = os.pread(descriptor, min(_COUNTED, end - start), start)
        if not data:
            break
        # For lines of the usual length this is twice as fast as `count`, which looks at every byte (CPython 3.10 to 3.13).
        count += len(data) - len(data.replace(b"\n", b""))
        start += len(data)
    return count


def _run_together(tasks: Sequence[Callable[[], None]], jobs: int) -> None:
    """Run tasks in order, at most `jobs` at once, and wait for them; the first error is raised again."""
    if jobs == 1 or len(tasks) == 1:
        for task in tasks:
            task()
        return
    errors: list[BaseException] = []
    waiting = deque(tasks)

    def work() -> None:
        while True:
            try:
                task = waiting.popleft()
            except IndexError:
                return
            try:
                task()
            except BaseException as why:  # noqa: BLE001 - carried over to the thread that waits
                errors.append(why)
                return

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(jobs, len(tasks)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
