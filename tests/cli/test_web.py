"""The page on the loopback address: its own files, to its own name, with the policy; nothing else."""

from __future__ import annotations

import http.client
import json
import os
import shlex
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from oomdoctor.cli.main import cli
from oomdoctor.cli.web import web
from oomdoctor.cli.web.page_server import listed_files, serve_page
from oomdoctor.errors import UsageError


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    (folder / "runtime").mkdir(parents=True)
    for name in ("index.html", "runtime/python.wasm", "sw.js", "not-listed.txt"):
        (folder / name).write_bytes(name.encode())
    (tmp_path / "secret.txt").write_text("secret")
    files = {name: {"bytes": 1, "sha256": ""} for name in ("index.html", "runtime/python.wasm", "../secret.txt")}
    (folder / "version.json").write_text(json.dumps({"version": "0", "files": files}))
    return folder


@pytest.fixture
def port(site: Path) -> Iterator[int]:
    with serve_page(str(site), 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def answer(port: int, path: str, *, method: str = "GET", host: str | None = None) -> tuple[int, http.client.HTTPMessage, bytes]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=10)) as connection:
        connection.request(method, path, headers={"Host": host or f"127.0.0.1:{port}"})
        with connection.getresponse() as response:
            return response.status, response.headers, response.read()


@pytest.mark.parametrize(("path", "kind"), [
    pytest.param("/", "text/html; charset=utf-8", id="the page itself"),
    pytest.param("/runtime/python.wasm", "application/wasm", id="what compiles while it comes in"),
    pytest.param("/sw.js", "text/javascript; charset=utf-8", id="the service worker, which no list names"),
    pytest.param("/index.html?lang=zh", "text/html; charset=utf-8", id="a question in the address changes nothing"),
])  # fmt: skip
def test_files_of_the_page_are_sent_with_the_policy(port: int, path: str, kind: str) -> None:
    status, headers, data = answer(port, path)
    assert (status, headers["Content-Type"]) == (200, kind)
    assert data == (path.partition("?")[0].lstrip("/") or "index.html").encode()
    assert "default-src 'none'" in headers["Content-Security-Policy"] and "unsafe-inline" not in headers["Content-Security-Policy"]


@pytest.mark.parametrize(("path", "host", "status"), [
    pytest.param("/not-listed.txt", None, 404, id="a file beside the page"),
    pytest.param("/../secret.txt", None, 404, id="a file above it, though its list names it"),
    pytest.param("/..%2fsecret.txt", None, 404, id="the same in escapes"),
    pytest.param("/index.html", "evil.example", 421, id="another name for this address"),
    pytest.param("/index.html", "127.0.0.1", 421, id="the name without the port"),
])  # fmt: skip
def test_nothing_else_is_sent(port: int, path: str, host: str | None, status: int) -> None:
    code, _, data = answer(port, path, host=host)
    assert code == status and b"secret" not in data


def test_only_reading_is_possible(port: int) -> None:
    assert answer(port, "/", method="POST")[0] == 501
    assert answer(port, "/", method="HEAD")[2] == b""


def test_the_address_is_of_this_machine_alone(site: Path) -> None:
    with serve_page(str(site), 0) as server:
        assert server.server_address[0] == "127.0.0.1"


def test_a_port_in_use_is_said(site: Path, port: int) -> None:
    with pytest.raises(UsageError, match=f"cannot listen on port {port}"):
        serve_page(str(site), port)


@pytest.mark.parametrize("text", [pytest.param(None, id="nothing"), pytest.param("{", id="no JSON"), pytest.param("[]", id="another JSON")])
def test_a_folder_without_a_page_is_said(text: str | None, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "version.json").write_text(text)
    with pytest.raises(UsageError, match="contains no built page"):
        listed_files(str(tmp_path))


def test_without_the_page_the_way_to_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_CHECKOUT", str(tmp_path))
    monkeypatch.setattr(web, "_PAGE", "no_such_package")
    done = CliRunner().invoke(cli, ["web"])
    assert isinstance(done.exception, UsageError)
    assert "pip install 'oomdoctor[web]'" in str(done.exception) and "python tools/build_site.py --out dist/site" in str(done.exception)


BROWSER = """
import os, signal, sys, urllib.request
with urllib.request.urlopen(sys.argv[2], timeout=30) as page, open(sys.argv[1], "wb") as file:
    file.write(page.read())
os.kill(os.getppid(), signal.SIGINT)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to other processes")
def test_a_browser_that_comes_back_only_when_it_is_left_gets_the_page(site: Path, tmp_path: Path) -> None:
    script, shown = tmp_path / "browser.py", tmp_path / "shown"
    script.write_text(BROWSER)
    environ = os.environ | {"BROWSER": f"{shlex.join([sys.executable, str(script), str(shown)])} %s"}
    command = [sys.executable, "-m", "oomdoctor", "web", "--site", str(site)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert shown.read_text() == "index.html"
