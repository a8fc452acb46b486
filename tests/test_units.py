"""Sizes as programs print them, and as we print them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.units import GIB, KIB, MIB, NOT_AVAILABLE, TIB, format_share, format_size, parse_size


@pytest.mark.parametrize(("text", "size"), [
    pytest.param("1.25 GiB", 1280 * MIB, id="PyTorch"),
    pytest.param("20.00 MiB", 20 * MIB, id="PyTorch, small"),
    pytest.param("512.00 KiB", 512 * KIB, id="PyTorch, smaller"),
    pytest.param("81kB", 81 * KIB, id="the kernel counts in 1024 under the label kB"),
    pytest.param("6.48G", round(6.48 * GIB), id="a bare letter"),
    pytest.param("9.2GB", round(9.2 * GIB), id="GB as these programs mean it"),
    pytest.param("16Gi", 16 * GIB, id="Kubernetes"),
    pytest.param("1TiB", TIB, id="a tebibyte"),
    pytest.param("1,234 bytes", 1234, id="thousands with a comma"),
    pytest.param("2_000", 2000, id="thousands with a line"),
    pytest.param("1,234,567", 1234567, id="millions with commas"),
    pytest.param("12,50 MiB", 12 * MIB + MIB // 2, id="a comma for the point"),
    pytest.param("1,234 MiB", 1234 * MIB, id="three digits behind a comma are thousands"),
    pytest.param("0B", 0, id="nothing"),
    pytest.param("  7 MiB ", 7 * MIB, id="blanks around it"),
    pytest.param("1.5e3", 1500, id="an exponent"),
    pytest.param("-3 MiB", -3 * MIB, id="below zero"),
    pytest.param("17179869184.00 GiB", NOT_AVAILABLE, id="an unsigned -1"),
])  # fmt: skip
def test_reads(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", [
    pytest.param("", id="nothing at all"),
    pytest.param("GiB", id="a unit without a number"),
    pytest.param("12 apples", id="another unit"),
    pytest.param("1.2.3 GiB", id="a version"),
    pytest.param("nan", id="no number"),
    pytest.param("inf GiB", id="no end"),
    pytest.param("1e999", id="more than a number can be"),
    pytest.param("1 GiB free", id="words after it"),
    pytest.param("0x10", id="hexadecimal"),
])  # fmt: skip
def test_does_not_read(text: str) -> None:
    assert parse_size(text) is None


@pytest.mark.parametrize(("text", "unit", "size"), [
    pytest.param("12", "GiB", 12 * GIB, id="a bare number takes the unit"),
    pytest.param("12.5", "MiB", 12 * MIB + MIB // 2, id="a fraction too"),
    pytest.param("12 MiB", "GiB", 12 * MIB, id="a unit that is printed wins"),
    pytest.param("12", "", 12, id="no unit is bytes"),
    pytest.param("12", "bytes", 12, id="bytes are bytes"),
])  # fmt: skip
def test_reads_with_the_unit_of_its_column(text: str, unit: str, size: int) -> None:
    assert parse_size(text, unit) == size


@pytest.mark.parametrize(("size", "text"), [
    (0, "0 B"), (1, "1 B"), (1023, "1023 B"), (KIB, "1.00 KiB"), (1536, "1.50 KiB"), (MIB - 1, "1.00 MiB"), (MIB, "1.00 MiB"),
    (20 * MIB, "20.00 MiB"), (GIB - 1, "1.00 GiB"), (round(4.39 * GIB), "4.39 GiB"), (80 * GIB, "80.00 GiB"), (TIB, "1.00 TiB"),
    (5000 * TIB, "5000.00 TiB"), (-20 * MIB, "-20.00 MiB"), (-1, "-1 B"),
])  # fmt: skip
def test_prints(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(-(1 << 55), 1 << 55))
def test_a_printed_size_reads_as_what_it_was_rounded_to(size: int) -> None:
    text = format_size(size)
    read = parse_size(text)
    unit = {"B": 1, "KiB": KIB, "MiB": MIB, "GiB": GIB, "TiB": TIB}[text.split()[1]]
    assert read is not None
    assert abs(read - size) <= (0 if unit == 1 else unit * 0.005 + 1)
    assert format_size(read) == text


@given(st.integers(0, 1 << 50), st.integers(0, 1 << 50))
def test_a_larger_size_never_prints_as_less(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert (parse_size(format_size(small)) or 0) <= (parse_size(format_size(large)) or 0)


@given(st.integers(0, 1023))
def test_the_number_stays_below_1024(size: int) -> None:
    for scale in (1, KIB, MIB, GIB):
        assert float(format_size(size * scale + scale - 1).split()[0]) < 1024


@given(st.text(max_size=40))
def test_blanks_around_a_text_change_nothing(text: str) -> None:
    assert parse_size(f"  {text.strip()} ") == parse_size(text.strip())


@given(st.integers(41, 5000))
def test_a_number_that_is_too_long_is_not_cut_to_a_wrong_one(length: int) -> None:
    for text in ("9" * length, "9" * length + " GiB", "-" + "9" * length):
        assert parse_size(text) is None


@pytest.mark.parametrize(
    ("share", "text"), [(0.004, "0.4 %"), (0.0999, "10.0 %"), (0.1, "10 %"), (0.37, "37 %"), (1.0, "100 %"), (-0.05, "-5.0 %")]
)
def test_shares(share: float, text: str) -> None:
    assert format_share(share) == text
