"""One made snapshot in every form that such files come in."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import zipfile
from collections.abc import Sequence

from snapshots.made_snapshots import MIB, Program, leaking, pickled

_WHOLE = pickled(leaking())


def value(data: bytes = _WHOLE) -> dict[str, object]:
    """Return what a made pickle holds."""
    out = pickle.loads(data)  # noqa: S301 - made here
    assert isinstance(out, dict)
    return out


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("archive/data.pkl", data)
        archive.writestr("archive/version", "3\n")
    return out.getvalue()


def legacy(snapshot: object) -> bytes:
    """Return what torch.save wrote before torch 1.6."""
    pieces = (0x1950A86A20F9469CFC6C, 1001, {"protocol_version": 1001, "little_endian": True}, snapshot)
    return b"".join(pickle.dumps(piece, protocol=2) for piece in pieces)


def page(*files: tuple[str, bytes]) -> bytes:
    """Return a page of memory_viz: the pickles end in zeros."""
    listed = json.dumps([{"name": name, "base64": base64.b64encode(data + b"\0\0").decode()} for name, data in files])
    return (
        f"<script type='module'>\nconst local_files = {listed}\nadd_local_files(local_files, 'Active Memory Timeline')\n</script>".encode()
    )


def from_cpp(snapshot: object) -> bytes:
    """Return the bytes of torch's pickler of C++: protocol 2, every container in marks, integers of eight bytes."""
    out = [b"\x80\x02"]
    _cpp(snapshot, out)
    return b"".join((*out, b"."))


def _cpp(item: object, out: list[bytes]) -> None:
    if isinstance(item, dict):
        out.append(b"}(")
        for key, inner in item.items():
            _cpp(key, out)
            _cpp(inner, out)
        out.append(b"u")
    elif isinstance(item, list):
        out.append(b"](")
        for inner in item:
            _cpp(inner, out)
        out.append(b"e")
    elif isinstance(item, tuple):
        for inner in item:
            _cpp(inner, out)
        out.append(b"\x86")
    elif isinstance(item, bool):
        out.append(b"\x88" if item else b"\x89")
    elif isinstance(item, int):
        out.append(b"K" + bytes((item,)) if 0 <= item < 256 else b"\x8a\x08" + struct.pack("<q", item))
    else:
        text = str(item).encode()
        out.append(b"X" + struct.pack("<I", len(text)) + text)


def of_torch_2_0(program: Program) -> bytes:
    """Return the state in the form of torch 2.0: blocks have no address, and a history in the place of frames."""
    segments = program.segments()
    for segment in segments:
        for block in segment["blocks"]:  # type: ignore[attr-defined]
            del block["address"]
            block["history"] = [{"addr": 0, "real_size": block["requested_size"], "frames": block.pop("frames")}]
    return pickle.dumps({"segments": segments, "device_traces": []}, protocol=4)


def timeline(rows: Sequence[Sequence[int]]) -> bytes:
    """Return the profiler's timeline: times and the bytes of parameters and activations."""
    return json.dumps([[row[0] for row in rows], [[0, row[1], 0, 0, 0, row[2], 0, 0, 0] for row in rows]]).encode()


def chrome(events: Sequence[tuple[str, int, int, int, int]], *, kind: int = 1) -> bytes:
    """Return a trace of the profiler with memory events: name, bytes, address, allocated and reserved after it."""
    written = [
        {
            "ph": "i",
            "cat": "cpu_instant_event",
            "s": "t",
            "name": name,
            "pid": 1,
            "tid": 1,
            "ts": 1000.5 + number,
            "args": {
                "Total Reserved": reserved,
                "Total Allocated": allocated,
                "Bytes": size,
                "Addr": address,
                "Device Id": 0,
                "Device Type": kind,
            },
        }
        for number, (name, size, address, allocated, reserved) in enumerate(events)
    ]
    noise = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 3, "args": {"Input": "[[1, 2]]"}}] * 200
    return json.dumps({"schemaVersion": 1, "traceEvents": [*noise, *written, *noise]}, indent=2).encode()


STEADY = [("[memory]", 4 * MIB, 4096, 9 * MIB, 20 * MIB), ("[memory]", 6 * MIB, 8192, 15 * MIB, 20 * MIB), ("[memory]", -4 * MIB, 4096, 11 * MIB, 20 * MIB)]  # fmt: skip
FORMS = {
    "a pickle of protocol 4": (_WHOLE, "dict"),
    "a pickle of protocol 2": (pickle.dumps(value(), protocol=2), "dict"),
    "a pickle of protocol 5": (pickle.dumps(value(), protocol=5), "dict"),
    "a pickle of C++": (from_cpp(value()), "dict"),
    "bytes behind the end": (_WHOLE + b"\0\0\0", "dict"),
    "gzip": (gzip.compress(_WHOLE), "dict"),
    "xz": (lzma.compress(_WHOLE), "dict"),
    "bzip2": (bz2.compress(_WHOLE), "dict"),
    "torch.save": (zipped(pickle.dumps(value(), protocol=2)), "dict"),
    "torch.save before torch 1.6": (legacy(value()), "dict"),
    "JSON": (json.dumps(value()).encode(), "dict"),
    "JSON in gzip": (gzip.compress(json.dumps(value(), indent=1).encode()), "dict"),
    "a page of memory_viz": (page(("rank0.pickle", _WHOLE)), "html"),
}
STATES = {
    "the list of segments": (pickle.dumps(value()["segments"]), "list"),
    "torch 2.0": (of_torch_2_0(leaking()), "dict"),
    "cut off in the trace": (_WHOLE[: len(_WHOLE) * 4 // 5], "dict"),
    "damaged in the trace": (_WHOLE[:-2000] + b"\xff" * 2000, "dict"),
}
NOT_READ = {
    "an empty file": (b"", "empty"),
    "cut off in the segments": (_WHOLE[:1500], "truncated at byte"),
    "a flame graph": (b'<?xml version="1.0"?>\n<svg width="1200"></svg>', "flame graph"),
    "a picture in a page": (b'<html><img src="data:image/png;base64,AAAA"></html>', "only an image"),
    "a page of something else": (b"<!doctype html><html></html>", "without a snapshot"),
    "a log": (b"Traceback (most recent call last):\n", "neither"),
    "JSON of something else": (b'{"a": 1}', "no segments"),
    "JSON that is cut off": (json.dumps(value()).encode()[:-400], "damaged or truncated"),
    "a trace without memory": (b'{"traceEvents": [{"ph": "X", "name": "aten::mm"}]}', "profile_memory"),
    "a trace of the host only": (chrome(STEADY, kind=0), "host"),
    "a pickle that names a class": (pickle.dumps({"segments": [pickle.Pickler]}), "does not occur in snapshots"),
}
