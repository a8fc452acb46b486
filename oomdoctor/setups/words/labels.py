"""Labeled values: what follows `GPUs:`, `ZeRO stage:` or `批大小：`, as settings and facts. Values in any other form are ignored."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from oomdoctor.case.settings import Scalar
from oomdoctor.knowledge.tables.cards import card_named, choices
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.knowledge.tables.stated_words import program_in
from oomdoctor.setups.words.told import is_denied, methods_in, said_model
from oomdoctor.setups.words.told_cards import said_count, told_card

Values = Iterator[tuple[str, Scalar]]
_NUMBER = re.compile(
    r"(?:~|≈)?\s{0,2}(\d{1,7}|\d{1,3}(?:,\d{3}){1,2})( ?[kK])?"
    r"(?=\s{0,2}(?:$|\(|（|per\b|each\b|tokens?\b|samples?\b|cards?\b|gpus?\b|个|张|卡|块|每|/ ?(?:gpu|device|card)))",
    re.IGNORECASE,
)
_SHARE = re.compile(r"(0?\.\d{1,4}|1\.0|\d{2} ?%)\s{0,2}(?:$|\()")
_ZERO = re.compile(
    r"(?i)(?:\bzero|\bds_z|\bstage|\bz)[ _-]{0,2}(?:stage[ _-]?|opt(?:imization)?[ _-]?)?([0-3])(?!\d)|^\s{0,2}([0-3])\s{0,2}(?:$|\(|,|\+)"
)
_FSDP = re.compile(r"(?i)\bfsdp2?\b|fully sharded")
_OFFLOAD = re.compile(r"(?i)off-?load")
_NO = re.compile(
    r"(?i)^\s{0,2}(?:no(?:ne|t\b.*)?|off|false|disabled?|n/?a|无|否|关闭?|未开启?|没有|不(?:使用|用|开))\b|^\s{0,2}(?:无|否|关|未|没|不)"
)
_YES = re.compile(r"(?i)^\s{0,2}(?:yes|on|true|enabled?|full|used)\b|^\s{0,2}(?:是|开|已开|启用)")
_PRECISIONS: Mapping[str, str] = {
    "bf16": r"\bbf(?:loat)?16\b", "fp16": r"\b(?:fp|float)16\b|\bhalf\b|半精度", "fp8": r"\bfp8\b", "fp32": r"\b(?:fp|float)32\b",
}  # fmt: skip
_METHOD = re.compile(r"(?i)\b(sft|dpo|grpo|ppo|orpo|kto|rloo|gspo|dapo)\b")
_ATTENTION: Mapping[str, str] = {
    "flash_attention_2": r"flash[ _-]?att\w*", "sdpa": r"\bsdpa\b", "eager": r"\beager\b", "xformers": r"\bxformers\b",
}  # fmt: skip
_OPTIMIZER = re.compile(
    r"(?i)\b(paged_adamw_8bit|paged_adamw_32bit|adamw_8bit|adamw_torch_fused|adamw_torch|adamw|adam|adafactor|lion|sgd|muon)\b"
)
_QUANTIZATION = re.compile(r"(?i)\b(awq|gptq|fp8|nvfp4|mxfp4|i?q\d_[a-z0-9_]{1,5})\b")
_BITS = re.compile(r"(?i)\b([48])[- ]?bits?\b|\bint([48])\b|\b(nf4)\b")
_USED = re.compile(r"(?i)\b(?:use|used|using|only) (?:only )?(\d{1,2}|one)\b|(?:只|仅)?用(?:了)?\s?(\d{1,2}|一)\s?[张块卡]")
"""How many of a machine's GPUs a run uses."""
_HUB_NAME = re.compile(r"[A-Za-z][\w.-]{1,60}/[A-Za-z][\w.-]{2,90}")
_ALTERNATIVES = re.compile(r"(?i)\b(?:or|and|vs)\b|[/;、]|\d\s{0,2}(?:->|→|,)\s{0,2}\d|或|和")
_VERSION = re.compile(r"v?(\d{1,4}\.\d{1,4}(?:\.\d{1,4})?(?:\.?(?:post|rc|dev|a|b)\d{1,8})?)")

_VERSION_OF = "version "
_LIBRARIES = ("transformers", "trl", "diffusers", "deepspeed", "verl")


def labelled_values(means: str, value: str) -> Values:
    """Yield the settings and facts that a value gives, depending on what its label means."""
    if means.startswith(_VERSION_OF):
        yield from _version(means.removeprefix(_VERSION_OF), value)
        return
    reader = _READERS.get(means)
    yield from reader(value) if reader is not None else _number(means, value)


def _version(program: str, value: str) -> Values:
    """Yield the version of a program; naming it in a report means running it, unless it is a library that others are built on."""
    match = _VERSION.match(value)
    if match is not None:
        yield f"{program.replace('-', '_').replace('.', '_')}_version", match[1]
        if program not in _LIBRARIES:
            yield "framework", program


def _number(name: str, value: str) -> Values:
    match = _NUMBER.match(value)
    if match is not None:
        number = int(match[1].replace(",", "")) * (1024 if match[2] else 1)
        if number:
            yield name, number


def _model(value: str) -> Values:
    plain = re.sub(r"^\[([^\]]{1,100})\]\(.*$", r"\1", value).strip(" `\"'*")
    plain = re.split(r"\s[(（\[]|[(（]|, |，|\s-\s", plain, maxsplit=1)[0].strip(" `\"'*.")
    if not plain or len(plain) > 120 or (_ALTERNATIVES.search(plain) and not re.fullmatch(r"[\w./:~-]+", plain)):
        return
    if re.search(r"[A-Za-z]{2}", plain) and model_shape(plain) is not None:
        yield "model", plain
    elif _HUB_NAME.fullmatch(plain) or said_model(plain)[1] is not None:
        yield "model", plain if " " not in plain else str(said_model(plain)[0])
    methods = methods_in(value)
    if len(methods) == 1:
        yield "finetuning", methods[0]


def _card(value: str) -> Values:
    named = card_named(value)
    name = named.name if named is not None and re.search(r"[A-Za-z]{1,4}\d|\d{4}", value) else None
    if name is None:
        written, known = told_card(value)
        name = known.name if known is not None else written if written is not None and choices(written) else None
    if name is not None:
        yield "gpu_name", name
    used, there = _USED.search(value), said_count(value)
    if used is not None:
        number = used[1] or used[2]
        there = int(number) if number.isdigit() else 1
        yield "world_size", there
    if there is not None and name is not None:
        yield "gpu_count", there


def _cards(value: str) -> Values:
    yield from _number("gpu_count", value)


def _program(value: str) -> Values:
    program = program_in(value)
    if program is not None:
        yield "framework", program
        version = _VERSION.search(value)
        if version is not None:
            yield f"{program.replace('-', '_')}_version", version[1]
    yield from _spread(value, is_bare=False)


def _zero(value: str) -> Values:
    yield from _spread(value, is_bare=True)


def _spread(value: str, *, is_bare: bool) -> Values:
    """Yield how a run is distributed; a number alone is a stage if the label is for ZeRO."""
    if is_bare and _NO.match(value):
        return
    match = _ZERO.search(value)
    if match is not None and (match[1] or is_bare) and not is_denied(value, match.start()):
        yield "zero_stage", int(match[1] or match[2])
        offload = _OFFLOAD.search(value)
        if (
            offload is not None
            and not is_denied(value, offload.start())
            and not re.match(r"\w*\s?[:=]?\s?(?:no|off|false)", value[offload.end() :])
        ):
            yield "offload_optimizer", "cpu"
    fsdp = _FSDP.search(value)
    if fsdp is not None and match is None and not is_denied(value, fsdp.start()):
        yield "fsdp", True


def _precision(value: str) -> Values:
    kinds = [name for name, form in _PRECISIONS.items() if re.search(f"(?i){form}", value)]
    if len(kinds) == 1:
        yield "precision", kinds[0]


def _method(value: str) -> Values:
    trained = methods_in(value)
    if trained and len({"adapters" if "lora" in method else method for method in trained}) == 1:
        yield "finetuning", trained[0]
    methods = {match[1].lower() for match in _METHOD.finditer(value)}
    if len(methods) == 1:
        yield "method", methods.pop()
    rank = re.search(r"(?i)\b(?:r|rank)\s{0,2}[=:]?\s{0,2}(\d{1,4})\b", value)
    if trained and rank is not None:
        yield "lora_rank", int(rank[1])


def _attention(value: str) -> Values:
    kinds = [name for name, form in _ATTENTION.items() if re.search(f"(?i){form}", value)]
    if len(kinds) == 1 and not is_denied(value, len(value)) and not _NO.match(value):
        yield "attention", kinds[0]


def _checkpointing(value: str) -> Values:
    if _NO.match(value):
        yield "gradient_checkpointing", False
    elif _YES.match(value):
        yield "gradient_checkpointing", True


def _optimizer(value: str) -> Values:
    match = _OPTIMIZER.search(value)
    if match is not None:
        yield "optimizer", match[1].lower()


def _quantization(value: str) -> Values:
    form, bits = _QUANTIZATION.search(value), _BITS.search(value)
    if form is not None:
        yield "quantization", form[1].lower()
    elif bits is not None:
        yield "load_bits", 4 if bits[3] else int(bits[1] or bits[2])


def _share(value: str) -> Values:
    match = _SHARE.match(value)
    if match is not None:
        yield "memory_share", float(match[1].rstrip(" %")) / (100 if "%" in match[1] else 1)


def _system(value: str) -> Values:
    if re.match(r"(?i)(?:windows|win ?1[01]|wsl|ubuntu|debian|centos|rocky|rhel|arch|fedora|linux|macos|mac os|os x|darwin)", value):
        yield "os", value[:60]


def _offload(value: str) -> Values:
    if re.search(r"(?i)\bcpu\b", value) and not _NO.match(value):
        yield "offload_optimizer", "cpu"


_READERS: Mapping[str, Callable[[str], Values]] = {
    "model": _model, "card": _card, "cards": _cards, "program": _program, "zero_stage": _zero, "precision": _precision, "method": _method,
    "attention": _attention, "gradient_checkpointing": _checkpointing, "optimizer": _optimizer, "quantization": _quantization,
    "memory_share": _share, "os": _system, "offload": _offload,
}  # fmt: skip
"""By what a label means; all others are numbers."""
