"""Libraries that lack a function, crash or hang, interpreters and torches that do not work: always an answer, and always the right one."""

from __future__ import annotations

import ast
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from oomdoctor.machine.collect.environment import collect_environment
from oomdoctor.machine.collect.nvml_library import (
    NvmlLibrary,
    load_nvml_library,
    mapped_files,
    read_kernel_cards,
    read_kernel_version,
    version_of_file,
)
from oomdoctor.machine.collect.root import Root
from oomdoctor.machine.probe import script as probe
from oomdoctor.machine.probe.answer import TorchAnswer
from oomdoctor.machine.probe.client import start_probe
from oomdoctor.machine.probe.isolated_process import IsolatedFailure, run_isolated

ENVIRON = {"PATH": os.environ["PATH"]}
LACKING = "nvmlDeviceGetNvLinkRemoteDeviceType"
STUB = """
#include <string.h>
int nvmlInit_v2(void) { return 0; }
int nvmlInitWithFlags(unsigned flags) { %s }
int nvmlShutdown(void) { return 0; }
int nvmlSystemGetDriverVersion(char *to, unsigned n) { strncpy(to, "535.104.12", n); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *to) { *to = 12020; return 0; }
int nvmlDeviceGetCount_v2(unsigned *to) { *to = 0; return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(void) { return 6; }
int nvmlDeviceGetComputeRunningProcesses(void) { return 6; }
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void) { return 6; }
"""
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None or sys.platform != "linux", reason="needs gcc on Linux")


def stub(folder: Path, start: str) -> Path:
    """A library that the loader takes for NVML; `start` is what it does when it is initialised."""
    folder.mkdir(exist_ok=True)
    source = folder / "stub.c"
    source.write_text(STUB % start)
    built = folder / "libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
    return built


def torch_beside(folder: Path) -> Path:
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "version.py").write_text("__version__ = '2.3.0+cu121'\ncuda = '12.1'\nhip = None\n")
    (folder / "torch-2.3.0+cu121.dist-info").mkdir()
    return folder


def env_json(environ: dict[str, str], *more: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "oomdoctor", "env", "--format", "json", *more], env=environ, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, object] = json.loads(done.stdout)
    return report


def found(report: dict[str, object]) -> list[str]:
    findings = report["findings"]
    assert isinstance(findings, list)
    return [one["id"] for one in findings]


@needs_gcc
def test_a_stub_is_named_with_its_path_and_what_it_lacks_before_torch_runs(tmp_path: Path) -> None:
    built = stub(tmp_path / "stub", "return 0;")
    environ = {**os.environ, "LD_LIBRARY_PATH": str(built.parent), "PYTHONPATH": str(torch_beside(tmp_path / "site"))}
    report = env_json(environ, "--no-redact")
    assert "nvml-library-lacks-functions" in found(report)
    text = json.dumps(report)
    assert str(built) in text
    assert f"has no {LACKING}." in text


def test_a_machine_of_which_nothing_can_be_read_is_described_all_the_same(tmp_path: Path) -> None:
    found = collect_environment({}, python="/no/such/python", root=Root(str(tmp_path)))
    assert found.host.system is not None
    assert (found.host.ram_bytes, found.host.shm, found.host.cgroup, found.host.container) == (None, None, None, None)
    assert {gap.what for gap in found.gaps} >= {"the interpreter of the run"}


@needs_gcc
@pytest.mark.parametrize(
    ("start", "why"),
    [
        pytest.param("*(volatile int *)0 = 1; return 0;", "it crashed (SIGSEGV)", id="a library that crashes"),
        pytest.param("for (;;) ;", "it did not respond in time", id="a library that hangs"),
    ],
)
def test_a_library_that_does_not_come_back_costs_its_answers_and_no_more(start: str, why: str, tmp_path: Path) -> None:
    built = stub(tmp_path / "stub", start)
    report = env_json({**os.environ, "LD_LIBRARY_PATH": str(built.parent)})
    assert "driver-does-not-answer" in found(report)
    assert why in json.dumps(report)


@needs_gcc
def test_each_function_is_looked_up_as_torch_does(tmp_path: Path) -> None:
    built = stub(tmp_path, "return 0;")
    library = run_isolated(lambda: load_nvml_library(["nvmlInit_v2", LACKING], str(built)), NvmlLibrary, 30.0)
    assert isinstance(library, NvmlLibrary)
    assert (library.symbols, library.path) == ({"nvmlInit_v2": True, LACKING: False}, str(built))


def test_a_library_that_is_not_there_says_why() -> None:
    loaded = load_nvml_library(["nvmlInit_v2"], "libnothing-of-the-kind.so.1")
    assert not loaded.loaded
    assert "libnothing-of-the-kind.so.1" in (loaded.error or "")


MAPS = """\
7f0c00000000-7f0c00021000 rw-p 00000000 00:00 0
7f0c2a000000-7f0c2a1d4000 r-xp 00000000 08:02 393 /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.104.05
7f0c2a1d4000-7f0c2a3d3000 ---p 001d4000 08:02 393 /usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.104.05
7f0c2b000000-7f0c2b100000 r--p 00000000 08:02 77 /opt/my libs/libc.so.6
7f0c2c000000-7f0c2c100000 r--p 00000000 00:00 0 [heap]
"""


def test_files_of_a_process_by_its_maps() -> None:
    assert mapped_files(MAPS) == ["/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.104.05", "/opt/my libs/libc.so.6"]


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/usr/lib64/libnvidia-ml.so.535.104.05", "535.104.05"),
        ("/usr/lib64/libnvidia-ml.so.550.120", "550.120"),
        ("/usr/lib64/libnvidia-ml.so.1", None),
        ("/opt/share/libproxy.so", None),
        (None, None),
    ],
)
def test_version_of_the_file_behind_the_links(path: str | None, version: str | None) -> None:
    assert version_of_file(path) == version


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\n", id="the vendor's module"
        ),
        pytest.param("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.104.05  Release Build\n", id="the open module"),
        pytest.param("NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  535.104.05  Release Build\n", id="on ARM"),
    ],
)
def test_version_of_the_kernel_module(said: str, tmp_path: Path) -> None:
    (tmp_path / "proc/driver/nvidia/gpus/0000:65:00.0").mkdir(parents=True)
    (tmp_path / "proc/driver/nvidia/version").write_text(said)
    (tmp_path / "proc/driver/nvidia/gpus/0000:65:00.0/information").write_text("Model: \t\t NVIDIA A30\nIRQ: 77\n")
    assert read_kernel_version(Root(str(tmp_path))) == "535.104.05"
    assert read_kernel_cards(Root(str(tmp_path))) == ["NVIDIA A30"]


def test_isolated_work_hands_its_answer_back() -> None:
    assert run_isolated(lambda: {"one": [1, None, "zwei"]}, dict, 30.0) == {"one": [1, None, "zwei"]}
    assert run_isolated(lambda: "x" * 3_000_000, str, 30.0) == "x" * 3_000_000


def _kill(number: int) -> int:
    os.kill(os.getpid(), number)
    return 0


def _hang() -> int:
    time.sleep(600)
    return 0


@pytest.mark.parametrize(
    ("work", "why"),
    [
        pytest.param(lambda: _kill(signal.SIGKILL), "SIGKILL", id="a violent end"),
        pytest.param(_hang, "timeout", id="a hang"),
        pytest.param(lambda: 1 // 0, "exit status 1", id="an exception"),
    ],
)  # fmt: skip
def test_isolated_work_that_is_lost_says_how(work: Callable[[], int], why: str) -> None:
    assert run_isolated(work, int, 0.5 if why == "timeout" else 30.0) == IsolatedFailure(why)


def _wait() -> int:
    time.sleep(1.5)
    return 7


def _spin() -> int:
    while True:
        pass


@pytest.mark.parametrize(
    ("work", "seconds", "result"),
    [
        pytest.param(_spin, 120.0, IsolatedFailure("SIGXCPU"), id="one that never ends takes no more of the processor"),
        pytest.param(_wait, 120.0, 7, id="one that waits for longer has not used it"),
        pytest.param(_hang, 0.5, IsolatedFailure("timeout"), id="one that waits for ever ends by the clock"),
    ],
)
def test_isolated_work_is_bounded_by_the_processor_and_by_the_clock(work: Callable[[], int], seconds: float, result: object) -> None:
    assert run_isolated(work, int, seconds, processor_seconds=1.0) == result


def script(folder: Path, text: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("kill -SEGV $$", ("SIGSEGV", False), id="an interpreter that crashes"),
        pytest.param("sleep 600", (None, True), id="one that hangs"),
        pytest.param("echo '{\"python\": 1}'", (None, False), id="one that prints something else"),
        pytest.param("printf '\\noomdoctor-probe:{\"python\": \\n'", (None, False), id="one that stops in the middle"),
        pytest.param("echo 'no library' >&2; exit 127", (None, False), id="one that cannot start"),
    ],
)
def test_an_interpreter_that_gives_no_answer(text: str, expected: tuple[str | None, bool], tmp_path: Path) -> None:
    result = start_probe(script(tmp_path, text), ENVIRON, 0.5 if "sleep" in text else 30.0)
    assert result.answer is None
    assert (result.signal, result.timed_out) == expected
    assert "no library" in (result.error or "") or "no library" not in text


def test_an_interpreter_that_is_not_there() -> None:
    assert start_probe("/no/such/python", ENVIRON, 30.0).error == "No such file or directory"


def test_noise_around_the_answer_does_no_harm(tmp_path: Path) -> None:
    path = script(tmp_path, f"head -c 300000 /dev/zero; echo; echo 'module load ok'; exec {shlex.quote(sys.executable)} \"$@\"")
    answer = start_probe(path, ENVIRON, 30.0).answer
    assert answer is not None and answer.python is not None
    assert answer.python.version == ".".join(map(str, sys.version_info[:3]))


def test_modules_of_the_working_directory_and_of_ours_do_not_stand_before_those_of_the_interpreter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("json", "platform", "torch"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    answer = start_probe(sys.executable, ENVIRON, 30.0, deep=True).answer
    assert answer is not None and answer.python is not None
    assert "the wrong one" not in str(answer)
    assert not {str(tmp_path), str(Path(probe.__file__).parent)} & {*answer.python.site_packages}


def a_torch(folder: Path, code: str) -> dict[str, str]:
    (folder / "torch").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text(textwrap.dedent(code))
    return {**ENVIRON, "PYTHONPATH": str(folder)}


def test_a_torch_that_crashes(tmp_path: Path) -> None:
    result = start_probe(sys.executable, a_torch(tmp_path, "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"), 30.0, deep=True)
    assert (result.answer, result.signal) == (None, "SIGSEGV")


def test_a_torch_that_hangs(tmp_path: Path) -> None:
    answer = start_probe(sys.executable, a_torch(tmp_path, "import time\ntime.sleep(600)"), 1.0, deep=True)
    assert answer.timed_out


@pytest.mark.parametrize(
    ("code", "error"),
    [
        pytest.param("raise ImportError('libcudnn.so.9: cannot open shared object file')", "ImportError: libcudnn.so.9: cannot open shared object file", id="a missing library"),
        pytest.param("raise SystemExit(3)", "SystemExit: 3", id="a torch that ends the program"),
        pytest.param("raise BaseException('no')", "BaseException: no", id="a torch that raises what nobody catches"),
    ],
)  # fmt: skip
def test_a_torch_that_does_not_import(code: str, error: str, tmp_path: Path) -> None:
    answer = start_probe(sys.executable, a_torch(tmp_path, code), 30.0, deep=True).answer
    assert answer is not None
    assert answer.torch == TorchAnswer(imports=False, error=error)


def test_each_question_to_torch_may_fail_on_its_own(tmp_path: Path) -> None:
    code = """
        __version__ = "2.7.0+cu126"
        class version: cuda, hip = "12.6", None
        class cuda:
            @staticmethod
            def is_available(): return False
            @staticmethod
            def device_count(): raise RuntimeError("CUDA unknown error")
            @staticmethod
            def get_arch_list(): return ["sm_80"]
    """
    answer = start_probe(sys.executable, a_torch(tmp_path, code), 30.0, deep=True).answer
    assert answer is not None and answer.torch is not None
    torch = answer.torch
    assert (torch.imports, torch.cuda, torch.cuda_available, torch.arch_list) == (True, "12.6", False, ("sm_80",))
    assert torch.failed["device_count"] == "RuntimeError: CUDA unknown error"
    assert torch.device_count is None


def test_the_probe_is_one_file_of_the_standard_library_that_python_3_7_understands() -> None:
    source = Path(probe.__file__).read_text(encoding="utf-8")
    tree = ast.parse(source, feature_version=(3, 7))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)} | {
        alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    assert modules == {"__future__", "functools", "json", "os", "platform", "sys", "typing", "torch"}
    assert not any(isinstance(node, ast.NamedExpr) for node in ast.walk(tree))
