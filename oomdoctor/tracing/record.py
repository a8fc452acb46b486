"""The memory requests of operations, in order, and where in the model each is made."""

from __future__ import annotations

import os
import sys
import weakref
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any

import torch

from oomdoctor.simulation.requests import Frame, Request, Site
from oomdoctor.tracing.operations import WatchedOperations

_TORCH = os.path.dirname(torch.__file__)
_OURS = os.path.dirname(os.path.dirname(__file__))
_LOOKED_AT = 25
"""Python frames that are looked at for one that belongs to the model's code."""


class RequestRecorder(WatchedOperations):
    """Writes down each storage that an operation gives, and when nothing refers to it any more."""

    def __init__(self, seconds: float = float("inf")) -> None:
        super().__init__(seconds)
        self.requests: list[Request] = []
        self.sites: list[Site] = []
        self._known: dict[Site, int] = {}
        self._numbers: dict[int, int] = {}
        self._made_at: dict[int, int] = {}
        self._modules: list[str] = []
        self._next = 0

    def begin(self, phase: int, step: int) -> None:
        """Begin a phase of a step."""
        self.requests.append(Request("phase", step, 0, phase))

    def site(self, site: Site) -> int:
        """Return the number of a place."""
        if site not in self._known:
            self._known[site] = len(self.sites)
            self.sites.append(site)
        return self._known[site]

    def name(self, tensor: torch.Tensor, site: Site) -> None:
        """Say what a tensor is that an operation made."""
        number = self._numbers.get(tensor.untyped_storage()._cdata)
        if number is not None:
            at = self._made_at[number]
            self.requests[at] = self.requests[at]._replace(site=self.site(site))

    def resize(self, tensor: torch.Tensor, size: int) -> None:
        """Say that a tensor that an operation made takes so many bytes."""
        at = self._made_at[self._numbers[tensor.untyped_storage()._cdata]]
        self.requests[at] = self.requests[at]._replace(size=size)

    def release(self, tensor: torch.Tensor) -> None:
        """Say that nobody has a tensor any more, and that its memory is free as soon as another stream is done with it."""
        self.requests.append(Request("release", self._numbers[tensor.untyped_storage()._cdata]))

    def follow(self, model: torch.nn.Module) -> None:
        """Note which part of a model runs."""
        for name, module in model.named_modules():
            module.register_forward_pre_hook(self._entering(name or type(module).__name__))
            module.register_forward_hook(self._leaving, always_call=True)

    def _entering(self, name: str) -> Callable[..., None]:
        def enter(*_: Any) -> None:
            self._modules.append(name)

        return enter

    def _leaving(self, *_: Any) -> None:
        if self._modules:
            self._modules.pop()

    def seen(self, tensor: torch.Tensor, func: Callable[..., Any]) -> None:
        """Write down a tensor."""
        storage = tensor.untyped_storage()
        key = storage._cdata
        size = storage.nbytes()
        if key in self._numbers or not size:
            return
        operation = str(func).rpartition(".")[0] or str(func)
        number = self._next
        self._next += 1
        self._numbers[key] = number
        self._made_at[number] = len(self.requests)
        self.requests.append(Request("alloc", number, size, self.site(Site(operation, self._frames()))))
        weakref.finalize(storage, self._gone, key, number)

    def _gone(self, key: int, number: int) -> None:
        del self._numbers[key]
        self.requests.append(Request("free", number, 0, 0))

    def _frames(self) -> tuple[Frame, ...]:
        line = _line_of_the_model()
        part = (Frame("model", 0, self._modules[-1]),) if self._modules else ()
        return part if line is None else (*part, line)


def _line_of_the_model() -> Frame | None:
    """Return the innermost line that is neither torch's nor ours."""
    frame: FrameType | None = sys._getframe(3)
    for _ in range(_LOOKED_AT):
        if frame is None:
            return None
        code = frame.f_code
        if not code.co_filename.startswith((_TORCH, _OURS, "<")):
            return Frame(_short(code.co_filename), frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None


@cache
def _short(path: str) -> str:
    """Return a path from the folder on in which Python finds it; a snapshot goes to others, and says nothing of this machine."""
    folders = (os.path.join(folder, "") for folder in sorted(sys.path, key=len, reverse=True) if folder)
    inside = next((folder for folder in folders if path.startswith(folder)), None)
    return os.path.basename(path) if inside is None else path[len(inside) :]
