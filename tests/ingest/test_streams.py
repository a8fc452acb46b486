"""Whatever is given is read as plain bytes, or there is a reason why not; damage and greed end a stream and nothing else."""

from __future__ import annotations

import bz2
import gzip
import importlib
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oomdoctor import opening
from oomdoctor.ingest import compression
from oomdoctor.ingest.encodings import gbk_as_utf8, is_wide, with_plain_blanks
from oomdoctor.ingest.streams import Opened, Unreadable, open_bytes, open_path

zstandard = importlib.import_module("zstandard") if importlib.util.find_spec("zstandard") else None
Pack = Callable[[bytes], bytes]
PACKERS: dict[str, Pack] = {"gzip": gzip.compress, "xz": lzma.compress, "bzip2": bz2.compress}
if zstandard is not None:
    PACKERS["zstd of unknown size"] = zstandard.ZstdCompressor(write_content_size=False).compress
    PACKERS["zstd"] = zstandard.ZstdCompressor(write_checksum=True).compress
EACH = pytest.mark.parametrize("pack", [pytest.param(pack, id=name) for name, pack in PACKERS.items()])
LOG = b"".join(b"step %d loss 1.%d\n" % (number, number * 7919 % 1000) for number in range(4000))


def read(opened: Opened | Unreadable, size: int = 1 << 16) -> bytes:
    assert isinstance(opened, Opened), opened
    out = bytearray()
    buffer = bytearray(size)
    while count := opened.reader.readinto(memoryview(buffer)):
        out += buffer[:count]
    opened.close()
    return bytes(out)


def opened_bytes(data: bytes) -> Opened:
    opened = open_bytes(data)
    assert isinstance(opened, Opened), opened
    return opened


def test_a_plain_file_keeps_its_descriptor_and_size(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(LOG)
    opened = open_path(str(path))
    assert isinstance(opened, Opened) and opened.size == len(LOG) and opened.descriptor is not None
    assert read(opened) == LOG and opened.broken == []


@EACH
def test_compression_is_told_by_the_content_and_not_by_the_name(pack: Pack, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(pack(LOG))
    opened = open_path(str(path))
    assert isinstance(opened, Opened) and opened.size is None and opened.descriptor is None
    assert read(opened) == LOG and opened.broken == []


def test_a_name_that_promises_compression_is_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "run.log.gz"
    path.write_bytes(LOG)
    assert read(open_path(str(path))) == LOG


@EACH
def test_two_archives_one_after_the_other_are_one_log(pack: Pack) -> None:
    assert read(open_bytes(pack(LOG) + pack(b"more\n"))) == LOG + b"more\n"


@EACH
def test_the_empty_log_compressed(pack: Pack) -> None:
    opened = opened_bytes(pack(b""))
    assert read(opened) == b"" and opened.broken == []


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    assert read(open_path(str(tmp_path / "empty.log"))) == b""


@pytest.mark.parametrize("isal", [True, False], ids=["with isal", "with the standard library"])
@pytest.mark.parametrize("cut", [5, 13, 40, 1000, -9, -1], ids=lambda cut: f"cut at {cut}")
@EACH
def test_a_truncated_archive_gives_what_it_has_and_says_so(pack: Pack, cut: int, isal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not isal:
        monkeypatch.setitem(sys.modules, "isal", None)
    part = pack(LOG)[:cut]
    opened = opened_bytes(part)
    got = read(opened)
    if got == part:
        return  # too short to be known as an archive
    assert LOG.startswith(got)
    assert len(opened.broken) == 1 or got == LOG


@pytest.mark.parametrize("isal", [True, False], ids=["with isal", "with the standard library"])
@pytest.mark.parametrize("at", [11, 60, 0.25, 0.5, 0.9], ids=lambda at: f"damage at {at}")
@pytest.mark.parametrize("pack", [pytest.param(pack, id=name) for name, pack in PACKERS.items() if "unknown size" not in name])
def test_a_damaged_archive_says_so_and_stops(pack: Pack, at: float, isal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not isal:
        monkeypatch.setitem(sys.modules, "isal", None)
    data = bytearray(pack(LOG))
    place = int(at if at > 1 else at * len(data))
    data[place : place + 8] = bytes(byte ^ 0x5A for byte in data[place : place + 8])
    opened = opened_bytes(bytes(data))
    read(opened)
    assert len(opened.broken) == 1 and "damaged" in opened.broken[0]


@pytest.mark.parametrize("isal", [True, False], ids=["with isal", "with the standard library"])
@pytest.mark.parametrize("data", [
    pytest.param(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x80 #\0\\", id="a code of gzip that cannot be"),
    pytest.param(b"\x1f\x8b\x09\0\0\0\0\0\0\x03abc", id="another method than deflate"),
    pytest.param(b"\x1f\x8b\x08\xff\0\0\0\0\0\x03abc", id="all flags of gzip"),
    pytest.param(b"\x28\xb5\x2f\xfd" + b"\xff" * 30, id="a zstd header that cannot be"),
    pytest.param(b"BZh0abcdefgh", id="a bzip2 of no block size"),
    pytest.param(b"\xfd7zXZ\0" + b"\xff" * 30, id="an xz header that cannot be"),
])  # fmt: skip
def test_the_beginning_of_an_archive_and_then_junk(data: bytes, isal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not isal:
        monkeypatch.setitem(sys.modules, "isal", None)
    opened = opened_bytes(data)
    assert read(opened) == b"" and len(opened.broken) == 1 and "damaged" in opened.broken[0]


@EACH
def test_an_archive_in_an_archive_is_opened(pack: Pack) -> None:
    assert read(open_bytes(gzip.compress(pack(LOG)))) == LOG


@EACH
def test_archives_nested_too_deep_are_left_alone(pack: Pack) -> None:
    data = LOG
    for _ in range(6):
        data = pack(data)
    opened = opened_bytes(data)
    assert read(opened) == b"" and len(opened.broken) == 1


@EACH
def test_a_decompression_bomb_is_cut_off(pack: Pack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LARGEST", 2 << 20)
    bomb = pack(b"\0" * (24 << 20))
    assert len(bomb) < 1 << 20
    opened = opened_bytes(bomb)
    assert len(read(opened)) <= 2 << 20 and len(opened.broken) == 1


def test_a_bomb_in_a_bomb_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LARGEST", 2 << 20)
    opened = opened_bytes(gzip.compress(gzip.compress(b"\0" * (64 << 20))))
    assert len(read(opened)) <= 2 << 20 and len(opened.broken) == 1


@EACH
def test_a_bomb_of_no_size_limit_in_the_header_does_not_take_memory_at_once(pack: Pack) -> None:
    opened = opened_bytes(pack(b"a" * (8 << 20)))
    assert isinstance(opened, Opened)
    buffer = bytearray(1000)
    assert 0 < (opened.reader.readinto(memoryview(buffer)) or 0) <= 1000


def test_without_zstandard_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for module in ("zstandard", "compression.zstd"):
        monkeypatch.setitem(sys.modules, module, None)
    path = tmp_path / "run.log.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + b"\0" * 20)
    opened = open_path(str(path))
    assert isinstance(opened, Unreadable) and "zstandard" in opened.reason and "pip install" in (opened.how or "")


def test_a_zip_is_not_opened_and_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "logs.zip"
    path.write_bytes(b"PK\x03\x04" + b"\0" * 40)
    opened = open_path(str(path))
    assert isinstance(opened, Unreadable) and "zip" in opened.reason and opened.how


def test_bytes_that_begin_like_a_zip_are_no_crash() -> None:
    assert isinstance(open_bytes(b"PK\x03\x04 and so on"), (Opened, Unreadable))


def test_a_zip_in_an_archive_is_no_crash() -> None:
    assert isinstance(open_bytes(gzip.compress(b"PK\x03\x04" + b"\0" * 40)), (Opened, Unreadable))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_with_its_mark_becomes_utf_8(encoding: str) -> None:
    text = "RuntimeError: CUDA out of memory 显存不足 \U0001f525\r\n" * 3000
    mark = "" if encoding == "utf-16" else "\ufeff"
    got = read(open_bytes((mark + text).encode(encoding)), 1001).decode()
    assert got.removeprefix("\ufeff") == text


@pytest.mark.parametrize("tail", [b"\xd8", b"\x00\xd8", b"\xff", b""], ids=["half a unit", "half a pair", "one byte", "nothing"])
def test_utf_16_that_is_cut_off(tail: bytes) -> None:
    assert read(open_bytes("\ufeffend".encode("utf-16-le") + tail)).decode().removeprefix("\ufeff").startswith("end")


@settings(max_examples=80, deadline=None)
@given(
    data=st.one_of(st.binary(max_size=3000), st.text(max_size=600).map(str.encode)).filter(
        lambda data: (
            not data.startswith((b"\x1f\x8b", b"BZh", b"PK\x03\x04", b"\x28\xb5\x2f\xfd", b"\xfd7zXZ", b"\xff\xfe", b"\xfe\xff"))
            and not is_wide(data)
        )
    ),
    name=st.sampled_from([None, *PACKERS]),
    size=st.integers(1, 4000),
)
def test_every_byte_comes_through_for_any_buffer(data: bytes, name: str | None, size: int) -> None:
    opened = opened_bytes(data if name is None else PACKERS[name](data))
    assert read(opened, size) == with_plain_blanks(gbk_as_utf8(data)) and opened.broken == []


@pytest.mark.parametrize(("make", "reason"), [
    pytest.param(lambda _path: None, "no such file", id="a file that is not there"),
    pytest.param(lambda path: path.mkdir(), "a folder", id="a folder"),
    pytest.param(lambda path: path.symlink_to(path), "a loop of symbolic links", id="a link to itself"),
])  # fmt: skip
def test_what_cannot_be_opened_has_a_reason(make: Callable[[Path], None], reason: str, tmp_path: Path) -> None:
    make(tmp_path / "run.log")
    opened = open_path(str(tmp_path / "run.log"))
    assert isinstance(opened, Unreadable) and opened.reason == reason


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_a_device_is_not_read(path: str) -> None:
    assert isinstance(open_path(path), Unreadable)


@pytest.mark.parametrize("name", ["with\0nul", "lone\ud800surrogate", "x" * 5000, ""], ids=["NUL", "a lone surrogate", "too long", "empty"])
def test_a_name_that_no_file_can_have(name: str) -> None:
    assert isinstance(open_path(name), Unreadable)


def test_a_file_without_permission(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(LOG)
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    opened = open_path(str(path))
    assert isinstance(opened, Unreadable) and opened.reason == "permission denied"


def test_nothing_stays_open(tmp_path: Path) -> None:
    handles = Path("/proc/self/fd")
    if not handles.is_dir():
        pytest.skip("the system does not show open files")
    (tmp_path / "bad.gz").write_bytes(gzip.compress(LOG)[:99])
    (tmp_path / "logs.zip").write_bytes(b"PK\x03\x04" + b"\0" * 40)
    os.mkfifo(tmp_path / "pipe")
    before = len(list(handles.iterdir()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(opening, "_FIRST_BYTES_S", 0.01)
        for name in ("bad.gz", "logs.zip", "missing", "pipe", "."):
            opened = open_path(str(tmp_path / name))
            if isinstance(opened, Opened):
                read(opened)
        assert isinstance(open_path("/dev/zero"), Unreadable)
    assert len(list(handles.iterdir())) == before
