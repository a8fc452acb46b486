"""What a person reads of snapshots, in text, on a page and in JSON."""

from __future__ import annotations

import json
import pickle
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from snapshots.made_snapshots import LAYER, MIB, Program, filled, fragmented, leaking, pickled, survived, training, without_history

from oomdoctor.cli.main import cli
from oomdoctor.report.wire.runs.snapshot_v1 import SnapshotV1

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_HOSTILE = '/home/ann/<script>alert(1)</script>"onload="x.py:7:</title><img src=x onerror=alert(2)>'


def answer(tmp_path: Path, *arguments: str, **files: Program) -> str:
    for name, program in files.items():
        (tmp_path / f"{name}.pickle").write_bytes(pickled(program))
    names = [str(tmp_path / f"{name}.pickle") for name in files]
    command = arguments[:1] if arguments[:1] == ("compare",) else ("snapshot",)
    options = arguments[len(arguments[:1]) if arguments[:1] == ("compare",) else 0 :]
    done = CliRunner(env={"COLUMNS": "100"}).invoke(cli, [*command, *names, *options, "--exit-zero"])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(("program", "lang", "says"), [
    pytest.param(leaking(), "en", ["GPU 0 could not serve a request of 300.00 MiB, requested by app/net.py:44:forward", "app/scores.py:52:add keeps 60.00 MiB more in each of 8 steps", "optimizer states"], id="a leak"),
    pytest.param(leaking(), "zh", ["GPU 0 无法满足 300.00 MiB 的申请", "在 8 步里每步多占 60.00 MiB", "优化器状态"], id="a leak, in Chinese"),
    pytest.param(fragmented(), "en", ["What separates the free blocks", "app/tables.py:12:grow", "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"], id="free pieces between blocks"),
    pytest.param(survived(), "en", ["failed on GPU 0, and the program continued"], id="the program went on"),
    pytest.param(training(), "en", ["No request failed in this recording.", "In use", "█"], id="a steady run"),
    pytest.param(Program(), "en", ["It contains no GPU memory"], id="nothing was held"),
    pytest.param(without_history(), "en", ["Allocations were not recorded", 'stacks="python"'], id="nothing was recorded"),
])  # fmt: skip
def test_the_text_says(tmp_path: Path, program: Program, lang: str, says: list[str]) -> None:
    text = answer(tmp_path, "--lang", lang, run=program)
    joined = re.sub(r"\s+", " ", text)
    assert [piece for piece in says if piece not in joined] == []
    assert "ann" not in text.replace("annot", "")


@pytest.mark.parametrize(("size", "says"), [
    pytest.param("8GiB", "Much of the GPU is neither free nor used by this process", id="a card of others"),
    pytest.param("2400MiB", "What the memory is used for", id="a card of our own"),
])  # fmt: skip
def test_a_card_that_is_known_tells_of_others(tmp_path: Path, size: str, says: str) -> None:
    odd = ("/home/ann/app/odd.py:9:hold",)
    text = answer(tmp_path, "--card", size, run=filled(odd, asking=odd))
    assert says in text
    assert ("neither" in text) is ("neither" in says)


def test_a_narrow_terminal_has_no_line_of_heights(tmp_path: Path) -> None:
    (tmp_path / "run.pickle").write_bytes(pickled(training()))
    done = CliRunner(env={"COLUMNS": "50"}).invoke(cli, ["snapshot", str(tmp_path / "run.pickle")])
    assert "over time" not in done.output


@pytest.mark.parametrize(("weights", "says"), [
    pytest.param(900, "rank2.pickle holds 500.00 MiB more than the median of the others: 500.00 MiB at app/fit.py:20:main (weights).", id="one holds more"),
    pytest.param(400, "They hold about the same.", id="all alike"),
])  # fmt: skip
def test_ranks_stand_beside_each_other(tmp_path: Path, weights: int, says: str) -> None:
    ranks = {f"rank{rank}": training(steps=4, weights=weights if rank == 2 else 400) for rank in range(3)}
    assert says in re.sub(r"\s+", " ", answer(tmp_path, **ranks))


def test_two_snapshots_are_compared_by_their_lines(tmp_path: Path) -> None:
    told = json.loads(
        answer(tmp_path, "compare", "--format", "json", before=training(steps=9), after=training(steps=9, weights=700, leak=30))
    )
    change = told["snapshots"]
    assert told["matters"]
    assert (change["peak"]["after_bytes"] - change["peak"]["before_bytes"]) // MIB == 300 + 8 * 30
    assert [(entry["category"], entry["size"]["after_bytes"] - entry["size"]["before_bytes"]) for entry in change["holders"]] == [
        ("weights", 300 * MIB), ("unknown", 240 * MIB),
    ]  # fmt: skip
    assert [entry["per_step"] for entry in change["growth"]] == [{"before_bytes": 0, "after_bytes": 30 * MIB}]


def test_a_snapshot_compared_with_itself_matters_not(tmp_path: Path) -> None:
    told = json.loads(answer(tmp_path, "compare", "--format", "json", before=training(), after=training()))
    assert (told["matters"], told["snapshots"]["holders"]) == (False, [])


class _Tags(HTMLParser):
    """The elements of a page and their attributes."""

    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}


_HARMLESS = frozenset({
    "html", "head", "meta", "title", "style", "body", "main", "footer", "h2", "p", "span", "strong", "code", "pre", "figure", "figcaption",
    "table", "tr", "th", "td", "div", "details", "summary", "ol", "li", "svg", "path", "text", "rect", "circle", "tspan", "desc", "ul",
})  # fmt: skip


def _crowded() -> Program:
    """Return a run of a thousand steps with as many lines as there are, each piece of memory beside another."""
    program = Program()
    segment = program.reserve(8000 * MIB)
    for number in range(4000):
        place = f"/home/ann/app/part{number % 300}.py:{number % 97}:a_function_of_some_length_{number % 300}"
        program.ask(MIB + number % 7 * 4096, place, *LAYER, at=segment + number * 2 * MIB)
    return program


@pytest.mark.parametrize("program", [
    pytest.param(leaking(), id="a leak"),
    pytest.param(fragmented(), id="free pieces"),
    pytest.param(without_history(), id="nothing recorded"),
    pytest.param(_crowded(), id="thousands of pieces"),
    pytest.param(filled((_HOSTILE,), asking=(_HOSTILE,)), id="names that would be markup"),
])  # fmt: skip
def test_the_page_is_whole_small_and_without_scripts(tmp_path: Path, program: Program) -> None:
    page = answer(tmp_path, "--format", "html", run=program)
    assert len(page.encode()) < 300_000
    reader = _Tags()
    reader.feed(page)
    assert reader.names <= _HARMLESS
    assert [name for name in reader.attributes if name.startswith("on") or name in ("src", "href", "action", "srcset")] == []
    assert "default-src 'none'" in page


def said_of(tmp_path: Path, data: bytes, *options: str) -> tuple[int, str]:
    """Return how the command ended for a file, and what it said, on one line."""
    (tmp_path / "made").write_bytes(data)
    done = CliRunner(env={"COLUMNS": "100"}).invoke(cli, ["snapshot", str(tmp_path / "made"), *options])
    return done.exit_code, re.sub(r"\s+", " ", done.output)


def changed(program: Program, change: Callable[[dict[str, Any]], None]) -> bytes:
    value = pickle.loads(pickled(program))  # noqa: S301 - made here
    change(value)
    return pickle.dumps(value, protocol=4)


@pytest.mark.parametrize(("lang", "says"), [("en", "whether a request failed is unknown"), ("zh", "是否有申请失败，无从得知")])
def test_of_a_file_that_is_cut_off_nobody_says_that_nothing_failed(tmp_path: Path, lang: str, says: str) -> None:
    data = pickled(leaking())
    status, said = said_of(tmp_path, data[: len(data) * 4 // 5], "--lang", lang)
    assert (status, says in said) == (2, True)
    assert "No request failed" not in said
    assert "没有失败的申请" not in said
    assert said_of(tmp_path, data, "--lang", lang)[0] == 1


def test_a_file_that_is_whole_ends_well(tmp_path: Path) -> None:
    status, said = said_of(tmp_path, pickled(training()))
    assert (status, "No request failed" in said) == (0, True)


def test_what_was_asked_for_and_what_was_allocated_have_names_of_their_own(tmp_path: Path) -> None:
    def blocks_are_larger(value: dict[str, Any]) -> None:
        for segment in value["segments"]:
            for block in segment["blocks"]:
                block["requested_size"] -= 512 if block["state"] == "active_allocated" else 0

    data = changed(without_history(), blocks_are_larger)
    end = json.loads(said_of(tmp_path, data, "--format", "json", "--exit-zero")[1])["devices"][0]["end"]
    assert end["requested_bytes"] < end["allocated_bytes"]
    _, said = said_of(tmp_path, data, "--exit-zero")
    sizes = re.search(r"peak (.*?) in use.* (\S+ \S+) in use at the end, (\S+ \S+) allocated", said)
    assert sizes is not None
    assert sizes[1] == sizes[2]


def test_lines_of_blocks_are_told_without_a_history(tmp_path: Path) -> None:
    _, said = said_of(tmp_path, changed(leaking(), lambda value: value["device_traces"][0].clear()), "--exit-zero")
    assert "app/scores.py:52:add" in said
    assert "what happened before is unknown" in said
    assert "who holds what" not in said


def test_a_device_whose_trace_does_not_fit_was_read(tmp_path: Path) -> None:
    def is_smaller(value: dict[str, Any]) -> None:
        value["segments"] = [segment for segment in value["segments"] if segment["segment_type"] == "none"]

    _, said = said_of(tmp_path, changed(leaking(), is_smaller), "--exit-zero")
    assert "device 0: the trace and the saved state are inconsistent" in said
    assert "was not read" not in said


def test_a_number_and_a_colour_mean_one_thing_on_a_page(tmp_path: Path) -> None:
    page = answer(tmp_path, "--format", "html", run=leaking())
    entry = r'(?:<li>|<summary>)<svg class="key"[^>]*><rect class="([^"]+)"[^>]*/><text[^>]*>(\d+)</text></svg>([^<]+)'
    meant: dict[str, set[tuple[str, str]]] = {}
    for hue, number, label in re.findall(entry, page):
        meant.setdefault(label.strip(), set()).add((hue, number))
    assert len(meant) > 3
    assert [label for label, signs in meant.items() if len(signs) > 1] == []
    assert len({sign for signs in meant.values() for sign in signs}) == len(meant)
    assert '<table class="legend">' not in page


def test_drawings_hold_what_was_there(tmp_path: Path) -> None:
    page = answer(tmp_path, "--format", "html", run=leaking())
    over_time, where = re.findall(r'<svg class="chart" .*?</svg>(?!</svg>)', page, re.S)
    assert "out of memory" in over_time
    assert over_time.count('class="step"') == 9
    assert "<title>app/scores.py:52:add (use unknown): 540.00 MiB</title>" in over_time
    assert where.count("<title>app/scores.py:52:add (use unknown): 60.00 MiB</title>") == 1
    assert ">9 × 60.00 MiB</text>" in where, "segments that look alike are one row"


def test_a_holder_opens_with_its_blocks_steps_and_stack(tmp_path: Path) -> None:
    page = answer(tmp_path, "--format", "html", run=leaking())
    opened = {
        re.sub("<[^>]+>", "", head).partition(" ")[0].lstrip("0123456789"): rest
        for head, rest in re.findall(r"<details><summary>(.*?)</summary>(.*?)</details>", page, re.S)
    }
    kept = opened["app/scores.py:52:add"]
    assert "9 blocks at its peak, in use from step 2 to step 10." in kept
    assert "<pre>app/scores.py:52:add\napp/fit.py:80:main</pre>" in kept
    assert "1 block at its peak" in opened["app/fit.py:20:main"]


@pytest.mark.parametrize(("program", "lang", "says"), [
    pytest.param(training(), "en", "950.00 MiB was in use at the peak: 42 % weights, 32 % activations, 21 % optimizer states. No request failed", id="nothing failed"),
    pytest.param(training(), "zh", "峰值时占用 950.00 MiB：权重 42 %", id="in Chinese"),
    pytest.param(leaking(), "en", "1.11 GiB was in use when it failed: 47 % app/scores.py:52:add, 35 % weights", id="a line where the use is unknown"),
    pytest.param(without_history(), "en", "600.00 MiB was in use when the snapshot was taken: 67 % weights", id="nothing was recorded"),
])  # fmt: skip
def test_the_first_sentences_say_what_holds_the_memory(tmp_path: Path, program: Program, lang: str, says: str) -> None:
    told = re.sub(r"\s+", " ", answer(tmp_path, "--lang", lang, run=program))
    assert says in told


def test_a_holder_looks_the_same_on_each_rank(tmp_path: Path) -> None:
    page = answer(tmp_path, "--format", "html", rank0=training(), rank1=leaking())
    beside = page[page.index("colors as above") :]
    looks = {label: hue for hue, label in re.findall(r'<path class="area (a\d)"[^>]*><title>([^<]+?): ', page)}
    drawn = re.findall(r'<rect class="part (\w+)"[^>]*><title>([^<]+?): ', beside)
    assert len(drawn) > 5 and all(looks[label] == hue for hue, label in drawn if label in looks)
    assert {label for _, label in drawn} >= {"app/scores.py:52:add (use unknown)", "app/net.py:44:forward (activations)"}


@pytest.mark.skipif(_CHROMIUM is None, reason="there is no Chromium here")
def test_a_browser_draws_the_page(tmp_path: Path) -> None:
    """Chromium lays it out: shapes have sizes, and nothing asks for a network or a script."""
    (tmp_path / "page.html").write_text(answer(tmp_path, "--format", "html", run=leaking()), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=1000", "--window-size=1000,2400"]
    picture = tmp_path / "page.png"
    done = subprocess.run(
        [str(_CHROMIUM), *options, f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={picture}", f"file://{tmp_path / 'page.html'}"],
        capture_output=True, encoding="utf-8", timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-400:]
    assert "Refused to" not in done.stderr
    assert picture.stat().st_size > 30_000


CONTRACT: Mapping[str, list[str]] = {
    "": ["schema", "form", "torch_at_least", "devices", "findings", "gaps"],
    "devices": ["index", "history", "end", "peak", "ooms", "holders", "growth"],
    "end": ["reserved_bytes", "allocated_bytes", "largest_free_block_bytes"],
    "peak": ["position", "requested_bytes", "reserved_bytes"],
    "ooms": ["position", "requested_bytes", "reserved_bytes", "device_free_bytes", "largest_free_block_bytes", "live_requested_bytes", "survived", "why"],
    "holders": ["site", "frame", "category", "bytes", "blocks"],
    "growth": ["site", "bytes_per_step", "steps"],
}  # fmt: skip
"""Names that stay as they are, whatever is added."""


@pytest.mark.parametrize("program", [
    pytest.param(leaking(), id="a leak"),
    pytest.param(fragmented(), id="free pieces"),
    pytest.param(survived(), id="survived"),
    pytest.param(without_history(), id="nothing recorded"),
])  # fmt: skip
def test_the_json_keeps_its_names(tmp_path: Path, program: Program) -> None:
    import msgspec

    text = answer(tmp_path, "--format", "json", run=program)
    msgspec.json.decode(text, type=SnapshotV1)
    told = json.loads(text)
    assert told["schema"] == "oomdoctor/snapshot/v1"
    assert [name for name in CONTRACT[""] if name not in told] == []
    for device in told["devices"]:
        parts = {
            "devices": [device],
            **{name: device[name] for name in ("ooms", "holders", "growth")},
            "end": [device["end"]],
            "peak": [device["peak"]],
        }
        assert [(name, key) for name, entries in parts.items() for entry in entries for key in CONTRACT[name] if key not in entry] == []
        assert [holder["bytes"] for holder in device["holders"]] == sorted((holder["bytes"] for holder in device["holders"]), reverse=True)
