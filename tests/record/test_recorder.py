"""What a process leaves when it dies: of which failure, by which line, and what it held; and what it must not do to the program."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fake_torch import write_fake_torch
from record.recorded import Recorded

from oomdoctor.record.read_folder import RankEvidence, read_evidence

FILL = "import torch\ndef fill():\n    torch.cuda.allocate(900 << 20)\ndef train():\n    torch.cuda.allocate(600 << 20)\n"
DIES = f"{FILL}fill()\ntrain()\n"
MIB = 1 << 20


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def ranks(recorded: Recorded) -> tuple[RankEvidence, ...]:
    return read_evidence(str(recorded.folder)).ranks


def wheres(stack: tuple[str, ...]) -> list[str]:
    return [frame.split("/")[-1] for frame in stack]


@pytest.mark.parametrize("version", ["2.1.2", "2.4.1", "2.5.1", "2.8.0", "2.13.0", "2.15.0"])
def test_a_failed_request_is_written_down(recorded: Recorded, version: str) -> None:
    bare, done = (recorded.run(DIES, version, watched=watched) for watched in (False, True))
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    (rank,) = ranks(recorded)
    (oom,) = rank.ooms
    assert (oom.driver_request_bytes, oom.free_bytes, oom.total_bytes, oom.count) == (600 * MIB, 124 * MIB, 1024 * MIB, 1)
    assert wheres(oom.stack)[-2:] == ["program.py:6:train", "program.py:8:<module>"]
    assert [(holder["site"].split("/")[-1], holder["bytes"], holder["blocks"]) for holder in oom.holders] == [
        ("program.py:4:fill", 900 * MIB, 1)
    ]
    assert pickle.loads(Path(rank.snapshots[0]).read_bytes())["segments"][0]["total_size"] == 900 * MIB
    assert rank.exception is not None and rank.exception.type == "torch.OutOfMemoryError"
    assert rank.end is not None and rank.end.ooms == 1
    assert rank.hello is not None and (rank.hello.backend, rank.hello.gaps) == ("cuda", ())
    assert rank.ring is not None and rank.ring.column("reserved")[-1] == 900 * MIB and rank.ring.column("ooms")[-1] == 1


@pytest.mark.parametrize("version", ["1.13.1", "2.0.1"])
def test_an_old_torch_is_only_asked_after_its_failure(recorded: Recorded, version: str) -> None:
    recorded.run(DIES, version)
    (rank,) = ranks(recorded)
    (oom,) = rank.ooms
    assert oom.driver_request_bytes is None and oom.stats["reserved_bytes"]["all"]["current"] == 900 * MIB
    assert rank.hello is not None and {"failed requests", "stacks of what lives"} <= {gap.what for gap in rank.hello.gaps}


@pytest.mark.parametrize(
    ("card", "gaps"),
    [
        pytest.param("masked", set(), id="the request fails before the observers are called"),
        pytest.param("async", {"failed requests", "stacks of what lives"}, id="an allocator without observers and history"),
    ],
)
def test_what_no_observer_sees_the_exception_tells(recorded: Recorded, card: str, gaps: set[str]) -> None:
    done = recorded.run(DIES, variables={"FAKE_CARD": card})
    assert done.returncode == 1
    (rank,) = ranks(recorded)
    (oom,) = rank.ooms
    assert wheres(oom.stack)[-2:] == ["program.py:6:train", "program.py:8:<module>"]
    assert oom.stats["reserved_bytes"]["all"]["current"] == 900 * MIB and oom.driver_request_bytes is None
    assert rank.hello is not None and {gap.what for gap in rank.hello.gaps} == gaps


@pytest.mark.parametrize(
    ("raised", "count"),
    [
        pytest.param(
            "try:\n    train()\nexcept RuntimeError as error:\n    raise ValueError('step 3 failed') from error\n", 1, id="its cause"
        ),
        pytest.param(
            "try:\n    train()\nexcept RuntimeError:\n    raise ValueError('step 3 failed')\n", 1, id="what it came in the place of"
        ),
        pytest.param("class Odd(Exception):\n    def __str__(self): return 1 / 0\nraise Odd\n", 0, id="an exception without a text"),
    ],
)
def test_an_exception_is_looked_through(recorded: Recorded, raised: str, count: int) -> None:
    recorded.run(f"{FILL}fill()\n{raised}", variables={"FAKE_CARD": "masked"})
    (rank,) = ranks(recorded)
    assert len(rank.ooms) == count and rank.exception is not None


def test_another_error_is_no_failed_request(recorded: Recorded) -> None:
    recorded.run(f"{FILL}fill()\nraise ValueError('shapes differ')\n")
    (rank,) = ranks(recorded)
    assert rank.ooms == [] and rank.exception is not None and rank.exception.text == "shapes differ"


def test_of_many_survived_failures_the_first_and_the_latest_are_kept(recorded: Recorded) -> None:
    tries = "for number in range(20):\n    try:\n        torch.cuda.allocate((600 + 2 * number) << 20)\n    except RuntimeError:\n        pass\n"
    done = recorded.run(f"{FILL}fill()\n{tries}")
    assert done.returncode == 0
    (rank,) = ranks(recorded)
    assert [(oom.count, oom.driver_request_bytes) for oom in rank.ooms] == [(1, 600 * MIB), (20, 638 * MIB)]
    assert rank.exception is None and rank.end is not None and rank.end.ooms == 20


@pytest.mark.parametrize(("level", "holders", "asked"), [(0, 0, []), (1, 1, ["state"]), (2, 1, ["all"])])
def test_the_level_says_what_is_recorded(recorded: Recorded, level: int, holders: int, asked: list[str]) -> None:
    log = recorded.place / "calls"
    log.write_text("")
    recorded.run(DIES, level=level, variables={"FAKE_LOG": str(log)})
    (rank,) = ranks(recorded)
    assert len(rank.ooms[0].holders) == holders and len(rank.snapshots) == 1
    assert [f'"enabled": "{enabled}"' in line for enabled, line in zip(asked, log.read_text().splitlines())] == [True] * len(asked)


def test_a_history_of_the_program_stays_as_it_is(recorded: Recorded) -> None:
    log = recorded.place / "calls"
    program = "import torch\ntorch.cuda._queued.insert(0, lambda: torch.cuda.memory._record_memory_history('all'))\ntorch.cuda.init()\n"
    recorded.run(program, variables={"FAKE_LOG": str(log)})
    assert len(log.read_text().splitlines()) == 1
    (rank,) = ranks(recorded)
    assert rank.hello is not None and [gap.what for gap in rank.hello.gaps] == ["history"]


WORKS = f"{FILL}def work():\n    fill(); train()\n"
STARTS = "if __name__ == '__main__':\n    import multiprocessing\n    process = multiprocessing.get_context({kind!r}).Process(target=work)\n    process.start(); process.join(); sys.exit(process.exitcode)\n"
CAUGHT = "try:\n    fill(); train()\nexcept RuntimeError:\n    sys.exit(4)\n"
KILLED = "import os, time\nfill()\ntime.sleep(1.2)\nos.kill(os.getpid(), {signal})\ntime.sleep(9)\n"


@pytest.mark.parametrize(
    ("program", "status", "has_oom", "exception", "has_end"),
    [
        pytest.param(DIES, 1, True, "torch.OutOfMemoryError", True, id="an exception"),
        pytest.param(f"{WORKS}import threading\nthread = threading.Thread(target=work)\nthread.start()\nthread.join()\n", 0, True, "torch.OutOfMemoryError", True, id="in a thread"),
        pytest.param(f"{FILL}{CAUGHT}", 4, True, None, True, id="caught, then exit"),
        pytest.param(f"{FILL}fill()\nimport os\nos._exit(5)\n", 5, False, None, False, id="os._exit"),
        pytest.param(FILL + KILLED.format(signal=int(signal.SIGKILL)), -9, False, None, False, id="SIGKILL"),
        pytest.param(FILL + KILLED.format(signal=int(signal.SIGTERM)), -15, False, None, False, id="SIGTERM"),
        pytest.param(FILL + KILLED.format(signal=int(signal.SIGINT)), -2, False, "KeyboardInterrupt", True, id="Ctrl-C"),
    ],
)  # fmt: skip
def test_how_a_process_ends(recorded: Recorded, program: str, status: int, has_oom: bool, exception: str | None, has_end: bool) -> None:
    done = recorded.run(program)
    assert done.returncode == status
    (rank,) = ranks(recorded)
    assert (bool(rank.ooms), rank.exception.type if rank.exception else None, rank.end is not None) == (has_oom, exception, has_end)
    if status in (-9, -15):
        assert rank.ring is not None and rank.ring.column("reserved") == (900 * MIB,)


@pytest.mark.parametrize("kind", ["fork", "spawn", "forkserver"])
def test_a_child_of_multiprocessing_has_files_of_its_own(recorded: Recorded, kind: str) -> None:
    done = recorded.run(WORKS + STARTS.format(kind=kind))
    assert done.returncode == 1
    (failed,) = (rank for rank in ranks(recorded) if rank.ooms)
    assert failed.hello is not None and failed.pid == failed.hello.pid
    assert len([rank for rank in ranks(recorded) if rank.hello is not None]) == 2


def test_each_rank_has_its_name(recorded: Recorded) -> None:
    recorded.run(DIES, variables={"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8"})
    (rank,) = ranks(recorded)
    assert rank.rank == 3 and rank.hello is not None and (rank.hello.local_rank, rank.hello.world_size) == (1, 8)


def test_steps_are_counted(recorded: Recorded) -> None:
    recorded.run("import torch\nfor _ in range(7):\n    torch.optim.optimizer.Optimizer().step()\n")
    (rank,) = ranks(recorded)
    assert rank.end is not None and rank.end.steps == 7


OTHERS = {
    "torch_npu": "import torch\nclass npu(object):\n    pass\nfor name in dir(torch.cuda):\n    setattr(npu, name, staticmethod(getattr(torch.cuda, name)) if callable(getattr(torch.cuda, name)) else getattr(torch.cuda, name))\ntorch.npu = npu\n",
    "jax": "import sys, types\nclass Device:\n    id = 0\n    def memory_stats(self): return dict(bytes_in_use=7, bytes_limit=9)\ndef local_devices(): return [Device()]\nsys.modules['jax._src.xla_bridge'] = types.SimpleNamespace(_backends=dict(cuda=1))\n",
    "tensorflow": "__version__ = '2.20.0'\n",
}  # fmt: skip
FAILS = "raise RuntimeError('RESOURCE_EXHAUSTED: Out of memory while trying to allocate 12 bytes.')\n"


@pytest.mark.parametrize(
    ("library", "backend", "used", "stats"),
    [
        pytest.param("torch_npu", "npu", "import torch\ntorch.npu.init()\n", None, id="a device of another library"),
        pytest.param("jax", "jax", "", {"bytes_in_use": 7, "bytes_limit": 9}, id="jax tells its counters"),
        pytest.param("tensorflow", "tensorflow", "", None, id="tensorflow writes its own"),
    ],
)
def test_other_libraries(recorded: Recorded, library: str, backend: str, used: str, stats: dict[str, int] | None) -> None:
    site = write_fake_torch(recorded.place / "2.13.0" / "site-packages", "2.13.0")
    (site / f"{library}.py").write_text(OTHERS[library])
    recorded.run(f"import {library}\n{used}{FAILS}")
    (rank,) = ranks(recorded)
    assert rank.hello is not None and rank.hello.backend == backend and rank.exception is not None
    assert [oom.stats for oom in rank.ooms] == ([] if stats is None else [stats])


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param("", True, id="by default"),
        pytest.param("torch.set_grad_enabled(False)", False, id="switched off"),
        pytest.param("del torch.is_grad_enabled", None, id="a torch that does not tell"),
    ],
)
def test_whether_the_thread_that_asked_recorded_gradients(recorded: Recorded, line: str, expected: bool | None) -> None:
    recorded.run(f"import torch\n{line}\ntorch.cuda.allocate(4 << 30)\n")
    (rank,) = ranks(recorded)
    assert [oom.gradients for oom in rank.ooms] == [expected]


ACCELERATOR = """
import torch
from torch import _C
from torch.cuda import memory
_queued, _state = [], [False]
def is_initialized(): return _state[0]
def _lazy_call(function): function() if _state[0] else _queued.append(function)
def init():
    if not _state[0]:
        _state[0] = True
        for function in _queued: function()
def device_count(): return 1
def allocate(size):
    init()
    made = torch._C.ask(size)
    for tell in made.tell: tell()
    if made.errors: raise RuntimeError("{name} out of memory. Tried to allocate 600.00 MiB")
"""
"""A device beside cuda, as torch has xpu and torch_npu has npu."""
BINDING = """
torch.{device} = __import__("sys").modules["torch_{device}"]
class {binding}: _{device}_attach_out_of_memory_observer = staticmethod(torch._C.attach)
"""


def beside(device: str, binding: str) -> str:
    """Return a library that brings a device, with a binding of its own."""
    return ACCELERATOR.format(name=device.upper()) + BINDING.format(device=device, binding=binding)


@pytest.mark.parametrize(("library", "text", "device", "gaps", "asked"), [
    pytest.param("torch/xpu.py", ACCELERATOR.format(name="XPU"), "xpu", {"failed requests"}, None, id="xpu, which has no observer"),
    pytest.param("torch_npu.py", beside("npu", "_C"), "npu", set(), 600 * MIB, id="npu, whose binding has its own"),
    pytest.param("torch_musa.py", beside("musa", "_MUSAC"), "musa", set(), 600 * MIB, id="musa, whose binding has another name"),
    pytest.param("torch_mlu.py", beside("mlu", "_MLUC"), "mlu", set(), 600 * MIB, id="mlu, too"),
])  # fmt: skip
def test_a_device_that_is_not_cuda_is_recorded(
    recorded: Recorded, library: str, text: str, device: str, gaps: set[str], asked: int | None
) -> None:
    site = write_fake_torch(recorded.place / "2.11.0" / "site-packages", "2.11.0")
    (site / library).write_text(text)
    imported = library.split(".")[0].replace("/", ".")
    program = f"import torch, {imported}\ndef fill(): torch.{device}.allocate(900 << 20)\nfill()\ntorch.{device}.allocate(600 << 20)\n"
    recorded.run(program, "2.11.0")
    (rank,) = ranks(recorded)
    (oom,) = rank.ooms
    assert rank.hello is not None and (rank.hello.backend, {gap.what for gap in rank.hello.gaps}) == (device, gaps)
    assert (oom.driver_request_bytes, oom.stats["reserved_bytes"]["all"]["current"]) == (asked, 900 * MIB)
    assert [(wheres((holder["site"],)), holder["bytes"]) for holder in oom.holders] == [(["program.py:3:fill"], 900 * MIB)]


BROKEN = {
    "a full disk": "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n",
    "the folder is gone": "import shutil\nshutil.rmtree({ranks!r})\n",
    "a file is in the way": "import shutil\nshutil.rmtree({ranks!r})\nopen({ranks!r}, 'w').close()\n",
    "the snapshot fails": "import torch.cuda.memory\ntorch.cuda.memory._snapshot = None\n",
    "the counters fail": "import torch.cuda.memory\ntorch.cuda.memory.memory_stats_as_nested_dict = lambda device: 1 / 0\n",
    "every descriptor is closed": "import os\nos.closerange(3, 100)\n",
}


@pytest.mark.parametrize("before", [pytest.param(text, id=name) for name, text in BROKEN.items()])
def test_nothing_of_ours_reaches_the_program(recorded: Recorded, before: str) -> None:
    """Also where it breaks after the recorder came in, and before."""
    text = before.format(ranks=str(recorded.folder / "ranks"))
    for program in (f"{text}{DIES}", f"{FILL}torch.cuda.init()\n{text}fill()\ntrain()\n"):
        bare, done = (recorded.run(program, watched=watched) for watched in (False, True))
        assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
        assert "OutOfMemoryError" in done.stderr


def test_a_handler_of_the_program_is_heard_while_a_failure_is_written_down(recorded: Recorded) -> None:
    """torchrun's agent ends its workers by an exception that its handler raises."""
    program = (
        "import os, signal, torch\nclass Stop(Exception): pass\ndef handle(number, frame): raise Stop\nsignal.signal(signal.SIGTERM, handle)\n"
        "def snapshot():\n    os.kill(os.getpid(), signal.SIGTERM)\n    return {}\ntorch.cuda.memory._snapshot = snapshot\n"
        "try:\n    torch.cuda.allocate(2 << 30)\nexcept Stop:\n    print('stopped')\n"
    )
    assert recorded.run(program).stdout == "stopped\n"


def test_what_a_handler_raises_while_an_exception_is_written_down_is_written_with_it(recorded: Recorded) -> None:
    """A loader's handler says which worker was killed, when its parent already ends for that."""
    program = (
        "import os, signal, torch\ndef handle(number, frame): raise RuntimeError('worker 7 was killed')\nsignal.signal(signal.SIGCHLD, handle)\n"
        "take = torch.cuda.memory._snapshot\n"
        "def snapshot():\n    torch.cuda.memory._snapshot = take\n    os.kill(os.getpid(), signal.SIGCHLD)\n    return take()\n"
        "torch.cuda.memory._snapshot = snapshot\ntorch.cuda.allocate(1 << 20)\ntorch.cuda.allocate(2 << 30)\n"
    )
    recorded.run(program, variables={"FAKE_CARD": "masked"})
    (rank,) = ranks(recorded)
    assert rank.exception is not None and rank.exception.text == "worker 7 was killed"
    assert "NVML_SUCCESS" in rank.exception.traceback


def test_a_hook_of_the_program_is_called_after_ours_and_before(recorded: Recorded) -> None:
    hooked = "import sys\ndef own(*args): print('mine')\nsys.excepthook = own\n"
    assert recorded.run(f"{hooked}{DIES}").stdout == "mine\n"
    assert recorded.run(f"import torch\n{hooked}{DIES}").stdout == "mine\n"


@pytest.mark.parametrize("version", ["3.7", "3.8", "3.9", "3.12", "3.13"])
def test_other_interpreters(recorded: Recorded, version: str) -> None:
    python = interpreter(version)
    bare, done = (recorded.run(DIES, "2.1.2", watched=watched, python=python) for watched in (False, True))
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    (rank,) = ranks(recorded)
    assert len(rank.ooms) == len(rank.snapshots) == 1 and rank.exception is not None and rank.ring is not None


@pytest.mark.parametrize("version", ["2.7", "3.6"])
def test_an_interpreter_that_is_too_old_is_left_alone(recorded: Recorded, version: str) -> None:
    python = interpreter(version)
    bare, done = (recorded.run("print(1)\n", watched=watched, python=python) for watched in (False, True))
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert ranks(recorded) == ()


def interpreter(version: str) -> str:
    """An interpreter of a version, where this machine has one."""
    paths = [shutil.which(f"python{version}"), *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))]
    for path in paths:
        if path is not None and subprocess.run([path, "-c", "pass"], capture_output=True).returncode == 0:
            return path
    pytest.skip(f"no Python {version} here")


@pytest.mark.torch
def test_the_real_torch_is_reached_in_children_of_torchrun(recorded: Recorded) -> None:
    """As PYTHON_WITH_TORCH names it, or in this interpreter."""
    python = os.environ.get("PYTHON_WITH_TORCH", sys.executable)
    if subprocess.run([python, "-c", "import torch"], capture_output=True).returncode:
        pytest.skip("no torch here")
    program = (
        "import os, sys, subprocess\nif 'RANK' not in os.environ:\n"
        "    sys.exit(subprocess.run([sys.executable, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node', '2', __file__]).returncode)\n"
        "import torch\nparameter = torch.nn.Parameter(torch.ones(2))\noptimizer = torch.optim.AdamW([parameter])\n"
        "parameter.sum().backward()\noptimizer.step()\n"
        "if os.environ['RANK'] == '1':\n    raise RuntimeError('CUDA out of memory')\n"
    )
    done = recorded.run(program, python=python, version="")
    assert done.returncode == 1
    by_rank = {rank.rank: rank for rank in ranks(recorded) if rank.rank is not None}
    assert sorted(by_rank) == [0, 1]
    assert by_rank[1].exception is not None and by_rank[1].end is not None and by_rank[1].end.steps == 1
