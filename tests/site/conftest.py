"""A built page on loopback and a browser whose every request goes through a recorder. Skipped where one of them is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from page_server import SCREEN, PageServer, begin_anew, open_view, started_browser

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
AXE = "axe-core@4.14.1"


@pytest.fixture(scope="session")
def built() -> Path:
    """Return the folder of the built page: $OOMDOCTOR_SITE, else dist/site."""
    folder = Path(os.environ.get("OOMDOCTOR_SITE") or ROOT / "dist" / "site")
    if not (folder / "index.html").is_file():
        pytest.skip("no built page: python tools/build_site.py --out dist/site")
    return folder


@pytest.fixture(scope="session")
def served(built: Path) -> Iterator[PageServer]:
    with PageServer(built) as server:
        yield server


@pytest.fixture(scope="session")
def browser(served: PageServer) -> Iterator[Browser]:
    with started_browser(served) as running:
        yield running


@pytest.fixture(scope="module")
def started(browser: Browser, served: PageServer) -> Iterator[Page]:
    """Return the page, ready to answer; the tests of a file share it, as its Python takes seconds to start."""
    context = browser.new_context(locale="en-US", viewport=SCREEN, accept_downloads=True)
    page = context.new_page()
    open_view(page, served, "log")
    yield page
    context.close()


@pytest.fixture
def opened(started: Page) -> Page:
    """Return the page as a reader finds it, whatever a test before this one did."""
    begin_anew(started)
    return started


@pytest.fixture(scope="session")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the source of axe-core, fetched by npm."""
    folder = tmp_path_factory.mktemp("axe")
    npm = shutil.which("npm")
    fetched = npm and subprocess.run([npm, "pack", "--silent", AXE], cwd=folder, capture_output=True, check=False).returncode == 0
    if not fetched:
        pytest.skip(f"{AXE} could not be fetched")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        source = archive.extractfile("package/axe.min.js")
        assert source is not None
        return source.read().decode()
