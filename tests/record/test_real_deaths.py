"""Commands that really die, each in its own way: the first finding says of what, sure where that was measured, and the status is theirs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from fake_torch import write_fake_torch
from in_process import oomdoctor
from msgspec.json import decode, encode
from record.died import memory_group, mounts_tmpfs

from oomdoctor.api.runs.evidence import diagnose_evidence
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.record.read_folder import read_evidence
from oomdoctor.report.diagnosis.headline import summary
from oomdoctor.report.wording.wording import Wording

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="deaths are counted by Linux")

ROOT = Path(__file__).parents[2]
LIMIT = 160 << 20
FILLS = "held = []\nwhile True: held.append(bytearray(8 << 20))"


def watched(place: Path, command: list[str], before: str = "") -> tuple[int, Diagnosis]:
    """Run a command under `oomdoctor run` and return its status and what its evidence says. `before`: a line of a shell."""
    folder = place / "evidence"
    wrapper = [sys.executable, "-m", "oomdoctor", "run", "--quiet", "--out", str(folder), "--", *command]
    line = ["sh", "-c", f'{before}\nexec "$@"', "sh", *wrapper]
    with (place / "log").open("wb") as log:
        done = subprocess.run(line, stdout=log, stderr=log, cwd=place, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=600)
    return done.returncode, diagnose_evidence(str(folder), load_pack())


HEADLINES = {
    "address-space-limit-was-reached": "A limit set for the process denied it memory",
    "container-memory-limit": "The memory limit of the container or job was reached",
    "disk-was-full": "Not a memory failure: the disk was full",
    "it-crashed": "Not a memory failure: it crashed in native code",
    "it-ended-itself": "Not a memory failure: the program exited on its own",
    "killed-by-hand": "Not a memory failure: something sent SIGKILL",
    "limit-of-the-process": "A host memory request was refused, although the host had memory free",
    "native-crash": "Not a memory failure: a process crashed in native code",
    "node-was-gone": "Not decided yet: the end was not recorded; the node or the whole job disappeared at once",
    "shm-was-full": "Shared memory (/dev/shm) ran out",
    "stopped-by-a-signal": "Not a memory failure: a signal from outside stopped it",
}
"""How a report begins whose first finding is this one."""


def first(diagnosis: Diagnosis) -> tuple[str, str]:
    """Return the first finding and how sure it is; the headline says the same."""
    assert summary(diagnosis, Wording("en")).startswith(HEADLINES[diagnosis.findings[0].id])
    return diagnosis.findings[0].id, diagnosis.findings[0].confidence.value


def python(program: str) -> list[str]:
    return [sys.executable, "-c", program]


ADDRESSES = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\nheld = bytearray(2 << 30)"
SURVIVES = ADDRESSES.replace("held =", "try: held =") + "\nexcept MemoryError: print('no room, a smaller batch')\nprint('done')"


@pytest.mark.parametrize(("program", "status", "found"), [
    pytest.param("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -9, ("killed-by-hand", "certain"), id="kill -9 by hand"),
    pytest.param(ADDRESSES, 1, ("limit-of-the-process", "likely"), id="the address space is limited"),
    pytest.param("raise KeyError('lr')", 1, ("it-ended-itself", "certain"), id="an error that has nothing to do with memory"),
    pytest.param("import ctypes; ctypes.string_at(0)", -11, ("it-crashed", "certain"), id="a segmentation fault"),
    pytest.param("import os; os.abort()", -6, ("native-crash", "likely"), id="abort"),
])  # fmt: skip
def test_a_death_is_named(tmp_path: Path, program: str, status: int, found: tuple[str, str]) -> None:
    ended, diagnosis = watched(tmp_path, python(program))
    assert ended == status
    assert first(diagnosis) == found


def test_a_small_address_space_is_what_refuses(tmp_path: Path) -> None:
    status, diagnosis = watched(tmp_path, python("held = bytearray(8 << 30)"), before="ulimit -v 4000000; ulimit -n 200")
    assert (status, first(diagnosis)) == (1, ("address-space-limit-was-reached", "certain"))
    limits = read_evidence(str(tmp_path / "evidence")).run
    assert limits is not None and limits.limits["address_space_bytes"] == 4_000_000 << 10 and limits.limits["open_files"] == 200


def test_a_run_that_goes_on_is_not_said_to_have_ended(tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    command = [sys.executable, "-m", "oomdoctor", "run", "--quiet", "--out", str(folder), "--", "sleep", "10"]
    wrapper = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 20
    while not (folder / "samples.jsonl").exists() and time.monotonic() < until:
        time.sleep(0.02)
    going, diagnosis = read_evidence(str(folder)), diagnose_evidence(str(folder), load_pack())
    wrapper.kill()
    wrapper.wait()
    assert going.is_going and (diagnosis.case.verdict.memory_failure, diagnosis.findings) == ("no", ())
    old = [{**decode(line), "t": 1.7e9 + number} for number, line in enumerate((folder / "samples.jsonl").read_bytes().splitlines())]
    (folder / "samples.jsonl").write_bytes(b"".join(encode(sample) + b"\n" for sample in old))
    assert not read_evidence(str(folder)).is_going  # however new the file is: a copy is as old as what it holds
    assert first(diagnose_evidence(str(folder), load_pack())) == ("node-was-gone", "certain")


def test_who_leaves_without_a_word_ran_out_of_nothing(tmp_path: Path) -> None:
    status, diagnosis = watched(tmp_path, python("import os; os._exit(7)"))
    assert (status, diagnosis.case.verdict.memory_failure) == (7, "no")


def test_where_the_recorder_was_inside_it_is_certain(tmp_path: Path) -> None:
    site = write_fake_torch(tmp_path / "site", "2.13.0")
    leaves = f"import os, sys; sys.path.append({str(site)!r})\nimport torch\ntorch.cuda.allocate(1 << 20)\nos._exit(7)"
    status, diagnosis = watched(tmp_path, python(leaves))
    assert (status, first(diagnosis)) == (7, ("it-ended-itself", "certain"))


def test_what_is_caught_is_no_failure(tmp_path: Path) -> None:
    status, diagnosis = watched(tmp_path, python(SURVIVES))
    assert (status, diagnosis.case.verdict.memory_failure, diagnosis.findings) == (0, "no", ())


def test_a_hang_that_is_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "evidence"
    command = [sys.executable, "-m", "oomdoctor", "run", "--quiet", "--out", str(folder), "--", "sleep", "60"]
    wrapper = subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)}, stderr=subprocess.DEVNULL)
    until = time.monotonic() + 20
    while not (folder / "run.json").exists() and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(0.3)
    wrapper.send_signal(signal.SIGTERM)
    assert wrapper.wait(20) == -signal.SIGTERM
    assert first(diagnose_evidence(str(folder), load_pack())) == ("stopped-by-a-signal", "certain")


def test_the_limit_of_a_group(tmp_path: Path) -> None:
    with memory_group(LIMIT) as group:
        status, diagnosis = watched(tmp_path, python(FILLS), before=f"echo $$ > {group}/cgroup.procs")
    assert status == -9
    assert first(diagnosis) == ("container-memory-limit", "certain")


FILLS_FILE = """
import time
file = open("checkpoint.bin", "wb", buffering=0)
while file.write(bytes(1 << 20)): time.sleep(0.02)
"""
FILLS_SHM = """
import time
from multiprocessing import shared_memory
held = shared_memory.SharedMemory(create=True, size=32 << 20)
most = (16 << 20) - (128 << 10)
held.buf[:most] = bytes(most)
time.sleep(0.5)
held.buf[:] = bytes(32 << 20)
"""


@pytest.mark.skipif(not mounts_tmpfs(), reason="no file system may be mounted here")
@pytest.mark.parametrize(("where", "out", "program", "found"), [
    pytest.param("/dev/shm", "evidence", FILLS_SHM, ("shm-was-full", "certain"), id="/dev/shm is full"),
    pytest.param("{place}", "evidence", FILLS_FILE, ("disk-was-full", "certain"), id="the disk is full, and the evidence lies there, too"),
    pytest.param("{place}", "{kept}", FILLS_FILE, ("disk-was-full", "certain"), id="the working directory is full, and the evidence lies elsewhere"),
])  # fmt: skip
def test_a_file_system_fills_up(tmp_path: Path, where: str, out: str, program: str, found: tuple[str, str]) -> None:
    """The wrapper runs in the same name space, as in a container: what the command writes to is what it measures."""
    small, kept = tmp_path / "small", tmp_path / "kept"
    small.mkdir()
    script = tmp_path / "program.py"
    script.write_text(program)
    inside = f'mount -t tmpfs -o size=16m tmpfs {where.format(place=small)} && cd {small} && "$@"; ended=$?; cp -r evidence {kept} 2>/dev/null; exit $ended'
    wrapper = [sys.executable, "-m", "oomdoctor", "run", "--quiet", "--out", out.format(kept=kept), "--", sys.executable, str(script)]
    with (tmp_path / "log").open("wb") as log:
        line = ["unshare", "-rm", "sh", "-c", inside, "sh", *wrapper]
        done = subprocess.run(line, stdout=log, stderr=log, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=600)
    assert done.returncode != 0
    assert first(diagnose_evidence(str(kept), load_pack())) == found
    said = oomdoctor(["diagnose", str(kept), "--full", "--lang", "en"]).stdout
    assert "Card total" not in said and ("/dev/shm total" in said) is (found[0] == "shm-was-full")
