"""Pages that memory_viz wrote: the pickles in them, as base64 (torch/cuda/_memory_viz.py, `_format_viz`)."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

from oomdoctor.snapshots.opcodes import NotReadable

_FILE = re.compile(rb'"name"\s{0,8}:\s{0,8}"([^"]{0,4096})"\s{0,8},\s{0,8}"base64"\s{0,8}:\s{0,8}"')
_PICTURE = b"data:image/png;base64,"
_MOST_FILES = 64


def is_page(first: bytes) -> bool:
    """Return whether a file begins as HTML, or as a page of memory_viz, which has no head."""
    start = first.lstrip()[:512].lower()
    return start.startswith((b"<!doctype html", b"<html", b"<head", b"<script", b"<meta", b"<img")) or b"local_files" in first


def files_in_page(data: bytes) -> Iterator[tuple[str, bytes | str]]:
    """Yield the name and the bytes of each file in a page, or one line on why they cannot be had.

    Raise NotReadable where the page has none.
    """
    count, at = 0, 0
    while (begin := _FILE.search(data, at)) is not None and count < _MOST_FILES:
        count += 1
        at = data.find(b'"', begin.end())
        at = len(data) if at < 0 else at
        name = begin[1].decode("utf-8", "replace")
        yield name, _decoded(data[begin.end() : at])
    if not count and _PICTURE in data:
        raise NotReadable("it is a page with only an image; export_memory_timeline gives the figures as .json.gz or .raw.json.gz")
    if not count:
        raise NotReadable("it is a page without a snapshot")


def _decoded(text: bytes) -> bytes | str:
    """Decode base64; what was cut off in the middle of a group of four is left out."""
    text = text.rstrip(b"=\r\n ")
    try:
        whole = len(text) - (1 if len(text) % 4 == 1 else 0)
        return binascii.a2b_base64(text[:whole] + b"=" * (-whole % 4))
    except binascii.Error as error:
        return f"its base64 is damaged: {error}"
