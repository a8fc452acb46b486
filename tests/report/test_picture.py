"""The picture in the README is what the command writes of a fixture, and a picture is well-formed whatever a log says."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from rich.cells import cell_len

from oomdoctor.cli.main import cli
from oomdoctor.report.document import Bar, Document, Paragraph, Quote, Slice, Span, Style
from oomdoctor.report.render.terminal_picture import render

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "report.svg"


def test_the_picture_in_the_readme_is_a_real_report(monkeypatch: pytest.MonkeyPatch, bless: bool) -> None:
    monkeypatch.chdir(ROOT / "fixtures" / "cases" / "llama31-staircase")
    done = CliRunner(env={"COLUMNS": "100"}).invoke(cli, ["diagnose", "train.log", "--format", "svg", "--lang", "en"])
    assert done.exit_code == 1, done.output
    if bless:
        PICTURE.write_text(done.output, encoding="utf-8")
    assert done.output == PICTURE.read_text(encoding="utf-8")
    assert "(docs/report.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_picture_is_xml_and_text_stays_text() -> None:
    hostile = "</text><script>alert(1)</script>&\"'\x1b[31m"
    document = Document(hostile, (Paragraph((Span(hostile, Style.BAD),)), Quote("显存", hostile), Bar("a", (Slice(hostile, "1", 1.0),))))
    picture = render(document, width=100)
    ElementTree.fromstring(picture)
    assert "<script" not in picture and "\x1b" not in picture


def test_a_run_of_text_is_as_wide_as_its_cells() -> None:
    picture = render(Document("t", (Paragraph((Span("显存 GPU"),)),)), width=40)
    (width,) = re.findall(r'textLength="([\d.]+)" lengthAdjust="spacingAndGlyphs">显存 GPU<', picture)
    assert float(width) == pytest.approx(cell_len("显存 GPU") * 8.4)
