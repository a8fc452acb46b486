"""Files are written whole or not at all, copies keep what was there, and a log speaks of the version of its time."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from oomdoctor.configs.edit.store import last_modified, read_file, version_at, write_files
from oomdoctor.errors import UsageError

ROOT = Path(__file__).parents[3]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"old\n")
    os.utime(path, (1000, 1000))
    os.chmod(path, 0o640)
    return path


def test_the_old_file_is_kept_with_its_time_and_the_new_one_has_its_mode(config: Path) -> None:
    copies = write_files({str(config): b"new\n"}, {str(config): b"old\n"})
    copy = Path(copies[str(config)])
    assert (copy.name, copy.read_bytes(), copy.stat().st_mtime) == ("a.yaml.bak-1", b"old\n", 1000)
    assert config.read_bytes() == b"new\n"
    assert [stat.S_IMODE(one.stat().st_mode) for one in (config, copy)] == [0o640, 0o640]
    assert sorted(one.name for one in config.parent.iterdir()) == ["a.yaml", "a.yaml.bak-1"]


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444, 0o755])
def test_modes_are_kept_whatever_the_umask(config: Path, mode: int) -> None:
    os.chmod(config, mode)
    copy = write_files({str(config): b"new\n"}, {str(config): b"old\n"})[str(config)]
    assert [stat.S_IMODE(os.stat(one).st_mode) for one in (config, copy)] == [mode, mode]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_a_file_stays_its_owners(config: Path) -> None:
    os.chown(config, 12345, 12346)
    copy = write_files({str(config): b"new\n"}, {str(config): b"old\n"})[str(config)]
    assert [(os.stat(one).st_uid, os.stat(one).st_gid) for one in (config, copy)] == [(12345, 12346)] * 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_cannot_be_written_is_said(config: Path) -> None:
    os.chmod(config.parent, 0o555)
    try:
        with pytest.raises(UsageError, match="permission denied"):
            write_files({str(config): b"new\n"}, {str(config): b"old\n"})
    finally:
        os.chmod(config.parent, 0o755)
    assert config.read_bytes() == b"old\n"


def test_what_is_far_too_large_is_not_held_in_memory(tmp_path: Path) -> None:
    with open(tmp_path / "large", "wb") as file:
        file.truncate(1 << 30)
    assert read_file(str(tmp_path / "large")) is None


def test_copies_are_numbered_and_none_is_lost(config: Path) -> None:
    (config.parent / "a.yaml.bak-7").write_bytes(b"mine")
    (config.parent / "a.yaml.bak-x").write_bytes(b"mine")
    assert write_files({str(config): b"new\n"}, {str(config): b"old\n"}) == {str(config): f"{config}.bak-8"}


def test_a_link_stays_a_link(config: Path) -> None:
    link = config.parent / "link.yaml"
    link.symlink_to(config.name)
    write_files({str(link): b"new\n"}, {str(link): b"old\n"})
    assert link.is_symlink() and config.read_bytes() == b"new\n"


@pytest.mark.parametrize(
    "before",
    [pytest.param(b"other\n", id="a file that was changed meanwhile"), pytest.param(None, id="a new file whose name was taken meanwhile")],
)
def test_what_somebody_else_wrote_is_not_lost(config: Path, before: bytes | None) -> None:
    with pytest.raises(UsageError, match="in the meantime"):
        write_files({str(config): b"new\n"}, {} if before is None else {str(config): before})
    assert [one.name for one in config.parent.iterdir()] == ["a.yaml"] and config.read_bytes() == b"old\n"


def test_where_one_file_cannot_be_written_none_is(config: Path) -> None:
    there = {str(config): b"old\n"}
    with pytest.raises(UsageError, match="cannot write"):
        write_files({str(config): b"new\n", str(config.parent / "no" / "b.json"): b"{}"}, there)
    assert config.read_bytes() == b"old\n" and [one.name for one in config.parent.iterdir()] == ["a.yaml"]


@pytest.mark.parametrize(("moment", "version"), [
    pytest.param(50.0, "a.yaml.bak-1", id="a log that is older than everything"),
    pytest.param(150.0, "a.yaml.bak-1", id="a log of the first version"),
    pytest.param(250.0, "a.yaml.bak-2", id="a log of the second"),
    pytest.param(350.0, "a.yaml", id="a log of the file as it is"),
    pytest.param(None, "a.yaml", id="a log without a time"),
])  # fmt: skip
def test_a_log_speaks_of_the_version_of_its_time(tmp_path: Path, moment: float | None, version: str) -> None:
    for name, time in (("a.yaml.bak-1", 100), ("a.yaml.bak-2", 200), ("a.yaml", 300)):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (time, time))
    assert version_at(str(tmp_path / "a.yaml"), moment) == str(tmp_path / version)


def test_without_copies_there_is_one_version(config: Path) -> None:
    assert version_at(str(config), 1.0) == str(config)


def test_the_youngest_of_several_logs_counts(config: Path) -> None:
    other = config.parent / "b.log"
    other.write_bytes(b"")
    os.utime(other, (2000, 2000))
    assert last_modified([str(config), str(other), "-", "nowhere"]) == 2000
    assert last_modified(["-"]) is None
    assert read_file("nowhere") is None


def on_a_full_disk(arguments: list[str], folder: Path, most: int) -> subprocess.CompletedProcess[str]:
    """Run the command where no file may grow above so many bytes, which fails as a full disk does: in the middle of a write."""
    program = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({most}, {most})); from oomdoctor.cli.main import main; main()"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    call = [sys.executable, "-c", program, *arguments]
    return subprocess.run(call, cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("beside", [False, True], ids=["in its place", "in another folder"])
def test_a_full_disk_leaves_the_config_as_it_was(beside: bool, tmp_path: Path) -> None:
    config = tmp_path / "sft.yaml"
    text = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\nper_device_train_batch_size: 64\ncutoff_len: 8192\nbf16: true\n"
    config.write_text(text + "# a remark that makes the file longer than what fits\n" * 20)
    before = config.read_bytes()
    more = ["-o", "changed"] if beside else []
    done = on_a_full_disk(["fix", "sft.yaml", "--gpu", "RTX 4090", "--yes", *more], tmp_path, 512)
    assert done.returncode == 2, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1 and "too large" in done.stderr
    assert config.read_bytes() == before
    assert sorted(path.name for path in tmp_path.rglob("*") if path.is_file()) == ["sft.yaml"]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
def test_a_full_disk_leaves_the_old_report(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    (tmp_path / "report.md").write_text("the old report\n")
    done = on_a_full_disk(["diagnose", "run.log", "-f", "html", "-o", "report.md"], tmp_path, 300)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert (tmp_path / "report.md").read_text() == "the old report\n"
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["report.md", "run.log"]
