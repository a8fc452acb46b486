"""How a log ends when no message in it is known: the last error, and whether it speaks of memory.

It keeps "no failure was found" from being said of a log that plainly ends with one.
"""

from __future__ import annotations

import re

from msgspec import Struct

from oomdoctor.ingest.clean import clean_lines

_REACH = 8 << 10
"""An error further from the end is not what the log ends with."""
_LEAD = r"(?:\[[^\[\]\n]{1,40}\]:?\s?|(?i:error|fatal|critical|exception)\b[:\s]{1,3}){0,4}"
"""What stands before an error in a line: a headline's label, a logger's place, a level."""
_ERROR = re.compile(
    _LEAD + r"(?:(?:[A-Za-z_][\w.]{0,80}\.)?[A-Z]\w{0,60}(?:Error|Exception|Failure|Fault|Interrupt)\b(?=:|\s{0,4}$)"
    r"|[^\n]{0,80}\bfatal error\b"
    r"|(?:[Ff]atal|FATAL)(?: [\w ]{0,30})?: \S|terminate called after|Segmentation fault|Aborted|panic: \S)"
)
_CUT = "Traceback (most recent call last)"
_REFUSED = re.compile(
    r"(?i:out of memory|(?:not enough|insufficient|no available) (?:\w{1,12} )?memory|(?:cannot|can't|could not|unable to|failed to) allocate|less than desired)"
    r"|\bOOM\b|内存不足|显存不足"
)
_FEW = 4
"""So few lines are what somebody quotes of a failure: what speaks of a refusal in them is one."""
_MEMORY = re.compile(
    r"(?i:out[ -]of[ -](?:\w{1,12} )?memory|(?:not enough|insufficient|no|low on|exhausted?) (?:\w{1,12} )?memory|memory (?:is )?exhausted)"
    r"|(?i:memory (?:is not|isn't) enough|requires more (?:\w{1,12} )?memory|max size of memory|(?:attempting|trying) to (?:allocate|reserve|malloc)\b)"
    r"|(?i:(?:allocat|reserv)\w{0,6} (?:\w{1,12} ){0,3}(?:memory|buffer)|memory alloc\w{0,8} (?:fail|error))|\bOOM\b|[Bb]ad_?[Aa]lloc|内存不足|显存不足|显存溢出|内存溢出"
)
_DEVICE = re.compile(r"(?i:cuda|gpu|hip\b|rocm|npu|xpu|mps|device|vram|cublas|cudnn|nccl)|显存|显卡")
_LONGEST = 300


class LogEnding(Struct, frozen=True):
    """The last error of a log."""

    text: str
    speaks_of_memory: bool
    on_the_device: bool


def find_log_ending(last: bytes) -> LogEnding | None:
    """Return the error that the last bytes of a log end with; None where there is none."""
    lines = [line.text for line in clean_lines(last[-_REACH:], 0)]
    texts = [text for text in lines if text.strip()]
    error = next((text for text in reversed(texts) if _ERROR.match(text)), None)
    if error is None and len(texts) <= _FEW:
        error = next((text for text in reversed(texts) if _REFUSED.search(text)), None)
    if error is None:
        return LogEnding(_CUT, False, False) if any(text.startswith(_CUT) for text in texts) else None
    return LogEnding(error[:_LONGEST], bool(_MEMORY.search(error) or _REFUSED.search(error)), _DEVICE.search(error) is not None)
