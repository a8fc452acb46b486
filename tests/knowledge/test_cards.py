"""Cards by the names that people give them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from oomdoctor.knowledge.tables.cards import Card, card_named, choices, commonest_card
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.units import GIB

WRITTEN = Path(__file__).with_name("written_cards.csv")


@pytest.mark.parametrize(("written", "gigabytes"), [
    pytest.param("RTX 4090", 24, id="short"),
    pytest.param("4090", 24, id="a number alone"),
    pytest.param("NVIDIA GeForce RTX 4090", 24, id="as nvidia-smi writes it"),
    pytest.param("A100-80GB", 80, id="with its size"),
    pytest.param("Tesla T4", 16, id="an old one"),
    pytest.param("2080 Ti", 11, id="two words"),
    pytest.param("24GB", 24, id="a size alone"),
])  # fmt: skip
def test_a_card_is_found(written: str, gigabytes: int) -> None:
    found = card_named(written)
    assert found is not None
    assert 0.9 * gigabytes * GIB < found.bytes < gigabytes * GIB


def _said(card: Card | None) -> str:
    return "" if card is None else f"{card.count or 1} x {card.gigabytes}"


def test_names_as_people_write_them_are_found() -> None:
    """A row without a size is a name of which nobody knows the commonest: choices are offered."""
    with WRITTEN.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    wrong = {
        row["written"]: _said(found)
        for row in rows
        if _said(found := commonest_card(row["written"])) != (f"{row['count']} x {row['gb']}" if row["gb"] else "")
    }
    assert len(rows) >= 215
    assert wrong == {}
    assert all(choices(row["written"]) for row in rows if not row["gb"])


@pytest.mark.parametrize(("written", "gigabytes", "others"), [
    pytest.param("A100", 80, (40,), id="the larger is the commoner"),
    pytest.param("RTX 3060", 12, (8,), id="one card in two sizes"),
    pytest.param("A100 40G", 40, (), id="the size is said"),
    pytest.param("RTX 4090", 24, (), id="other cards that have the name in theirs"),
])  # fmt: skip
def test_the_commonest_size_is_taken_and_the_others_are_named(written: str, gigabytes: int, others: tuple[int, ...]) -> None:
    found = commonest_card(written)
    assert found is not None
    assert (found.gigabytes, found.others) == (gigabytes, others)


@pytest.mark.parametrize(("written", "count"), [
    pytest.param("2x4090", 2, id="before the name"),
    pytest.param("4090 x 2", 2, id="behind it"),
    pytest.param("8*H800", 8, id="with an asterisk"),
    pytest.param("四卡 A100", 4, id="in Chinese"),
    pytest.param("2x24GB", 2, id="of a size"),
    pytest.param("7900xtx", None, id="an x of the name"),
    pytest.param("MI300X", None, id="an x at its end"),
    pytest.param("0x4090", None, id="none of them"),
])  # fmt: skip
def test_a_count_in_the_name(written: str, count: int | None) -> None:
    found = commonest_card(written)
    assert (found.count if found else None) == count


@pytest.mark.parametrize("written", [
    pytest.param("A100", id="two sizes"),
    pytest.param("GTX 9999", id="no card"),
    pytest.param("", id="nothing"),
    pytest.param("A100-24GB", id="a size that this card does not have"),
    pytest.param("Xeon 6430", id="a processor"),
    pytest.param("no GPU at all", id="words alone"),
    pytest.param("a workstation (24GB)", id="a size in brackets behind no card"),
])  # fmt: skip
def test_what_is_unknown_or_ambiguous_is_not_guessed(written: str) -> None:
    assert card_named(written) is None


@pytest.mark.parametrize(("written", "meant"), [
    pytest.param("RTX 6000", "RTX 6000 Ada Generation 48GB", id="different cards of one name"),
    pytest.param("A100-24GB", "A100-SXM4-40GB", id="a size that it does not have"),
    pytest.param("M3 Max", "Apple M3 Max 64GB", id="bought in any size"),
    pytest.param("RTX 4900", "RTX 4090", id="mistyped"),
    pytest.param("g9.48xlarge", "g6.48xlarge", id="no such type of machine"),
    pytest.param("RTX 4070 Ti Supre", "RTX 4070 Ti SUPER", id="a mistyped word is not passed over"),
    pytest.param("Radeon 780M", "AMD Radeon 780M 16GB", id="what the owner gives it must be said"),
    pytest.param("M1 Pro and M2 Max", "Apple M2 Max", id="two cards"),
    pytest.param("RTX 4090 40GB", "RTX 4090 24GB", id="a size that nobody says was changed"),
])  # fmt: skip
def test_choices_are_offered(written: str, meant: str) -> None:
    assert commonest_card(written) is None
    assert meant in choices(written)


@pytest.mark.parametrize(("written", "total"), [
    pytest.param("NVIDIA H100 80GB HBM3", 79.18, id="nearly all of a large one"),
    pytest.param("L4", 22.05, id="error correction takes a part of a small one"),
    pytest.param("T4", 14.6, id="and of an old one"),
])  # fmt: skip
def test_a_card_has_what_programs_see_of_it(written: str, total: float) -> None:
    found = card_named(written)
    assert found is not None and abs(found.bytes / GIB - total) < 0.01


def test_every_type_of_machine_names_a_card_that_is_known() -> None:
    rented = table("instances")
    assert [row["names"] for row in rented if commonest_card(row["card"]) is None] == []
    names = [name for row in rented for name in row["names"].split("|")]
    assert len(names) == len(set(names))
    assert [name for name in names if name != name.lower()] == []
