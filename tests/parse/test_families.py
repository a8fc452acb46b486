"""The other families: kernel reports, NVML asserts, torchrun's box, tables, array sizes."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.parse.families import array_size, elastic_box, kernel_oom, memory_summary, nvidia_smi, nvml_assert
from oomdoctor.parse.families.family import Family
from oomdoctor.units import GIB, MIB


def read(family: Family, text: str) -> list[tuple[str, dict[str, Any]]]:
    return [(match.signature, dict(match.fields)) for match in family(text)]


@pytest.mark.parametrize(("line", "prefix", "call", "version"), [
    (1123, "../c10", "init", "2.1"), (1123, "/pytorch/c10", "procs", "2.9"), (1154, "/pytorch/c10", "procs", "2.10"),
    (1154, "../c10", "procs", "2.1"), (844, "../c10", "procs", "2.3"), (838, "../c10", "procs", "2.4"), (995, "../c10", "procs", "2.5"),
    (1015, "/pytorch/c10", "procs", "2.6"), (1016, "/pytorch/c10", "procs", "2.7"), (983, "/pytorch/c10", "init", "2.6-2.7"),
    (1407, "/__w/pytorch/pytorch/c10", "procs", "2.13"), (777, "../c10", "procs", None),
])  # fmt: skip
def test_the_line_of_an_nvml_assert_tells_the_release(line: int, prefix: str, call: str, version: str | None) -> None:
    condition = {"init": "NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_()", "procs": "NVML_SUCCESS == r"}[call]
    text = f'RuntimeError: {condition} INTERNAL ASSERT FAILED at "{prefix}/cuda/CUDACachingAllocator.cpp":{line}, please report a bug to PyTorch. '
    ((name, fields),) = read(nvml_assert.parse, text)
    assert name == f"nvml-{call}-assert" and fields.get("torch_version_hint") == version


def test_an_assert_that_a_browser_translated_is_known_by_its_identifiers() -> None:
    text = "NVML_SUCCESS == r 内部断言在“../c10/cuda/CUDACachingAllocator.cpp”处失败：830，请向 PyTorch 报告错误。"
    ((name, fields),) = read(nvml_assert.parse, text)
    assert (name, fields["source_line"], fields["torch_version_hint"]) == ("nvml-procs-assert", 830, "2.2")


@pytest.mark.parametrize(("library", "name"), [
    pytest.param("/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1", "nvml-symbol-missing-remotedevicetype", id="the driver's own place"),
    pytest.param("/opt/share/lib64/libnvidia-ml.so.1", "nvml-symbol-missing-shim", id="a library in front of the driver's"),
])  # fmt: skip
def test_the_library_decides_which_missing_symbol_it_is(library: str, name: str) -> None:
    symbol = "nvmlDeviceGetNvLinkRemoteDeviceType"
    text = (
        f'RuntimeError: r.{symbol}_ INTERNAL ASSERT FAILED at "../c10/cuda/driver_api.cpp":27, please report a bug to PyTorch. '
        f"Can't find {symbol}: {library}: undefined symbol: {symbol}"
    )
    ((found, fields),) = read(nvml_assert.parse, text)
    assert (found, fields["library"], fields["symbol"]) == (name, library, symbol)


def test_an_assert_of_the_peer_code_is_no_memory_failure() -> None:
    text = 'NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at "/pytorch/c10/cuda/PeerToPeerAccess.cpp":60'
    assert [name for name, _ in read(nvml_assert.parse, text)] == ["nvml-p2p-assert"]


def test_a_kernel_line_that_a_terminal_padded_in_the_middle_of_a_word() -> None:
    pad = " " * 54
    text = (
        f"[1.2] Out of memory: Killed process 77 (python3) total-vm:900{pad}0kB, anon-rss:80{pad}00kB, file-rss:4kB, shmem-rss:0kB, UID:0"
    )
    ((name, fields),) = read(kernel_oom.parse, text)
    assert (name, fields["pid"], fields["total_vm_bytes"], fields["anon_rss_bytes"]) == ("kernel-oom-global", 77, 9000 * 1024, 8000 * 1024)


@pytest.mark.parametrize("text", [
    pytest.param("the oom killer was not needed", id="prose"),
    pytest.param("Killed process group of the launcher", id="another kill"),
    pytest.param("Memory cgroup stats: usage fine", id="statistics"),
])  # fmt: skip
def test_kernel_family_stays_quiet(text: str) -> None:
    assert read(kernel_oom.parse, text) == []


BOX = """\
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
run.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-01-05_10:00:01
  host      : box
  rank      : 5 (local_rank: 5)
  exitcode  : -15 (pid: 205)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 205
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-01-05_10:00:00
  host      : box
  rank      : 3 (local_rank: 3)
  exitcode  : {code} (pid: 203)
  error_file: <N/A>
  traceback : {trace}
============================================================
"""


@pytest.mark.parametrize(("code", "trace", "name"), [
    (-9, "Signal 9 (SIGKILL) received by PID 203", "elastic-childfailed-sigkill"),
    (-7, "Signal 7 (SIGBUS) received by PID 203", "elastic-childfailed-sigbus"),
    (-6, "Signal 6 (SIGABRT) received by PID 203", "elastic-childfailed-sigabrt"),
    (1, "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html", "elastic-childfailed-exit1"),
])  # fmt: skip
def test_the_root_cause_of_torchruns_box_not_its_first_entry(code: int, trace: str, name: str) -> None:
    ((found, fields),) = read(elastic_box.parse, BOX.format(code=code, trace=trace))
    assert (found, fields["rank"], fields["exit_code"], fields["pid"]) == (name, 3, code, 203)


@pytest.mark.parametrize(("shape", "dtype", "size"), [
    ("(50000, 40000)", "float64", 16_000_000_000), ("(7,)", "int8", 7), ("(3, 5)", "complex128", 240),
])  # fmt: skip
def test_numpy_sizes_are_exact(shape: str, dtype: str, size: int) -> None:
    text = f"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 14.9 GiB for an array with shape {shape} and data type {dtype}"
    assert read(array_size.parse, text)[0][1]["requested_bytes"] == size


def test_an_unknown_dtype_falls_back_to_the_printed_size() -> None:
    text = "Unable to allocate 2.00 GiB for an array with shape (9, 9) and data type object"
    assert read(array_size.parse, text)[0][1]["requested_bytes"] == 2 * GIB


def test_nvidia_smi_rows_of_an_old_and_a_new_table() -> None:
    old = "|   0  Tesla P4            Off  | 00000000:3B:00.0 Off |                    0 |\n| N/A   44C    P0    23W /  75W |   7392MiB /  7611MiB |     97%      Default |"
    new = "|   1  NVIDIA L40S                    On  |   00000000:C1:00.0 Off |                    0 |\n| N/A   38C    P0             90W /  350W |   45012MiB /  46068MiB |    100%      Default |"
    rows = [fields for _, fields in read(nvidia_smi.parse, f"{old}\n{new}")]
    assert [(row["gpu_index"], row["name"], row["used_bytes"], row["total_bytes"]) for row in rows] == [
        (0, "Tesla P4", 7392 * MIB, 7611 * MIB),
        (1, "NVIDIA L40S", 45012 * MIB, 46068 * MIB),
    ]


def test_memory_summary_rows() -> None:
    text = (
        "|                  PyTorch CUDA memory summary, device ID 1                 |\n"
        "|            CUDA OOMs: 2            |        cudaMalloc retries: 5         |\n"
        "| Allocated memory      |   8100 MiB |   9200 MiB |  99999 MiB |  91899 MiB |\n"
        "| GPU reserved memory   |  10 GiB    |  11 GiB    |  11 GiB    |   0 B      |\n"
    )
    ((_, fields),) = read(memory_summary.parse, text)
    assert fields == {
        "gpu_index": 1, "num_ooms": 2, "num_alloc_retries": 5, "allocated_bytes": 8100 * MIB, "peak_allocated_bytes": 9200 * MIB,
        "reserved_bytes": 10 * GIB, "peak_reserved_bytes": 11 * GIB,
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [
    pytest.param("[('key', '<u8'), ('score', '<f4')]", id="a list of fields"),
    pytest.param("{'names': ['key'], 'formats': ['<u8'], 'offsets': [0], 'itemsize': 16}", id="a dict of fields"),
    pytest.param("<U12", id="strings"),
])  # fmt: skip
def test_a_structured_dtype_is_shown_and_the_printed_size_counts(dtype: str) -> None:
    text = f"numpy.core._exceptions._ArrayMemoryError: Unable to allocate 1.25 TiB for an array with shape (7, 9) and data type {dtype}"
    ((_, fields),) = read(array_size.parse, text)
    assert (fields["dtype"], fields["requested_bytes"]) == (dtype, 1280 * GIB)
