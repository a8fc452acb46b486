"""Reports of the Linux out-of-memory killer, as printed by dmesg, syslog and the journal.

Source: linux mm/oom_kill.c, mm/memcontrol.c; the kernel's kB are 1024 bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.case.event import Value
from oomdoctor.parse.signature import Match

_PADDING = re.compile(r" {10,}")
_KILLED = re.compile(
    r"(?P<memcg>Memory cgroup out of memory: |memory cgroup out of memory: )?(?P<oom>Out of memory(?: \([^)\n]{1,60}\))?: )?"
    r"[Kk]ill(?P<ed>ed)? process (?P<pid>\d{1,9}),? (?:UID \d{1,9},? ?)?\((?P<comm>[^)\n]{1,64})\)(?:,? score (?P<score>\d{1,9}))?"
)
_NUMBERS = {
    "total_vm_bytes": re.compile(r"total-vm:(\d{1,15})kB"),
    "anon_rss_bytes": re.compile(r"anon-rss:(\d{1,15})kB"),
    "file_rss_bytes": re.compile(r"file-rss:(\d{1,15})kB"),
    "shmem_rss_bytes": re.compile(r"shmem-rss:(\d{1,15})kB"),
    "pgtables_bytes": re.compile(r"pgtables:(\d{1,15})kB"),
}
_FIGURES = 400
"""The figures are within this many characters after the process name."""
_ADJUST = re.compile(r"oom_score_adj:(-?\d{1,5})")
_INVOKED = re.compile(r"(?P<comm>[^\n\[\]]{1,64}?) invoked oom-killer: gfp_mask=")
_CONSTRAINT = re.compile(r"oom-kill:constraint=(?P<constraint>CONSTRAINT_\w{1,20})(?P<rest>[^\n]{0,1500})")
_TASK = re.compile(r",task=(?P<task>[^,\n]{1,64}),pid=(?P<pid>\d{1,9})")
_REAPED = re.compile(r"oom_reaper: reaped process (?P<pid>\d{1,9}) \((?P<comm>[^)\n]{1,64})\)")
_FULL = 0.9
"""Below this, the cgroup that is listed is not the one that was full."""
_USAGE = re.compile(r"memory: usage (?P<used>\d{1,15})kB, limit (?P<limit>\d{1,15})kB, failcnt \d")


def parse(text: str) -> Iterator[Match]:
    """Yield every line of an OOM killer report in `text`."""
    offset = 0
    for line in text.split("\n"):
        # Text copied from a terminal has long lines padded at its edge, in the middle of words.
        yield from _line(_PADDING.sub("", line), offset, len(line))
        offset += len(line) + 1


def _line(line: str, offset: int, width: int) -> Iterator[Match]:
    end = offset + width
    killed = _KILLED.search(line)
    if killed and (killed["memcg"] or killed["oom"] or "total-vm:" in line):
        figures = line[: killed.end() + _FIGURES]
        forms = (*_NUMBERS.values(), _ADJUST)
        last = max((figure.end() for form in forms if (figure := form.search(figures, killed.end()))), default=killed.end())
        yield Match(_killed_by(killed), offset + killed.start(), min(end, offset + last), _victim(killed, figures[killed.start() :]))
    invoked = _INVOKED.search(line) if "invoked oom-killer" in line else None
    if invoked:
        comm = invoked["comm"].strip()
        yield Match("kernel-oom-invoked", offset, end, {"comm": comm, "invoker": comm})
    constraint = _CONSTRAINT.search(line)
    if constraint:
        fields: dict[str, Value] = {"constraint": constraint["constraint"]}
        task = _TASK.search(constraint["rest"])
        if task:
            fields["task"], fields["pid"] = task["task"], int(task["pid"])
        yield Match("kernel-oom-constraint", offset + constraint.start(), end, fields)
    reaped = _REAPED.search(line)
    if reaped:
        yield Match("kernel-oom-reaper", offset, end, {"pid": int(reaped["pid"]), "comm": reaped["comm"], **_numbers(line)})
    usage = _USAGE.search(line)
    if usage and int(usage["used"]) >= int(usage["limit"]) * _FULL:
        sizes: dict[str, Value] = {"used_bytes": int(usage["used"]) * 1024, "limit_bytes": int(usage["limit"]) * 1024}
        yield Match("memcg-usage-limit", offset, end, sizes)


def _killed_by(killed: re.Match[str]) -> str:
    if not killed["ed"] or not (killed["memcg"] or killed["oom"]):
        return "kernel-oom-4x"
    return "kernel-oom-memcg" if killed["memcg"] else "kernel-oom-global"


def _victim(killed: re.Match[str], line: str) -> dict[str, Value]:
    fields: dict[str, Value] = {"pid": int(killed["pid"]), "comm": killed["comm"], "scope": "memcg" if killed["memcg"] else "global"}
    fields.update(_numbers(line))
    if killed["score"]:
        fields["score"] = int(killed["score"])
    adjust = _ADJUST.search(line)
    if adjust:
        fields["oom_score_adj"] = int(adjust[1])
    return fields


def _numbers(line: str) -> dict[str, Value]:
    return {name: int(figure[1]) * 1024 for name, form in _NUMBERS.items() if (figure := form.search(line))}
