"""A sweep: each cell is the estimate of that run, and the limits are where it stops to fit."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

import oomdoctor
from oomdoctor.cli.main import cli
from oomdoctor.errors import UsageError
from oomdoctor.planning.sizing.axes import parse_axes
from oomdoctor.planning.sizing.largest import largest

RUN: dict[str, Any] = {
    "model": "Qwen2.5-7B",
    "settings": {"finetuning": "qlora", "gradient_checkpointing": True},
}


def sweep(*args: str) -> Result:
    return CliRunner().invoke(cli, ["estimate", "--model", "Qwen2.5-7B", *args])


@pytest.mark.parametrize(("text", "axes"), [
    pytest.param("batch=1,2,6", {"batch": (1, 2, 6)}, id="values"),
    pytest.param("length=2048..32768", {"length": (2048, 4096, 8192, 16384, 32768)}, id="a range, doubled each time"),
    pytest.param("length=3000..10000", {"length": (3000, 6000, 10000)}, id="a range that ends between two steps"),
    pytest.param("length=2k,4K,batch=4", {"length": (2048, 4096), "batch": (4,)}, id="thousands of 1024, another axis behind values"),
    pytest.param("batch=8,1..4,8", {"batch": (1, 2, 4, 8)}, id="both, each once and in order"),
    pytest.param("requests=3,context=4k", {"batch": (3,), "length": (4096,)}, id="the words of servers"),
    pytest.param("batch=5..5", {"batch": (5,)}, id="a range of one"),
])  # fmt: skip
def test_axes_are_read(text: str, axes: dict[str, tuple[int, ...]]) -> None:
    assert parse_axes(text, is_served=False) == axes


@pytest.mark.parametrize("text", [
    pytest.param("rank=8", id="something else"),
    pytest.param("8,16", id="values of nothing"),
    pytest.param("", id="nothing"),
    pytest.param("batch=0", id="no sample"),
    pytest.param("batch=", id="an axis without its value"),
    pytest.param("length=8k..2k", id="a range that ends before it begins"),
    pytest.param("length=many", id="a word"),
    pytest.param("length=1..99999999", id="more than there is"),
    pytest.param("batch=" + ",".join(map(str, range(1, 18))), id="more values than a table has room for"),
])  # fmt: skip
def test_axes_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--sweep"):
        parse_axes(text, is_served=False)


def test_named_axes_without_values_have_some() -> None:
    trained, served = (parse_axes("batch,length", is_served=served) for served in (False, True))
    assert set(trained) == set(served) == {"batch", "length"}
    assert max(trained["length"]) < max(served["length"])


@pytest.mark.parametrize(("step", "most", "limit", "size"), [
    pytest.param(1, 100, 37, 37, id="between"),
    pytest.param(256, 4096, 1000, 768, id="rounded down"),
    pytest.param(1, 100, 0, None, id="not even the first"),
    pytest.param(1, 100, 1000, 100, id="no further than asked"),
])  # fmt: skip
def test_the_largest(step: int, most: int, limit: int, size: int | None) -> None:
    assert largest(lambda number: number <= limit, step, most) == size


@pytest.mark.parametrize("gpu", [None, "24GB"])
def test_a_cell_is_the_estimate_of_that_run(gpu: str | None) -> None:
    table = oomdoctor.sweep(axes={"batch": [1, 3], "length": [1024, 5000]}, gpu=gpu, **RUN)
    for cell in table.cells:
        run = oomdoctor.estimate(
            model=RUN["model"], gpu=gpu, settings={**RUN["settings"], "micro_batch": cell.batch, "sequence_length": cell.length}
        )
        assert run.needed is not None
        assert (cell.needed.expected, cell.needed.low, cell.needed.high) == (run.needed.expected, run.needed.low, run.needed.high)
        assert cell.fits == run.fits


def test_beyond_a_limit_nothing_surely_fits() -> None:
    table = oomdoctor.sweep(axes="batch,length", gpu="24GB", **RUN)
    for batch, limit in zip(table.batches, table.longest, strict=True):
        size = limit.size or 0
        assert [_fits(batch, length) for length in (size, size + 256) if length] == [True, False][not size :]
    for length, limit in zip(table.lengths, table.largest, strict=True):
        assert limit.size == max((batch for batch in range(1, 33) if _fits(batch, length)), default=None)


def _fits(batch: int, length: int) -> bool:
    return oomdoctor.sweep(axes={"batch": [batch], "length": [length]}, gpu="24GB", **RUN).cells[0].fits == "yes"


def test_a_server_fits_what_its_cache_holds() -> None:
    table = oomdoctor.sweep(axes="batch=1..64,length=4k..32k", model="Qwen2.5-7B", gpu="24GB", serve=True)
    assert table.server == "vLLM"
    for cell in table.cells:
        settings: dict[str, Any] = {"max_num_seqs": cell.batch, "max_model_len": cell.length}
        served: Any = oomdoctor.estimate(model="Qwen2.5-7B", gpu="24GB", serve=True, settings=settings).estimate
        assert (cell.fits == "yes") == (served.starts == "yes" and served.cache.low >= cell.batch * served.request)


def test_without_a_card_only_needs_are_told() -> None:
    table = oomdoctor.sweep(axes="batch=1..4", **RUN)
    assert ({cell.fits for cell in table.cells}, table.longest, table.largest, table.lengths) == ({None}, (), (), (2048,))
    needs = [cell.needed.expected for cell in table.cells]
    assert needs == sorted(needs)


@pytest.mark.parametrize(("args", "status"), [
    pytest.param(["--method", "qlora", "--checkpointing", "--gpu", "24GB"], 0, id="something fits"),
    pytest.param(["--method", "full", "--gpu", "24GB"], 1, id="nothing fits"),
    pytest.param(["--method", "full"], 0, id="no card"),
])  # fmt: skip
def test_the_status(args: list[str], status: int) -> None:
    assert sweep(*args, "--sweep", "batch,length").exit_code == status


@pytest.mark.parametrize(("form", "lang", "parts"), [
    pytest.param("terminal", "en", ["13.8 ✓", "longest", "most", "Of 4 combinations, 3 fit 24GB"], id="a terminal"),
    pytest.param("markdown", "en", ["| **13.8 ✓** |", "|---|---:|"], id="Markdown"),
    pytest.param("html", "en", ['<td class="size good">13.8 ✓</td>', '<table class="grid">'], id="HTML"),
    pytest.param("terminal", "zh", ["4 种组合中有 3 种放得下", "最长", "最多"], id="Chinese"),
])  # fmt: skip
def test_it_is_a_table(form: str, lang: str, parts: list[str]) -> None:
    done = sweep(
        "--method", "qlora", "--checkpointing", "--gpu", "24GB", "--sweep", "batch=1,2,length=1k,2k", "--format", form, "--lang", lang
    )
    assert [part for part in parts if part not in done.output] == []
    assert "<script" not in done.output


def test_programs_read_it() -> None:
    done = sweep("--method", "qlora", "--checkpointing", "--gpu", "24GB", "--sweep", "length=2k,4k", "--batch", "1", "--format", "json")
    report = json.loads(done.output)
    assert (report["schema"], report["batches"], report["lengths"]) == ("oomdoctor/sweep/v1", [1], [2048, 4096])
    assert [cell["fits"] for cell in report["cells"]] == ["yes", "close"]
    assert report["largest_lengths"] == [{"batch": 1, "length": 3840, "open": False}]


def test_a_trace_is_of_one_size() -> None:
    done = sweep("--sweep", "batch", "--trace")
    assert isinstance(done.exception, UsageError)
    assert "--trace" in str(done.exception)
