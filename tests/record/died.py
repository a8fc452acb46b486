"""Programs of fixtures/deaths, run for real on a card without a driver, under `oomdoctor run`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from fake_torch import write_fake_torch, write_fake_trainer

from oomdoctor import diagnose
from oomdoctor.api.runs.evidence import diagnose_evidence
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.pack import load_pack

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "fixtures" / "deaths"
GIB = 1 << 30
_AS_WITH_A_DRIVER = "import sys; from oomdoctor.record.sampling import host; host._CARD_DEVICES = ('/dev/null',); from oomdoctor.cli.main import main; main()"


@contextmanager
def memory_group(limit: int) -> Iterator[Path]:
    """Make a control group with a limit of memory in bytes; the test is skipped where none may be made."""
    for root, name in ((Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"), (Path("/sys/fs/cgroup"), "memory.max")):
        path = root / f"oomdoctor-test-{os.getpid()}"
        with suppress(OSError):
            path.mkdir()
            if not (path / name).exists():
                path.rmdir()
                continue
            (path / name).write_text(str(limit))
            yield path
            for _ in range(100):
                with suppress(OSError):
                    path.rmdir()
                    return
                time.sleep(0.02)
            return
    pytest.skip("no memory cgroup may be made here")


def mounts_tmpfs() -> bool:
    """Return whether a file system may be mounted in a name space of one's own."""
    unshare = shutil.which("unshare")
    return unshare is not None and subprocess.run([unshare, "-rm", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True).returncode == 0  # fmt: skip


class DeadRun:
    """A run that ended. `others`: GiB of the card that somebody else holds; `group`: a control group to run in."""

    def __init__(self, place: Path, *command: str, others: int = 0, group: Path | None = None, card: str = "observed") -> None:
        self.folder, self.log = place / "evidence", place / "log"
        site, held = write_fake_trainer(write_fake_torch(place / "site-packages", "2.13.0")), place / "held"
        (site / "pynvml.py").write_text((Path(__file__).parent / "fake_nvml.py").read_text())
        held.mkdir()
        path = os.pathsep.join(map(str, (ROOT, site, PROGRAMS)))
        own = {"PYTHONPATH": path, "FAKE_CARD_BYTES": str(16 * GIB), "FAKE_CARD_FOLDER": str(held), "FAKE_CARD": card}
        wrapper = [sys.executable, "-c", _AS_WITH_A_DRIVER, "run", "--quiet", "--out", str(self.folder), "--"]
        words = [sys.executable, str(PROGRAMS / command[0]), *command[1:]]
        neighbour = _neighbour(others, {**os.environ, **own}) if others else None
        with self.log.open("wb") as log:
            inside = ["sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"] if group is not None else []
            done = subprocess.run([*inside, *wrapper, *words], stdout=log, stderr=log, cwd=place, env={**os.environ, **own}, timeout=600)
        self.status = done.returncode
        if neighbour is not None:
            neighbour.communicate()

    def from_the_log(self) -> Diagnosis:
        """Return what its log alone says."""
        return diagnose(self.log.read_text())

    def from_the_evidence(self) -> Diagnosis:
        """Return what its evidence says."""
        return diagnose_evidence(str(self.folder), load_pack())


def _neighbour(size: int, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    words = [sys.executable, str(PROGRAMS / "holds.py"), str(size)]
    process = subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"held\n"
    return process
