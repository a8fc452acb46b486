"""Requests files from the disk or its server before they are read, so that they arrive while others are being read."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress

from oomdoctor.opening import open_descriptor
from oomdoctor.triage.elsewhere.downloads import ToRead
from oomdoctor.triage.elsewhere.stores import is_in_store
from oomdoctor.triage.log_file import LogFile

_FAMILIES = 64
"""How many families wait for their files: enough that a disk with a latency of a millisecond never causes a wait."""
_BYTES = 1 << 20
"""For longer files, the system itself reads ahead."""


def asked_ahead(to_read: Iterable[ToRead]) -> Iterator[ToRead]:
    """Yield families, each some time after its files were requested."""
    waiting: deque[ToRead] = deque()
    for family in to_read:
        for placed in family.files:
            if placed.file.problem is None and not is_in_store(placed.path):
                _ask(placed.file)
        waiting.append(family)
        if len(waiting) > _FAMILIES:
            yield waiting.popleft()
    yield from waiting


def _ask(file: LogFile) -> None:
    if not hasattr(os, "posix_fadvise"):  # not available on macOS and Windows
        return
    with suppress(OSError, ValueError):  # the reader will report why it cannot be read
        handle = open_descriptor(file.path)
        try:
            os.posix_fadvise(handle, 0, min(file.size, _BYTES), os.POSIX_FADV_WILLNEED)
        finally:
            os.close(handle)
