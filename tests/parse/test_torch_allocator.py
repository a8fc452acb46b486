"""The allocator message in the shapes in which people meet it: wrapped, cut, woven, quoted, doubled, contradictory."""

from __future__ import annotations

from typing import Any

import pytest

from oomdoctor.parse.families import torch_allocator
from oomdoctor.units import GIB, MIB, parse_size

NEW = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. GPU 2 has a total capacity of 39.39 GiB of which 812.06 MiB is free. "
    "Process 4711 has 1.50 GiB memory in use. Including non-PyTorch memory, this process has 37.08 GiB memory in use. Of the allocated memory "
    "35.01 GiB is allocated by PyTorch, with 64.00 MiB allocated in private pools (e.g., CUDA Graphs), and 1.02 GiB is reserved by PyTorch but "
    "unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation."
)
OLD = (
    "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 1; 15.78 GiB total capacity; 13.90 GiB already allocated; "
    "301.19 MiB free; 14.36 GiB reserved in total by PyTorch)"
)


def read(text: str) -> list[dict[str, Any]]:
    return [dict(match.fields) for match in torch_allocator.parse(text)]


def test_every_clause_of_the_new_form() -> None:
    (fields,) = read(NEW)
    assert fields == {
        "requested_bytes": parse_size("1.25 GiB"),
        "gpu_index": 2,
        "total_bytes": parse_size("39.39 GiB"),
        "free_bytes": parse_size("812.06 MiB"),
        "process_bytes": parse_size("37.08 GiB"),
        "allocated_bytes": parse_size("35.01 GiB"),
        "private_pools_bytes": 64 * MIB,
        "reserved_unallocated_bytes": parse_size("1.02 GiB"),
        "other_processes": ({"pid": 4711, "used_bytes": parse_size("1.50 GiB")},),
        "exception": "torch.OutOfMemoryError",
    }


def test_a_clause_that_somebody_quoted_alone_is_read() -> None:
    (fields,) = read("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB.\n... 35.01 GiB is allocated by PyTorch ...\n")
    assert fields["allocated_bytes"] == parse_size("35.01 GiB")


def test_the_rest_of_a_number_that_was_torn_apart_is_no_figure() -> None:
    (fields,) = read(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.25 GiB. Of the allocated memory 3\n5.01 GiB is allocated by PyTorch"
    )
    assert "allocated_bytes" not in fields


def test_the_exception_alone_is_proof() -> None:
    (fields,) = read("torch.OutOfMemoryError: Tried to allocate 1.25 GiB\n")
    assert fields == {"exception": "torch.OutOfMemoryError", "requested_bytes": parse_size("1.25 GiB")}


def test_every_clause_of_the_old_form() -> None:
    (fields,) = read(OLD)
    assert fields == {
        "requested_bytes": 512 * MIB,
        "gpu_index": 1,
        "total_bytes": parse_size("15.78 GiB"),
        "allocated_bytes": parse_size("13.90 GiB"),
        "free_bytes": parse_size("301.19 MiB"),
        "reserved_bytes": parse_size("14.36 GiB"),
        "exception": "RuntimeError",
    }


@pytest.mark.parametrize("clause", [
    pytest.param("Process 4711 has 1.50 GiB memory in use. ", id="no other process"),
    pytest.param("Including non-PyTorch memory, this process has 37.08 GiB memory in use. ", id="no sentence on this process"),
    pytest.param("with 64.00 MiB allocated in private pools (e.g., CUDA Graphs), ", id="no private pools"),
    pytest.param(" of which 812.06 MiB is free", id="no free figure"),
])  # fmt: skip
def test_a_lost_clause_costs_its_field_and_nothing_else(clause: str) -> None:
    (whole,), (fields,) = read(NEW), read(NEW.replace(clause, ""))
    lost = {name for name in whole if name not in fields}
    assert 1 <= len(lost) <= 1 and {name: fields[name] for name in fields if name not in ("pid", "process_found_by")} == {
        name: value for name, value in whole.items() if name not in lost
    }


@pytest.mark.parametrize("at", [40, 70, 110, 150, 190, 230, 270, 310])
def test_a_wrap_at_any_blank_changes_nothing(at: int) -> None:
    blank = NEW.index(" ", at)
    assert read(NEW[:blank] + "\n" + NEW[blank + 1 :]) == read(NEW)


@pytest.mark.parametrize(("text", "count"), [
    pytest.param(f"{NEW}\n{OLD}", 2, id="two messages on two lines"),
    pytest.param(f"{OLD}f{OLD}", 2, id="a message that starts inside the last word of another"),
    pytest.param("CUDA out of memory. Tried to allocate 20.00 MiB. GPU", 1, id="torch 2.3.0 cuts the message at the device number"),
    pytest.param("Tried to allocate 108.00 MiB. GPU 0 has a total capacity of 79.15 GiB of which 57.25 MiB is free.", 1, id="the first sentence is missing"),
    pytest.param("torch.cuda.OutOfMemoryError: CUDA out of memory.", 1, id="only the head"),
])  # fmt: skip
def test_counts_messages(text: str, count: int) -> None:
    assert len(read(text)) == count


@pytest.mark.parametrize("text", [
    pytest.param("If you see CUDA out of memory, lower the batch size.", id="advice"),
    pytest.param("def test_cuda_out_of_memory_is_caught():", id="the name of a test"),
    pytest.param("we tried to allocate time for a talk about memory", id="prose"),
    pytest.param("Allocation on device 0 done", id="no refusal"),
    pytest.param("CUDA out of memory errors are described in the manual", id="a manual"),
])  # fmt: skip
def test_stays_quiet(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(("text", "absent"), [
    pytest.param("Process 5 has 17179869184.00 GiB memory in use. ", "process_bytes", id="2^64 bytes of a process are unknown"),
    pytest.param("17179869184.00 GiB allowed; ", "limit_bytes", id="2^64 bytes of limit are no limit"),
])  # fmt: skip
def test_numbers_that_must_not_be_believed(text: str, absent: str) -> None:
    message = f"CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 0 bytes is free. {text}"
    (fields,) = read(message)
    assert absent not in fields


def test_in_a_container_the_listed_process_just_above_the_allocator_is_this_one() -> None:
    text = (
        "CUDA out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total capacity of 23.69 GiB of which 1.00 MiB is free. "
        "Process 900 has 400.00 MiB memory in use. Process 901 has 22.10 GiB memory in use. Of the allocated memory 21.50 GiB is allocated by "
        "PyTorch, and 12.00 MiB is reserved by PyTorch but unallocated."
    )
    (fields,) = read(text)
    assert (fields["process_bytes"], fields["pid"]) == (parse_size("22.10 GiB"), 901)
    assert fields["other_processes"] == ({"pid": 900, "used_bytes": 400 * MIB},)


def test_a_request_of_a_pebibyte_is_another_message_than_a_request_above_the_card() -> None:
    names = [
        next(iter(torch_allocator.parse(NEW.replace("1.25 GiB", size)))).signature for size in ("64.00 GiB", f"{(1 << 50) // GIB}.00 GiB")
    ]
    assert names == ["torch-cuda-oom-private-pools", "torch-cuda-oom-absurd-size"]


@pytest.mark.parametrize(("text", "name", "fields"), [
    pytest.param("Tried to allocate 3.25 GiB. GPU", "torch-cuda-oom-230-cut", {"requested_bytes"}, id="2.3.0 ends where the device should stand"),
    pytest.param(
        "Tried to allocate 3.25 GiB. GPU \x02 has a total capacity of 15.77 GiB of which 1.02 GiB is free.",
        "torch-cuda-oom-230-cut", {"requested_bytes", "total_bytes", "free_bytes"}, id="2.3.0 writes the device as a character",
    ),
    pytest.param("Tried to allocate 3.25 GiB. GPU 2 has a total capa", "torch-cuda-oom-22", {"requested_bytes", "gpu_index"}, id="2.2 and later, cut"),
    pytest.param(
        "Tried to allocate 3.25 GiB (GPU 2; 15.77 Gi", "torch-cuda-oom-113", {"requested_bytes", "gpu_index", "total_bytes"}, id="1.x, cut in the unit",
    ),
    pytest.param(
        "Tried to allocate 3.25 GiB (GPU 2; 15.77 GiB total", "torch-cuda-oom-113", {"requested_bytes", "gpu_index", "total_bytes"}, id="1.x, cut after the size",
    ),
    pytest.param("Tried to allocate 3.25 GiB (GPU 2; 15.", "torch-cuda-oom-113", {"requested_bytes", "gpu_index"}, id="1.x, cut in the number"),
    pytest.param("Tried to allocate 3.25 GiB (GPU", "torch-cuda-oom-head", {"requested_bytes"}, id="cut before the device"),
    pytest.param("Tried to allocate 3.25 G", "torch-cuda-oom-head", set(), id="cut in the size"),
])  # fmt: skip
def test_a_cut_message_is_of_the_release_that_words_it_so(text: str, name: str, fields: set[str]) -> None:
    (found,) = torch_allocator.parse(f"torch.cuda.OutOfMemoryError: CUDA out of memory. {text}")
    assert (found.signature, set(found.fields)) == (name, fields | {"exception"})


@pytest.mark.parametrize("text", [pytest.param(NEW, id="new form"), pytest.param(OLD, id="old form")])
def test_lower_case_loses_no_figure(text: str) -> None:
    """Case is all that is lost; a name of an exception in lower case is none."""
    (written,), (lowered,) = read(text), read(text.lower())
    assert lowered == {name: value for name, value in written.items() if name != "exception"}


@pytest.mark.parametrize(("requested", "allocated", "reserved", "name"), [
    pytest.param("64.00 MiB", "0 bytes", "0 bytes", "xpu-oom-host-usm", id="nothing held and enough free: not the card"),
    pytest.param("4.00 GiB", "0 bytes", "0 bytes", "xpu-oom", id="as large as one block may not be"),
    pytest.param("64.00 MiB", "512.00 MiB", "0 bytes", "xpu-oom", id="some of the card is held"),
    pytest.param("64.00 MiB", "0 bytes", "512.00 MiB", "xpu-oom", id="no tensor is left, and their memory was not given back"),
])  # fmt: skip
def test_an_empty_xpu_that_refuses(requested: str, allocated: str, reserved: str, name: str) -> None:
    message = f"XPU out of memory. Tried to allocate {requested}. GPU 0 has a total capacity of 11.60 GiB of which 10.90 GiB is free. "
    (match,) = torch_allocator.parse(
        f"{message}Of the allocated memory {allocated} is allocated by PyTorch, and {reserved} is reserved by PyTorch but unallocated."
    )
    assert match.signature == name
