"""What is kept of a run besides its memory: configs, variables, output; and what is said in the end."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.json import decode

from oomdoctor.record.evidence import RunRecord
from oomdoctor.record.evidence_place import make_place
from oomdoctor.record.folder import EvidenceFolder
from oomdoctor.record.started import copy_configs, variables

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="shells and signals")
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        pytest.param("python train.py --config sft.yaml", ["ds.json", "sft.yaml"], id="a config, and what it names"),
        pytest.param("python train.py --config=sft.yaml", ["ds.json", "sft.yaml"], id="with an equals sign"),
        pytest.param("bash run.sh", ["ds.json", "run.sh", "sft.yaml"], id="a script that names it"),
        pytest.param("bash -c 'python train.py sft.yaml'", ["ds.json", "sft.yaml"], id="a line of a shell"),
        pytest.param("python train.py sub/sft.yaml sft.yaml", ["ds.json", "sft-2.yaml", "sft.yaml"], id="two of one name"),
        pytest.param("python train.py missing.yaml data.txt", [], id="neither what is not there nor what is no config"),
        pytest.param("python train.py large.json", [], id="nothing above 1 MiB"),
    ],
)
def test_configs_that_a_command_names(command: str, expected: list[str], tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sft.yaml").write_text("deepspeed: ds.json\n")
    (tmp_path / "sub" / "sft.yaml").write_text("seed: 1\n")
    (tmp_path / "ds.json").write_text("{}")
    (tmp_path / "data.txt").write_text("x")
    (tmp_path / "large.json").write_text(" " * (1 << 20) + "{}")
    (tmp_path / "run.sh").write_text("torchrun train.py --config sft.yaml\n")
    folder = EvidenceFolder(make_place(str(tmp_path / "evidence")))
    copy_configs(command.split(" ", 2) if " -c " in command else command.split(), str(tmp_path), folder)
    configs = tmp_path / "evidence" / "configs"
    assert (sorted(os.listdir(configs)) if configs.exists() else []) == expected
    assert [gap.why for gap in folder.gaps] == (["it is larger than 1 MiB"] if "large" in command else [])


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        *((name, True) for name in ("PYTORCH_CUDA_ALLOC_CONF", "RANK", "LOCAL_RANK", "SLURM_JOB_ID", "OMP_NUM_THREADS", "NCCL_DEBUG")),
        *((name, False) for name in ("HF_TOKEN", "HF_API_KEY", "SLURM_JWT_SECRET", "AWS_SECRET_ACCESS_KEY", "HOME", "PATH", "EDITOR")),
    ],
)
def test_variables_that_matter_and_no_secrets(name: str, kept: bool) -> None:
    assert variables({name: "value"}) == ({name: "value"} if kept else {})


def watched(cwd: Path, *words: str, temporary: Path | None = None, **streams: object) -> subprocess.CompletedProcess[str]:
    places = {"TMPDIR": str(temporary or cwd), "XDG_STATE_HOME": str(cwd / "state")}
    environ = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"], **places}
    call = [sys.executable, "-m", "oomdoctor", "run", *words]
    return subprocess.run(call, cwd=cwd, env=environ, text=True, timeout=600, **(streams or {"capture_output": True}))  # type: ignore[call-overload,no-any-return]


def runs(cwd: Path) -> list[Path]:
    return sorted(cwd.glob("*/oomdoctor/runs/*") if (cwd / "state").is_dir() else cwd.glob("oomdoctor-*/runs/*"))


@pytest.mark.parametrize("line", [pytest.param("echo well", id="at once"), pytest.param("sleep 0.5; echo well", id="after a while")])
def test_a_run_that_goes_well_leaves_and_says_nothing(line: str, tmp_path: Path) -> None:
    done = watched(tmp_path, "--", "sh", "-c", line)
    assert (done.returncode, done.stdout, done.stderr) == (0, "well\n", "")
    assert runs(tmp_path) == []


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("sleep 4 >&- 2>&- &", id="a process that outlives it"),
        pytest.param("touch ${PYTHONPATH%%:*}/../ranks/pid-7.oom-1.json", id="a request that failed and was survived"),
    ],
)
def test_a_run_that_goes_well_at_once_but_leaves_something_is_kept(line: str, tmp_path: Path) -> None:
    assert watched(tmp_path, "--", "sh", "-c", line).returncode == 0
    record = decode((runs(tmp_path)[0] / "run.json").read_bytes(), type=RunRecord)
    assert [survivor.command for survivor in record.survivors] == (["sleep 4"] if line.startswith("sleep") else [])


def test_a_named_folder_is_kept(tmp_path: Path) -> None:
    watched(tmp_path, "--out", "kept", "--", "true")
    assert (tmp_path / "kept" / "run.json").exists()


@pytest.mark.parametrize(("log", "said"), [
    pytest.param((), "its output was not captured, so the cause is unknown (oomdoctor run --log FILE reads it)", id="nobody saw its output"),
    pytest.param(("--log", "log"), "no sign of a memory failure", id="its output goes to a file, which stays empty"),
])  # fmt: skip
def test_a_failure_that_is_none_of_memory_is_one_line(tmp_path: Path, log: tuple[str, ...], said: str) -> None:
    (tmp_path / "log").touch()
    done = watched(tmp_path, *log, "--", "sh", "-c", "exit 7")
    assert done.returncode == 7
    assert done.stderr == f"oomdoctor: exit code 7; {said}; evidence in {runs(tmp_path)[0].relative_to(tmp_path)}\n"
    assert (runs(tmp_path)[0] / "report.json").exists()


def test_a_memory_failure_is_diagnosed_on_standard_error(tmp_path: Path) -> None:
    with open(tmp_path / "log", "w") as log:
        done = watched(tmp_path, "--", sys.executable, "-c", "raise MemoryError", stdout=subprocess.PIPE, stderr=log)
    assert (done.returncode, done.stdout) == (1, "")
    said = (tmp_path / "log").read_text()
    assert said.startswith("Traceback")
    assert "A host memory request was refused" in said.partition("MemoryError\n")[2]


def test_nothing_that_cannot_be_started_leaves_a_folder(tmp_path: Path) -> None:
    done = watched(tmp_path, "--", "no-such-command")
    assert (done.returncode, done.stderr) == (127, "oomdoctor: no-such-command: No such file or directory\n")
    assert runs(tmp_path) == []


@pytest.mark.parametrize(
    ("line", "kind", "log"),
    [
        pytest.param("RUN > all 2>&1", "file", "out\nerr\n", id="both in one file"),
        pytest.param("RUN > one 2> two", "file", "out\n\nerr\n", id="a file each"),
        pytest.param("echo before > all; RUN >> all 2>&1", "file", "out\nerr\n", id="behind what was there"),
        pytest.param("RUN 2> two | cat", "file", "err\n", id="errors alone"),
        pytest.param("RUN 2>&1 | tee all", "pipe", None, id="a pipe"),
        pytest.param("RUN --log all 2>&1 | tee all > /dev/null", "file", "out\nerr\n", id="a pipe, and the file is named"),
        pytest.param("RUN > /dev/null 2>&-", "closed", None, id="nowhere"),
    ],
)
def test_what_the_command_wrote(line: str, kind: str, log: str | None, tmp_path: Path) -> None:
    options = "--log all" if "--log" in line else ""
    call = f"{shlex.quote(sys.executable)} -m oomdoctor run --quiet --out evidence {options} -- sh -c 'echo out; echo err >&2'"
    line = line.replace(" --log all", "").replace("RUN", call)
    environ = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    subprocess.run(["bash", "-c", line], cwd=tmp_path, env=environ, capture_output=True, timeout=600, check=False)
    record = decode((tmp_path / "evidence" / "run.json").read_bytes(), type=RunRecord)
    assert record.log is not None
    assert record.log.kind == kind
    kept = tmp_path / "evidence" / "log.txt"
    assert (kept.read_text() if kept.exists() else None) == log
    assert any(gap.what == "what the command wrote" for gap in record.gaps) == (log is None)


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="a folder in which nobody may write, not even root")
def test_where_nothing_can_be_written_the_evidence_is_temporary(tmp_path: Path) -> None:
    done = watched(Path("/proc"), "--", "sh", "-c", "exit 7", temporary=tmp_path)
    assert done.returncode == 7
    record = decode((runs(tmp_path)[0] / "run.json").read_bytes(), type=RunRecord)
    assert [gap.what.split("-")[0] for gap in record.gaps if "folder" in gap.what] == ["evidence folder /proc/state/oomdoctor/runs"]


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="a folder in which nobody may write, not even root")
def test_where_there_is_no_place_at_all_the_run_goes_on(tmp_path: Path) -> None:
    done = watched(tmp_path, "--out", "/proc/nowhere", "--", "sh", "-c", "echo ran; exit 7")
    assert (done.returncode, done.stdout) == (7, "ran\n")
