"""Drivers, CUDA and builds of torch that go together, by the tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.case.environment import Gpu
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.machine.cards import complete_card, mark_visible
from oomdoctor.machine.collect.nvml_library import required_symbols
from oomdoctor.machine.compatibility import can_have_code, find_minimum_driver, find_newest_cuda, has_code
from oomdoctor.versions import at_least


@pytest.mark.parametrize(
    ("cuda", "driver", "enough"),
    [
        pytest.param("13.0", "580.65.06", True, id="CUDA 13 on its first driver"),
        pytest.param("13.2", "580.95.05", True, id="a newer minor version needs no newer driver"),
        pytest.param("13.0", "575.51.03", False, id="CUDA 13 on the branch before"),
        pytest.param("12.8", "525.60.13", True, id="CUDA 12 on the first driver that will do"),
        pytest.param("12.1", "520.61.05", False, id="CUDA 12 on a driver for 11.8"),
        pytest.param("11.8", "450.80.02", True, id="CUDA 11 from 450 on"),
        pytest.param("10.2", "430.50", False, id="before CUDA 11 the toolkit's own driver is the least"),
        pytest.param("10.2", "440.33.01", True, id="which is enough"),
        pytest.param("12.4", None, None, id="an unknown driver"),
        pytest.param("99.0", "580.65.06", None, id="a CUDA that is not in the table"),
        pytest.param(None, "580.65.06", None, id="a torch without CUDA"),
    ],
)
def test_driver_for_a_build(cuda: str | None, driver: str | None, enough: bool | None) -> None:
    assert at_least(driver, find_minimum_driver(cuda)) is enough


@pytest.mark.parametrize(
    ("driver", "cuda"), [("535.161.08", "12.2"), ("565.57.01", "12.7"), ("418.39", "10.1"), ("999.1", None), (None, None)]
)
def test_newest_cuda_of_a_branch(driver: str | None, cuda: str | None) -> None:
    assert find_newest_cuda(driver) == cuda


@pytest.mark.parametrize(
    ("card", "architectures", "runs"),
    [
        pytest.param("8.6", ["sm_80"], True, id="code for 8.0 runs on 8.6"),
        pytest.param("8.0", ["sm_86"], False, id="but not the other way"),
        pytest.param("9.0", ["sm_86"], False, id="nor on the next major version"),
        pytest.param("9.0", ["sm_86", "compute_86"], True, id="unless PTX is with it"),
        pytest.param("12.0", ["sm_90", "sm_100"], False, id="12.0 is not 10.0"),
        pytest.param("12.1", ["sm_120"], True, id="12.1 runs code for 12.0"),
        pytest.param("10.3", ["sm_90a", "sm_100"], True, id="10.3 runs code for 10.0"),
        pytest.param("9.0", ["sm_90a"], True, id="code for exactly this card"),
        pytest.param("10.3", ["sm_100a"], False, id="code for another card of the same major version alone"),
        pytest.param("7.5", ["sm_70"], True, id="a T4 on code for a V100"),
        pytest.param("6.1", ["sm_70", "sm_75"], False, id="a P4 on a wheel that begins at 7.0"),
        pytest.param(None, ["sm_80"], None, id="an unknown card"),
        pytest.param("8.0", [], None, id="an unknown build"),
        pytest.param("8.0", ["gfx90a"], None, id="a build for other cards"),
    ],
)
def test_code_for_a_card(card: str | None, architectures: list[str], runs: bool | None) -> None:
    assert has_code(card, architectures) is runs


@given(st.integers(1, 99), st.integers(0, 9), st.integers(0, 9))
def test_code_runs_on_its_own_card_and_on_newer_ones_of_its_major_version(major: int, minor: int, more: int) -> None:
    assert has_code(f"{major}.{minor}", [f"sm_{major}{minor}"]) is True
    assert has_code(f"{major}.{max(minor, more)}", [f"sm_{major}{minor}"]) is True
    assert has_code(f"{major + 1}.{more}", [f"sm_{major}{minor}"]) is False


@pytest.mark.parametrize(
    ("torch", "asked", "not_asked"),
    [
        pytest.param("2.2.2+cu121", "nvmlInit_v2", "nvmlDeviceGetNvLinkRemoteDeviceType", id="2.2 does not ask for the function of NVLink"),
        pytest.param("2.3.0", "nvmlDeviceGetNvLinkRemoteDeviceType", "nvmlSystemGetCudaDriverVersion_v2", id="2.3 is the first that does"),
        pytest.param("2.3.0a0+nv24.3", "nvmlDeviceGetNvLinkRemoteDeviceType", "", id="a build before 2.3 has the code of 2.3"),
        pytest.param("2.10.1", "nvmlDeviceGetGpuFabricInfoV", "", id="2.10 comes after 2.9"),
        pytest.param(None, "nvmlDeviceGetNvLinkRemoteDeviceType", "", id="all of them where torch is unknown"),
    ],
)
def test_functions_that_a_torch_looks_up(torch: str | None, asked: str, not_asked: str) -> None:
    names = [name for name, _ in required_symbols(table("nvml_symbols"), torch)]
    assert asked in names
    assert not_asked not in names


def test_before_2_1_torch_asks_for_none() -> None:
    assert required_symbols(table("nvml_symbols"), "2.0.1") == []


@pytest.mark.parametrize(
    ("name", "capability", "unified"),
    [
        pytest.param("NVIDIA GeForce RTX 3090", "8.6", False, id="with the maker's name"),
        pytest.param("GeForce RTX 3090", "8.6", False, id="without it, as older drivers print it"),
        pytest.param("NVIDIA Tesla T4", "7.5", False, id="with a name too much"),
        pytest.param("NVIDIA GB10", "12.1", True, id="one memory with the host"),
        pytest.param("Some Card 9000", None, None, id="a card that nobody knows"),
    ],
)
def test_what_the_name_of_a_card_tells(name: str, capability: str | None, unified: bool | None) -> None:
    found = complete_card(Gpu(name=name))
    assert (found.compute_capability, found.unified) == (capability, unified)


def test_what_the_driver_says_goes_before_the_table() -> None:
    assert complete_card(Gpu(name="Tesla T4", compute_capability="9.9", unified=True)) == Gpu(
        name="Tesla T4", compute_capability="9.9", unified=True
    )


TWO = (Gpu(index=0, name="A"), Gpu(index=1, name="B"))
ALIKE = (Gpu(index=0, name="A"), Gpu(index=1, name="A"))


@pytest.mark.parametrize(
    ("gpus", "environ", "shown"),
    [
        pytest.param(ALIKE, {}, [True, True], id="no variable"),
        pytest.param(ALIKE, {"CUDA_VISIBLE_DEVICES": "1"}, [False, True], id="one of two alike"),
        pytest.param(ALIKE, {"CUDA_VISIBLE_DEVICES": ""}, [False, False], id="none"),
        pytest.param(TWO, {"CUDA_VISIBLE_DEVICES": "-1"}, [False, False], id="none, said otherwise"),
        pytest.param(TWO, {"CUDA_VISIBLE_DEVICES": "1"}, [None, None], id="CUDA may count different cards by speed"),
        pytest.param(TWO, {"CUDA_VISIBLE_DEVICES": "1", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, [False, True], id="unless it is told not to"),
        pytest.param(ALIKE, {"CUDA_VISIBLE_DEVICES": "GPU-5ebe9f43"}, [None, None], id="by another name"),
    ],
)
def test_cards_that_a_run_sees(gpus: tuple[Gpu, ...], environ: dict[str, str], shown: list[bool | None]) -> None:
    assert [gpu.visible for gpu in mark_visible(gpus, environ)] == shown


def test_every_row_of_a_table_has_a_source() -> None:
    for name in (
        "cards",
        "compute_capabilities",
        "cuda_minimum",
        "driver_branches",
        "nvml_symbols",
        "packages",
        "torch_releases",
        "variables",
    ):
        assert all(row["source"] for row in table(name)), name


@pytest.mark.parametrize(
    ("card", "cuda", "can"),
    [
        pytest.param("12.0", "12.1", False, id="a card that came after the compiler"),
        pytest.param("12.0", "12.8", None, id="the first compiler that knows it"),
        pytest.param("12.1", "12.8", None, id="code for 12.0 runs on 12.1"),
        pytest.param("10.3", "12.6", False, id="B300 before CUDA 12.8"),
        pytest.param("8.9", "11.7", None, id="code for 8.6 runs on 8.9"),
        pytest.param("9.0", "11.7", False, id="nothing of 8.x runs on 9.0"),
        pytest.param("7.0", "13.0", False, id="a V100 after its compiler was dropped"),
        pytest.param("6.1", "12.9", None, id="a P4 in the last that has it"),
        pytest.param("7.5", "13.2", None, id="a T4 is in the newest"),
        pytest.param("99.0", "13.0", None, id="a card that is not in the table"),
        pytest.param("12.0", None, None, id="an unknown CUDA"),
        pytest.param(None, "12.1", None, id="an unknown card"),
    ],
)
def test_a_compiler_that_cannot_make_code_for_a_card(card: str | None, cuda: str | None, can: bool | None) -> None:
    assert can_have_code(card, cuda) is can
