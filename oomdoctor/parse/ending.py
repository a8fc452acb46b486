"""How a log ends when no message in it is known: the last error, and whether it speaks of memory.

It keeps "no failure was found" from being said of a log that plainly ends with one, and a failure from being said of a log in
which only the words stand: what counts is whether the line is a program's error, and whether the run went on after it.

Patterns are kept as texts, which `re` compiles when they are first used: most logs hold a known message and none of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from oomdoctor.ingest.clean import clean_lines
from oomdoctor.parse.mention import is_counted, is_handled, is_mention
from oomdoctor.parse.progress import runs

REACH = 8 << 10
"""An error further from the end is not what the log ends with."""
_LEAD = r"(?:\[[^\[\]\n]{1,40}\]:?\s?|(?i:error|fatal|critical|exception)\b[:\s]{1,3}){0,4}"
"""What stands before an error in a line: a headline's label, a logger's place, a level."""
_ERROR = (
    _LEAD + r"(?:(?:[A-Za-z_][\w.]{0,80}\.)?[A-Z]\w{0,60}(?:Error|Exception|Failure|Fault|Interrupt)\b(?=:|\s{0,4}$)"
    r"|[^\n]{0,80}\bfatal error\b|[\w./-]{1,60}: error: \S"
    r"|(?:[Ff]atal|FATAL)(?: [\w ]{0,30})?: \S|terminate called after|Segmentation fault|Aborted|panic: \S|thread '[^'\n]{0,40}' panicked)"
)
_WHAT = "what():"
"""C++ says in a line of its own what was thrown."""
_CUT = "Traceback (most recent call last)"
_REFUSED = (
    r"(?i:out of (?:\w{1,12} )?memory|(?:not enough|insufficient|no available) (?:\w{1,12} )?memory(?! (?:bandwidth|channels?|clock))|(?:cannot|can't|could not|unable to|failed to) allocate(?! (?:[\w-]{1,20} ){0,4}(?:cores?|cpus?|gpus?|nodes?|ports?|pty|tty|ip|address(?:es)?|slots?|jobs?|licen[cs]es?|resources?)\b)|less than desired)"
    r"|\bOOM\b|\bbad_alloc\b|\bMemoryError\b|\bOutOfMemory(?:Error|Exception)\b|内存不足|显存不足"
)
_REFUSAL_SIGNS = (
    "out of ", "enough ", "insufficient ", "no available ", "t allocate", "to allocate", "less than desired", "bad_alloc", "memoryerror",
    "outofmemory", "不足",
)  # fmt: skip
"""One of these stands, in small letters, in every refusal but OOM."""
_FEW = 4
"""So few lines are what somebody quotes of a failure: what speaks of a refusal in them is one."""
_SIGN = r"(?i)\b(?:error|fatal|critical|severe|failed|failure|cannot|can't|could not|unable|abort\w*|exit(?:ing|ed)?|stopp(?:ed|ing)|terminat\w+)\b|\bE\d{4} |失败|错误|终止"
"""What makes a line of the last few an error in a longer log."""
_MEMORY = (
    r"(?i:out[ -]of[ -](?:\w{1,12} )?memory|(?:not enough|insufficient|no|low on|exhausted?) (?:\w{1,12} )?memory(?! (?:bandwidth|channels?|clock))|memory (?:is )?exhausted)"
    r"|(?i:memory (?:is not|isn't) enough|requires more (?:\w{1,12} )?memory|max size of memory|(?:attempting|trying) to (?:allocate|reserve|malloc)\b)"
    r"|(?i:(?:allocat|reserv)\w{0,6} (?:\w{1,12} ){0,3}(?:memory|buffer)|memory alloc\w{0,8} (?:fail|error))|OOM(?:Error|Exception)?\b|OutOfMemory|[Bb]ad_?[Aa]lloc|内存不足|显存不足|显存溢出|内存溢出"
)
_DEVICE = r"(?i:cuda|gpu|hip\b|rocm|npu|xpu|mps|device|vram|cublas|cudnn|nccl)|显存|显卡"
_WELL = (
    r"(?i)\b(?:training|run|job|evaluation|inference|fine-?tuning|build|all (?:\w+ ){0,2}\w+) (?:is |has |was )?(?:completed?|done|finished|success\w*|ended|passed|terminated normally)\b"
    r"|^\W{0,8}(?:done|finished|completed|success(?:ful(?:ly)?)?|bye)\b|\bfinished successfully\b|\bcompleted successfully\b|\bfinished with\b|\bexit(?:ed)?(?: with)? (?:code|status)[:= ]{1,3}0\b|\b0 fail(?:ed|ures)\b"
    r"|\b\d{1,7} passed\b(?!.{0,40}\bfailed)|(?<!mergency )\b(?:model|checkpoint|weights|adapter|results?|picture|image|output) (?:was |has been )?(?:saved|written)\b|\bsav(?:ed|ing) (?:the )?(?:final|best) "
    r"|^\s{0,4}ok\b|训练(?:完成|结束)|保存(?:完成|成功)|运行结束"
)
"""What a program prints that ends well."""
_READY = r"(?i)\bepoch\b.{0,30}\b(?:done|loss|acc\w*|finished)|\bloss\b[\"']?\s{0,3}[:=]?\s{0,3}\d|\bstep\s{0,2}\d+\b|\b(?:server|service|application) (?:is )?(?:listening|started|ready|startup complete|running on)|\blistening (?:on|at)\b|\bn_slots\b|\bit/s\b|\btok(?:ens)?/s\b|\bprompt executed\b"
"""What a program prints that is at work."""
_NAMES = (b"Error", b"Exception", b"Failure", b"Fault", b"Interrupt")
SIGNS = (
    *(name + end for name in _NAMES for end in (b":", b"\n", b"\r", b" \n", b"\x1b")),
    b"fatal error", b"atal: ", b"FATAL", b"error: ", b"terminate called", b"Segmentation", b"Aborted", b"panic:", _CUT.encode(),
    b"ut of memory", b"UT OF MEMORY", b"nough ", b"NOUGH ", b"nsufficient ", b"NSUFFICIENT ", b"o available ", b"not allocate", b"n't allocate",
    b"to allocate", b"less than desired", b"OOM", b"bad_alloc", b"MemoryError", b"OutOfMemory", b"panicked", "不足".encode(),
)  # fmt: skip
"""One of these stands in all that is an error or a refusal; looking for them is a hundred times cheaper."""
SIGNS_OF_A_KIND = (b"ut of ", b" memory")
"""Both stand in `out of device memory`."""
_QUESTION = r"[?？]\s{0,4}$"
_COMMIT = r"commit [0-9a-f]{4,40}\b"
_LONGEST = 300
_AROUND = 4
"""A program says within so many lines after a refusal what it does about it."""
_LACKS_A_NAME = r"\bhas no attribute\b|\bcannot import name\b|\bNo module named\b|\bis not defined\b"
"""An error about a name, which may be that of an error of memory."""


class LogEnding(Struct, frozen=True):
    """The last error of a log."""

    text: str
    speaks_of_memory: bool
    on_the_device: bool
    survived: bool = False
    """The program went on after it, or said that it would."""


def find_log_ending(last: bytes) -> LogEnding | None:
    """Return the error that the last bytes of a log end with, or a refusal of memory that the program survived; None where there is neither."""
    end = last[-REACH:]
    if not end or not _may_tell(end + b"\n"):
        return None
    texts = [line.text for line in clean_lines(end, 0) if line.text.strip()]
    at = _last_error(texts)
    if at is not None:
        ending = _ending(" ".join([texts[at], *(text.strip() for text in texts[at + 1 : at + 2] if text.lstrip().startswith(_WHAT))]))
        if not goes_on(texts[at:]):
            return ending
        return _survived(ending) if ending.speaks_of_memory else None
    if any(text.startswith(_CUT) for text in texts):
        return LogEnding(_CUT, False, False)
    return _stated(texts)


def _may_tell(end: bytes) -> bool:
    """Return whether an error or a refusal may stand in the end of a log: a first, cheap look."""
    return any(sign in end for sign in SIGNS) or all(sign in end for sign in SIGNS_OF_A_KIND)


def speaks_of_a_card(text: str) -> bool:
    """Return whether a text names the memory of a card and not only memory."""
    return re.search(_DEVICE, text) is not None


def was_handled(after: bytes) -> bool:
    """Return whether a program that said it would go on did: something that is no error stands behind what it said."""
    texts = [line.text for line in clean_lines(after[:REACH], 0) if line.text.strip()]
    announced = next((number for number, text in enumerate(texts[:_AROUND]) if is_handled(text)), None)
    if announced is None or any(re.match(_ERROR, text) for text in texts) or any(text.startswith(_CUT) for text in texts):
        return False
    return any(re.search(_READY, text) or re.search(_WELL, text) for text in texts[announced + 1 :])


def goes_on(texts: Sequence[str]) -> bool:
    """Return whether a program handles the failure that the first of these lines states: it says so, or it is at work or ends well after it."""
    after = texts[1:]
    if any(re.match(_ERROR, text) for text in after):
        return False
    announced = any(map(is_handled, after[:_AROUND])) and any(re.search(_READY, text) for text in after)
    return announced or is_handled(texts[0]) or _is_alive(after)


def _is_alive(after: Sequence[str]) -> bool:
    return any(re.search(_WELL, text) for text in after) or runs("\n".join(after).encode())


def _last_error(texts: Sequence[str]) -> int | None:
    """Return the number of the last line that is an error; a counter of errors is none."""
    errors = ((number, match) for number, text in enumerate(texts) if (match := re.match(_ERROR, text)))
    return max(
        (number for number, match in errors if not (re.search(_MEMORY, match[0]) and is_counted(texts[number][match.end() :]))),
        default=None,
    )


def _stated(texts: Sequence[str]) -> LogEnding | None:
    """Return the last refusal that a line states without the name of an error."""
    whole = "\n".join(texts)
    small = whole.lower()
    if not (any(sign in small for sign in _REFUSAL_SIGNS) or "OOM" in whole) or not re.search(_REFUSED, whole):
        return None
    written = any(re.match(_COMMIT, text) for text in texts)
    for number in range(len(texts) - 1, -1, -1):
        text = texts[number]
        refused = re.search(_REFUSED, text)
        if (
            refused is None
            or re.search(_QUESTION, text)
            or is_mention(text, refused.start(), refused.end())
            or (written and text.startswith("    "))
        ):
            continue
        ending = _ending(text)
        if goes_on(texts[number:]) or any(re.search(_READY, later) for later in texts[number + 1 :]):
            return _survived(ending)
        is_last = number == len(texts) - 1
        if len(texts) <= _FEW or is_last or (number >= len(texts) - _FEW and re.search(_SIGN, text)):
            return ending
        return None
    return None


def _ending(error: str) -> LogEnding:
    speaks_of_memory = re.search(_MEMORY, error) or re.search(_REFUSED, error)
    return LogEnding(error[:_LONGEST], bool(speaks_of_memory) and not re.search(_LACKS_A_NAME, error), speaks_of_a_card(error))


def _survived(ending: LogEnding) -> LogEnding:
    return LogEnding(ending.text, ending.speaks_of_memory, ending.on_the_device, survived=True)
