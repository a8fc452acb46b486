"""The wheel of the page: the same bytes each time, its licences in it, and `oomdoctor web` opens it with no checkout and no network."""

from __future__ import annotations

import base64
import configparser
import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from email.parser import BytesParser
from pathlib import Path

import pytest
from build_page_wheel import metadata, write_wheel
from site_build.downloads import read_lock

from oomdoctor import __version__

ROOT = Path(__file__).parents[2]
BUILT = Path(os.environ.get("OOMDOCTOR_SITE") or ROOT / "dist" / "site")


@pytest.fixture(params=[pytest.param(False, id="a page of three files"), pytest.param(True, id="the built page")])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param:
        if not (BUILT / "version.json").is_file():
            pytest.skip("no built page: python tools/build_site.py --out dist/site")
        return BUILT
    folder = tmp_path / "site"
    (folder / "runtime").mkdir(parents=True)
    files = {"index.html": "<h1>page</h1>", "runtime/python.wasm": "wasm", "licenses.txt": "licences"}
    for name, text in (files | {"sw.js": "", "stray.txt": "of no list"}).items():
        (folder / name).write_text(text)
    listed = {name: {"bytes": len(text), "sha256": hashlib.sha256(text.encode()).hexdigest()} for name, text in files.items()}
    (folder / "version.json").write_text(json.dumps({"version": __version__, "files": listed}))
    return folder


def test_another_build_is_the_same_bytes_wherever_the_page_lies(site: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(site, tmp_path / "moved")
    first, again = write_wheel(site, tmp_path / "first"), write_wheel(moved, tmp_path / "again")
    assert first.name == again.name == f"oomdoctor_page-{__version__}-py3-none-any.whl"
    assert first.read_bytes() == again.read_bytes()


def test_its_record_names_every_file_by_its_hash_and_only_files_of_the_page(site: Path, tmp_path: Path) -> None:
    inside = zipfile.ZipFile(write_wheel(site, tmp_path / "wheel"))
    info = f"oomdoctor_page-{__version__}.dist-info"
    rows = {name: digest for name, digest, _ in csv.reader(io.StringIO(inside.read(f"{info}/RECORD").decode()))}
    assert set(rows) == set(inside.namelist()) and "oomdoctor_page/site/stray.txt" not in rows
    for name, digest in rows.items():
        if digest:
            assert digest == "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(inside.read(name)).digest()).rstrip(b"=").decode()
    assert {f"{info}/licenses/LICENSE", f"{info}/licenses/licenses.txt"} <= set(rows)


def test_its_metadata_names_the_licences_of_all_that_is_in_it() -> None:
    lock = read_lock(ROOT / "site")
    told = BytesParser().parsebytes(metadata("1.2", lock))
    packaging = pytest.importorskip("packaging.licenses")
    assert packaging.canonicalize_license_expression(told["License-Expression"])
    assert all(each.licence in told["License-Expression"] for each in lock.files)
    assert told.get_all("License-File") == ["LICENSE", "licenses.txt"]


def test_all_that_names_the_version_names_this_one() -> None:
    settings = configparser.ConfigParser()
    settings.read(ROOT / "setup.cfg", encoding="utf-8")
    assert settings["options.extras_require"]["web"].strip() == f"oomdoctor-page == {__version__}"
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\n## [{__version__}]" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to other processes")
def test_it_opens_over_loopback_from_a_fresh_environment(site: Path, tmp_path: Path) -> None:
    """Installed as pip does it; the program is that of this tree, from a folder without a checkout, with no other network than loopback."""
    wheel, place = write_wheel(site, tmp_path / "wheel"), tmp_path / "installed"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", str(place), str(wheel)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONWARNINGS": "ignore"})
    program = tmp_path / "program"
    shutil.copytree(ROOT / "oomdoctor", program / "oomdoctor", ignore=shutil.ignore_patterns("__pycache__"))
    environ = {**os.environ, "PYTHONPATH": f"{program}{os.pathsep}{place}", "http_proxy": "", "https_proxy": ""}
    started = [sys.executable, "-m", "oomdoctor", "web", "--no-browser"]
    with subprocess.Popen(started, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            line = running.stdout.readline()
            assert line.startswith("oomdoctor: http://127.0.0.1:"), line or running.stderr.read() if running.stderr else line
            address = line.split()[1]
            listed = json.loads((site / "version.json").read_bytes())["files"]
            for name in listed:
                with urllib.request.urlopen(address + name, timeout=30) as answer:
                    assert hashlib.sha256(answer.read()).hexdigest() == listed[name]["sha256"]
        finally:
            running.terminate()
