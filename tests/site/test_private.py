"""Nothing leaves the page: what a browser asks for, what its policy stops, and what works with no network at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from page_server import PageServer, open_view

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CANARY = "xq7canary4482"
LOG = f"""{CANARY} user@{CANARY}.internal /data/{CANARY}/train.py
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.02 GiB is free.
"""
ELSEWHERE = "https://elsewhere.example/"


def diagnosed(page: Page, text: str) -> str:
    """Paste a log and return the report."""
    page.locator("#log-text").fill(text)
    page.locator("#log-text").press("Control+Enter")
    page.locator("#view-log .report").wait_for()
    return str(page.locator("#view-log .report").inner_text())


def test_no_request_goes_elsewhere_and_none_carries_the_log(opened: Page, served: PageServer) -> None:
    asked: list[str] = []
    opened.context.on("request", lambda request: asked.append(request.url))
    opened.reload()
    assert "2.00 GiB" in diagnosed(opened, LOG)
    opened.locator("#view-log .share summary").click()
    opened.locator("#view-log .share button").first.click()
    opened.locator("#view-log .copied textarea").wait_for()
    assert served.hosts == {served.host}
    assert len(asked) > 10 and [url for url in asked if not url.startswith((served.url, f"blob:{served.url}", "data:"))] == []
    assert len(served.own) > 10 and {request.method for request in served.own} == {"GET"}
    assert [request for request in served.requests if CANARY in request.path + request.rest] == []


@pytest.mark.parametrize("how", [
    pytest.param(f"fetched('{ELSEWHERE}')", id="a request to another host"),
    pytest.param(f"fetched('{ELSEWHERE}', {{mode: 'no-cors', method: 'POST', body: 'x'}})", id="a post to another host"),
    pytest.param(f"import('{ELSEWHERE}x.js')", id="a script of another host"),
    pytest.param("new Function('return 1')()", id="a text that is run"),
])  # fmt: skip
@pytest.mark.parametrize("where", ["page", "worker"])
def test_the_policy_stops(opened: Page, served: PageServer, where: str, how: str) -> None:
    """The worker takes `fetch` away from itself; here it gets it back, to see that the policy alone holds."""
    place = opened if where == "page" else opened.workers[0]
    answer = place.evaluate(
        """() => new Promise(resolve => setTimeout(async () => {
            const fetched = (...of) => (self.WorkerGlobalScope?.prototype.fetch ?? fetch).apply(self, of)
            try { resolve(`went through: ${await HOW}`) } catch (error) { resolve(`stopped: ${error}`) }
        }))""".replace("HOW", how)
    )
    assert answer.startswith("stopped: "), answer
    assert served.hosts == {served.host}


def test_the_page_works_without_its_host(browser: Browser, built: Path) -> None:
    with PageServer(built) as server:
        page = browser.new_context(locale="en-US", proxy={"server": f"http://{server.host}"}).new_page()
        open_view(page, server, "log")
        server.stop()
        page.reload()
        page.locator("#engine-text.ready").wait_for()
        assert "2.00 GiB" in diagnosed(page, LOG)
