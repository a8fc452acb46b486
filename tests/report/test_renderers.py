"""What every format must hold: nothing acts, nothing is lost, columns align."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from report import samples
from rich.cells import cell_len

from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.document import (
    Bar,
    Bars,
    Block,
    BriefStep,
    BriefSteps,
    Cell,
    Curve,
    Curves,
    Document,
    Facts,
    Folded,
    Heading,
    Paragraph,
    Quote,
    Row,
    Slice,
    Span,
    Step,
    Steps,
    Style,
    Table,
)
from oomdoctor.report.render import html, markdown, terminal
from oomdoctor.report.safety.sanitize import clean, clean_line
from oomdoctor.report.wording.wording import Wording

_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_TEXT = st.one_of(
    st.text(max_size=80),
    st.lists(
        st.sampled_from(
            ["\x1b[31m", "\x1b]0;x\x07", "\u202e", "`", "```", "|", "[red]", "<b>", "@user", "#12", "显存", "\r", "\n", "\x9b2J", "a", " "]
        ),
        max_size=12,
    ).map("".join),
)
_STYLES = st.sampled_from(list(Style))
_SPANS = st.lists(st.builds(Span, _TEXT, _STYLES), max_size=4).map(tuple)
_ROWS = st.lists(st.builds(Row, _TEXT, _TEXT, _TEXT, _STYLES), min_size=1, max_size=5).map(tuple)
_SLICES = st.lists(st.builds(Slice, _TEXT, _TEXT, st.floats(0, 1), _STYLES), max_size=5).map(tuple)
_CELLS = st.builds(Cell, _TEXT, _STYLES)
_TABLES = st.integers(1, 5).flatmap(
    lambda size: st.builds(
        Table,
        _TEXT,
        st.lists(_CELLS, min_size=size, max_size=size).map(tuple),
        st.lists(st.lists(_CELLS, min_size=size, max_size=size).map(tuple), max_size=4).map(tuple),
    )
)
_STEP = st.builds(Step, _TEXT, _SPANS, st.one_of(st.just(()), _ROWS), _TEXT, _SPANS)
_LEAVES: st.SearchStrategy[Block] = st.one_of(
    st.builds(Heading, _TEXT),
    st.builds(Paragraph, _SPANS),
    st.builds(Facts, _ROWS),
    _TABLES,
    st.builds(Bar, _TEXT, _SLICES),
    st.builds(Quote, _TEXT, _TEXT),
    st.builds(Steps, st.lists(_STEP, max_size=3).map(tuple)),
    st.builds(BriefSteps, st.lists(st.builds(BriefStep, _SPANS, _TEXT, _TEXT, _TEXT), max_size=3).map(tuple), _SPANS),
)
_FOLDED: st.SearchStrategy[Block] = st.builds(Folded, _TEXT, st.lists(_LEAVES, max_size=3).map(tuple), _TEXT)
_DOCUMENTS = st.builds(Document, _TEXT, st.lists(st.one_of(_LEAVES, _FOLDED), max_size=5).map(tuple))


@settings(deadline=None)
@given(_DOCUMENTS, st.integers(1, 200), st.booleans())
def test_no_control_character_gets_out(document: Document, width: int, full: bool) -> None:
    for text in (terminal.render(document, width=width, color=False, full=full), markdown.render(document), html.render(document)):
        assert not _CONTROL.search(text)


@settings(deadline=None)
@given(_DOCUMENTS, st.integers(20, 200), st.booleans())
def test_no_line_is_wider_than_the_terminal(document: Document, width: int, full: bool) -> None:
    lines = terminal.render(document, width=width, color=False, full=full).splitlines()
    assert max(map(cell_len, lines), default=0) <= width


@given(st.text(max_size=400))
def test_cleaning_twice_changes_nothing(text: str) -> None:
    for limit in (10, 1000):
        assert clean(clean(text, limit), limit) == clean(text, limit)
        assert clean_line(clean_line(text, limit), limit) == clean_line(text, limit)
        assert len(clean(text, limit)) <= limit


@given(st.text(alphabet="`~ab\n", min_size=1, max_size=60))
def test_a_fence_is_longer_than_what_it_holds(text: str) -> None:
    block = Quote("log", text)
    lines = markdown.render(Document("t", (block,))).split("\n")
    fence = re.match("`{3,}", lines[1])
    assert fence is not None
    end = next(at for at in range(2, len(lines)) if lines[at].startswith(fence[0]))
    assert "\n".join(lines[2:end]) == block.text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        pytest.param("a|b", "a\\|b", id="a bar does not split a cell"),
        pytest.param("<img>", "&lt;img&gt;", id="no tag"),
        pytest.param("ping @torvalds", "ping @<!-- -->torvalds", id="nobody is called"),
        pytest.param("see #12", "see #<!-- -->12", id="no issue is linked"),
        pytest.param("**x** _y_", "\\*\\*x\\*\\* \\_y\\_", id="no emphasis"),
    ],
)
def test_text_is_text_in_markdown(text: str, escaped: str) -> None:
    assert escaped in markdown.render(Document("t", (Facts((Row("l", text),)),)))


@pytest.mark.parametrize("text", ["- x", "1. x", "# x", "+ x", "=== x"])
def test_a_paragraph_stays_a_paragraph(text: str) -> None:
    assert "\\" in markdown.render(Document("t", (Paragraph((Span(text),)),))).split("\n")[0]


def test_log_text_is_no_markup_of_rich() -> None:
    out = terminal.render(Document("t", (Quote("w", "[bold red]x[/] :smile: [/nope]"),)), width=80, color=False)
    assert "[bold red]x[/] :smile: [/nope]" in out


class _Tags(HTMLParser):
    """Collects what a page opens and where it points."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("src", "href") or name.startswith("on")]


@settings(deadline=None)
@given(_DOCUMENTS)
def test_a_page_has_no_scripts_and_nothing_from_elsewhere(document: Document) -> None:
    tags = _Tags()
    tags.feed(html.render(document))
    assert not tags.tags & {"script", "img", "link", "iframe", "b", "object"}
    assert all(re.match("https?://", link) for link in tags.links)


def test_a_link_is_a_link_only_if_it_is_one() -> None:
    out = html.render(Document("t", (Paragraph((Span("javascript:alert(1)", Style.LINK), Span("https://example.org/a_b", Style.LINK))),)))
    assert 'href="javascript' not in out
    assert 'href="https://example.org/a_b"' in out


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("sample", samples.ALL.values(), ids=samples.ALL)
def test_a_case_is_one_screen(sample: Callable[[], Diagnosis], lang: str) -> None:
    lines = terminal.render(compose(sample(), Wording(lang), "0.1.0"), width=80, color=False).splitlines()
    assert len(lines) <= (57 if sample is samples.device_oom else 45)


def test_colour_only_where_it_is_wanted() -> None:
    document = compose(samples.device_oom(), Wording("en"), "0.1.0")
    assert "\x1b[" in terminal.render(document, width=80, color=True)
    assert "\x1b" not in terminal.render(document, width=80, color=False)


@pytest.mark.parametrize("width", range(24, 60))
def test_no_line_begins_with_the_mark_that_ends_a_sentence(width: int) -> None:
    code = [Span("set "), Span("per_device_eval_batch_size: 1", Style.CODE), Span(", then run "), Span("train.sh", Style.CODE), Span(".")]
    document = Document("t", (Paragraph(tuple(code)),))
    lines = terminal.render(document, width=width, color=False).splitlines()
    assert not [line for line in lines if line.lstrip()[:1] in (".", ",")]


def test_chinese_labels_align() -> None:
    rows = (Row("申请", "2.00 GiB"), Row("PyTorch 已分配", "20.10 GiB"), Row("Free", "1.00 GiB"))
    lines = terminal.render(Document("t", (Facts(rows),)), width=80, color=False).splitlines()[:3]
    assert len({cell_len(line) for line in lines}) == 1


@pytest.mark.parametrize("width", [20, 40, 80, 99])
def test_a_bar_fills_its_line(width: int) -> None:
    document = compose(samples.device_oom(), Wording("en"), "0.1.0")
    bars = Document("t", tuple(block for block in document.blocks if isinstance(block, Bar)))
    drawn = next(line for line in terminal.render(bars, width=width, color=False).splitlines() if "█▓" in line)
    assert cell_len(drawn) == width
    assert all(fill in drawn for fill in "█▓▒░·")


def test_what_is_folded_is_there_in_full() -> None:
    document = compose(samples.device_oom(), Wording("en"), "0.1.0")
    assert "Abort COMPLETE" not in terminal.render(document, width=80, color=False)
    assert "Abort COMPLETE" in terminal.render(document, width=80, color=False, full=True)
    assert "Abort COMPLETE" in markdown.render(document)


def test_a_bar_without_parts_is_drawn_as_nothing() -> None:
    base = samples.device_oom()
    incident = replace(base.case.incidents[0], ledger=tuple(replace(part, bytes=0) for part in base.case.incidents[0].ledger))
    document = compose(replace(base, case=replace(base.case, incidents=(incident,))), Wording("en"), "0")
    assert "GPU 3: 0 B" not in terminal.render(document, width=80, color=False)


@pytest.mark.parametrize("drawn_by_a_page", [
    pytest.param(Curves("Memory", "step", (Curve("used", ((1.0, 1), (2.0, 2))),)), id="a chart"),
    pytest.param(Bars("Both", (), is_told=True), id="bars that sentences tell of"),
])  # fmt: skip
def test_what_only_a_page_draws_leaves_no_gap(drawn_by_a_page: Block) -> None:
    bar, after = Bar("GPU 0", (Slice("weights", "1 GiB", 1.0),)), Heading("Next")
    with_it, without = (Document("title", blocks) for blocks in ((bar, drawn_by_a_page, after), (bar, after)))
    assert terminal.render(with_it, width=80, color=False) == terminal.render(without, width=80, color=False)


@pytest.mark.parametrize("module", ["diagnosis.compose", "wire.diagnosis", "render.markdown", "render.html", "safety.redact"])
def test_rich_is_for_the_terminal_only(module: str) -> None:
    code = f"import sys, oomdoctor.report.{module}; sys.exit(any(name.split('.')[0] == 'rich' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("text", "link"), [
    pytest.param("see https://example.com/x", "https://example.com", id="an address"),
    pytest.param("see www.example.com", "www.example.com", id="an address without its protocol"),
    pytest.param("/data/3b13453bbf0a4a1d2c9e3b13453bbf0a4a1d2c9e/run", "3b13453bbf0a4a1d2c9e3b13453bbf0a4a1d2c9e", id="a hash in a path"),
    pytest.param("at 3b13453", "3b13453", id="a short hash"),
    pytest.param("GH-123 and #123 and @somebody", "GH-123", id="the number of an issue"),
])  # fmt: skip
def test_nothing_of_a_log_becomes_a_link_in_markdown(text: str, link: str) -> None:
    shown = markdown.escaped(text)
    assert link not in shown and shown.replace("<!-- -->", "") == text


@pytest.mark.parametrize("text", ["2147483648 bytes", "1234567 of 7654321", "defaced facade", "torch 2.6.0", "0x7f3a9c1e5b2d"])
def test_numbers_and_words_are_no_hashes(text: str) -> None:
    assert markdown.escaped(text) == text


def test_a_page_begins_with_what_it_is_of() -> None:
    page = html.render(Document("t", (), head=("train.log", "Qwen3-8B", "<8 cards>")))
    assert re.findall("<header>(.*?)</header>\n<main>", page) == ["train.log · Qwen3-8B · &lt;8 cards&gt;"]
    assert "<header>" not in html.render(Document("t", ()))


def test_the_head_of_a_diagnosis_is_as_much_as_is_known() -> None:
    known = replace(samples.device_oom().case, facts={"log.torch_version": "2.6.0", "log.gpu_name": "Tesla P4"})
    head = compose(replace(samples.device_oom(), case=known), Wording("en"), "0").head
    assert head[0] == "train.log" and any("Tesla P4" in part for part in head) and "torch 2.6.0" in head
    assert not any("CUDA" in part for part in head), "the log does not tell it"
