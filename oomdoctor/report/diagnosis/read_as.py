"""How the run was understood, in a line: program, model, method, batch, length, card, as far as its log or config tell them."""

from __future__ import annotations

from collections.abc import Iterator

from oomdoctor.case.case import Case
from oomdoctor.case.settings import RunSettings, positive
from oomdoctor.case.text import Text
from oomdoctor.knowledge.tables.titles import framework_title
from oomdoctor.report.document import Block, Paragraph, Span, Style
from oomdoctor.report.safety.redact import last_part
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import labels
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_LONGEST = 60
_VERSIONS = (("torch", "log.torch_version"), ("CUDA", "log.cuda_version"))
_NAMES = {"lora": "LoRA", "qlora": "QLoRA", "dora": "DoRA", "serve": "", "infer": ""}
_ABBREVIATED = 5
"""Methods of so few letters are abbreviations: SFT, DPO, GRPO."""
_TOKENS = Text("{n:,} tokens", "{n:,} 个 token")
_BATCH = Text("batch {n}", "批大小 {n}")
_REQUESTS = Text("{n} concurrent requests", "同时 {n} 个请求")
_CARDS = Text("{n} cards", "{n} 张卡")
_FULL = Text("full-parameter training", "全参训练")
_SERVES = Text("serving", "推理服务")
_STATED = Text(" (partly as stated in the report)", "（部分依据报告中的说明）")
_BITS = Text("{n}-bit", "{n}-bit")


def read_as(case: Case, wording: Wording) -> Iterator[Block]:
    """Yield the line; nothing where hardly anything is known of the run."""
    settings = case.training.settings if case.training is not None else RunSettings()
    parts = [
        part for part in (*_program(case), *_model(case, settings), *_work(settings, wording), *_card(case, settings, wording)) if part
    ]
    if len(parts) > 1:
        stated = Span(wording.say(_STATED), Style.DIM) if _is_stated(case) else Span("")
        yield Paragraph((Span(wording.say(labels.READ_AS), Style.DIM), Span(" · ".join(dict.fromkeys(parts))), stated))


def run_head(case: Case, wording: Wording) -> tuple[str, ...]:
    """Return what a page is of: log, model, cards, versions and the time of the failure, as far as they are known."""
    settings = case.training.settings if case.training is not None else RunSettings()
    logs = [last_part(source.name) for source in case.sources if source.name not in ("", "-")]
    versions = (f"{name} {case.facts[key]}" for name, key in _VERSIONS if case.facts.get(key))
    time = case.incidents[0].root.time if case.incidents else None
    parts = (*logs[:1], *_model(case, settings), *_card(case, settings, wording), *versions, time or "")
    return tuple(dict.fromkeys(clean_line(part, _LONGEST) for part in parts if part))


def _is_stated(case: Case) -> bool:
    """Return whether anything of the line is somebody's word alone."""
    words = {fact.name: fact.value for fact in case.stated.facts}
    shown = any(name in words and case.facts.get(f"log.{name}") == words[name] for name in ("framework", "gpu_name"))
    return shown or (case.training is not None and bool(case.training.stated))


def _program(case: Case) -> Iterator[str]:
    name = (case.training.framework if case.training is not None else None) or case.facts.get("log.framework")
    if isinstance(name, str) and name != "log":
        version = case.facts.get(f"log.{name.replace('-', '_')}_version") or (case.training.version if case.training is not None else None)
        yield clean_line(f"{framework_title(name)} {version or ''}", _LONGEST)


def _model(case: Case, settings: RunSettings) -> Iterator[str]:
    model = settings.model or case.facts.get("log.model_name_or_path")
    if isinstance(model, str):
        yield clean_line(last_part(model.strip("\"'")), _LONGEST)


def _work(settings: RunSettings, wording: Wording) -> Iterator[str]:
    """Yield what is done with the model, in how large pieces, spread how."""
    yield _method(settings, wording)
    if settings.load_bits is not None:
        yield wording.say(_BITS, n=settings.load_bits)
    if (batch := positive(settings.micro_batch)) is not None:
        times = f" × {settings.accumulation}" if positive(settings.accumulation) and settings.accumulation != 1 else ""
        yield wording.say(_BATCH, n=f"{batch}{times}")
    if (requests := positive(settings.max_num_seqs)) is not None:
        yield wording.say(_REQUESTS, n=requests)
    if (length := positive(settings.max_model_len) or positive(settings.sequence_length)) is not None:
        yield wording.say(_TOKENS, n=length)
    if settings.zero_stage:
        yield f"ZeRO-{settings.zero_stage}"
    if settings.fsdp:
        yield "FSDP"
    for name, size in (("TP", settings.tensor_parallel), ("PP", settings.pipeline_parallel)):
        if size is not None and size > 1:
            yield f"{name} {size}"


def _method(settings: RunSettings, wording: Wording) -> str:
    if settings.method == "serve":
        return wording.say(_SERVES)
    method = (settings.method or "").upper() if len(settings.method or "") < _ABBREVIATED else settings.method or ""
    trained = wording.say(_FULL) if settings.finetuning == "full" else _NAMES.get(settings.finetuning or "", settings.finetuning or "")
    rank = f" r{settings.lora_rank}" if settings.lora_rank is not None and trained else ""
    return clean_line(" ".join(filter(None, (method, trained + rank))), _LONGEST)


def _card(case: Case, settings: RunSettings, wording: Wording) -> Iterator[str]:
    gpu = next((gpu for gpu in case.environment.gpus if gpu.name), None) if case.environment is not None else None
    name = gpu.name if gpu is not None else case.facts.get("log.gpu_name")
    total = case.incidents[0].root.size("total_bytes") if case.incidents else None
    cards = positive(settings.world_size)
    if cards is not None and cards > 1:
        yield wording.say(_CARDS, n=cards)
    if name or total:
        yield clean_line(wording.comma.join(filter(None, (str(name or ""), format_size(total) if total else ""))), _LONGEST)
