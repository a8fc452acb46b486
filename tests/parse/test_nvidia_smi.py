"""One reader of nvidia-smi's tables: of every generation a log gives the same cards, processes and versions as a report of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoctor.case.event import Value
from oomdoctor.machine.reports.read import read_report
from oomdoctor.parse.families import nvidia_smi
from oomdoctor.parse.nvidia_smi import Row, SmiGpu, SmiHeader, SmiMigDevice, SmiProcess, has_whole_process_table, read_rows
from oomdoctor.units import MIB

TABLES = Path(__file__).parents[2] / "fixtures" / "environments"
GENERATIONS = ("384", "470", "535-mig", "560-windows", "610", "610-mig")
MIG_610 = (TABLES / "nvidia-smi-610-mig.txt").read_text(encoding="utf-8")


def table(generation: str) -> str:
    return (TABLES / f"nvidia-smi-{generation}.txt").read_text(encoding="utf-8")


def messages(text: str, signature: str) -> list[dict[str, Value]]:
    return [dict(match.fields) for match in nvidia_smi.parse(text) if match.signature == signature]


def of_type(kind: type[Row], text: str) -> list[Row]:
    return [row for row in read_rows(text) if isinstance(row, kind)]


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_log_and_a_report_of_the_machine_agree(generation: str) -> None:
    text = table(generation)
    environment = read_report(text.encode(), "smi")
    (header,) = messages(text, "nvidia-smi-header")
    assert (header["driver_version"], header.get("cuda_version")) == (environment.driver.version, environment.driver.cuda)
    cards = [row for row in messages(text, "nvidia-smi-gpu-row") if "gpu_index" in row]
    assert [(row["gpu_index"], row["used_bytes"], row["total_bytes"]) for row in cards] == [
        (gpu.index, gpu.used_bytes, gpu.total_bytes) for gpu in environment.gpus if gpu.total_bytes is not None
    ]
    processes = messages(text, "nvidia-smi-process-row")
    assert [(row["gpu_index"], row["pid"], row["used_bytes"]) for row in processes] == [
        (gpu.index, process.pid, process.used_bytes)
        for gpu in environment.gpus
        for process in gpu.processes
        if process.used_bytes is not None
    ]


@pytest.mark.parametrize(("line", "driver", "cuda"), [
    pytest.param("| NVIDIA-SMI 384.111                Driver Version: 384.111                   |", "384.111", None, id="384 names no CUDA"),
    pytest.param("| NVIDIA-SMI 418.152.00   Driver Version: 418.152.00   CUDA Version: 10.1     |", "418.152.00", "10.1", id="418 has CUDA"),
    pytest.param("| NVIDIA-SMI 460.106.00   Driver Version: 460.106.00   CUDA Version: N/A      |", "460.106.00", None, id="CUDA that NVML does not know"),
    pytest.param("| NVIDIA-SMI 550.40.07              KMD Version: 610.12.03     CUDA UMD Version: 13.3     |", "610.12.03", "13.3", id="610: kernel driver, another tool"),
])  # fmt: skip
def test_the_header_of_each_generation(line: str, driver: str, cuda: str | None) -> None:
    (row,) = read_rows(line)
    assert isinstance(row, SmiHeader) and (row.driver, row.cuda) == (driver, cuda)


def test_mig_devices_are_told_from_their_card_and_from_its_window_of_the_bus() -> None:
    devices = of_type(SmiMigDevice, MIG_610)
    assert [(row.index, row.gpu_instance, row.used_bytes // MIB) for row in devices if isinstance(row, SmiMigDevice)] == [
        (1, 3, 17214),
        (1, 5, 44),
    ]
    assert [row.get("total_bytes") for row in messages(MIG_610, "nvidia-smi-gpu-row")] == [
        183359 * MIB,
        183359 * MIB,
        45440 * MIB,
        45440 * MIB,
    ]


def test_a_card_whose_memory_is_not_shown_has_a_name_only() -> None:
    card = of_type(SmiGpu, table("610"))[0]
    assert isinstance(card, SmiGpu) and (card.name, card.total_bytes) == ("NVIDIA GB10", None)


def test_a_row_whose_first_line_is_cut_off_keeps_its_memory() -> None:
    text = "| N/A   51C    P0   201W / 350W |  31007MiB / 46068MiB |     88%      Default |"
    assert messages(text, "nvidia-smi-gpu-row") == [{"used_bytes": 31007 * MIB, "total_bytes": 46068 * MIB}]


def test_a_process_without_memory_is_no_message_but_known() -> None:
    text = table("560-windows")
    assert [row.pid for row in of_type(SmiProcess, text) if isinstance(row, SmiProcess)] == [1576, 14208]
    assert messages(text, "nvidia-smi-process-row") == []


@pytest.mark.parametrize(("text", "whole"), [
    pytest.param(table("535-mig"), True, id="with its last line"),
    pytest.param(table("535-mig").rstrip().rpartition("\n")[0], False, id="cut before its last line"),
])  # fmt: skip
def test_a_table_of_processes_is_whole_or_not(text: str, whole: bool) -> None:
    assert has_whole_process_table(text) is whole
    assert all((row.get("table") == "whole") is whole for row in messages(text, "nvidia-smi-gpu-row") if "gpu_index" in row)


@pytest.mark.parametrize("text", [
    pytest.param("| NVIDIA-SMI shows the cards of this host |", id="prose in a table"),
    pytest.param("| option | meaning | Default |", id="another table"),
    pytest.param("0 NVIDIA A30 On 00000000:0C:00.0 24258MiB", id="no table"),
])  # fmt: skip
def test_other_tables_say_nothing(text: str) -> None:
    assert list(read_rows(text)) == []
