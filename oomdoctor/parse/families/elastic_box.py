"""The summary that torchrun (torchelastic) prints when a rank died: which one failed first, and its exit code.

Its order is the order in which the launcher noticed, so it identifies the first rank only to within about a second.
Source: pytorch torch/distributed/elastic/multiprocessing/errors/__init__.py; the form with signal names was measured with 2.13.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.case.event import Value
from oomdoctor.parse.signature import Match

_ENTRY = re.compile(
    r"(?:rank\s{0,6}:\s(?P<rank>\d{1,6}) \(local_rank: (?P<local>\d{1,4})\)\s{1,4})?"
    r"exitcode\s{0,4}:\s(?P<code>-?\d{1,4}) \(pid: (?P<pid>\d{1,9})\)(?:\s{1,3}\((?P<signal>SIG[A-Z]{2,8})\))?"
)
_HOST = re.compile(r"host\s{0,6}:\s(?P<host>[\w.-]{1,120})\s{1,4}$")
_ROOT = re.compile(r"Root Cause \(first observed failure\):")
_SIGNAL = re.compile(r"Signal (\d{1,2}) \((SIG[A-Z]{2,8})\) received by PID (\d{1,9})")
_LINE = 160
_NAMES = {
    -6: "elastic-childfailed-sigabrt",
    -7: "elastic-childfailed-sigbus",
    -9: "elastic-childfailed-sigkill",
    -11: "elastic-childfailed-sigsegv",
    -15: "elastic-childfailed-sigterm",
}


def parse(text: str) -> Iterator[Match]:
    """Yield the root cause of every box in `text`; without that heading, the first entry."""
    entries = list(_ENTRY.finditer(text))
    roots = [root.end() for root in _ROOT.finditer(text)]
    chosen = [next((entry for entry in entries if entry.start() >= at), None) for at in roots] if roots else entries[:1]
    for entry in chosen:
        if entry is not None:
            yield _failure(text, entry, len(entries))


def _failure(text: str, entry: re.Match[str], entries: int) -> Match:
    code = int(entry["code"])
    fields: dict[str, Value] = {"exit_code": code, "pid": int(entry["pid"])}
    if entry["rank"]:
        fields["rank"], fields["local_rank"] = int(entry["rank"]), int(entry["local"])
    host = _HOST.search(text, max(0, entry.start() - _LINE), entry.start())
    if host:
        fields["host"] = host["host"]
    if entries > 1:
        fields["failed_processes"] = entries
    signal = _SIGNAL.search(text, entry.end(), entry.end() + 300)
    if signal and signal[3] == entry["pid"]:
        fields["signal"] = signal[2]
    elif entry["signal"]:
        fields["signal"] = entry["signal"]
    name = _NAMES.get(code, "elastic-childfailed-exit1")
    if code == -9 and entry["signal"]:
        name = "elastic-childfailed-sigkill-named"
    return Match(name, entry.start(), entry.end(), fields)
