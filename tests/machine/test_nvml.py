"""Every call of NVML may fail on its own; old and new drivers have different functions for the same thing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from machine.recorded import RecordedNvml

from oomdoctor.case.environment import Gpu
from oomdoctor.machine.collect.nvml import Owner, process_owner_lookup, query_nvml

MIB = 1 << 20
WHOLE: dict[str, Any] = {
    "nvmlDeviceGetName": "NVIDIA L4",
    "nvmlDeviceGetMemoryInfo": {"total": 23034 * MIB, "used": 500 * MIB, "free": 22534 * MIB},
    "nvmlDeviceGetMemoryInfo_v2": {"total": 23034 * MIB, "used": 60 * MIB, "free": 22534 * MIB, "reserved": 440 * MIB},
    "nvmlDeviceGetCudaComputeCapability": [8, 9],
    "nvmlDeviceGetComputeRunningProcesses_v3": [{"pid": 41, "usedGpuMemory": 58 * MIB}],
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetEccMode": [1, 1],
    "nvmlDeviceGetTotalEccErrors": 0,
    "nvmlDeviceGetRemappedRows": [1, 0, 0, 0],
    "nvmlDeviceGetNvLinkState": [1, 0, 1],
    "nvmlDeviceGetComputeMode": 0,
}


def gpu(**changes: Any) -> Gpu:
    device = {name: value for name, value in {**WHOLE, **changes}.items() if value is not None}
    return query_nvml(RecordedNvml({"calls": {"nvmlInit": None, "nvmlDeviceGetCount": 1}, "devices": [device]}), lambda _: Owner()).gpus[0]


def test_a_card_in_full() -> None:
    found = gpu()
    assert (found.total_bytes, found.used_bytes, found.free_bytes, found.reserved_bytes) == (23034 * MIB, 60 * MIB, 22534 * MIB, 440 * MIB)
    assert [(one.pid, one.used_bytes) for one in found.processes] == [(41, 58 * MIB)]
    assert (found.compute_capability, found.mig, found.ecc, found.nvlink, found.exclusive) == ("8.9", False, True, 2, False)
    assert (found.ecc_uncorrected, found.retired_pages, found.repair_pending) == (0, 0, False)


@pytest.mark.parametrize(
    ("changes", "field", "value"),
    [
        pytest.param({"nvmlDeviceGetMemoryInfo_v2": None}, "used_bytes", 500 * MIB, id="before R510 what the driver keeps counts as used"),
        pytest.param({"nvmlDeviceGetMemoryInfo_v2": None}, "reserved_bytes", None, id="and is not told apart"),
        pytest.param({"nvmlDeviceGetMemoryInfo_v2": {"error": 3}, "nvmlDeviceGetMemoryInfo": {"error": 3}}, "total_bytes", None, id="a card without memory of its own"),
        pytest.param({"nvmlDeviceGetMemoryInfo_v2": {"total": 0, "used": 0, "free": 0, "reserved": 0}}, "total_bytes", None, id="a size of zero is no size"),
        pytest.param({"nvmlDeviceGetRemappedRows": {"error": 3}, "nvmlDeviceGetRetiredPages": [4096, 8192], "nvmlDeviceGetRetiredPagesPendingStatus": 1}, "retired_pages", 2, id="before Ampere pages are retired"),
        pytest.param({"nvmlDeviceGetRemappedRows": {"error": 3}, "nvmlDeviceGetRetiredPages": [], "nvmlDeviceGetRetiredPagesPendingStatus": 1}, "repair_pending", True, id="and may wait for a reset"),
        pytest.param({"nvmlDeviceGetRemappedRows": [0, 2, 0, 1]}, "repair_pending", True, id="a row that could not be remapped"),
        pytest.param({"nvmlDeviceGetNvLinkState": {"error": 3}}, "nvlink", None, id="a card without NVLink"),
        pytest.param({"nvmlDeviceGetComputeMode": 3}, "exclusive", True, id="one process at a time"),
    ],
)  # fmt: skip
def test_one_fact_of_a_card(changes: dict[str, Any], field: str, value: object) -> None:
    assert getattr(gpu(**changes), field) == value


@pytest.mark.parametrize("suffix", ["_v3", "_v2", ""])
def test_processes_by_whichever_function_there_is(suffix: str) -> None:
    function = f"nvmlDeviceGetComputeRunningProcesses{suffix}"
    found = gpu(**{"nvmlDeviceGetComputeRunningProcesses_v3": None, function: [{"pid": 7, "usedGpuMemory": None}]})
    assert found.processes_known
    assert [(one.pid, one.used_bytes) for one in found.processes] == [(7, None)]


def test_processes_that_cannot_be_listed_are_unknown_and_not_none() -> None:
    device = {**WHOLE, "nvmlDeviceGetComputeRunningProcesses_v3": {"error": 4}}
    found = query_nvml(RecordedNvml({"calls": {"nvmlInit": None, "nvmlDeviceGetCount": 1}, "devices": [device]}), lambda _: Owner())
    assert found.gpus[0].processes_known is False
    assert [gap.what for gap in found.gaps] == ["processes on GPU 0"]


@given(st.sets(st.sampled_from(sorted(WHOLE))), st.sampled_from([1, 2, 3, 4, 9, 13, 15, 18, 999]))
def test_any_calls_may_fail_and_the_others_still_answer(failing: set[str], code: int) -> None:
    found = gpu(**{name: {"error": code} for name in failing})
    assert (found.name is None) == ("nvmlDeviceGetName" in failing)
    assert (found.compute_capability is None) == ("nvmlDeviceGetCudaComputeCapability" in failing)


@pytest.mark.parametrize(
    ("code", "state"), [(4, "no-permission"), (9, "no-driver"), (12, "no-library"), (13, "no-function"), (18, "mismatch"), (999, "error")]
)
def test_how_nvml_failed_to_start(code: int, state: str) -> None:
    found = query_nvml(RecordedNvml({"calls": {"nvmlInit": {"error": code}}, "devices": []}), lambda _: Owner())
    assert (found.driver.state, found.gpus, found.gpus_known) == (state, (), False)


def test_a_process_is_named_without_its_arguments() -> None:
    files = {"/proc/41/status": "Name:\tpython3\nUmask:\t0022\nUid:\t0\t0\t0\t0\n"}
    assert process_owner_lookup(files.get, 0)(41) == Owner(user="root", program="python3", own=True)
    assert process_owner_lookup(files.get, 1000)(41).own is False
    assert process_owner_lookup(files.get, 0)(42) == Owner()
