"""Tables with blanks: `nvidia-smi dmon`, `nvidia-smi pmon`, `dcgmi dmon`. A line that begins with # names the columns and comes again.

nvidia-smi's manual: `-s m` shows fb, bar1 and ccpm in MB, `-o DT` puts date and time first, `-` stands for no value.
dcgmi's manual: `dmon -e 252,251` shows FBUSD and FBFRE in MiB, `#Entity` is `GPU 0`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoctor.series.builder import SeriesBuilder
from oomdoctor.series.comma_tables import NO_MEMORY
from oomdoctor.series.values import read_bytes, read_number, read_time

_LONGEST_LINE = 4096
_ENTITY = re.compile(r"^\s*(?:GPU|GPU-I|GPU-CI)[ :]+(?P<card>\d{1,3})\b")
_ROLES = {
    "date": "date", "time": "time", "gpu": "card", "pid": "process", "fb": "used", "command": "name",
    "fbusd": "used", "fbfre": "free", "fbtot": "total", "fbttl": "total", "fbtl": "total", "fbrsv": "reserved",
}  # fmt: skip


def is_monitor_table(lines: Sequence[str]) -> bool:
    """Return whether a text begins like such a table."""
    return any(_roles(line) is not None for line in lines[:40] if line.startswith("#") and "," not in line)


def read_monitor_table(lines: Sequence[str], builder: SeriesBuilder) -> str | None:
    """Read a table; return None, or why it says nothing."""
    roles: dict[str, int] | None = None
    shows_memory = False
    for line in lines:
        if len(line) > _LONGEST_LINE:
            continue
        if line.startswith("#"):
            roles = _roles(line) or roles
            shows_memory = shows_memory or (roles is not None and "used" in roles)
        elif roles is not None and line.strip():
            _read_line(line, roles, builder)
    return None if shows_memory else NO_MEMORY


def _roles(line: str) -> dict[str, int] | None:
    """Return which column says what; None where a line names none."""
    names = line[:_LONGEST_LINE].lstrip("#").lower().split()
    if names[:1] == ["entity"]:
        names[:1] = ["gpu"]
    roles = {_ROLES[name]: at for at, name in reversed(list(enumerate(names))) if name in _ROLES}
    return roles if "card" in roles and len(names) > 1 else None


def _read_line(line: str, roles: dict[str, int], builder: SeriesBuilder) -> None:
    entity = _ENTITY.match(line)
    cells = [entity["card"], *line[entity.end() :].split()] if entity else line.split()

    def cell(role: str) -> str:
        at = roles.get(role)
        return cells[at] if at is not None and at < len(cells) else ""

    card = cell("card")
    if not card.isdecimal() or "used" not in roles:
        return
    time = read_time(f"{cell('date')} {cell('time')}".strip())
    used, free, total = read_bytes(cell("used")), read_bytes(cell("free")), read_bytes(cell("total"))
    if "process" not in roles:
        builder.add(used, time, card=card, total=total if total is not None else _sum(used, free, read_bytes(cell("reserved"))))
    elif (process := read_number(cell("process"))) is not None:
        builder.add(used, time, of="process", card=card, process=int(process), name=" ".join(cells[roles["name"] :])[:60] or None)


def _sum(used: int | None, free: int | None, reserved: int | None) -> int | None:
    """Return the whole card where its parts are told; without what the driver reserves it is a little less."""
    return None if used is None or free is None else used + free + (reserved or 0)
