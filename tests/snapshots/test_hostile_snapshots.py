"""Files that are made to harm: one line says what they are, nothing in them runs, and reading them ends soon."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import pickle
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from snapshots.made_forms import page, zipped
from snapshots.made_snapshots import fragmented, pickled

from oomdoctor.api.runs import snapshot as reading
from oomdoctor.api.runs.snapshot import snapshot
from oomdoctor.errors import UsageError
from oomdoctor.machine.probe.isolated_process import CAN_FORK
from oomdoctor.snapshots.forms.file import read_file
from oomdoctor.snapshots.forms.packed import Bounded, plain_source
from oomdoctor.snapshots.opcodes import NotReadable, UnpacksTooFar
from oomdoctor.snapshots.read import NotASnapshot

_MANY = 200_000
_START = b"\x80\x04"


def _text(word: str) -> bytes:
    return b"\x8c" + bytes((len(word),)) + word.encode()


def _snapshot_of(segments: bytes = b"]", traces: bytes = b"]") -> bytes:
    """Return a pickle whose segments and traces are made by these opcodes."""
    return _START + b"}(" + _text("segments") + segments + _text("device_traces") + traces + b"u."


def _nested(depth: int, open_: bytes, close: bytes) -> bytes:
    return open_ * depth + b"K\x01" + close * depth


def _zip_bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", _START + b"\0" * (80 << 20))
    return out.getvalue()


_BLOCKS = b"](" + b"}" * 1000 + b"e"
_SEGMENT = b"}(" + b"".join((_text("address"), b"K\0", _text("total_size"), b"K\x09", _text("blocks"), _BLOCKS)) + b"u"
_NO_SNAPSHOT = {
    "a tuple in a tuple as a key": _START + b"}" + _nested(_MANY, b"", b"\x85") + b"K\x01s.",
    "a pair in a pair": _START + b"K\x01K\x01" * 2 + b"\x86\x86.",
    "a global": b"\x80\x02cposix\nsystem\n(S'true'\ntR.",
    "a global by the stack": _START + _text("posix") + _text("system") + b"\x93.",
    "a call": _START + b"}}R.",
    "a state that is set": _START + b"}}b.",
    "an extension": _START + b"\x82\x01.",
    "a persistent number": _START + b"K\x01Q.",
    "bytes": _START + b"C\x01a.",
    "a set": _START + b"\x8f.",
    "a number of a million digits": _START + b"\x8b" + struct.pack("<I", 1 << 20) + b"\1" * (1 << 20) + b".",
    "keys that fall together": _START + b"}(" + b"\x8a\x09" + b"\x01" * 9 + b"K\x01u.",
    "a mark in the memo far away": _START + b"]r\xff\xff\xff\x0f.",
    "a text longer than the file": _START + b"X\xff\xff\xff\x7fabc",
    "what was never kept": _START + b"h\x07.",
    "nothing on the stack": _START + b"e.",
    "text that is no UTF-8": _START + b"\x8c\x02\xff\xfe.",
    "keys that cannot be one": _START + b"}]K\x01s.",
    "protocol 9": b"\x80\x09}.",
    "lists in lists": _snapshot_of(_nested(_MANY, b"]", b"a")),
    "dicts in dicts": _START + b"}" + (_text("a") + b"}") * _MANY + b"s" * _MANY + b".",
    "a list in itself": _START + b"]\x94h\x00a.",
    "a flood of empty dicts": _START + b"](" + b"}" * _MANY + b"e.",
    "one entry a million times": _snapshot_of(traces=b"](" + b"](" + b"}\x94(" + _text("action") + _text("x") + b"u" + b"h\x00" * 3000 + b"e\x94" + b"h\x01" * 1000 + b"e"),
    "one segment a million times": _snapshot_of(b"](" + _SEGMENT + b"\x94" + b"h\x00" * _MANY + b"e"),
    "marks without end": _START + b"(" * _MANY,
    "a gzip in a gzip in a gzip": gzip.compress(gzip.compress(gzip.compress(gzip.compress(b"\0" * (1 << 20))))),
    "a zip that is cut off": zipped(b"\x80\x02].")[:60],
    "a page whose base64 never ends": page(("a", _START))[:120],
    "a page full of beginnings": b"<html>" + b'"name": "a", "base64": "' * 20_000,
    "a page of quotes": b"<html>" + b'"name": "' * 40_000,
    "base64 that is none": b'<html>local_files = [{"name": "a", "base64": "%%%%"}]',
    "JSON in JSON": b"[" * _MANY + b"]" * _MANY,
    "dicts of JSON in JSON": b'{"segments":' * _MANY + b"1" + b"}" * _MANY,
    "JSON with a number of a million digits": b'{"segments": [' + b"9" * (1 << 20) + b"]}",
    "a trace that opens braces": b'{"traceEvents": [' + b'{"name": "[memory]", ' * 2000,
    "a trace of deep arguments": b'{"traceEvents": [{"ph": "i", "name": "[memory]", "args": ' + b"[" * _MANY,
    "rows of a timeline that are none": b"[[1, 9, 3, 4], [1, 1, 1, 99]]",
}  # fmt: skip

_BOMBS: dict[str, Callable[[], bytes]] = {
    "a gzip bomb": lambda: gzip.compress(b"\0" * (80 << 20), 9),
    "a gzip bomb that begins well": lambda: gzip.compress(_START + b"]" * (80 << 20), 9),
    "a zip bomb": _zip_bomb,
}
"""Made where they are tested: packing one takes longer than collecting a hundred tests."""


@pytest.mark.parametrize("name", [*_NO_SNAPSHOT, *_BOMBS])
def test_a_hostile_file_is_one_line(tmp_path: Path, name: str) -> None:
    file = tmp_path / "made"
    file.write_bytes(_BOMBS[name]() if name in _BOMBS else _NO_SNAPSHOT[name])
    said = answered(file)
    assert "\n" not in said
    assert "signal" not in said.lower()
    assert "SIG" not in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
def test_a_file_that_never_gives_a_byte_ends_by_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LEAST_SECONDS", 0.05)
    os.mkfifo(tmp_path / "made")
    assert "did not finish in time" in answered(tmp_path / "made")


@pytest.mark.skipif(not CAN_FORK, reason="no process to bound")
def test_a_small_file_that_keeps_the_processor_busy_ends_by_what_it_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LEAST_SECONDS", 1.0)
    monkeypatch.setattr(reading, "_CLOCK", 600)
    file = tmp_path / "made"
    file.write_bytes(gzip.compress(_START + b"}" + b"q\0" * (15 << 20)))
    assert "takes longer than for a snapshot of its size" in answered(file)


def test_a_large_bomb_ends_where_a_small_one_does(tmp_path: Path) -> None:
    """It is no snapshot that was cut off, either: nothing of it is told."""
    file = tmp_path / "made"
    entry = b"}(" + _text("action") + _text("snapshot") + b"u"
    file.write_bytes(gzip.compress(_START + b"}(" + _text("segments") + b"]" + _text("device_traces") + b"](](" + entry * 8_000_000, 1))
    assert "unpacks to more than 32 MiB" in answered(file)
    with open(file, "rb") as packed:
        source = Bounded(plain_source(packed, [])[0], packed)
        with pytest.raises(UnpacksTooFar):
            list(iter(lambda: source.read(1 << 16), b""))
        assert packed.tell() < file.stat().st_size / 2


def answered(file: Path) -> str:
    """Return why a file was refused; nothing where it was read, then as something without any entry."""
    try:
        report = snapshot(file)
    except UsageError as error:
        return str(error)
    assert [device for read in report.files for device in read.devices if device.entries] == []
    return ""


def test_sizes_and_counts_stay_whole_where_an_entry_is_odd(tmp_path: Path) -> None:
    value = pickle.loads(pickled(fragmented()))  # noqa: S301 - made here
    value["device_traces"][0] += [{}, 7, {"action": "alloc", "addr": -1, "size": 5}, {"action": "alloc", "addr": 1 << 63, "size": 1.5, "stream": 0}]  # fmt: skip
    value["segments"] += [None, {"device": "x"}, {"device": 0, "address": 1 << 62, "total_size": 1}]
    value["external_annotations"] += [3, {"name": 1}]
    file = tmp_path / "made"
    file.write_bytes(pickle.dumps(value, protocol=4))
    read = snapshot(file).files[0]
    assert (read.unreadable, len(read.devices[0].ooms)) == (7, 1)


@pytest.mark.parametrize("seed", range(4))
def test_damaged_files_are_refused_or_read(tmp_path: Path, seed: int) -> None:
    chance, whole = random.Random(seed), pickled(fragmented())
    forms = (whole, page(("a", whole)), json.dumps(pickle.loads(whole)).encode(), zipped(whole))  # noqa: S301 - made here
    read = refused = 0
    for number in range(60):
        data = bytearray(forms[number % len(forms)])
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        file = tmp_path / "made"
        file.write_bytes(data[: chance.randrange(len(data))] if number % 3 == 0 else data)
        try:
            read += len(read_file(str(file), len(data)))
        except (NotReadable, NotASnapshot):
            refused += 1
    assert read
    assert refused


def test_base64_in_a_page_may_end_anywhere(tmp_path: Path) -> None:
    text = base64.b64encode(pickled(fragmented()) + b"\0").rstrip(b"=")
    file = tmp_path / "made"
    file.write_bytes(b'<html>local_files = [{"name": "a", "base64": "' + text)
    assert snapshot(file).files[0].devices[0].ooms
