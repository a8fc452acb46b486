"""axe finds nothing to complain about: each view, with its report, in both languages and both schemes, wide and narrow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from page_server import open_view
from snapshots.made_snapshots import leaking, pickled

if TYPE_CHECKING:
    from collections.abc import Iterator

    from page_server import PageServer
    from playwright.sync_api import Browser, Page

RULES = ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]
LOG = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.02 GiB is free."
VIEWS = ("log", "fit", "snapshot")


@pytest.fixture(scope="module", params=["en-US", "zh-CN"])
def answered(
    request: pytest.FixtureRequest, browser: Browser, served: PageServer, axe: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Page]:
    """Return the page with an answer in each view and all that is folded open."""
    context = browser.new_context(locale=request.param)
    page = context.new_page()
    open_view(page, served, "log")
    page.locator("#log-text").fill(LOG)
    page.locator("#log-text").press("Control+Enter")
    page.locator("#view-log .report").wait_for()
    page.goto(f"{served.url}#snapshot")
    snapshot = tmp_path_factory.mktemp("snapshot") / "rank0.pickle"
    snapshot.write_bytes(pickled(leaking()))
    with page.expect_file_chooser() as chooser:
        page.locator("#view-snapshot [data-act=files]").click()
    chooser.value.set_files([snapshot])
    page.locator("#view-snapshot .report").wait_for()
    page.goto(f"{served.url}#fit")
    for tab in ("plan", "cards", "formats", "sweep"):
        page.locator(f"#tab-{tab}").click()
        page.locator(f"#panel-{tab}:not([aria-busy]) .report").wait_for()
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    page.evaluate(axe)
    yield page
    context.close()


@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing(answered: Page, served: PageServer, view: str, scheme: str, width: int) -> None:
    answered.goto(f"{served.url}#{view}")
    answered.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    answered.set_viewport_size({"width": width, "height": 900})
    found = answered.evaluate("rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", RULES)
    complaints = [(each["id"], each["help"], [node["html"][:200] for node in each["nodes"][:3]]) for each in found["violations"]]
    assert complaints == [], json.dumps(complaints, indent=1, ensure_ascii=False)
