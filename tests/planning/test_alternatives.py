"""The usual cards and formats: each cell is the estimate of that run, and no table promises what a program refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest
from in_process import oomdoctor as command

import oomdoctor
from oomdoctor.errors import UsageError
from oomdoctor.planning.sizing.alternatives import Alternatives

QLORA: dict[str, Any] = {"model": "Qwen2.5-7B", "settings": {"finetuning": "qlora", "sequence_length": 2048}}
SERVED: dict[str, Any] = {"model": "Qwen3-32B", "serve": True}
GGUF: dict[str, Any] = {"model": "Qwen3-8B", "framework": "llama.cpp"}


def fits(table: Alternatives) -> dict[tuple[str, int], str | None]:
    return {(cell.name, cell.cards): cell.fits for row in table.rows for cell in row}


@pytest.mark.parametrize("run", [pytest.param(QLORA, id="training"), pytest.param(SERVED, id="a server")])
def test_a_card_is_told_what_estimate_tells_of_it(run: dict[str, Any]) -> None:
    table = oomdoctor.compare_cards(**run)
    told = fits(table)
    for name in ("NVIDIA GeForce RTX 4090", "A100-80GB"):
        served = {"settings": {"max_num_seqs": 1}} if run is SERVED else {}
        alone = oomdoctor.estimate(gpu=name, gpus=1, **{**run, **served})
        assert (told[name, 1] == "no") == (alone.fits == "no")


def test_more_of_a_card_or_a_larger_one_never_fits_worse_by_zero() -> None:
    order = ("no", "close", "yes")
    rows = [[order.index(str(cell.fits)) for cell in row] for row in oomdoctor.compare_cards(**QLORA).rows]
    assert all(row == sorted(row) for row in rows)
    assert all(list(column) == sorted(column) for column in zip(*rows))
    assert {mark for row in rows for mark in row} == {0, 1, 2}


def test_a_number_of_cards_that_a_server_refuses_is_named_as_that() -> None:
    # 14 heads of attention are divided by 2, and not by 4 or 8.
    table = oomdoctor.compare_cards(model="Qwen2.5-0.5B", serve=True)
    assert {cell.cards: cell.needed is None for cell in table.rows[-1]} == {1: False, 2: False, 4: True, 8: True}


@pytest.mark.parametrize(("run", "first", "last"), [
    pytest.param({**GGUF, "gpu": "12GB"}, ("f16", "no"), ("iq2_xs", "yes"), id="GGUF types"),
    pytest.param({**QLORA, "settings": {"finetuning": "lora"}, "gpu": "16GB"}, ("bf16", "no"), ("nf4", "close"), id="what LoRA freezes"),
])  # fmt: skip
def test_smaller_formats_need_less_and_reach_further(run: dict[str, Any], first: tuple[str, str], last: tuple[str, str]) -> None:
    cells = [cell for (cell,) in oomdoctor.compare_formats(**run).rows]
    needs = [cell.needed.expected for cell in cells if cell.needed]
    reach = [cell.longest.size or 0 for cell in cells if cell.longest]
    assert (needs, reach) == (sorted(needs, reverse=True), sorted(reach))
    assert [(cells[0].name, cells[0].fits), (cells[-1].name, cells[-1].fits)] == [first, last]


def test_the_longest_request_of_a_server_is_none_that_it_refuses() -> None:
    (row,) = [row for row in oomdoctor.compare_formats(**SERVED, gpu="H200").rows if row[0].name == "fp8"]
    assert row[0].longest is not None
    assert row[0].longest.size == 40_960


def test_where_all_weights_are_trained_there_is_nothing_to_compare() -> None:
    with pytest.raises(UsageError, match="--method lora"):
        oomdoctor.compare_formats(model="Qwen2.5-7B", settings={"finetuning": "full"}, gpu="24GB")


@pytest.mark.parametrize(("args", "status", "says"), [
    pytest.param(("--method", "qlora", "--cards"), 0, "Smallest certain to fit: 1 x", id="cards"),
    pytest.param(("--method", "qlora", "--cards", "--lang", "zh"), 0, "一定放得下的最小配置", id="in Chinese"),
    pytest.param(("--serve", "--gpu", "8GB", "--formats"), 1, "None of these is certain to fit.", id="nothing fits"),
    pytest.param(("--cards", "--gpu", "24GB"), 2, "omit --gpu", id="a card beside the cards"),
    pytest.param(("--cards", "--sweep", "batch"), 2, "use only one", id="two tables"),
])  # fmt: skip
def test_the_command(args: tuple[str, ...], status: int, says: str) -> None:
    done = command(["estimate", "--model", "Qwen2.5-7B", "--lang", "en", *args])
    assert done.returncode == status
    assert says in " ".join((done.stdout + done.stderr).split())


def test_json_holds_every_cell() -> None:
    done = command(["estimate", "--model", "Qwen2.5-7B", "--method", "qlora", "--cards", "--format", "json"])
    table = json.loads(done.stdout)
    assert (table["schema"], table["compared"], len(table["rows"])) == ("oomdoctor/alternatives/v1", "cards", 48)
