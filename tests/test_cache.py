"""The cache gives back what this user kept, and nothing that somebody else could have written."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from oomdoctor import cache


def _is_anothers(file: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root may give a file away")
    os.chown(file, 65534, -1)


def _is_a_link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to("elsewhere")


def _is_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _is_a_device(file: Path) -> None:
    file.unlink()
    file.symlink_to("/dev/zero")


NOT_OURS: dict[str, Callable[[Path], None]] = {
    "another user's": _is_anothers,
    "writable by the group": lambda file: file.chmod(0o620),
    "writable by all": lambda file: file.chmod(0o602),
    "a link": _is_a_link,
    "a pipe": _is_a_pipe,
    "a link to a device": _is_a_device,
    "gone": lambda file: file.unlink(),
}


@pytest.mark.skipif(os.name == "nt", reason="owners and modes of POSIX")
@pytest.mark.parametrize("change", [pytest.param(change, id=what) for what, change in NOT_OURS.items()])
def test_what_another_user_could_have_written_is_not_read(change: Callable[[Path], None], tmp_path: Path) -> None:
    cache.keep("kind-1", b"kept", str(tmp_path))
    assert cache.read("kind-1", str(tmp_path)) == b"kept"
    change(tmp_path / "kind-1")
    assert cache.read("kind-1", str(tmp_path)) is None


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
@pytest.mark.parametrize("mask", [0o000, 0o002, 0o022, 0o077])
def test_what_is_kept_can_be_read_again_whatever_the_umask(mask: int, tmp_path: Path) -> None:
    before = os.umask(mask)
    try:
        cache.keep("kind-1", b"kept", str(tmp_path / "folder"))
    finally:
        os.umask(before)
    assert cache.read("kind-1", str(tmp_path / "folder")) == b"kept"
