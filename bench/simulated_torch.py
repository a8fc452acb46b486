"""A torch whose tensors are blocks of the simulated allocator: as much of its surface as tests of memory touch."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace
from typing import Any

from oomdoctor.simulation.allocator import CachingAllocator, OutOfMemory
from oomdoctor.simulation.settings import AllocatorSettings
from oomdoctor.units import GIB, MIB, format_size


class OutOfMemoryError(RuntimeError):
    pass


OutOfMemoryError.__module__ = "torch"


class Tensor:
    """Bytes on the device, for as long as somebody holds them."""

    def __init__(self, card: SimulatedCard, size: int) -> None:
        self._card, self._block = card, card.take(size)
        self.shape, self.dtype, self.device = (size,), "torch.uint8", SimpleNamespace(type="cuda")

    def numel(self) -> int:
        return self.shape[0]

    def element_size(self) -> int:
        return 1

    def __del__(self) -> None:
        if hasattr(self, "_block"):
            self._card.give_back(self._block)


class SimulatedCard(ModuleType):
    """`torch.cuda`, with one card. It is started by its first tensor, as torch's is."""

    def __init__(self, capacity: int = 8 * GIB) -> None:
        super().__init__("torch.cuda")
        self.allocator = CachingAllocator(AllocatorSettings(), capacity)
        self.is_started = False
        self.requested = self.most_requested = 0

    def take(self, size: int) -> Any:
        self.is_started = True
        try:
            block = self.allocator.allocate(size)
            self.requested += size
            self.most_requested = max(self.requested, self.most_requested)
            return block
        except OutOfMemory:
            free, total = (format_size(size) for size in (self.allocator.capacity - self.allocator.reserved, self.allocator.capacity))
            text = (
                f"CUDA out of memory. Tried to allocate {format_size(size)}. GPU 0 has a total capacity of {total} of which {free} is free."
            )
        raise OutOfMemoryError(text)

    def give_back(self, block: Any) -> None:
        self.requested -= block.requested
        self.allocator.free(block)

    def is_initialized(self) -> bool:
        return self.is_started

    def device_count(self) -> int:
        return 1

    def memory_allocated(self, _index: int) -> int:
        return self.allocator.allocated

    def max_memory_allocated(self, _index: int) -> int:
        return self.allocator.most_allocated

    def memory_stats(self, _index: int) -> dict[str, int]:
        return {"requested_bytes.all.current": self.requested, "requested_bytes.all.peak": self.most_requested}

    def reset_peak_memory_stats(self, _index: int) -> None:
        self.allocator.most_allocated = self.allocator.allocated
        self.most_requested = self.requested

    def get_device_name(self, _index: int) -> str:
        return "a simulated card"


def simulated_torch(capacity: int = 8 * GIB) -> ModuleType:
    """Return a module to stand for torch in `sys.modules`; `mib(n)` makes a tensor."""
    torch: Any = ModuleType("torch")
    torch.cuda = SimulatedCard(capacity)
    torch.Tensor, torch.OutOfMemoryError = Tensor, OutOfMemoryError
    torch.mib = lambda count: Tensor(torch.cuda, round(count * MIB))
    module: ModuleType = torch
    return module
