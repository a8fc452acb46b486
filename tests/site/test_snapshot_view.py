"""The view of snapshots: the answer, the chart first, its bands and its time, ranks beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from snapshots.made_snapshots import leaking, pickled, training

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def shown(opened: Page, tmp_path: Path) -> Page:
    """Return the page with the snapshots of two ranks."""
    files = [tmp_path / "rank0.pickle", tmp_path / "rank1.pickle"]
    for file, program in zip(files, (training(), leaking())):
        file.write_bytes(pickled(program))
    opened.evaluate("location.hash = '#snapshot'")
    with opened.expect_file_chooser() as chooser:
        opened.locator("#view-snapshot [data-act=files]").click()
    chooser.value.set_files(files)
    opened.locator("#snapshot-result:focus").wait_for()
    return opened


def window(page: Page) -> list[float]:
    """Return where the shown time begins, and how long it is."""
    x, _, width, _ = (page.locator("#view-snapshot svg.window").get_attribute("viewBox") or "").split()
    return [float(x), float(width)]


def test_the_answer_and_the_chart_come_first(shown: Page) -> None:
    report = shown.locator("#view-snapshot .report")
    assert [report.locator(":scope > *").nth(at).evaluate("each => each.tagName") for at in range(3)] == ["P", "P", "FIGURE"]
    assert "was in use when it failed: 47 % app/scores.py:52:add" in report.locator("p").nth(1).inner_text()
    assert "rank0.pickle" in report.inner_text()


def test_a_click_on_a_band_opens_its_stack(shown: Page) -> None:
    chart = shown.locator("#view-snapshot svg.chart").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    shown.mouse.click(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.9)
    opened = shown.locator("#view-snapshot .legend details[open]")
    assert opened.count() == 1
    assert "app/scores.py:52:add\napp/fit.py:80:main" in opened.inner_text()
    assert opened.locator("summary").evaluate("each => each === document.activeElement")


def test_the_time_is_stretched_and_moved_with_the_keyboard(shown: Page) -> None:
    start, whole = window(shown)
    near, far, earlier, later = (shown.locator("#view-snapshot .zoom button").nth(at) for at in range(4))
    near.focus()
    shown.keyboard.press("Enter")
    assert window(shown) == pytest.approx([start + whole / 4, whole / 2])
    later.press("Enter")
    assert window(shown) == pytest.approx([start + whole / 2, whole / 2])
    later.press("Enter")
    assert window(shown) == pytest.approx([start + whole / 2, whole / 2]), "the end of the recording"
    earlier.press("Enter")
    far.press("Enter")
    assert window(shown) == pytest.approx([start, whole])
    assert [button.get_attribute("aria-label") for button in (near, far, earlier, later)] == ["Zoom in", "Zoom out", "Earlier", "Later"]


@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_stands_beyond_the_edge_when_all_is_open(shown: Page, width: int) -> None:
    shown.set_viewport_size({"width": width, "height": 844})
    shown.evaluate("for (const each of document.querySelectorAll('#view-snapshot details')) each.open = true")
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
