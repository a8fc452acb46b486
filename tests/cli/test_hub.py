"""`--hub`: the config.json of a model that is not known is fetched where it is asked for, and found again without."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from click.testing import CliRunner

from oomdoctor.cli.main import cli
from oomdoctor.errors import UsageError
from oomdoctor.setups.model_files import is_hub_name, read_shape

CONFIG = {
    "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 4,
    "intermediate_size": 4096, "vocab_size": 32000,
}  # fmt: skip
RUN = ["--method", "lora", "--batch", "1", "--length", "512", "--format", "json"]


class _Hub(BaseHTTPRequestHandler):
    requested: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.requested.append(self.path)
        known = self.path == "/our/small-llama/resolve/main/config.json"
        self.send_response(200 if known else 401 if "closed" in self.path else 404)
        self.end_headers()
        if known:
            self.wfile.write(json.dumps(CONFIG).encode())

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: the output belongs to the test."""


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[list[str]]:
    server = HTTPServer(("127.0.0.1", 0), _Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    _Hub.requested.clear()
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "MODELSCOPE_CACHE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    yield _Hub.requested
    server.shutdown()
    thread.join()
    server.server_close()


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, [*arguments])
    return (2, str(done.exception)) if isinstance(done.exception, UsageError) else (done.exit_code, done.output)


def test_it_is_fetched_once_and_found_again(hub: list[str]) -> None:
    status, before = run("estimate", "--model", "our/small-llama", *RUN)
    assert (status, hub) == (2, [])
    assert "--hub" in before
    assert run("estimate", "--model", "our/small-llama", "--hub", *RUN)[0] == 0
    status, again = run("estimate", "--model", "our/small-llama", "--hub", *RUN)
    assert (status, hub) == (0, ["/our/small-llama/resolve/main/config.json"])
    assert json.loads(again)["model"] == "our/small-llama"


def test_nothing_is_fetched_of_a_model_that_is_known(hub: list[str]) -> None:
    assert run("estimate", "--model", "Qwen/Qwen2.5-7B", "--hub", *RUN)[0] == 0
    assert hub == []


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize(("name", "why"), [
    pytest.param("our/nothing", "it has no such model", id="a name that is not there"),
    pytest.param("our/closed", "it requires a login", id="a model behind a login"),
    pytest.param("nothing-like-it", "not a hub model name", id="a name without an owner"),
    pytest.param("../../etc/passwd", "not a hub model name", id="a way out"),
])  # fmt: skip
def test_why_it_cannot_be_had(name: str, why: str) -> None:
    status, output = run("estimate", "--model", name, "--hub", *RUN)
    assert status == 2
    assert why in output


def test_plan_and_check_fetch_the_model_of_the_config(hub: list[str], tmp_path: Path) -> None:
    path = tmp_path / "sft.yaml"
    path.write_text(
        "model_name_or_path: our/small-llama\nstage: sft\nfinetuning_type: lora\ncutoff_len: 512\nper_device_train_batch_size: 1\n"
    )
    assert run("check", str(path), "--gpu", "24GB")[0] == 2
    assert run("check", str(path), "--gpu", "24GB", "--hub")[0] == 0
    assert run("plan", str(path), "--gpu", "24GB", "--hub")[0] == 0
    assert len(hub) == 1


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("folder", [
    pytest.param("HF_HUB_CACHE/models--our--Small-1.5/snapshots/abc/config.json", id="the cache of huggingface_hub"),
    pytest.param("MODELSCOPE_CACHE/hub/models/our/Small-1___5/config.json", id="the cache of ModelScope, which writes a dot so"),
])  # fmt: skip
def test_what_a_download_left_is_found(tmp_path: Path, folder: str) -> None:
    path = tmp_path / folder
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(CONFIG))
    shape = read_shape("our/Small-1.5")
    assert shape is not None
    assert (shape.name, shape.layers) == ("our/Small-1.5", 8)


@pytest.mark.parametrize("name", ["../x", "a/..", "a/../b", "/etc/passwd", "a/b/c", "", "-a/b", "a\n/b"])
def test_what_is_no_name_on_a_hub(name: str) -> None:
    assert not is_hub_name(name)
