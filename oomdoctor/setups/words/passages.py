"""The lines of a log written by a person: labeled values from lists and issue forms, and sentences. Program output is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

from msgspec import Struct

from oomdoctor.knowledge.tables.stated_words import labels, program_in, sentences

_MOST_BYTES, _MOST_LINES, _LONGEST = 48 << 10, 1500, 1200
"""How much of the beginning of a log is examined: people write above what they paste."""
_MOST_SAID, _MOST_LABELS = 6000, 80
"""Maximum number of letters of sentences, and of labeled values, that are read."""
_MARK = r"(?:[>|•·●○*+✅🔹–—-]|\d{1,2}[.)]|\[[ xX]\]|#{1,6})"
_LABEL = r"[A-Za-z\u4e00-\u9fff][\w /().\u4e00-\u9fff-]{0,44}?"
_LABELED = re.compile(
    rf"(?P<marks>(?:\s{{0,6}}{_MARK}){{0,3}})\s{{0,6}}[*_]{{0,3}}(?P<label>{_LABEL})[*_]{{0,3}}\s{{0,6}}"
    r"(?P<sign>[:：|]|\s=\s)[*_]{0,3}\s{0,6}(?P<value>\S.{0,240})$"
)
_HEADING = re.compile(rf"\s{{0,3}}(?:#{{1,6}}\s{{1,3}}|\*\*)?(?P<label>{_LABEL})(?:\**[:：]\**|(?<=\w)\*\*|(?<=\w))\s{{0,3}}$")
"""A heading of an issue form; the answer is below it."""
_VERSION_LABEL = re.compile(r"(.{2,30}) versions?|(.{2,30}) ?版本")
_BESIDE_LABEL = re.compile(r"\([^()]{0,40}\)|（[^（）]{0,40}）")
_KEY = re.compile(r"\s{0,20}[\"']?[a-z][a-z0-9]*_[a-z0-9_]*[\"']?\s{0,4}[:=]")
"""A key of a config or of a program's dump."""
_PRINTED = re.compile(
    r"\s{4}|\t|\s{0,3}(?:\[|\d{4}-\d\d|\d\d:\d\d|[IWEF]\d{4}"
    r"|(?:INFO|WARN(?:ING)?|ERROR|DEBUG|Traceback|File|During|raise|return|import|from|def|class)\b)"
    r"|.*(?:\bINFO\b|\bWARNING\b|\bERROR\b|\w(?:Error|Exception|Warning):|it/s|s/it|\|\s{0,3}\d{1,6}/|\b\d\d:\d\d:\d\d|::|=>|->|[{};]\s{0,2}$"
    r"|[a-z_]\(\)|\.py\b)"
)
"""The forms of what a program prints."""
_CODE = re.compile(r"\s{0,3}(?:[$%]|>>>|PS )\s|.*\s--?[a-zA-Z].*\s--?[a-zA-Z]|.*(?:\.\w+\(|_\w*=[\w'\"])|(?:[^=\n]{0,200}\w=[\w'\"]){3}")
"""A command, or code."""
_CHINESE = re.compile(r"(?:[^\u4e00-\u9fff]{0,60}[\u4e00-\u9fff]){6}")
"""This many Chinese characters make a sentence, whatever keys it names."""
_CARD_ITEM = re.compile(
    r"(?i)\s{0,6}[-*•·●]\s{1,4}(?:\d{1,2} ?[x×*张块]? ?)?(?:(?:nvidia|geforce|tesla|quadro|rtx|gtx) ?){0,3}"
    r"(?:[avhblpt]\d{1,4}[a-z]{0,2}|[2-5]0[5-9]0(?: ?ti| ?super| ?d)?)"
    r"(?:[ (（-]{1,2}\d{1,3} ?gi?b?[)）]?)?(?: ?(?:显存|显卡|gpus?|vram))?(?: ?[x×*] ?\d{1,2})?\s{0,4}"
)
_BY_SOMEBODY = re.compile(
    r"(?<![\w/'-])(?:I|I'm|I've|Im)(?![\w/'-])|(?i:\b(?:my|we|we're|our|i am|i have|i was)\b(?![./_]))"
    r"|[我俺咱]|请问|求助|求教|大佬|各位|有没有"
)
_BEGINS_LIKE_A_REPORT = re.compile(
    r"(?i)\s{0,3}(?:(?:[-*•]|#{1,3})\s)?(?:(?:when|while) )?(?:using|train(?:ing)?|(?:full[ -])?fine-?tun(?:e|ing)|run(?:ning)?"
    r"|serv(?:e|ing)|deploy(?:ing)?|q?-?lora|sft|dpo|grpo|ppo|cuda oom|oom|(?:cuda )?out of memory(?: error)?|trying)\b"
    r"|\s{0,3}(?:#{1,3}\s)?(?:尝试|目前|基于|根据|用|使用|在|单卡|单机|双卡|全参|全量|微调|训练|部署|[一两双单四八\d]{1,2}\s?(?:[张块卡]|[x×*]\s?[AHVLP]\d))"
)
"""How a sentence without a subject begins if it describes a run."""
_USES = re.compile(r"(?i)\b(?:on|with|using)\b (?:\w{1,8} ){0,2}\S|[用在卡]")
_BREAK = re.compile(
    r"(?<=[.!?;])\s+|(?<=[。！？；？])"
    r"|[,，]\s*(?=(?i:but|however|though|even though|then|how|is (?:it|this|that|there)|any (?:idea|way|help|suggestion)|which|this|so"
    r"|what|why|can|could|please|help)\b)"
    r"|[,，]\s*(?=而|但|不过|然后|请|怎么|如何|求|有没有|是不是|是否|为什么|为啥|该|大概|需要|能|可)|\s(?=even though\b)"
)
"""Where another sentence begins, including a question after a comma."""

Mood = Literal["run", "tried", "aside"]
"""Whether a sentence describes the run, what was tried, or something else: possibilities, or what others have."""


class Labelled(Struct, frozen=True):
    """A value with a label that the table knows."""

    means: str
    label: str
    value: str
    line: int


class Sentence(Struct, frozen=True):
    """A sentence that someone wrote."""

    text: str
    mood: Mood
    line: int


def read_passages(data: bytes) -> tuple[list[Labelled], list[Sentence]]:
    """Return the labeled values and the sentences in the beginning of a log."""
    lines = [line.rstrip("\r") for line in data[:_MOST_BYTES].decode("utf-8", "replace").split("\n")[:_MOST_LINES]]
    marked: list[Labelled] = []
    spoken: list[Sentence] = []
    for number, line in enumerate(lines):
        if not line or len(line) > _LONGEST:
            continue
        labelled = _labeled(lines, number)
        if labelled is not None:
            marked.append(labelled)
        elif _is_card(line):
            marked.append(Labelled("card", line.strip(), line.strip(" \t-*•·●"), number + 1))
        elif _is_personal_report(line):
            spoken += _sentences(line, number + 1)
    return marked[:_MOST_LABELS], list(_leading_sentences(spoken))


def _leading_sentences(spoken: Sequence[Sentence]) -> Iterator[Sentence]:
    """Yield the sentences up to a number of letters: each model or GPU name in them is looked up."""
    left = _MOST_SAID
    for sentence in spoken:
        left -= len(sentence.text)
        if left < 0:
            return
        yield sentence


def _labeled(lines: Sequence[str], number: int) -> Labelled | None:
    match = _LABELED.match(lines[number].replace("`", ""))
    if match is None:
        return _filled_in(lines, number)
    means = _meaning(match["label"])
    if means is None or _is_in_dump(match, lines, number):
        return None
    value = match["value"].strip(" |*`_")
    return Labelled(means, match["label"], value, number + 1) if value else None


def _filled_in(lines: Sequence[str], number: int) -> Labelled | None:
    """Return what is below a heading of an issue form."""
    heading = _HEADING.match(lines[number])
    means = None if heading is None else _meaning(heading["label"])
    if heading is None or means is None or not re.search(r"[#*:：]", lines[number]):
        return None
    below = [(at, lines[at].strip(" -*`")) for at in range(number + 1, min(number + 3, len(lines))) if lines[at].strip(" -*`")]
    return Labelled(means, heading["label"], below[0][1], below[0][0] + 1) if below and not below[0][1].startswith("#") else None


def _meaning(label: str) -> str | None:
    plain = " ".join(_BESIDE_LABEL.sub(" ", label).lower().replace("_", " ").replace("-", " ").split())
    return labels().get(plain) or _version_of(plain)


def _version_of(label: str) -> str | None:
    """Return `version NAME` if a label is that of a program's version."""
    name = _VERSION_LABEL.fullmatch(label)
    program = None if name is None else program_in(name[1] or name[2])
    return None if program is None else f"version {program}"


def _is_in_dump(match: re.Match[str], lines: Sequence[str], number: int) -> bool:
    """Return whether a labeled value is one of the keys of a config or a program's dump, which have their own readers."""
    if "_" in match["label"] or (match["sign"].strip() == "=" and not match["marks"].strip()):
        return True
    if match["marks"].strip() or not match["label"].isascii() or match["label"] != match["label"].lower():
        return False
    if match[0][:1].isspace() and not match["label"].count(" "):
        return True
    return any(_KEY.match(line) for line in lines[max(0, number - 4) : number + 5])


def _is_card(line: str) -> bool:
    """Return whether a list item is hardly more than the name of a GPU (`- 2x RTX 4090 24G`)."""
    return _CARD_ITEM.fullmatch(line) is not None


def _is_personal_report(line: str) -> bool:
    """Return whether a line is a sentence that someone wrote about a run."""
    if len(line) < 12 or _PRINTED.match(line) or (_CODE.match(line) and not _CHINESE.match(line)):
        return False
    return _BY_SOMEBODY.search(line) is not None or (_BEGINS_LIKE_A_REPORT.match(line) is not None and _USES.search(line) is not None)


def _sentences(line: str, number: int) -> Iterator[Sentence]:
    for part in _BREAK.split(line):
        if part.strip():
            yield Sentence(part.strip(), mood_of(part), number)


def mood_of(sentence: str) -> Mood:
    """Return whether a sentence describes the run itself."""
    if sentence.rstrip().endswith(("?", "？")) or sentences("supposed").search(sentence) or sentences("other").search(sentence):
        return "aside"
    return "tried" if _tries_a_change(sentence) else "run"


def _tries_a_change(sentence: str) -> bool:
    """Return whether a sentence says that something was tried; trying to train a model describes the run."""
    return any(not _TO_RUN.match(sentence, match.end()) for match in sentences("tried").finditer(sentence))


_TO_RUN = re.compile(
    r"(?i)\s(?:to|and) (?:\w{1,10} )?(?:(?:full|lora|qlora)[ -])?(?:re-?)?"
    r"(?:train|run|fine-?tune|fine tune|load|use|serve|deploy|launch|start|sft|reproduce|do|perform|pre-?train)\b"
    r"|[^，。,]{0,40}(?:微调|训练|部署|运行|跑|加载)|\s(?:training|running|fine-?tuning|serving|loading)\b"
)
