"""A run that someone describes in words: which model, on which GPU, trained how; what is not stated stays unknown."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from oomdoctor.case.settings import RunSettings
from oomdoctor.case.shape import Shape
from oomdoctor.knowledge.tables.cards import Card, commonest_card
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.setups.nearest_model import nearest_model, size_in
from oomdoctor.setups.words.told_cards import told_card, told_count

_MOST = 16 << 10
"""How much of a text is read: a run is described at its beginning."""
_TRIED = 60
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,80}(?<![.\-/])")
_SIZE = re.compile(r"(?i)(?<![a-z0-9.])\d{1,4}(?:\.\d{1,3})?b(?![a-z0-9])")
_EXPERTS = re.compile(r"(?i)a\d{1,3}(?:\.\d)?b|\dx\d")
_METHODS: Mapping[str, str] = {
    "qlora": r"\bq-?lora\b|\b(?:4[- ]?bit|nf4|int4)[ -](?:q?lora|training|fine-?tun)|4 ?(?:bit|比特|位)量化微调",
    "dora": r"\bdora\b",
    "lora": r"\blora\b",
    "freeze": r"\bfreeze (?:tuning|training)\b|冻结微调",
    "full": r"\bfull(?:[- ]?(?:parameters?|params?|weights?|model))?[- ](?:fine[- ]?tun\w*|sft|training|tuning)"
    r"|\bfull[- ]?(?:param\w*|ft)\b"
    r"|\bpre-?train(?:ing|s)?\b|全量|全参|预训练",
}
_ANSWERS = r"(?i)\b(?:inference|infer|generat(?:e|ing|ion)|serv(?:e|ing)|deploy\w*|chat(?:ting)?)\b|推理|部署"
_TRAINS = r"(?i)\b(?:train\w*|fine-?tun\w*|sft|dpo|grpo|ppo|lora)\b|微调|训练"
_BATCH = re.compile(
    r"(?i)\b(?:micro[ _-]?|per[ _-]device[ _-](?:train[ _-])?)?batch(?:[ _-]?size)?"
    r"(?: (?:of|is|was|to|per (?:gpu|card|device)))?[ :=：是为]{0,3}(\d{1,4})\b"
    r"|\bbs ?[=:]? ?(\d{1,4})\b|批(?:大小|次)?(?:为|是|：)? ?(\d{1,4})"
)
_LENGTH = re.compile(
    r"(?i)(?:\b(?:max[ _-]?)?(?:seq(?:uence)?[ _-]?)?len(?:gth)?\b"
    r"|\bcutoff(?:_len)?\b|\bnum_ctx\b|\bmax[ _-]?length\b|\bcontext\b|长度|上下文)"
    r"[^\d\n]{0,12}(\d{1,6}) ?(k)?\b|(?<![\w.])(\d{1,6}) ?(k)?[ -]?(?:(?:tokens?|context|ctx)\b|上下文)"
)
_CHECKPOINTS = re.compile(r"(?i)gradient[ _-]checkpointing|梯度检查点|梯度检查")
_OFF = re.compile(
    r"(?i)\b(?:without|no|not|off|disabled?|false)\b[^\n.]{0,20}$|^[^\n.,;]{0,20}\b(?:not|isn't|off|disabled?|false)\b|^关|未开"
)
_ZERO = re.compile(r"(?i)\bzero[ _-]?(?:stage[ _-]?)?([0-3])\b|\bds_z([0-3])")
_FSDP = r"(?i)\bfsdp2?\b"
_OF_ALL = re.compile(r"(?i)(?:global|total|effective|overall|whole|全局|总)[ _-]{0,2}(?:train(?:ing)?[ _-])?(?:的)?$")
"""Before a batch: it is the total across all GPUs and all accumulated steps."""
_NO_BATCH = re.compile(r"(?i)(?:eval\w*|test\w*|val\w*|rollout|generation|inference|prompt|评估|验证|测试)[ _-]{0,2}$")
_ACCUMULATION = re.compile(
    r"(?i)\bgrad(?:ient)?[ _-]?accum(?:ulation)?(?:[ _-]steps?)?(?: (?:of|is|to))?[ :=：是为]{0,3}(\d{1,4})\b"
    r"|梯度累[积计](?:步数)?(?:为|是|：)? ?(\d{1,4})"
)
_RANK = re.compile(
    r"(?i)\b(?:rank\s{0,2}(?:of |is |[=:：])?|(?:lora[ _-]{1,2})?r\s{0,2}[=:：]|lora r)\s{0,2}([1-9]\d{0,3})\b"
    r"|秩(?:为|是)?\s?([1-9]\d{0,3})"
)
_HAS_RANK = re.compile(r"(?i)lora|dora|adapter|适配器")
"""A rank is that of adapters if a text mentions these; otherwise it is a process."""
_FOUR_BITS = re.compile(r"(?i)\b4[- ]?bit\b|四比特|4 ?比特")
_OPTIMIZER = re.compile(r"(?i)\b(adafactor|paged_adamw_8bit|adamw_8bit|8-?bit adam\w?|lion|sgd)\b")
_PACKED = re.compile(r"(?i)\b(?:with|using) packing\b|\bpacked\b|打包")
_OFFLOADED = re.compile(
    r"(?i)\b(?:cpu|optimizer|optimiser)[ _-](?:\w{1,10}[ _-])?off-?load\w*|\boff-?load\w* (?:\w{1,12} ){0,3}(?:to )?(?:the )?cpu\b"
    r"|优化器卸载"
)
_NEGATED = re.compile(
    r"(?i)\b(?:not|without|no|never|disabled?|isn't|aren't|\w{2,6}n't|instead of|rather than|than)\b(?: \w{1,12}){0,2} $"
    r"|(?:不用|不是|不使用|不开|没有?用|没有?开|未用|未开|而不是|关闭)[^，。；]{0,4}$"
)
"""Before the words for a setting: the run does not have it."""


class ToldRun(Struct, frozen=True, kw_only=True):
    """What a text says about a run."""

    settings: RunSettings
    shape: Shape | None
    """The model, by its name, or otherwise a model of the stated size."""
    card: Card | None
    card_name: str | None
    """As in the text; known even if the name means GPUs of several sizes."""
    cards: int

    @property
    def method_is_told(self) -> bool:
        """Whether the text says what is done with the model."""
        return self.settings.finetuning is not None or self.settings.method is not None


def read_told(text: str) -> ToldRun:
    """Return the run that a text describes."""
    text = text[:_MOST]
    name, shape = said_model(text)
    card_name, card = told_card(text)
    settings = RunSettings(
        model=name,
        method="serve" if re.search(_ANSWERS, text) and not re.search(_TRAINS, text) else None,
        finetuning=next(iter(methods_in(text)), None),
        lora_rank=_first_number(_RANK, text) if _HAS_RANK.search(text) else None,
        micro_batch=_first_number(_BATCH, text, (_OF_ALL, _NO_BATCH)),
        accumulation=_first_number(_ACCUMULATION, text),
        sequence_length=_length(text),
        gradient_checkpointing=_checkpointing(text),
        zero_stage=_first_number(_ZERO, text),
        offload_optimizer="cpu" if _is_said(_OFFLOADED, text) else None,
        fsdp=True if _is_said(re.compile(_FSDP), text) else None,
        packing=True if _is_said(_PACKED, text) else None,
        optimizer=_optimizer(text),
    )
    return ToldRun(settings=settings, shape=shape, card=card, card_name=card_name, cards=told_count(text))


def methods_in(text: str) -> list[str]:
    """Return what is trained, in every way that a text mentions, in order of precedence; what it negates is left out."""
    known = [method for method, form in _METHODS.items() if _is_said(re.compile(f"(?i){form}"), text)]
    return ["qlora", *known] if known[:1] == ["lora"] and _FOUR_BITS.search(text) else known


def said_model(text: str) -> tuple[str | None, Shape | None]:
    """Return the model that a text names by a size: its name, and its shape, or that of the nearest model if it is unknown."""
    words = _WORD.findall(text)
    sized = [number for number, word in enumerate(words) if _SIZE.search(word) and commonest_card(word) is None][:_TRIED]
    for number in sized:
        names = ["-".join(words[start : number + 1]) for start in range(max(0, number - 2), number + 1)]
        known = [(name, shape) for name in names if (shape := model_shape(name)) is not None]
        if known:
            return [name for name, shape in known if shape == known[0][1]][-1], known[0][1]
    told = {size: words[number] for number in sized if not _EXPERTS.search(words[number]) and (size := size_in(words[number]))}
    if len(told) != 1:
        return None, None
    ((size, name),) = told.items()
    return name, nearest_model(size, name)


def _is_said(form: re.Pattern[str], text: str) -> bool:
    return any(not is_denied(text, match.start()) for match in form.finditer(text))


def is_denied(text: str, start: int) -> bool:
    """Return whether the words before a position say that the run does not have what is there."""
    return _NEGATED.search(text[max(0, start - 40) : start]) is not None


def _first_number(form: re.Pattern[str], text: str, others: tuple[re.Pattern[str], ...] = ()) -> int | None:
    """Return the first number matching a form; one preceded by the words of another number does not count."""
    for match in form.finditer(text):
        before = text[max(0, match.start() - 40) : match.start()]
        if not any(other.search(before) for other in (_NEGATED, *others)):
            return next((int(part) for part in match.groups() if part), None)
    return None


def _optimizer(text: str) -> str | None:
    match = _OPTIMIZER.search(text)
    if match is None or is_denied(text, match.start()):
        return None
    written = match[1].lower()
    return "adamw_8bit" if "8" in written and "paged" not in written else written


def _length(text: str) -> int | None:
    match = _LENGTH.search(text)
    if match is None:
        return None
    length = int(match[1] or match[3]) * (1024 if match[2] or match[4] else 1)
    return length if length >= 16 else None


def _checkpointing(text: str) -> bool | None:
    match = _CHECKPOINTS.search(text)
    if match is None:
        return None
    return not (_OFF.search(text[max(0, match.start() - 40) : match.start()]) or _OFF.search(text[match.end() : match.end() + 30]))
