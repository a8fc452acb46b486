"""`triage metrics` and `triage notify`: what Prometheus reads, and what goes to a channel, and only there."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from in_process import Done, oomdoctor

WELL = "step 10 loss 2.1\nTraining completed.\n"


def message(gib: int) -> str:
    return (
        'Traceback (most recent call last):\n  File "/home/me/fit.py", line 31, in step\n    loss.backward()\n'
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {gib}.00 GiB. GPU 0 has a total capacity of 39.39 GiB of which "
        "1.12 GiB is free. Including non-PyTorch memory, this process has 38.20 GiB memory in use. Of the allocated memory 36.60 GiB is "
        "allocated by PyTorch, and 1.10 GiB is reserved by PyTorch but unallocated.\n"
    )


class Site:
    """Logs, their store, and the commands on them."""

    def __init__(self, folder: Path) -> None:
        self.logs, self.store = folder / "logs", folder / "store"
        self.logs.mkdir()

    def put(self, name: str, text: str) -> None:
        (self.logs / name).write_text(text)

    def run(self, *arguments: str, **environ: str) -> Done:
        return oomdoctor(["triage", *arguments, "--store", str(self.store)], environ=environ)

    def triage(self, records: Path | None = None) -> None:
        told = () if records is None else ("--records", str(records))
        assert self.run("logs", str(self.logs), "--jobs", "1", *told).returncode in (0, 1)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    made.put("sft-771234.out", message(3))
    made.put("sft-771235.out", message(3))
    made.put("sft-771236.out", WELL)
    made.put("sft-771237.out", "")
    return made


def samples(text: str) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    parser = pytest.importorskip("prometheus_client.parser")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in parser.text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_prometheus_reads_the_figures(site: Site, tmp_path: Path) -> None:
    records = tmp_path / "sacct.psv"
    strange = 'gpu"\\long'
    records.write_text(f"JobID|JobName|User|Partition|State\n771234|sft|u7|{strange}|FAILED\n")
    site.triage(records)
    output = tmp_path / "collector" / "oomdoctor.prom"
    output.parent.mkdir()
    assert site.run("metrics", "--output", str(output)).returncode == 0
    read = samples(output.read_text())
    assert [entry.name for entry in output.parent.iterdir()] == ["oomdoctor.prom"]
    jobs = {labels[0][1]: value for (name, labels), value in read.items() if name == "oomdoctor_jobs"}
    assert jobs == {"yes": 2, "possible": 0, "no": 1, "unread": 1}
    partitions = {dict(labels)["partition"]: value for (name, labels), value in read.items() if name == "oomdoctor_memory_failures"}
    assert partitions == {strange: 1, "": 1}
    assert {key for _, labels in read for key, _ in labels} <= {"memory_failure", "kind", "signature", "partition", "group", "node"}
    assert read["oomdoctor_triage_last_run_timestamp_seconds", ()] > 0


def test_no_number_of_groups_makes_many_series(site: Site) -> None:
    for number in range(80):
        site.put(f"{'abcdefgh'[number % 8] * 3}{'klmnopqrst'[number // 8] * 3}-7713{number:02}.out", message(3))
    site.triage()
    read = samples(site.run("metrics").stdout)
    assert sum(name == "oomdoctor_group_jobs" for name, _ in read) == 50


class Received:
    """What a server was sent."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[bytes] = []


@contextmanager
def webhook(status: int = 200, location: str | None = None, port: int = 0) -> Iterator[Received]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            if location is not None:
                self.send_header("Location", location)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", port), Handler)
    received = Received(f"http://127.0.0.1:{server.server_port}/services/secret-path")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_channel_hears_of_a_new_group_once(site: Site) -> None:
    site.triage()
    with webhook() as first:
        assert site.run("notify", "--for", "slack", "--post", first.url).returncode == 0
    told = json.loads(first.bodies[0])
    assert told["text"] == "1 new group of memory failures"
    assert "2 jobs: GPU memory" in told["blocks"][1]["text"]["text"]
    site.put("sft-771240.out", message(3))
    site.triage()
    with webhook() as again:
        assert site.run("notify", "--for", "slack", "--post", again.url).returncode == 0
    assert again.bodies == []
    site.put("eval-880001.out", message(24))
    site.triage()
    with webhook() as other:
        assert site.run("notify", "--for", "slack", OOMDOCTOR_WEBHOOK=other.url).returncode == 0
    assert len(other.bodies) == 1


def test_what_could_not_be_sent_is_sent_the_next_time_and_once(site: Site) -> None:
    site.triage()
    post = ("notify", "--for", "slack", "--post")
    with webhook() as channel:
        url = channel.url
    assert site.run(*post, url).returncode == 2  # nobody is there
    site.put("eval-880001.out", message(24))
    site.triage()
    site.triage()
    assert site.run(*post, url).returncode == 2
    with webhook(port=int(url.split(":")[2].split("/")[0])) as channel:
        assert [site.run(*post, url).returncode for _ in range(2)] == [0, 0]
    (body,) = channel.bodies
    told = [block["text"]["text"] for block in json.loads(body)["blocks"]]
    assert [line.split(":")[0] for line in told] == ["2 new groups of memory failures", "2 jobs", "1 job"]


def test_a_refused_message_is_due_again_while_other_channels_have_theirs(site: Site) -> None:
    site.triage()
    post = ("notify", "--for", "slack", "--post")
    with webhook(status=503) as down, webhook() as up:
        assert [site.run(*post, channel.url).returncode for channel in (down, up, down, up)] == [2, 0, 2, 0]
    assert (len(down.bodies), len(up.bodies)) == (2, 1)


def test_names_of_jobs_are_no_markup_of_slack(site: Site) -> None:
    site.put("<!channel>-880001.out", message(24))
    site.triage()
    told = json.loads(site.run("notify", "--for", "slack").stdout)
    assert any("<!channel>" in block["text"]["text"] for block in told["blocks"])
    assert "<" not in told["text"]
    assert {block["text"]["type"] for block in told["blocks"]} == {"plain_text"}


def test_a_message_to_slack_stays_within_its_bounds(site: Site) -> None:
    for number in range(60):
        site.put(f"{'abcdefgh'[number % 8] * 40}{'klmnopqrst'[number // 8] * 40}-7713{number:02}.out", message(3))
    site.triage()
    told = json.loads(site.run("notify", "--for", "slack").stdout)
    assert len(told["blocks"]) <= 50
    assert max(len(block["text"]["text"]) for block in told["blocks"]) <= 3000


def test_alertmanager_gets_a_list_of_alerts(site: Site) -> None:
    site.triage()
    with webhook() as received:
        site.run("notify", "--for", "alertmanager", "--post", received.url)
    (alert,) = json.loads(received.bodies[0])
    assert (alert["labels"]["alertname"], alert["labels"]["kind"]) == ("OomdoctorNewGroup", "device-oom")
    assert all(isinstance(value, str) for part in alert.values() for value in part.values())


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "gopher://127.0.0.1",
        "127.0.0.1/x",
        "http://",
        "https:///x",
        "http://[::1/x",
        "http://h:x/",
    ],
)
def test_nothing_is_sent_to_what_is_no_web_address(site: Site, url: str) -> None:
    site.triage()
    done = site.run("notify", "--for", "slack", "--post", url)
    assert (done.returncode, "http://" in done.stderr) == (2, True)


def test_a_server_that_refuses_is_named_without_the_secret_of_its_address(site: Site) -> None:
    site.triage()
    with webhook(status=403) as received:
        done = site.run("notify", "--for", "slack", "--post", received.url)
    assert (done.returncode, "secret-path" in done.stderr, "403" in done.stderr) == (2, False, True)


@pytest.mark.parametrize("url", ["http://127.0.0.1/secret path", "http://127.0.0.1/secret\u00e9"], ids=["a blank", "no ASCII"])
def test_an_address_that_cannot_be_asked_is_refused_without_its_secret(site: Site, url: str) -> None:
    site.triage()
    done = site.run("notify", "--for", "slack", "--post", url)
    assert (done.returncode, "secret" in done.stderr, "127.0.0.1 cannot be reached" in done.stderr) == (2, False, True)


def test_a_server_that_sends_elsewhere_is_not_followed(site: Site) -> None:
    site.triage()
    with webhook() as elsewhere, webhook(status=302, location=elsewhere.url) as received:
        done = site.run("notify", "--for", "slack", "--post", received.url)
    assert (done.returncode, elsewhere.bodies) == (2, [])
