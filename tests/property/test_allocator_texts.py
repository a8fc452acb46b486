"""Every figure of every allocator's message is read exactly, whatever a launcher writes before its lines.

The texts are those of torch 1.4 to 2.15 and its ports (HIP, XPU, MPS, NPU, MLU, MUSA), with figures drawn at random; where each form
was read stands beside it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomdoctor.case.event import Event
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.parse import reading
from oomdoctor.parse.recogniser import Recogniser

Figures = dict[str, int]
Draw = Callable[[str], str]
"""Draws one size under the name of a field and returns it as it is printed."""

UNITS = {" bytes": 0, " KiB": 1, " MiB": 2, " GiB": 3}

FORMS: dict[str, Callable[[Draw], str]] = {
    # pytorch c10/cuda/CUDACachingAllocator.cpp of 1.4, 1.10, 1.12, 2.0
    "torch 1.4": lambda draw: (
        f"RuntimeError: CUDA out of memory. Tried to allocate {draw('requested_bytes')} (GPU 2; {draw('total_bytes')} total capacity; "
        f"{draw('allocated_bytes')} already allocated; {draw('free_bytes')} free; {draw('reserved_bytes')} reserved in total by PyTorch)"
    ),
    "torch 1.12": lambda draw: (
        f"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {draw('requested_bytes')} (GPU 2; {draw('total_bytes')} total capacity; "
        f"{draw('allocated_bytes')} already allocated; {draw('free_bytes')} free; {draw('limit_bytes')} allowed; {draw('reserved_bytes')} reserved in total "
        "by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."
    ),
    # the same of 2.1 to 2.15
    "torch 2.1": lambda draw: (
        f"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate {draw('requested_bytes')}. GPU 2 has a total capacty of {draw('total_bytes')} of "
        f"which {draw('free_bytes')} is free. Including non-PyTorch memory, this process has {draw('process_bytes')} memory in use. Of the allocated memory "
        f"{draw('allocated_bytes')} is allocated by PyTorch, and {draw('reserved_unallocated_bytes')} is reserved by PyTorch but unallocated."
    ),
    "torch 2.6": lambda draw: (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {draw('requested_bytes')}. GPU 2 has a total capacity of {draw('total_bytes')} of which "
        f"{draw('free_bytes')} is free. {draw('limit_bytes')} allowed; Of the allocated memory {draw('allocated_bytes')} is allocated by PyTorch, with "
        f"{draw('private_pools_bytes')} allocated in private pools (e.g., CUDA Graphs), and {draw('reserved_unallocated_bytes')} is reserved by PyTorch "
        "but unallocated."
    ),
    "torch 2.15, any device": lambda draw: (
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {draw('requested_bytes')}. Device 2 has a total capacity of {draw('total_bytes')} of "
        f"which {draw('free_bytes')} is free. Of the allocated memory {draw('allocated_bytes')} is allocated by PyTorch, and "
        f"{draw('reserved_unallocated_bytes')} is reserved by PyTorch but unallocated."
    ),
    # pytorch c10/cuda/CUDAMallocAsyncAllocator.cpp
    "cudaMallocAsync": lambda draw: (
        "torch.OutOfMemoryError: Allocation on device 2 would exceed allowed memory. (out of memory)\n"
        f"Currently allocated     : {draw('allocated_bytes')}\nRequested               : {draw('requested_bytes')}\n"
        f"Device limit            : {draw('total_bytes')}\nFree (according to CUDA): {draw('free_bytes')}\n"
        f"PyTorch limit (set by user-supplied memory fraction)\n                        : {draw('limit_bytes')}"
    ),
    "HIP": lambda draw: (
        f"torch.OutOfMemoryError: HIP out of memory. Tried to allocate {draw('requested_bytes')}. GPU 2 has a total capacity of {draw('total_bytes')} of which "
        f"{draw('free_bytes')} is free. Of the allocated memory {draw('allocated_bytes')} is allocated by PyTorch, and "
        f"{draw('reserved_unallocated_bytes')} is reserved by PyTorch but unallocated."
    ),
    # pytorch c10/xpu/XPUCachingAllocator.cpp
    "XPU": lambda draw: (
        f"torch.OutOfMemoryError: XPU out of memory. Tried to allocate {draw('requested_bytes')}. GPU 2 has a total capacity of {draw('total_bytes')} of which "
        f"{draw('free_bytes')} is free. Of the allocated memory {draw('allocated_bytes')} is allocated by PyTorch, and "
        f"{draw('reserved_unallocated_bytes')} is reserved by PyTorch but unallocated. Please use `empty_cache` to release all unoccupied cached memory."
    ),
    # pytorch aten/src/ATen/mps/MPSAllocator.mm, before 2.8 and since
    "MPS": lambda draw: (
        f"RuntimeError: MPS backend out of memory (MPS allocated: {draw('allocated_bytes')}, other allocations: {draw('other_allocations_bytes')}, max allowed: "
        f"{draw('limit_bytes')}). Tried to allocate {draw('requested_bytes')} on private pool."
    ),
    # Ascend/pytorch torch_npu/csrc/core/npu/NPUCachingAllocator.cpp, NPUWorkspaceAllocator.cpp
    "NPU": lambda draw: (
        f"RuntimeError: NPU out of memory. Tried to allocate {draw('requested_bytes')} (NPU 2; {draw('total_bytes')} total capacity; "
        f"{draw('allocated_bytes')} already allocated; {draw('active_bytes')} current active; {draw('free_bytes')} free; {draw('reserved_bytes')} reserved in "
        "total by PyTorch)If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."
    ),
    "NPU workspace": lambda draw: (
        f"RuntimeError: NPU out of memory. NPUWorkspaceAllocator tried to allocate {draw('requested_bytes')}(NPU 2; {draw('total_bytes')} total capacity; "
        f"{draw('free_bytes')} free). If you want to reduce memory usage, take a try to set the environment variable TASK_QUEUE_ENABLE=1."
    ),
    "NPU fraction": lambda draw: (
        "torch.OutOfMemoryError: NPU out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. "
        f"Requested size: {draw('requested_bytes')}"
    ),
    # Cambricon/torch_mlu torch_mlu/csrc/framework/core/caching_allocator.cpp: no blank before "is free"
    "MLU": lambda draw: (
        f"torch.OutOfMemoryError: MLU out of memory. Tried to allocate {draw('requested_bytes')}. MLU 2 has a total capacity of {draw('total_bytes')} of which "
        f"{draw('free_bytes')}is free. Of the allocated memory {draw('allocated_bytes')} is allocated by PyTorch, and "
        f"{draw('reserved_unallocated_bytes')} is reserved by PyTorch but unallocated."
    ),
    # MooreThreads/torch_musa torch_musa/csrc/core/MUSACachingAllocator.cpp
    "MUSA": lambda draw: (
        f"torch.OutOfMemoryError: MUSA out of memory. Tried to allocate {draw('requested_bytes')}. GPU 2 has a total capacity of {draw('total_bytes')} of which "
        f"{draw('free_bytes')} is free. {draw('limit_bytes')} allowed; Of the allocated memory {draw('allocated_bytes')} is allocated by PyTorch, with "
        f"{draw('private_pools_bytes')} allocated in private pools (e.g., MUSA Graphs), and {draw('reserved_unallocated_bytes')} is reserved by PyTorch "
        "but unallocated."
    ),
}  # fmt: skip
NO_INDEX = {"MPS", "NPU fraction"}


def each_line(prefix: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{prefix}{line}\n" for line in text.split("\n"))


LAUNCHERS: dict[str, Callable[[str], str]] = {
    "plain": each_line(""),
    "torchrun": each_line("[rank3]: "),
    "torchrun --tee": each_line("[default0]:"),
    "ray": each_line("(RayTrainWorker pid=812, ip=10.0.0.4) "),
    "ray, short": each_line("(pid=812) "),
    "docker compose": each_line("svc-1  | "),
    "kubectl --timestamps": each_line("2026-03-02T11:40:19.551000000Z "),
    "kubelet file": each_line("2026-03-02T11:40:19.551000000Z stderr F "),
    "kubectl --prefix": each_line("[pod/train-0/main] "),
    "mpirun --tag-output": each_line("[1,3]<stderr>:"),
    "mpirun --tag-output, blank": each_line("[1,3]<stderr>: "),
    "pdsh": each_line("gpu-node-3: "),
    "srun -l": each_line("3: "),
    "journald": each_line("Mar 02 11:40:19 gpu07 python[8123]: "),
    "logging": each_line("2026-03-02 11:40:19,551 - ERROR - "),
    "vllm": each_line("(EngineCore_0 pid=41) ERROR 03-02 11:40:19 [core.py:586] "),
    "json lines": lambda text: json.dumps({"level": "error", "ts": "2026-03-02T11:40:19Z", "msg": text}) + "\n",
    "json of docker": lambda text: "".join(json.dumps({"log": f"{line}\n", "stream": "stderr"}) + "\n" for line in text.split("\n")),
}
NOISE = "step 41 loss 2.125 lr 1e-05\n"


@cache
def recogniser() -> Recogniser:
    return Recogniser(load_pack())


@st.composite
def drawn_message(draw: st.DrawFn) -> tuple[str, str, Figures]:
    """Return the form, its text and what it says in bytes."""
    form = draw(st.sampled_from(sorted(FORMS)))
    said: Figures = {}

    def size(name: str) -> str:
        number = f"{draw(st.integers(1, 102399)) / 100:.2f}"
        unit = draw(st.sampled_from([" KiB", " MiB", " MiB", " GiB", " GiB"]))
        said[name] = round(float(number) * (1 << 10 * UNITS[unit]))
        return number + unit

    return form, FORMS[form](size), said


def events_of(text: str) -> list[Event]:
    return [event for event in reading.read_events(text, recogniser()) if event.kind.is_memory]


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(message=drawn_message(), launcher=st.sampled_from(sorted(LAUNCHERS)))
def test_every_figure_behind_any_prefix(message: tuple[str, str, Figures], launcher: str) -> None:
    form, text, said = message
    events = events_of(LAUNCHERS[launcher](NOISE + text))
    assert len(events) == 1, (form, launcher, [event.signature for event in events])
    read = {name: value for name, value in events[0].fields.items() if name.endswith("_bytes")}
    assert read == said, (form, launcher)
    if form not in NO_INDEX:
        assert events[0].fields.get("gpu_index") == 2, (form, launcher)


def test_the_same_text_as_a_line_of_source_is_no_event() -> None:
    assert events_of('raise RuntimeError("CUDA out of memory. Tried to allocate " + size)\n') == []
