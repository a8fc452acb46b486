"""Files are asked of the disk, or of the server that has it, before they are read: the answers come while others are read."""

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
"""So many families wait while their files come: enough that a disk which answers in a millisecond is never waited for."""
_BYTES = 1 << 20
"""Of a longer file the system asks for the rest by itself as it is read."""


def asked_ahead(to_read: Iterable[ToRead]) -> Iterator[ToRead]:
    """Yield families, each some time after its files were asked for."""
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
    if not hasattr(os, "posix_fadvise"):  # not on macOS and Windows
        return
    with suppress(OSError, ValueError):  # whoever reads it says why it cannot be read
        handle = open_descriptor(file.path)
        try:
            os.posix_fadvise(handle, 0, min(file.size, _BYTES), os.POSIX_FADV_WILLNEED)
        finally:
            os.close(handle)
