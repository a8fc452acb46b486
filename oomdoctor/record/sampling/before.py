"""What the kernel had counted and said before a command was started: what comes on top belongs to the time of the run."""

from __future__ import annotations

from oomdoctor.record.sampling.groups import MemoryGroup
from oomdoctor.record.sampling.host import oom_kills
from oomdoctor.record.sampling.kernel_log import KernelLog


class KernelBefore:
    """The control group, the kills of the machine and the kernel's log, as of now."""

    def __init__(self) -> None:
        self.group = MemoryGroup()
        self.log = KernelLog()
        self._kills = oom_kills()

    def kills_since(self) -> int | None:
        """Return how many processes the machine's kernel killed for memory since, of whatever job; None where it does not count them."""
        kills = oom_kills()
        return None if kills is None or self._kills is None else kills - self._kills
