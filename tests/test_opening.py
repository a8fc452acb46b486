"""What a person names is opened where it is a file with an end; anything else is refused at once, by its kind."""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from oomdoctor.opening import open_file, open_file_or_pipe

REPOSITORY = Path(__file__).parents[1]
WAYS = {
    "a folder": "a folder",
    "a pipe": "a pipe, not a file",
    "a link to a pipe": "a pipe, not a file",
    "a device without an end": "a device, not a file",
    "a link to a device": "a device, not a file",
    "messages of the kernel": "a device, not a file",
    "a link to nothing": "No such file or directory",
    "a link to itself": "Too many levels of symbolic links",
    "a socket": "No such device or address",
}


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    os.mkfifo("pipe")
    for name, target in {"to-pipe": "pipe", "to-device": "/dev/zero", "to-nothing": "nothing", "loop": "loop"}.items():
        Path(name).symlink_to(target)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    paths = (".", "pipe", "to-pipe", "/dev/zero", "to-device", "/proc/kmsg", "to-nothing", "loop", "socket")
    return dict(zip(WAYS, paths))


@pytest.mark.skipif(sys.platform != "linux", reason="kinds of files of Linux")
@pytest.mark.parametrize("way", WAYS)
def test_what_is_no_plain_file_is_refused_by_its_kind(way: str, places: dict[str, str]) -> None:
    if way == "messages of the kernel" and not os.access("/proc/kmsg", os.R_OK):
        pytest.skip("only root may open them")
    with pytest.raises(OSError, match=WAYS[way]):
        open_file(places[way])


def test_a_pipe_that_a_person_names_is_read_to_its_end(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"two\nlines\n",))
    writer.start()
    with open_file_or_pipe(str(tmp_path / "pipe")) as file:
        assert file.read() == b"two\nlines\n"
    writer.join()


def test_an_empty_file_is_empty(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with open_file(str(tmp_path / "file")) as file:
        assert file.read() == b""


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd")
def test_what_a_shell_gives_as_a_file_is_read() -> None:
    oomdoctor = f"{shlex.quote(sys.executable)} -m oomdoctor"
    command = f"{oomdoctor} diagnose <(echo 'torch.OutOfMemoryError: CUDA out of memory.') --env <(echo 'torch==2.5.1') --lang en"
    told = subprocess.run(["bash", "-c", command], cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=False)
    assert (told.returncode, told.stderr) == (1, "")
