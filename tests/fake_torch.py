"""A torch without devices: what its versions have of the allocator's hooks, on the card of fake_card.py, and a few operations.

Signatures: torch/cuda/memory.py of the wheels 1.13.1 to 2.14.0. Functions stand in the files where torch has them, so that stacks and
tracebacks name what they name there; a tensor is so many bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

VERSIONS = ("1.13.1", "2.0.1", "2.1.2", "2.4.1", "2.5.1", "2.8.0", "2.11.0", "2.13.0", "2.15.0")
_CARD = Path(__file__).with_name("fake_card.py")

_INIT = """
import os
__version__ = {version!r}
class version: cuda, hip = "12.8", None
class OutOfMemoryError(RuntimeError): pass
OutOfMemoryError.__module__ = "torch"
from torch import _C, cuda, nn, optim
from torch._tensor import Tensor
from torch.serialization import load
if os.path.exists(os.path.join(os.path.dirname(__file__), "xpu.py")): from torch import xpu
_gradients = [True]
def is_grad_enabled(): return _gradients[0]
def set_grad_enabled(mode): _gradients[0] = mode
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
    init(); return _C.allocate(size)
def empty_cache(): _C.flush()
def set_per_process_memory_fraction(fraction): init(); _C.ALLOWED[0] = int(fraction * _C.CARD)
def current_blas_handle():
    init()
    if _C.left() < 100 << 20:  # a handle takes memory of the driver, not of the allocator
        raise RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`")
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
_OPERATIONS = {
    "_tensor.py": """
from torch import _C
def asked(size):
    from torch import cuda
    cuda.init()
    return _C.ask(size)
class Tensor:
    def __init__(self, size):
        made = size if isinstance(size, _C.Block) else asked(size)
        for tell in made.tell: tell()
        if made.errors: raise made.errors.pop()
        self.size, self._block = made.requested, made
    def __del__(self):
        if hasattr(self, "_block"): _C.free(self._block)
""",
    "nn/__init__.py": "from torch.nn import functional\nfrom torch.nn.modules.linear import Linear\nfrom torch.nn.modules.module import Module\n",
    "nn/functional.py": """
from torch._tensor import Tensor, asked
def linear(size):
    return NATIVE(size)
def scaled_dot_product_attention(size):
    return NATIVE(size)
def cross_entropy(size):
    return NATIVE(size)
""",
    "nn/modules/__init__.py": "",
    "nn/modules/module.py": """
from torch._tensor import Tensor, asked
class Module:
    def __call__(self, *args): return self._call_impl(*args)
    def _call_impl(self, *args): return self.forward(*args)
    def cuda(self):
        def convert(size):
            return NATIVE(size)
        return self._apply(convert)
    def _apply(self, convert):
        self.weight = convert(self.weight)
        return self
""",
    "nn/modules/linear.py": """
from torch.nn import functional as F
from torch.nn.modules.module import Module
class Linear(Module):
    def __init__(self, weight): self.weight = weight
    def forward(self, size): return F.linear(size)
""",
    "optim/adamw.py": """
from torch._tensor import Tensor, asked
from torch.optim.optimizer import Optimizer
class AdamW(Optimizer):
    def __init__(self, weights): self._weights, self._states = weights, []
    def step(self):
        if not self._states: self._init_group()
        super().step()
    def _init_group(self):
        for size in [2 * weight.size for weight in self._weights for _ in range(2)]:
            state = NATIVE(size)
            self._states.append(state)
""",
    "serialization.py": """
from torch._tensor import Tensor, asked
def load(path, map_location=None): return _load(path, map_location)
def _load(path, map_location): return [persistent_load(int(size), map_location) for size in open(path).read().split()]
def persistent_load(size, location): return size if location == "cpu" else default_restore_location(size)
def default_restore_location(size):
    return NATIVE(size)
""",
}
"""By file. Weights are 16-bit numbers, states of the optimizer 32-bit ones."""
_TRAINER = {
    "__init__.py": "",
    "trainer.py": """
from transformers.trainer_pt_utils import nested_concat
class Trainer:
    def __init__(self, model, batch, length): self._model, self._batch, self._length = model, batch, length
    def evaluation_loop(self, batches):
        predictions = None
        for _ in range(batches):
            logits = self.prediction_step()
            predictions = logits if predictions is None else nested_concat(predictions, logits)
        return predictions
    def prediction_step(self):
        self._model.has_gradients = False
        outputs = self._model(self._batch, self._length)
        return self._model.head(4 * self._model.vocabulary * self._batch * self._length)
""",
    "trainer_pt_utils.py": """
from torch._tensor import Tensor, asked
def nested_concat(tensors, new_tensors):
    size = tensors.size + new_tensors.size
    return NATIVE(size)
""",
}
_NATIVE = re.compile(r"^( +)(return|\w+ =) NATIVE\(size\)$", re.MULTILINE)
_CALL = r"""\1made = asked(size)
\1for tell in made.tell: tell()
\1if made.errors: raise made.errors.pop()
\1\2 Tensor(made)"""
"""What fails in a function of C++ fails in the line of Python that called it."""


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
        "_C.py": _CARD.read_text() + native,
        **_OPERATIONS,
        "cuda/__init__.py": _CUDA,
        "cuda/memory.py": _MEMORY.format(signature=signature, snapshot=snapshot),
        "optim/__init__.py": "from torch.optim import optimizer\nfrom torch.optim.adamw import AdamW\n",
        "optim/optimizer.py": _OPTIMIZER + hook,
    }
    return _written(site / "torch", files)


def write_fake_trainer(site: Path) -> Path:
    """Write a trainer of transformers that evaluates, beside a fake torch."""
    return _written(site / "transformers", _TRAINER)


def _written(package: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_NATIVE.sub(_CALL, text))
    return package.parent
