"""A torch without devices: what its versions have of the allocator's hooks, and a card of a few bytes.

Signatures: torch/cuda/memory.py of the wheels 1.13.1 to 2.14.0; the order of a failure: c10/cuda/CUDACachingAllocator.cpp, malloc.
`FAKE_CARD` chooses what happens when memory runs out: `observed` (the default), `masked` (an assert of NVML before the observers are called)
or `async` (an allocator that takes neither observers nor history).
"""

from __future__ import annotations

from pathlib import Path

VERSIONS = ("1.13.1", "2.0.1", "2.1.2", "2.4.1", "2.5.1", "2.8.0", "2.11.0", "2.13.0", "2.15.0")

_INIT = """
import os
__version__ = {version!r}
class version: cuda, hip = "12.8", None
class OutOfMemoryError(RuntimeError): pass
OutOfMemoryError.__module__ = "torch"
from torch import _C, cuda, optim
def _import_device_backends():
    from importlib.metadata import entry_points
    found = entry_points(group="torch.backends") if hasattr(entry_points(), "select") else entry_points().get("torch.backends", ())
    for extension in found:
        try:
            extension.load()()
        except Exception as error:
            raise RuntimeError("Failed to load the backend extension: " + extension.name) from error
if {autoload} and os.environ.get("TORCH_DEVICE_BACKEND_AUTOLOAD", "1") == "1":
    _import_device_backends()
"""
_C = """
import os, sys, traceback
CARD, OBSERVERS, LIVE, HISTORY, STATS = 1 << 30, [], [], [None], dict(peak=0, ooms=0)
def refuse(what):
    if os.environ.get("FAKE_CARD") == "async":
        raise RuntimeError("cudaMallocAsync does not yet support " + what)
def attach(observer):
    refuse("attachOutOfMemoryObserver"); OBSERVERS.append(observer)
def record(enabled):
    refuse("recordHistory"); HISTORY[0] = enabled
def live(): return sum(size for size, _ in LIVE)
def frames():
    out, frame = [], sys._getframe(2)
    while frame is not None:
        out.append(dict(filename=frame.f_code.co_filename, line=frame.f_lineno, name=frame.f_code.co_name)); frame = frame.f_back
    return out
def allocate(size):
    if live() + size > CARD:
        if os.environ.get("FAKE_CARD") == "masked":
            raise RuntimeError("NVML_SUCCESS == r INTERNAL ASSERT FAILED at CUDACachingAllocator.cpp:1016")
        STATS["ooms"] += 1
        for observer in OBSERVERS:
            observer(0, size, CARD, CARD - live())
        import torch
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate %d bytes" % size)
    LIVE.append((size, frames() if HISTORY[0] else [])); STATS["peak"] = max(STATS["peak"], live())
def stats(device):
    of = lambda now, peak: dict(all=dict(current=now, peak=peak))
    if device: return dict(num_ooms=0, reserved_bytes=of(0, 0))
    return dict(num_ooms=STATS["ooms"], reserved_bytes=of(live(), STATS["peak"]), allocated_bytes=of(live(), STATS["peak"]))
def snapshot():
    blocks = [dict(size=size, requested_size=size, state="active_allocated", frames=stack) for size, stack in LIVE]
    return dict(segments=[dict(device=0, total_size=live(), blocks=blocks)], device_traces=[[]])
"""
_CUDA = """
import os
from torch import _C
from torch.cuda import memory
from torch.cuda.memory import memory_stats_as_nested_dict
_queued, _state = [], [None]
def is_initialized(): return _state[0] == os.getpid()
def _lazy_call(function): function() if is_initialized() else _queued.append(function)
def init():
    if _state[0] is None:
        _state[0] = os.getpid()
        for function in _queued: function()
def device_count(): return 2
def allocate(size):
    init(); _C.allocate(size)
"""
_MEMORY = """
import json, os, sys
from torch import _C
def memory_stats_as_nested_dict(device=None): return _C.stats(device)
def _snapshot(device=None): return {snapshot}
def _record_memory_history{signature}:
    given = locals()
    if os.environ.get("FAKE_LOG"):
        with open(os.environ["FAKE_LOG"], "a") as file: file.write(json.dumps(given) + "\\n")
    _C.record(enabled)
"""
_HISTORY = (
    ((1, 13), "(enabled, device=None)"),
    ((2, 0), "(enabled, record_context=True, trace_alloc_max_entries=1, trace_alloc_record_context=False, device=None, _enable_expensive_cpp=False)"),
    ((2, 1), '(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None)'),
    ((2, 8), '(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False, compile_context=False, global_record_annotations=False)'),
    ((2, 11), '(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False, compile_context=False, global_record_annotations=False, skip_actions=None)'),
    ((2, 14), '(enabled="all", context="all", stacks="all", max_entries=sys.maxsize, device=None, clear_history=False, compile_context=False, global_record_annotations=False, skip_actions=None, record_pinned_host_memory=False, record_cuda=True)'),
)  # fmt: skip
_OPTIMIZER = """
HOOKS = []
class Optimizer:
    def step(self):
        for hook in HOOKS: hook(self, (), {})
"""


def write_fake_torch(site: Path, version: str) -> Path:
    """Write the package of a version into a folder and return the folder."""
    major, minor = (int(part) for part in version.split(".")[:2])
    since = (major, minor)
    signature = [text for start, text in _HISTORY if start <= since][-1]
    native = "_cuda_attach_out_of_memory_observer = attach\n" if since >= (2, 0) else ""
    native += "def _cuda_isHistoryEnabled(): return HISTORY[0] is not None\n" if since >= (2, 1) else ""
    snapshot = '_C.snapshot()["segments"]' if since < (2, 0) else "_C.snapshot()"
    hook = "def register_optimizer_step_post_hook(hook): HOOKS.append(hook)\n" if since >= (2, 0) else ""
    files = {
        "__init__.py": _INIT.format(version=version, autoload=since >= (2, 5)),
        "_C.py": _C + native,
        "cuda/__init__.py": _CUDA,
        "cuda/memory.py": _MEMORY.format(signature=signature, snapshot=snapshot),
        "optim/__init__.py": "from torch.optim import optimizer\n",
        "optim/optimizer.py": _OPTIMIZER + hook,
    }
    for name, text in files.items():
        path = site / "torch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return site
