"""Files are asked for before they are read: every family comes, in its order, whatever becomes of its files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from oomdoctor.triage.elsewhere.downloads import ToRead
from oomdoctor.triage.engines.read_ahead import asked_ahead
from oomdoctor.triage.log_file import LogFile, PlacedFile


def family(path: str) -> ToRead:
    return ToRead(path, "", [PlacedFile(LogFile(path, 7, 0), "plain")])


@pytest.mark.parametrize("count", [pytest.param(0, id="none"), pytest.param(3, id="a few"), pytest.param(500, id="more than wait at once")])
def test_every_family_comes_in_its_order(count: int, tmp_path: Path) -> None:
    paths = [str(tmp_path / f"{number}.log") for number in range(count)]
    for path in paths[::2]:  # the others are gone since they were listed
        Path(path).write_text("step 1\n")
    names = [*paths, "s3://bucket/a.log", "a\0b"]
    assert [read.family for read in asked_ahead(map(family, names))] == names


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system has no such request")
def test_files_are_asked_for_before_the_first_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda *request: asked.append(request[2]))
    (tmp_path / "a.log").write_text("step 1\n")
    taken: list[str] = []

    def families() -> Iterator[ToRead]:
        for number in range(500):
            taken.append(str(number))
            yield family(str(tmp_path / "a.log"))

    next(asked_ahead(families()))
    assert 1 < len(asked) == len(taken) < 500
