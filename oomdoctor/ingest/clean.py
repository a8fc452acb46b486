"""Raw lines -> text that patterns can be matched in.

Only lines near a hit come here. Terminal escapes, markup, quoting and the prefixes that launchers, containers and
schedulers put before a line are removed; the rank, worker and time that they state are kept. Lines of different ranks
are told apart, so that a message which two ranks wrote into each other's lines is read whole.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.ingest.envelopes import open_envelopes
from oomdoctor.ingest.prefixes import PREFIX, STAMP

_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)?"  # OSC: titles, links, clipboard
    r"|\x1b[PX^_][^\x1b]{0,2000}(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]{0,64}[ -/]{0,8}[@-~]?"  # CSI: colours, cursor
    r"|\x1b[ -/]{0,4}[0-~]?"
    r"|\x9b[0-?]{0,64}[ -/]{0,8}[@-~]?"
    r"|(?<![\w\]])\[\d{1,3}(?:;\d{1,3}){0,6}m"  # a colour whose escape character the copying lost
)
_CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127, *range(128, 160), 8203, 65279))
_BIDI = dict.fromkeys((*range(8234, 8239), *range(8294, 8298), 8206, 8207))
_JOINERS = dict.fromkeys((0xAD, *range(0x200B, 0x2010), *range(0x2060, 0x2065)))
_DROP = {**_CONTROLS, **_BIDI, **_JOINERS}
_ENTITIES = (("&gt;", ">"), ("&lt;", "<"), ("&quot;", '"'), ("&#39;", "'"), ("&#x27;", "'"), ("&nbsp;", " "), ("&amp;", "&"))
_TAG = re.compile(r"</?(?:span|div|pre|code|p|font|b|i|a|td|tr|samp|tt|em|strong)(?:\s[^<>\n]{0,200})?/?>")
_BREAK = re.compile(r"<br\s{0,2}/?>")
_ESCAPED_NEWLINE = re.compile(r"\\r\\n|\\n")
_ESCAPED = re.compile(r"\\(?:u001b|x1b|033|e)\[[0-9;]{0,20}m|\\([\"'`tr])")
_ODD = re.compile("[&\\\\" + "".join(map(chr, _DROP)) + "]"), re.compile(r"</?[a-z]"), re.compile(r"\[\d{1,3}[;m]")
"""What one of the steps of `_plain` may change; most windows hold none of it. One pattern for all takes twice as long."""
_DRIVE = re.compile(r"\b[A-Za-z]:\\")

_PROGRAM = re.compile(r"(?!slurm|srun|systemd|kernel|dockerd|kubelet|earlyoom)[\w./@-]{1,60}\[\d{1,8}\]: ")
"""The program of which a system log tells."""
_INDENTED = 4
"""A text whose lines all begin with so many blanks was indented as a whole."""
_HEAD = re.compile(r"\s{0,4}(?:\[?[\w./-]{1,120}\.(?:py|cc|cpp|cu|go|rs|c|h):\d{1,6}\])[ ]?")
_EXCEPTION = re.compile(r"(?:[\w.]{1,80}\.)?[A-Z]\w{0,60}(?:Error|Exception)\b")
_OWN_LINE = re.compile(r"\s|[A-Z]\d{4} \d\d:|\[?\d{4}-\d\d-\d\d|(?:INFO|WARNING|ERROR|DEBUG)\b|Traceback")
"""What begins a line of its own, and not the rest of one that a terminal cut."""
_WRAPPER = re.compile(r"(?:\{[\w.-]{1,60}:\d{1,6}\} )?(?:- )?(?P<level>INFO|DEBUG) - ")
"""What Airflow and services that log the output of a program put before each of its lines."""
_OF_A_TRACEBACK = (" ", "Traceback", "File ")
"""How the lines begin that an exception ends: it is of their writer, and not of whoever wrote last."""
_BAR = re.compile(r"\s{0,8}\d{1,3}%\|")
_LONGEST_LINE = 16384
_WRAPPED = 60
_WIDEST_TERMINAL = 400
_CUTS = 2
"""One widest line is chance."""
_LONG_RUN = 3
"""So many lines in a row that reach the edge are one."""
_SEVERAL = 2
"""So many lines show what stands before each."""
_SWALLOWED = 2
"""So many blanks at the edge of a terminal are lost when its lines are copied."""
_REPORT = "insufficient GPU memory"
_REPORT_LINES = 4
"""TensorRT-LLM puts the rank before the first line of its report, and the figures below it in bare lines."""


class Line(Struct, frozen=True):
    """One cleaned line: its text, where its raw line starts in the source, and what its prefix said."""

    text: str
    offset: int
    rank: int | None
    worker: str | None
    time: str | None
    width: int
    """Length of the raw line."""
    kinds: tuple[str, ...] = ()
    """The prefixes that stood before it."""
    ends: tuple[int, ...] = ()
    """Where each of them ended."""
    columns: int = 0
    """Its length without what a supervisor put before each line, to tell a line that a terminal cut at its edge."""
    bare: bool = True
    """Without a prefix of its own, so it can be the rest of the line before it."""


class Flow:
    """Lines of one writer, joined: what patterns are matched in."""

    __slots__ = ("_starts", "joints", "lines", "text")

    def __init__(self, lines: list[Line], joined: list[str]) -> None:
        self.lines = lines
        self._starts: list[int] = []
        self.joints: list[int] = []
        """Where a line goes on in the text that a terminal had cut."""
        at = 0
        for text in joined:
            self._starts.append(at)
            at += len(text)
            if not text.endswith("\n"):
                self.joints.append(at)
        self.text = "".join(joined)

    def line_at(self, position: int) -> Line:
        """Return the line in which a character of the text stands."""
        return self.lines[max(0, bisect_right(self._starts, position) - 1)]

    def record_at(self, position: int) -> int:
        """Return where in the text the raw line begins that a character stands in: one line of a source may be several of the text."""
        number = max(0, bisect_right(self._starts, position) - 1)
        while number and self.lines[number - 1].offset == self.lines[number].offset:
            number -= 1
        return self._starts[number]

    def is_joined(self, start: int, end: int) -> bool:
        """Return whether a piece of the text goes over a cut."""
        return any(start < at < end for at in self.joints)

    def span_of_lines(self, start: int, end: int) -> tuple[int, int]:
        """Return where in the text the lines begin and end in which something stands."""
        first = max(0, bisect_right(self._starts, start) - 1)
        behind = bisect_right(self._starts, max(start, end - 1))
        return self._starts[first], self._starts[behind] if behind < len(self._starts) else len(self.text)


def split_flows(raw: bytes, base: int, *, rejoin: bool = True) -> list[Flow]:
    """Clean the text of a window and return one flow for each writer; `base` is the window's offset in its source.

    With `rejoin` a second reading follows where lines were cut at the edge of a terminal.
    """
    lines = clean_lines(raw, base)
    writers: dict[tuple[int | None, str | None], list[Line]] = {}
    for line in lines:
        writers.setdefault((line.rank, line.worker), []).append(line)
    out: list[Flow] = []
    for writer_lines in writers.values():
        out.append(Flow(writer_lines, [line.text + "\n" for line in writer_lines]))
        rejoined = _rejoin(writer_lines) if rejoin else None
        if rejoined is not None:
            out.append(Flow(writer_lines, rejoined))
    return out


def clean_lines(raw: bytes, base: int) -> list[Line]:
    """Clean the lines of a window, each with the writer that its prefix names."""
    lines = _without_wrapper(_without_supervisor(_each_line(raw, base)))
    edge = max((line.columns for line in lines), default=0)
    is_cut = sum(_fills(line, edge) for line in lines) >= _CUTS
    out: list[Line] = []
    repeated = ""
    reported = 0
    for line in lines:
        head = _HEAD.match(line.text) if "]" in line.text else None
        if head is not None:
            if head[0] == repeated:
                line = replace(line, text=line.text[head.end() :])
            repeated = head[0]
        elif line.text:
            repeated = ""
        reported = _REPORT_LINES if _REPORT in line.text else reported - 1 if line.bare else 0
        if out and line.rank is None and (line.worker is None or (line.bare and line.worker == out[-1].worker)):
            of_one_line = out[-1].offset == line.offset
            if of_one_line or reported > 0 or _goes_on(out[-1], line.text, edge, is_cut=is_cut):
                line = replace(line, rank=out[-1].rank, worker=out[-1].worker)
        out.append(line)
    return out


def _each_line(raw: bytes, base: int) -> list[Line]:
    """Return the lines of a window out of their envelopes, their markup and their prefixes."""
    pieces = [(piece.decode("utf-8", "replace"), offset) for piece, offset in _physical(raw, base)]
    opened = open_envelopes([text for text, _ in pieces]) if raw.lstrip().startswith(b"{") or b"\n{" in raw else None
    whole = raw.decode("utf-8", "replace") if opened is None else "\n".join(line.text for line in opened)
    is_plain = not any(odd.search(whole) for odd in _ODD)
    lines = []
    for number, (text, offset) in enumerate(pieces):
        inner = text if opened is None else opened[number].text.replace("\r", "\n")
        for part in inner.split("\n") if is_plain else _plain(inner):
            line = _strip(part, offset, len(text))
            lines.append(line if opened is None or line.time else replace(line, time=opened[number].time))
    return lines


def _without_supervisor(lines: list[Line]) -> list[Line]:
    """Return lines without what stands before every one of them: a supervisor put it there, after a terminal may have cut them."""
    written = [line for line in lines if line.text.strip()]
    if len(written) < _SEVERAL:
        return lines
    common = _in_common([line.kinds for line in written])
    program = _PROGRAM.match(written[0].text)
    lead = min(len(line.text) - len(line.text.lstrip(" ")) for line in written)
    if program is not None and all(line.text.startswith(program[0]) for line in written):
        lead = program.end()
    elif lead < _INDENTED:
        lead = 0
    if not common and not lead:
        return lines
    return [
        replace(
            line,
            text=line.text[lead:],
            columns=max(0, line.columns - lead - (line.ends[common - 1] if 0 < common <= len(line.ends) else 0)),
            bare=len(line.kinds) <= common,
        )
        for line in lines
        if line.text[lead:]
    ]


def _in_common(rows: Sequence[tuple[str, ...]]) -> int:
    """Return with how many equal items all rows begin."""
    return sum(1 for _ in itertools.takewhile(lambda column: len(set(column)) == 1, zip(*rows)))


def _without_wrapper(lines: list[Line]) -> list[Line]:
    """Return lines without the level that a supervisor put before each line of a program, which says nothing of what the program says.

    A logger's own lines look alike; of a program's output some are indented, empty, or an exception.
    """
    heads = [_WRAPPER.match(line.text) for line in lines]
    if len({head["level"] for head in heads if head}) != 1 or not all(head or not line.text for head, line in zip(heads, lines)):
        return lines
    bodies = [line.text[head.end() :] if head else "" for head, line in zip(heads, lines)]
    if not any(map(_is_printed, (body for body, head in zip(bodies, heads) if head))):
        return lines
    stripped = [_strip(body, line.offset, line.width) for line, body in zip(lines, bodies)]
    return [
        replace(
            inner, rank=inner.rank if line.rank is None else line.rank, worker=line.worker or inner.worker, time=line.time or inner.time
        )
        for line, inner in zip(lines, stripped)
        if inner.text
    ]


def _is_printed(body: str) -> bool:
    """Return whether a line is one that no logger writes: indented, empty, an exception, a bar, with a prefix or a time of its own."""
    is_shaped = body[:1] in ("", " ") or any(form.match(body) for form in (_EXCEPTION, _BAR, PREFIX))
    return is_shaped or re.search(STAMP, body[:40]) is not None


def _physical(raw: bytes, base: int) -> list[tuple[bytes, int]]:
    """(line, offset) at every line end, carriage returns included; a line without an end is cut into pieces."""
    out: list[tuple[bytes, int]] = []
    at = 0
    for piece in raw.replace(b"\r", b"\n").split(b"\n"):
        for start in range(0, max(1, len(piece)), _LONGEST_LINE):
            if len(piece) or at == 0:
                out.append((piece[start : start + _LONGEST_LINE], base + at + start))
        at += len(piece) + 1
    return out


def _plain(text: str) -> list[str]:
    """Clean a raw line of escapes, markup and control characters; one that holds escaped line ends becomes several."""
    if "\x1b" in text or "\x9b" in text or ("m" in text and "[" in text):
        text = _ESCAPES.sub("", text)
    if "<" in text and ">" in text:
        text = _BREAK.sub("\n", _TAG.sub("", text))
    if "&" in text:
        for entity, char in _ENTITIES:
            text = text.replace(entity, char)
    if "\\" in text and not _DRIVE.search(text):
        text = _ESCAPED.sub(
            lambda escaped: {"t": " ", "r": ""}.get(escaped[1], escaped[1]) if escaped[1] else "", _ESCAPED_NEWLINE.sub("\n", text)
        )
    if not text.isascii() or not text.isprintable():
        text = text.translate(_DROP)
    return text.split("\n")


def _strip(text: str, offset: int, width: int) -> Line:
    rank: int | None = None
    worker: str | None = None
    time: str | None = None
    kinds: list[str] = []
    ends: list[int] = []
    at = 0
    for _ in range(8):
        prefix = PREFIX.match(text, at)
        if prefix is None or prefix.end() == at:
            break
        rank_text = next(filter(None, prefix.group("rank", "rank2", "rank3", "rank4", "rank5", "srun")), None)
        rank = int(rank_text) if rank_text and rank is None else rank
        if prefix["pid"] and worker is None:
            worker = f"{prefix['worker'] or ''} pid={prefix['pid']}".strip()
        time = time or next(filter(None, prefix.group("time", "time2", "time3", "time4")), None)
        at = prefix.end()
        kinds.append(prefix.lastgroup or "")
        ends.append(at)
    return Line(text[at:], offset, rank, worker, time.strip("[]") if time else None, width, tuple(kinds), tuple(ends), len(text), not kinds)


def _goes_on(before: Line, text: str, edge: int, *, is_cut: bool) -> bool:
    """Return whether a line without a prefix belongs to the writer of the line before it; `edge` is where a terminal may have cut.

    `is_cut`: several lines reach the edge, so that one with a prefix may go on behind it too.
    """
    if before.rank is None and before.worker is None:
        return False
    if _fills(before, edge) and (before.bare or (is_cut and not _OWN_LINE.match(text))):
        return True
    if _EXCEPTION.match(text):
        return before.text.startswith(_OF_A_TRACEBACK) and not _BAR.match(before.text)
    return (text[:1] in (" ", "\u2502") and bool(text.strip()) and not _BAR.match(text)) or "out of memory" in before.text


def _fills(line: Line, edge: int) -> bool:
    """Return whether a line reaches the edge of a terminal, but for blanks that were lost there."""
    return _WRAPPED <= edge <= _WIDEST_TERMINAL and edge - _SWALLOWED <= line.columns <= edge


def _begins(before: str, text: str) -> bool:
    """Return whether a line is a new one, however wide the one before it: a line of a traceback, or the exception that ends one."""
    return text.startswith("  ") or (before.startswith("  ") and _EXCEPTION.match(text) is not None)


def _rejoin(lines: list[Line]) -> list[str] | None:
    """Return the lines with those joined that a terminal cut at its edge; None where none were."""
    edge = max((line.columns for line in lines), default=0)
    cut = [_fills(line, edge) and after.bare and not _begins(line.text, after.text) for line, after in zip(lines, lines[1:])]
    # Two that a launcher's prefix begins, with lines behind them that have none, were cut.
    if sum(is_cut and not line.bare for line, is_cut in zip(lines, cut)) < _CUTS:
        cut = _without_chance(lines, cut, edge)
    widths = [line.columns for line, is_cut in zip(lines, cut) if is_cut]
    if not widths:
        return None
    usual = max(widths, key=lambda width: (widths.count(width), width))
    return [line.text + (" " * (usual - line.columns) if is_cut else "\n") for line, is_cut in zip(lines, [*cut, False])]


def _without_chance(lines: list[Line], cut: list[bool], edge: int) -> list[bool]:
    """Return which lines were cut, without those that may be wide by chance.

    Several in a row that reach the edge are one long line; of fewer each has to break off in its middle.
    """
    out: list[bool] = []
    for is_cut, numbers in itertools.groupby(range(len(cut)), lambda number: cut[number]):
        run = list(numbers)
        kept = is_cut and (
            len(run) >= _LONG_RUN or all(_is_torn(lines[number], lines[number + 1], edge, alone=len(run) == 1) for number in run)
        )
        out += [kept] * len(run)
    return out


def _is_torn(line: Line, after: Line, edge: int, *, alone: bool) -> bool:
    """Return whether a wide line (`alone`: the widest) breaks off in the middle of a sentence that the next one goes on with."""
    if (alone and line.columns != edge) or _OWN_LINE.match(after.text):
        return False
    return re.search(r"[\w,:=(<\[/ -]$", line.text) is not None and re.match(r"[a-z0-9_.,;:)\]>/-]", after.text) is not None
