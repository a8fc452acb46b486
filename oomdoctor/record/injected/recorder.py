"""The recorder of one process: says that it is there, counts, and writes down what fails."""

from __future__ import annotations

import atexit
import functools
import os
import sys
import threading
import time
from typing import Any, Dict, List

from . import place
from .counts import CounterRing
from .devices import Accelerator, number, record_of
from .failures import RefusedRequests, describe, is_memory_failure, jax_stats, mps_stats
from .guard import GAPS, guarded, note
from .phases import Counts, PhasePeaks

_EVERY = 1.0
"""Seconds between two samples."""
_ACCELERATORS = {"torch": ("cuda", "xpu"), "torch_npu": ("npu",), "torch_musa": ("musa",), "torch_mlu": ("mlu",)}
"""Devices that come with a library."""


class ProcessRecorder:
    """What is recorded in this process. A forked child begins anew, under its own number."""

    def __init__(self, folder: str, level: int, most: int, hook: str) -> None:
        self.folder, self.level, self.most, self.hook = folder, level, most, hook
        self.accelerators: List[Accelerator] = []
        self.libraries: Dict[str, str] = {}
        self.step: int | None = None
        self.phase: str | None = None
        self.is_closed = False
        self._begin()

    def _begin(self) -> None:
        self.pid = os.getpid()
        self.files = place.RankFiles(self.folder, self.most)
        self.requests = RefusedRequests(self.files)
        self.phases = PhasePeaks(self.files, self._allocated)
        self.backend: str | None = None
        self.device: int | None = None
        self._gaps = -1
        self._ring: CounterRing | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @guarded("a forked child")
    def after_fork(self) -> None:
        """Begin anew in a child. What was hung on the first use of a device is still there."""
        self.step = None
        del GAPS[:]
        self._begin()

    @guarded("hello")
    def say_hello(self) -> None:
        """Write that the recorder is in this process, and what it cannot do."""
        if self._gaps == len(GAPS):
            return
        self._gaps = len(GAPS)
        hello = {
            "time": time.time(),
            "pid": self.pid,
            "parent": os.getppid(),
            "rank": place.rank(),
            "local_rank": place.local_rank(),
            "world_size": place.world_size(),
            "torch": self.libraries.get("torch"),
            "backend": self.backend or next((name for name in ("jax", "tensorflow") if name in self.libraries), None),
            "device": self.device,
            "hook": self.hook,
            "level": self.level,
            "restart": place.restart(),
            "gaps": GAPS,
        }
        self.files.write_json("hello.json", hello)

    @guarded("devices")
    def hang_on(self, library: str) -> None:
        """Wait for the first use of each device that a library brings."""
        torch = sys.modules.get("torch")
        self.libraries[library] = str(getattr(sys.modules.get(library), "__version__", ""))
        for name in _ACCELERATORS.get(library, ()):
            if hasattr(getattr(torch, name, None), "_lazy_call"):
                accelerator = Accelerator(name, torch)
                self.accelerators.append(accelerator)
                accelerator.when_used(guarded(name)(functools.partial(self._used, accelerator)))
        if library == "torch":
            self._count_steps()

    def _used(self, accelerator: Accelerator) -> None:
        """Begin to record on a device that was just started."""
        self.backend = accelerator.backend
        self.device = place.local_rank()
        guarded("failed requests")(accelerator.attach)(functools.partial(self.request_failed, accelerator))
        guarded("stacks of what lives")(accelerator.record_history)(self.level)
        self._gaps = -1
        self.say_hello()
        self._sample_often()

    @guarded("steps")
    def _count_steps(self) -> None:
        optimizer = sys.modules.get("torch.optim.optimizer")
        register = getattr(optimizer, "register_optimizer_step_post_hook", None)
        if register is None:
            note("steps", "this torch has no hook after a step", "torch 2.0 or later")
        else:
            register(self._stepped)

    def enter(self, phase: str | None) -> None:
        """Begin a phase that the program tells; None is none of them."""
        if phase != self.phase:
            self.phases.enter(phase, self.step)
            self.phase = phase

    def _allocated(self) -> Counts:
        """Return what is allocated on each device that is used, and the peak."""
        return {
            "%s:%d" % (accelerator.name, device): (number(stats, "allocated_bytes", "current"), number(stats, "allocated_bytes", "peak"))
            for accelerator in self.accelerators
            if accelerator.is_used()
            for device, stats in accelerator.used()
        }

    def _stepped(self, *_: Any) -> None:
        self.step = (self.step or 0) + 1

    @guarded("counters")
    def _sample_often(self) -> None:
        if self._thread is None:
            self._ring = CounterRing(self.files.path("ring"), self.pid, place.rank(), place.world_size())
            self._thread = threading.Thread(target=self._sample_until_stopped, name="oomdoctor", daemon=True)
            self._thread.start()

    def _sample_until_stopped(self) -> None:
        stop = self._stop
        while not stop.wait(_EVERY) and self.pid == os.getpid():
            self.sample()
            self._look_at_phase()
            self.say_hello()

    def _look_at_phase(self) -> None:
        """Count what the phase that runs holds, and write what is known of all."""
        self.phases.look(self.step)
        self.phases.write()

    @guarded("counters")
    def sample(self) -> None:
        """Write the counters of every device that is used into the ring."""
        if self._ring is None:
            return
        now = time.time()
        for accelerator in self.accelerators:
            if accelerator.is_used():
                pinned = accelerator.pinned()
                for device, stats in accelerator.used():
                    self._ring.write(record_of(stats, device, now, pinned, self.step))

    @guarded("a failed request")
    def request_failed(self, accelerator: Accelerator, device: int, alloc: int, total: int, free: int) -> None:
        """Write down a request that failed: first what takes no time, then the snapshot."""
        if self.is_closed:
            return
        figures = {"device": device, "driver_request_bytes": alloc, "total_bytes": total, "free_bytes": free}
        stats = guarded("counters")(accelerator.stats)(device) or {}
        self.requests.add({**figures, "stats": stats, "step": self.step, "phase": self.phase}, accelerator)
        self.sample()
        self._look_at_phase()
        self.say_hello()

    @guarded("an exception")
    def died_of(self, kind: Any, value: Any, trace: Any, thread: str | None) -> None:
        """Write down what nobody caught; where memory ran out and no observer saw it, what was held then."""
        if self.is_closed:
            return
        self.files.write_json("exception.json", describe(kind, value, trace, thread))
        if is_memory_failure(value):
            self._died_without_memory(trace)
        self.sample()
        self._look_at_phase()
        self.say_hello()

    def _died_without_memory(self, trace: Any) -> None:
        used = next((accelerator for accelerator in self.accelerators if accelerator.is_used()), None)
        if self.requests.count:
            if used is not None:
                self.requests.write_what_was_skipped(used)
            return
        stats = dict(used.used()) if used is not None else jax_stats() or mps_stats() or {}
        if stats:
            device = max(stats, key=lambda at: number(stats[at], "reserved_bytes", "current"))
            known = {"device": device, "stats": stats[device], "step": self.step, "phase": self.phase}
            self.requests.add_from_exception(known, used, trace)

    @guarded("the end")
    def end(self) -> None:
        """Write that the interpreter, or the block that was watched, ends by itself, and let no thread be in torch then."""
        if self.is_closed:
            return
        self.is_closed = True
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(1.0)
        self.sample()
        self.phases.enter(None, self.step)
        self.phases.write()
        self.say_hello()
        self.files.write_json("end.json", {"time": time.time(), "ooms": self.requests.count, "steps": self.step})


RECORDER: ProcessRecorder | None = None
"""That of this process."""


def start(hook: str, imported: str) -> None:
    """Start the recorder, or tell it of one more library."""
    global RECORDER
    if os.environ.get("OOMDOCTOR") == "0":
        return
    if RECORDER is None:
        RECORDER = begin(*place.settings(), hook)
    if RECORDER is not None and imported not in RECORDER.libraries:
        RECORDER.hang_on(imported)
        RECORDER.say_hello()


def close() -> None:
    """End the recorder of a block. What hangs in torch cannot be taken off; it does nothing any more."""
    global RECORDER
    if RECORDER is not None:
        RECORDER.end()
        atexit.unregister(RECORDER.end)
        RECORDER = None


@guarded("the recorder")
def begin(folder: str, level: int, most: int, hook: str) -> ProcessRecorder:
    """Return a recorder that sees how this process ends."""
    recorder = ProcessRecorder(folder, level, most, hook)
    _chain_hooks(recorder)
    atexit.register(recorder.end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=recorder.after_fork)
    return recorder


def _chain_hooks(recorder: ProcessRecorder) -> None:
    """See what nobody caught, and pass it on to whoever saw it before."""
    before = sys.excepthook

    def excepthook(kind: Any, value: Any, trace: Any) -> None:
        _quietly(recorder, kind, value, trace, None)
        before(kind, value, trace)

    sys.excepthook = excepthook
    before_in_threads = getattr(threading, "excepthook", None)
    if before_in_threads is None:  # Python 3.7
        return

    def threads(args: Any) -> None:
        if not issubclass(args.exc_type, SystemExit):
            _quietly(recorder, args.exc_type, args.exc_value, args.exc_traceback, getattr(args.thread, "name", None))
        before_in_threads(args)

    threading.excepthook = threads


def _quietly(recorder: ProcessRecorder, kind: Any, value: Any, trace: Any, thread: str | None) -> None:
    """Write an exception down; a signal that comes meanwhile ends the writing and not the printing.

    What its handler raises is often the cause: a loader's says which worker was killed. Then both are written.
    """
    try:
        recorder.died_of(kind, value, trace, thread)
    except BaseException as meanwhile:
        meanwhile.__context__ = value
        try:
            recorder.died_of(type(meanwhile), meanwhile, meanwhile.__traceback__, thread)
        except BaseException:
            return
