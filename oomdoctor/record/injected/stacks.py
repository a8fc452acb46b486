"""Who asked, and who holds what: frames as file:line:function."""

from __future__ import annotations

import os
import re
import sys
import threading
from types import FrameType
from typing import Any, Dict, List

from .guard import Figures

_MOST_FRAMES, _MOST_HOLDERS, _MOST_BLOCKS = 64, 50, 300_000
_LIBRARY = re.compile(r"[\\/](?:site|dist)-packages[\\/]|[\\/]lib[\\/]python\d|[\\/]torchinductor_|^<frozen |[\\/](?:runpy|threading)\.py$")
"""Files that whoever runs the program did not write; as in snapshots/sites.py."""
_HERE = os.path.dirname(os.path.abspath(__file__))


BACKWARD = "backward"
"""The name of a thread of the backward pass, which has no frames of Python."""


def stack_of(frame: FrameType | None) -> List[str]:
    """Return a stack, innermost first, without the recorder's own frames."""
    out: List[str] = []
    while frame is not None and len(out) < _MOST_FRAMES:
        code = frame.f_code
        if os.path.dirname(code.co_filename) != _HERE:
            out.append("%s:%d:%s" % (code.co_filename, frame.f_lineno, code.co_name))
        frame = frame.f_back
    return out


def stack_of_request() -> tuple[List[str], str]:
    """Return the stack of the thread that asks, and its name. A thread of the backward pass has none; the main thread waits for it then."""
    stack = stack_of(sys._getframe(1))
    if stack:
        return stack, threading.current_thread().name
    main = threading.main_thread().ident
    return stack_of(sys._current_frames().get(main or 0)), BACKWARD


def stack_of_trace(trace: Any) -> List[str]:
    """Return the stack of a traceback, innermost first."""
    out: List[str] = []
    while trace is not None:
        out.append("%s:%d:%s" % (trace.tb_frame.f_code.co_filename, trace.tb_lineno, trace.tb_frame.f_code.co_name))
        trace = trace.tb_next
    return out[::-1][:_MOST_FRAMES]


def holders_of(snapshot: Any) -> List[Figures]:
    """Return what lives in a snapshot, summed by the line that asked, the largest first."""
    sums: Dict[str, List[int]] = {}
    seen = 0
    for segment in snapshot.get("segments", ()):
        for block in segment.get("blocks", ()):
            frames = block.get("frames")
            if not frames or not str(block.get("state", "")).startswith("active"):
                continue
            seen += 1
            if seen > _MOST_BLOCKS:
                break
            total = sums.setdefault(_site(frames), [0, 0])
            total[0] += block.get("requested_size", block.get("size", 0))
            total[1] += 1
    largest = sorted(sums.items(), key=lambda item: -item[1][0])[:_MOST_HOLDERS]
    return [{"site": site, "bytes": size, "blocks": blocks} for site, (size, blocks) in largest]


def _site(frames: Any) -> str:
    own = next((frame for frame in frames if not _LIBRARY.search(frame["filename"])), frames[0])
    return "%s:%s:%s" % (own["filename"], own["line"], own["name"])
