"""Refusals of memory in a program's own words: read by their grammar, whatever program says them.

A refusal says that an allocation failed, that something lacks, exceeds a limit or does not fit, of memory; its figures are named by the
words beside them. A sentence is a failure where the program marks it as an error, or where its own figures show that more was asked for
than there was. At the level of a warning it is pressure, below that it is nothing; other limits (disks, messages, tokens) are not memory.

Read in: openvino intel_gpu engine.cpp, tflite-micro memory_helpers, executorch memory_allocator.h, rknn runtime, poplar, tt-metal
bank_manager.cpp, exllamav2 model.py, nano-vllm and mini-sglang engines, catboost memory_pool, clickhouse MemoryTracker, star, kraken2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.case.event import Value
from oomdoctor.parse.ending import goes_on
from oomdoctor.parse.mention import is_handled, is_mention
from oomdoctor.parse.signature import Match
from oomdoctor.units import parse_size

_MEMORY = r"(?:memory|v?ram|hbm\d?|dram|sram|rss|arena|heap|kv[ _-]?cache|gtt|cma|l1 buffers?)"
_ANCHOR = re.compile(
    r"(?i)(?P<lack>\b(?:(?:not|no|n't have|unlikely to have) enough|insufficient|(?:ran |run )?(?<!driver error: )out of|lack of)\b(?! range| bounds)[^\n.;:]{0,30}?\b"
    + _MEMORY
    + r"\b"
    rf"|\b{_MEMORY}\b (?:pool )?(?:is |was )?(?:exhausted|overflow(?:ed)?|insufficient|not enough)\b|\b(?:not )?enough space to allocate\b|\bno (?:free|available|more) \w{{1,12}}(?: left)? (?:in|on|of)\b[^\n.;]{{0,20}}?\b{_MEMORY}\b"
    rf"|\b(?:{_MEMORY}|buffer|pool)(?: size)? is too small\b"
    r"|(?-i:\b[A-Z][A-Z\d]{1,12}(?:_[A-Z\d]{1,12}){0,4}_(?:OUT_OF|NO|INSUFFICIENT|NOT_ENOUGH)_(?:[A-Z]{2,10}_){0,3}MEM(?:ORY)?\b))"
    r"|(?P<refused>\b(?:fail(?:ed|ure)?(?: attempt)? to|unable to|can ?not|can't|could not|couldn't|error)(?: attempt to)? (?:\w{1,12} )?(?:re)?(?:alloc\w{0,6}|malloc|reserv(?:e|ing)|resize|grow|extend|obtain|acquire|map)\b"
    r"|\b\w{0,20}alloc\w{0,8}\b(?: [\w-]{1,20}){0,6}? (?:failed|failure|refused)\b)"
    r"|(?P<fit>\b(?:(?:do|does|did|will|would|can)(?: not|n't)|cannot|unable to|fail(?:ed|s) to) fit\b)"
    r"|(?P<over>\bexceed(?:s|ed|ing)?\b|\b(?:larger|greater|bigger|more|higher) than\b|\bbeyond\b|\btoo (?:large|big) for\b|\b(?:limit|budget|ceiling)\b[^\n.;]{0,40}? reached\b|\d ?[KMGT]i?B\)? ?> ?(?=\D{0,20}\d)|\bwould exceed\b)"
    r"|(?P<only>(?:\b(?:but|and|while)|,) only\b|\b(?:free|available|left) but\b[^\n]{0,40}\b(?:needs?|requires?|requested|wants)\b|\b(?:would )?(?:needs?|needed|requires?|required|requested)\b(?=[^\n]{0,120}\b(?:available|free|left|ceiling|limit|budget)\b))"
)
_SIGNS = (
    (
        ("enough", "insufficient", "out of", "out_of", "lack of", "exhausted", "overflow", "no free", "no available", "no more", "too small", "_no_",
         " fit", "exceed", "r than", "more than", "beyond", "too large", "too big", "reached", "b>", "b >", "b)>", "b) >", " only"),
        ("",),
    ),
    (
        ("alloc", "reserv", "resize", "grow", "extend", "obtain", "acquire", "map"),
        ("fail", "unable", "can not", "cannot", "can't", "could", "error", "refused"),
    ),
    ((" but", "need", "requir", "request"), ("available", "free", "left", "ceiling", "limit", "budget")),
)  # fmt: skip
"""One word of a row and one of its second words stand, in small letters, in every line that holds an anchor."""
_LOOK_AHEAD = 24
"""So far behind its line an anchor may look."""
_SMALL = {letter: letter + 32 for letter in range(ord("A"), ord("Z") + 1)}
_NO_MEMORY = re.compile(
    r"(?i)\b(?:disks?|storage|file ?systems?|file size|uploads?|uploaded|downloads?|downloaded|bounds|payload|body|bandwidth|shared[ _]mem\w*|smem|stack|inodes?|messages? (?:size|larger)|buffer underrun"
    r"|archive|sort|external sorting|cores|cpus|ports?|slots? (?:left|free)|connections?|time limit|recursion|retr(?:y|ies)|budget of tokens|address(?:es)?|descriptors?|invalid (?:argument|device\w*|value|handle)|permission denied|not (?:supported|permitted)|unsupported)\b"
)
_DEVICE = re.compile(
    r"(?i)cuda|\bgpus?\b|\bvram\b|\bhbm|\bnpu|\bxpu\b|\bhpu\b|\btpu\b|\bipu\b|\bmlu\b|\bmusa\b|\bsycl\b|\bhip\b|\brocm\b|\brmm_|_of_(?:device|gpu|hbm)_|(?:\b|_)metal|\bmps\b|\bvulkan|\bwgpu|\bcubecl|\bdirectml|\bopencl|\bhtp\b|\bdevice(?:\b|memory)|\bcard\b|\bdml\b"
    r"|accelerator|\bkv[ _-]?cache|\bprefill\b|\bunified memory|\bl1\b|\bdram buffer|\btiles?\b|poplar|neuron|\bgaudi|\brknn\b|\bhailo|\bmlx\b|\bprefill batch|webgpu|\bwired\b|\bdevmem"
)
_HOST = re.compile(r"(?i)\b(?:system memory|system ram|host memory|host ram|cpu memory|main memory|cpu|ram)\b|_OF_HOST_")
_ERROR = re.compile(
    r"(?:^|[\s\[(|:\"'=<.])(?:ERROR|Error|error|FATAL|Fatal|fatal|CRITICAL|Critical|SEVERE|PANIC|panic(?:ked)?|E\d{3,8}|ERR|\[E\]|E|F\d{3,8})(?=[\s:\])|,\"'>])"
    r"|\b[A-Za-z_]\w{0,60}(?:Error|Exception|Fault|Failure)\b(?=[:(\s]|$)|\bException\b|\b[Ff]ailed\b|TT_FATAL|what\(\):|\bAborted\b|\bterminat(?:ed|ing)\b|\bexiting\b|\bEXITING\b|\b[Cc]heck failed|\b_exception: "
)
_WARNING = re.compile(r"(?:^|[\s\[(|:\"'=<_])(?:WARN(?:ING)?|[Ww]arn(?:ing)?|W\d{3,8}|\[W\]|\w{2,40}Warning|W)(?=[\s:\])|,\"'>])")
_REMARK = re.compile(
    r"(?:^|[\s\[(|:\"'=<])(?:INFO|[Ii]nfo|DEBUG|[Dd]ebug|TRACE|NOTE|[Nn]ote|[Tt]ip|[Hh]int|I\d{3,8}|\[I\]|I)(?=[\s:\])|,\"'>])"
)
_RAISED = re.compile(r"panicked at|TT_FATAL|FATAL ERROR|terminate called|Caused by:")
"""What makes the lines below it the text of an error."""
_UNIT = r"(?:[KMGT]i?[Bb]|[kmgt]b|bytes?|(?-i:B))\b|[KMGT](?=[\s,;.)\]/]|$)"
_SIZE = re.compile(rf"(?<![\w.])~?(?P<size>\d[\d,]{{0,24}}(?:\.\d{{1,6}})?\s?(?:{_UNIT}))")
_BARE = re.compile(r"(?<![\w.])(?P<size>\d{4,20})(?![\w.]\w|\s?tokens?\b)")
_BESIDE = re.compile(
    r"\s?(?:[)\]]|\([^()\n]{0,40}\))?\s?(?:is |was |are |were |already |of \w{1,12} memory |of memory |VRAM |GPU RAM |peak )?"
    r"(?P<role>requested|required|needed|wanted|peak|available|free|left|remaining|in use|used|allocated|total|budget|limit|ceiling|cap|exceed\w{0,3}|would exceed|(?:larger|greater) than)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    r"(?P<ignored>largest\b[^,;\n]{0,20}|block size|alignment|align\b|missing|reserv\w{1,4} for)"
    r"|(?P<limit>(?:exceed\w{0,3}|beyond|(?:larger|greater|more|higher) than)(?: \S{1,20}){0,4}?|max(?:imum)?\b(?:[ _]\w{1,12}){0,4}|limit|ceiling|budget|\bcap\b|threshold|allowed)"
    r"|(?P<total>bank size|pool size|capacity|total)"
    r"|(?P<free>available|free|left|remaining|only|have|has)"
    r"|(?P<used>current|in use|used|occupied|usage|memory(?= \d))"
    r"|(?P<allocated>allocated)"
    r"|(?P<requested>would (?:use|require|be|need)|need\w{0,3}|requir\w{1,3}|request\w{0,3}|ask\w{0,3} for|allocat(?:e|ing)|size|estimated|projected|peak|grow to|grow|by|reserve|additional|\bn(?==)|attempt to|memory:)",
    re.IGNORECASE,
)
_ROLES = {
    "requested": "requested", "required": "requested", "needed": "requested", "wanted": "requested", "peak": "requested",
    "available": "free", "free": "free", "left": "free", "remaining": "free", "in use": "used", "used": "used", "allocated": "allocated", "total": "total",
    "budget": "limit", "limit": "limit", "ceiling": "limit", "cap": "limit",
}  # fmt: skip
_ENDS = re.compile(r"(?i)\b(?:abort(?:ed|ing)?|exiting|terminat(?:ed|ing)|giving up|shutting down|stopp(?:ed|ing))\b")
"""What marks an error behind its sentence, on its line or the next."""
_GPU = re.compile(r"(?i)\b(?:device|gpu|cuda|npu|xpu|hpu|rocm|nd)[ :#\[(]{0,2}(\d{1,3})\b(?!\.\d| ?[KMGT]i?B)")
_PAIR = re.compile(r"\s?(?:/|>|vs\.?)\s?$")
_LONGEST = 700
_NAMES_MEMORY = re.compile(rf"(?i)\b(?:{_MEMORY}|npu memory)\b|DEVMEM")
_LIMIT_OF_MEMORY = re.compile(rf"(?i)\b{_MEMORY} (?:\w{{1,12}} )?(?:limit|budget|ceiling|cap|quota)\b")
_TORCH = re.compile(r"\b(?:CUDA|HIP|XPU|NPU|MPS backend) $")
_HOLDS = re.compile(r"(?i)\b(?:buffer|tensor|weights?|workspace|pool)\b")
_BARE_WORDS = re.compile(r"(?i)out of memory")
_LAST_WORD = re.compile(
    r"(?i)\s*(?:(?!(?:i|i'm|we|my|it|is|was|get|got|getting|the)\b)[\w.:#()-]{1,30}\s){0,3}?(?:out of (?:\w{1,12} )?memory|[A-Z][A-Z\d_]{2,60}MEM(?:ORY)?)\W*$"
)
_ALLOCATES = re.compile(r"(?i)alloc|reserv(?:e|ing)\b|\benqueue\b|\bdevice out of memory")
_TEMPLATE = re.compile(r"\{[A-Za-z_][\w.]{0,40}(?:[\[(!}]|:[.<>\d])|%[dszu]\b|%\.\d[fg]|\$\{")
"""A sentence of source code, before its figures are filled in."""
_FURTHER = 2
"""So many lines below a sentence may hold its figures."""
_AFTER = 12
_LONG = 7
"""A number without a unit is a size beside others that have one if it has so many digits."""
_NEAR = 18
_ABOVE = 3


def parse(text: str) -> Iterator[Match]:
    """Yield the refusals in `text`, at most one for a line."""
    for start, end in _telling_lines(text):
        for anchor in _ANCHOR.finditer(text, start, min(len(text), end + _LOOK_AHEAD)):
            if anchor.start() > min(end, start + _LONGEST):
                break
            match = _read(text, start, min(end, start + _LONGEST), anchor)
            if match is not None:
                yield match
                break


def _telling_lines(text: str) -> list[tuple[int, int]]:
    """Return where the lines begin and end that may hold an anchor: a plain search for words is many times quicker than the pattern."""
    small = text.lower()
    if len(small) != len(text):
        small = text.translate(_SMALL)
    lines = {}
    for signs, beside in _SIGNS:
        for sign in signs:
            at = small.find(sign)
            while at >= 0:
                start, end = small.rfind("\n", 0, at) + 1, small.find("\n", at)
                end = len(text) if end < 0 else end
                if start not in lines and any(small.find(word, start, end) >= 0 for word in beside):
                    lines[start] = end
                at = small.find(sign, end)
    return sorted(lines.items())


def _read(text: str, start: int, end: int, anchor: re.Match[str]) -> Match | None:
    line, head = text[start:end], text[start : anchor.start()]
    if _NO_MEMORY.search(line) or _TEMPLATE.search(line) or _REMARK.search(head) or is_handled(line):
        return None
    if _TORCH.search(head) and not _is_last_word(line, anchor):
        return None  # PyTorch's own message has a reader of its own
    above, after = _lines_before(text, start), _lines_after(text, end)
    fields = _figures(_with_figures(text, start, end))
    shown = _is_shown(fields)
    if shown is False and anchor.lastgroup in ("over", "only", "fit"):
        return None
    sized = anchor.lastgroup in ("lack", "refused") and "requested_bytes" in fields
    subject = line if _DEVICE.search(line) or _NAMES_MEMORY.search(line) else above + line
    code = anchor[0].isupper() and "_" in anchor[0]
    if not sized and not code and not _NAMES_MEMORY.search(subject) and not _DEVICE.search(subject):
        return None
    is_last = not after
    marked = bool(_ERROR.search(head) or _RAISED.search(above) or any(map(_ENDS.search, (line[len(head) :], *after[:1]))))
    if not shown and (
        is_mention(line, len(head), anchor.end() - start)
        or not (sized or (marked and _is_refusal(line, anchor, above, is_last=is_last)) or (is_last and _is_last_word(line, anchor)))
    ):
        return None
    if not marked and goes_on([line, *after]):
        return None
    warned = _WARNING.search(head) is not None and not _ERROR.search(head)
    name = f"{_whose(line, above)}-memory-{'short-warned' if warned else 'refused-in-words'}"
    device = _GPU.search(line)
    return Match(name, anchor.start(), anchor.end(), {**fields, "gpu_index": int(device[1])} if device else fields)


def _is_refusal(line: str, anchor: re.Match[str], above: str, *, is_last: bool) -> bool:
    """Return whether an error says without two figures that memory was refused."""
    if anchor.lastgroup == "over":
        return _LIMIT_OF_MEMORY.search(line) is not None
    if anchor.lastgroup == "lack":
        # The bare words are also what a driver's code is called: they count where a program ends with them.
        return _BARE_WORDS.fullmatch(anchor[0]) is None or is_last or _ALLOCATES.search(above + line) is not None
    return anchor.lastgroup in ("refused", "fit") and (_NAMES_MEMORY.search(line) is not None or _HOLDS.search(line) is not None)


def _is_last_word(line: str, anchor: re.Match[str]) -> bool:
    """Return whether a last line is hardly more than that memory lacks."""
    if anchor.lastgroup == "refused":  # a copy that ends within the sentence
        return line.endswith(anchor[0]) and _ALLOCATES.search(line[: line.rindex(anchor[0])]) is not None
    return anchor.lastgroup == "lack" and _LAST_WORD.match(line) is not None


def _whose(line: str, above: str) -> str:
    """Return whose memory a sentence speaks of; where it does not say, what the lines above it speak of."""
    if _HOST.search(re.sub(r"(?i)gpu ram", "", line)):
        return "host"
    return "device" if _DEVICE.search(line) or _DEVICE.search(above) else "host"


def _is_shown(fields: dict[str, Value]) -> bool | None:
    """Return whether the figures show that more was asked for than there was; None where they do not tell."""
    needed = next((size for name in ("requested_bytes", "used_bytes") if isinstance(size := fields.get(name), int)), None)
    available = next((size for name in ("limit_bytes", "free_bytes", "total_bytes") if isinstance(size := fields.get(name), int)), None)
    return None if needed is None or available is None else needed > available


def _with_figures(text: str, start: int, end: int) -> str:
    """Return a sentence with the lines below it that go on with its figures."""
    for _ in range(_FURTHER):
        if not re.match(r"\n[ \t]{0,8}[-(]\s{0,2}\S", text[end : end + 12]):
            break
        after = text.find("\n", end + 1)
        end = len(text) if after < 0 else after
    return text[start : min(end, start + 2 * _LONGEST)]


def _lines_after(text: str, end: int) -> list[str]:
    return [line for line in text[end : end + 4096].split("\n") if line.strip()][:_AFTER]


def _lines_before(text: str, start: int) -> str:
    """Return the few lines above a sentence, which may mark it as the text of an error."""
    at = start
    for _ in range(_ABOVE):
        at = text.rfind("\n", 0, max(0, at - 1)) + 1
    return text[at:start]


def _figures(line: str) -> dict[str, Value]:
    """Return the figures of a sentence by the words beside them."""
    figures = list(_SIZE.finditer(line))
    least = _LONG if figures else 0
    taken = {figure.start() for figure in figures}
    figures += [figure for figure in _BARE.finditer(line) if len(figure["size"]) >= least and figure.start() not in taken]
    figures.sort(key=re.Match.start)
    fields: dict[str, Value] = {}
    at = 0
    last: str | None = None
    for figure in figures[:8]:
        size = parse_size(figure["size"])
        before = line[at : figure.start()]
        role = (
            "limit"
            if last == "over" and _PAIR.search(before)
            else _role(before, line[figure.end() : figure.end() + 60], figure.re is _BARE)
        )
        at, last = figure.end(), role
        if role == "over":
            # What exceeds a limit is what is used, where the sentence says so, or what was asked for.
            role = "used" if re.search(r"(?i)\b(?:memory|usage|current|used)\b[\s:=~(]{0,4}$", before) else "requested"
        if size is not None and role is not None and role != "ignored":
            fields.setdefault(f"{role}_bytes", size)
    return fields


def _role(before: str, after: str, bare: bool) -> str | None:
    """Return what a figure is: by the word behind it, else by the last one before it."""
    beside = _BESIDE.match(after)
    if beside is not None:
        word = beside["role"].lower()
        return _ROLES.get(word, "over")
    if re.match(r"\s?(?:/|>|vs\.?)\s?(?:~?\d|available|free|limit)", after) and not bare:
        return "over"
    words = list(_BEFORE.finditer(before[-60:]))
    if not words:
        return None
    if bare and len(before[-60:]) - words[-1].end() > _NEAR:
        return None
    return words[-1].lastgroup
