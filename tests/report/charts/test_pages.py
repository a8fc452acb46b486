"""Pages of every kind of report: one file, one style, nothing that acts or loads, small, and whole for who cannot see."""

from __future__ import annotations

import re
import shutil
import subprocess
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from report.charts.sample_pages import PAGES

from oomdoctor.report.charts.stylesheet import stylesheet
from oomdoctor.report.document import (
    Area,
    Areas,
    Bar,
    Bars,
    CountBars,
    CountGrid,
    Counts,
    Curve,
    Curves,
    Document,
    Folded,
    Limit,
    Mark,
    Moment,
    Piece,
    Slice,
    Stretch,
    Strip,
    Strips,
    Style,
)
from oomdoctor.report.render.html import render, render_main
from oomdoctor.units import GIB

CHROMIUM = shutil.which("chromium")
GOLDEN = Path(__file__).parent / "golden"
HEAD = '<!DOCTYPE html>\n<html lang="{lang}">\n<meta charset="utf-8">\n<link rel="stylesheet" href="../../../../oomdoctor/report/charts/report.css">'
HOSTILE = "</svg></title></style><script>document.title='run'</script><img src=x onerror=\"document.title='run'\">'\"&\x1b[31m\u202e"


class _Elements(HTMLParser):
    """Collects the elements of a page, their attributes and ids."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()
        self.ids: list[str] = []
        self.labelled: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.labelled += [part for name, value in attrs if name == "aria-labelledby" for part in (value or "").split()]


def charts(name: str) -> Document:
    """Return one chart of each kind, every text of which is the name."""
    sizes = tuple(GIB + at * GIB // 8 for at in range(40))
    points = tuple((float(10 * at), size) for at, size in enumerate(sizes))
    slices = (Slice(name, name, 0.5), Slice(name + "2", name, 0.3, Style.DIM), Slice(name + "3", name, 0.2, Style.GOOD))
    bar = Bar(name, slices, Mark(0.7, name), value=name, note=name, spread=(0.4, 0.9))
    return Document(
        name,
        (
            Curves(name, name, (Curve(name, points), Curve(name, points[5:])), Limit(name, 8 * GIB), Moment(390.0, name), (Stretch(0.0, 100.0, name),)),
            bar,
            Bar(name, slices, value=name, beside=(bar,)),
            Bars(name, (bar, bar, bar), Mark(0.8, name)),
            Areas(name, (Area(name, sizes), Area(name, sizes[::-1], Style.DIM)), Area(name, tuple(9 * GIB for _ in sizes)), (Mark(0.9, name),)),
            Strips(name, (name, name), name, (Strip(name, (Piece(3, 0), Piece(1, None))),)),
            CountBars(name, (name, name), (Counts(name, (3, 1)), Counts(name, (1, 0)))),
            Folded(name, (CountGrid(name, (name, name), (Counts(name, (3, 0)), Counts(name, (1, 2)))),), name),
        ),
    )  # fmt: skip


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("kind", PAGES)
def test_a_page_is_one_small_file_in_which_nothing_acts(tmp_path: Path, kind: str, lang: str) -> None:
    page = PAGES[kind](tmp_path, lang)
    assert len(page.encode()) < 300_000
    reader = _Elements()
    reader.feed(page)
    assert reader.names & {"script", "img", "link", "iframe", "object", "foreignobject", "image", "use"} == set()
    assert [name for name in reader.attributes if name.startswith("on") or name in ("style", "src", "action", "srcset", "xlink:href")] == []
    assert page.count("<style>") == 1 and "unsafe-inline" not in page
    assert 'role="img"' in page and len(reader.ids) == len(set(reader.ids)) and {*reader.labelled} == {*reader.ids}


def test_the_policy_names_the_style_that_stands_in_the_page() -> None:
    page = render(Document("t", ()))
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert style == stylesheet()
    known = b64encode(sha256(style.encode()).digest()).decode()
    assert f"content=\"default-src 'none'; style-src 'sha256-{known}'; base-uri 'none'; form-action 'none'\"" in page


def test_what_stands_in_main_can_be_had_alone() -> None:
    document = charts("GPU 0")
    assert f"<main>\n{render_main(document)}\n</main>" in render(document)


def test_every_class_of_a_page_has_a_rule(tmp_path: Path) -> None:
    pages = [PAGES[kind](tmp_path, "en") for kind in PAGES] + [render(charts("GPU 0"))]
    used = {name for page in pages for value in re.findall(r'class="([^"]*)"', page) for name in value.split()}
    without = {"plain", "strong", "code", "link", "area", "figures", "part"}
    assert {name for name in used - without if not re.search(rf"\.{name}\b", stylesheet())} == set()


def test_hostile_names_stay_text() -> None:
    page = render(charts(HOSTILE))
    reader = _Elements()
    reader.feed(page)
    assert reader.names & {"script", "img"} == set()
    assert "\x1b" not in page and "\u202e" not in page
    assert page.count("&lt;script&gt;") > 40


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_charts_look_as_they_were_looked_at(lang: str, bless: bool) -> None:
    """The golden pages are for a browser: each chart once, with names that say what stands where; the style is that of the day."""
    golden = GOLDEN / f"charts.{lang}.html"
    document = charts("GPU 0" if lang == "en" else "显卡 0")
    main = render_main(Document(document.title, document.blocks, lang=lang))
    page = f"{HEAD.format(lang=lang)}\n<main>\n{main}\n</main>\n"
    if bless:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(page, encoding="utf-8")
    assert page == golden.read_text(encoding="utf-8")


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_a_browser_takes_the_style_and_runs_nothing(tmp_path: Path) -> None:
    """The page of hostile names, in Chromium: the style holds (a picture with colours), no title is changed, nothing is refused."""
    (tmp_path / "page.html").write_text(render(charts(HOSTILE)), encoding="utf-8")
    done = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", f"--user-data-dir={tmp_path}/profile",
         "--dump-dom", f"file://{tmp_path}/page.html"],
        capture_output=True, text=True, timeout=600, check=True,
    )  # fmt: skip
    assert re.findall(r"<script|<img|\x1b", done.stdout) == []
    assert "Content Security Policy" not in done.stderr
    assert "<title>run</title>" not in done.stdout
