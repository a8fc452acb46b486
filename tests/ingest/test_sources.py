"""Which files are read when a person names files, folders, globs, or standard input."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oomdoctor.ingest.sources import MissingSource, expand_sources


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (
        "train.log", "b/rank1.log", "b/rank0.log", "b/slurm-1.out", "b/worker.err", "b/stdout", "b/train.py", "b/config.yaml", "b/model.safetensors",
        "b/run.log.gz", ".git/objects.log", "b/__pycache__/x.log", "b/README.md", "b/LICENSE", "b/UPPER.PY", "[odd].log",
    ):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(("paths", "options", "wanted"), [
    pytest.param(["train.log"], {}, ["train.log"], id="a file"),
    pytest.param(["-"], {}, ["-"], id="standard input"),
    pytest.param(["b"], {}, ["b/rank0.log", "b/rank1.log", "b/run.log.gz", "b/slurm-1.out", "b/stdout", "b/worker.err"], id="a folder, without code, documents and weights"),
    pytest.param(["b/train.py"], {}, ["b/train.py"], id="a file that is named is read, whatever it is"),
    pytest.param(["b"], {"include": ["*.err"]}, ["b/worker.err"], id="only what matches"),
    pytest.param(["b"], {"include": ["*.py"]}, ["b/train.py"], id="code where it is asked for"),
    pytest.param(["b"], {"exclude": ["rank*", "*.gz", "std*"]}, ["b/slurm-1.out", "b/worker.err"], id="without what matches"),
    pytest.param(["."], {"include": ["b/rank?.log"]}, ["./b/rank0.log", "./b/rank1.log"], id="globs over relative paths"),
    pytest.param(["b/rank*.log"], {}, ["b/rank0.log", "b/rank1.log"], id="a quoted glob"),
    pytest.param(["**/rank*.log"], {}, ["b/rank0.log", "b/rank1.log"], id="a glob over folders"),
    pytest.param(["[odd].log"], {}, ["[odd].log"], id="a name that looks like a glob and exists"),
    pytest.param(["train.log", "train.log", "b/rank0.log"], {}, ["train.log", "b/rank0.log"], id="each once, in the order given"),
    pytest.param([], {}, [], id="nothing"),
])  # fmt: skip
@pytest.mark.usefixtures("tree")
def test_expands(paths: list[str], options: dict[str, list[str]], wanted: list[str]) -> None:
    assert list(expand_sources(paths, **options)) == wanted


@pytest.mark.parametrize(("path", "reason"), [
    pytest.param("nowhere.log", "no such file", id="a name"),
    pytest.param("nowhere*.log", "no such file", id="a glob that matches nothing"),
    pytest.param("train.log/deeper", "not a directory", id="below a file"),
    pytest.param("", "no such file", id="an empty name"),
])  # fmt: skip
@pytest.mark.usefixtures("tree")
def test_what_is_not_there_is_named(path: str, reason: str) -> None:
    assert list(expand_sources([path])) == [MissingSource(path, reason)]


@pytest.mark.parametrize("path", ["a\0b", "a\0*", "lone\ud800surrogate", "lone\ud800*", "x" * 5000, "[", "**[" * 50], ids=ascii)
def test_a_name_that_no_file_can_have_is_missing(path: str) -> None:
    (found,) = expand_sources([path])
    assert isinstance(found, MissingSource) and found.name == path


def test_a_link_to_itself_is_missing(tree: Path) -> None:
    (tree / "loop.log").symlink_to("loop.log")
    assert [type(one) for one in expand_sources(["loop.log"])] == [MissingSource]
    assert "./loop.log" not in list(expand_sources(["."]))


def test_links_to_folders_above_are_not_followed(tree: Path) -> None:
    (tree / "b" / "up").symlink_to("..")
    (tree / "b" / "here").symlink_to(".")
    found = list(expand_sources(["b"]))
    assert len(found) == 6 and not any("up" in str(one) or "here" in str(one) for one in found)


def test_pipes_and_dead_links_in_a_folder_are_left_alone(tree: Path) -> None:
    os.mkfifo(tree / "b" / "pipe.log")
    (tree / "b" / "dead.log").symlink_to("nothing")
    assert not {"b/pipe.log", "b/dead.log"} & set(map(str, expand_sources(["b"])))


def test_a_folder_that_cannot_be_entered_is_named_and_the_rest_is_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tree / "b"
    closed.chmod(0)
    if os.access(closed, os.R_OK):
        real = os.scandir

        def scandir(path: Any = ".") -> Iterator[os.DirEntry[str]]:
            if os.fspath(path).endswith("b"):
                raise PermissionError(13, "Permission denied", os.fspath(path))
            return real(path)

        monkeypatch.setattr(os, "scandir", scandir)
    found = list(expand_sources(["."]))
    monkeypatch.undo()
    closed.chmod(0o700)
    assert MissingSource("./b", "permission denied") in found
    assert "./train.log" in found
