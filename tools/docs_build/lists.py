"""Pages of tables: known bugs by program and release, cards, and models with what their weights take."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from oomdoctor.case.diagnosis import KnownBug
from oomdoctor.case.text import Text
from oomdoctor.findings.bugs import describe
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.bug import BUGS
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.knowledge.tables.models import model_rows
from oomdoctor.knowledge.tables.shapes import model_shape
from oomdoctor.memory.model import parameters
from oomdoctor.report.handbook.bugs import bug_state, what_helps
from oomdoctor.report.handbook.catalogue import prose
from oomdoctor.report.render.markdown import escaped
from oomdoctor.report.wording import bugs as words
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import GIB

LISTS = Text("Bugs, GPUs, models", "缺陷、显卡、模型")
_BUGS = Text("Known memory bugs by release", "各版本的已知显存与内存缺陷")
_BUGS_OF = Text("{program}: memory bugs by release", "{program}：各版本的显存与内存缺陷")
_COMMAND = Text(
    "`oomdoctor bugs {package}==VERSION` lists those of one release.", "`oomdoctor bugs {package}==版本` 只列出某个版本的缺陷。"
)
_BUG = Text("Symptom", "现象")
_CARDS = Text("GPUs and their memory", "显卡与显存")
_CARDS_LEAD = Text(
    "Every GPU known by name, with the memory stated by its manufacturer, part of which the driver reserves. "
    '`oomdoctor estimate "Qwen3 8B" --gpu "RTX 4090"` reports whether a run fits on one, `--cards` on which of the common ones it fits.',
    "能按名称识别的全部显卡及厂商标注的显存，其中一部分由驱动占用。"
    '`oomdoctor estimate "Qwen3 8B" --gpu "RTX 4090"` 回答某张卡放不放得下，`--cards` 列出常见显卡中放得下的。',
)
_CARD, _MEMORY, _CAPABILITY = Text("GPU", "显卡"), Text("memory, GB", "显存（GB）"), Text("compute capability", "计算能力")
_SHARED = Text("shared with the host", "与主机共用")
_MODELS = Text("Models of {maker}: parameters and weights", "{maker} 的模型：参数量与权重大小")
_MODELS_LIST = Text("Models: parameters and weights", "模型：参数量与权重大小")
_MODELS_LEAD = Text(
    "Size of the weights alone in GiB, at 16, 8 and 4 bits per parameter. Serving adds the KV cache; training adds gradients, optimizer "
    'state and activations: `oomdoctor estimate "{name}" --gpu 24GB` adds them up.',
    "仅权重本身的大小（GiB），按每个参数 16、8、4 位计算。推理还要加 KV 缓存，训练还要加梯度、优化器状态和激活值："
    '`oomdoctor estimate "{name}" --gpu 24GB` 会把它们加起来。',
)
_MODEL, _PARAMETERS = Text("model", "模型"), Text("parameters", "参数量")
_BITS = (16, 8, 4)
_OTHERS = Text("other manufacturers", "其他厂商")
_FEWEST = 4
"""Models of a maker that get a page of their own."""


def list_pages(lang: str) -> Iterator[tuple[str, str]]:
    """Yield the pages of bugs, cards and models."""
    wording = Wording(lang)
    for make in (_bug_pages, _card_pages, _model_pages):
        for path, parts in make(wording):
            yield path, "\n\n".join(parts) + "\n"


def _bug_pages(wording: Wording) -> Iterator[tuple[str, list[str]]]:
    records = sorted(load_pack().records(BUGS), key=lambda record: record.title.lower())
    programs = [(title, list(group)) for title, group in groupby(records, key=lambda record: record.title)]
    listed = [f"- [{escaped(title)}]({group[0].program}.md) ({len(group)})" for title, group in programs]
    yield "bugs/index.md", [f"# {wording.say(_BUGS)}", wording.say(words.HINT), "\n".join(listed)]
    for title, group in programs:
        head = [f"# {escaped(wording.say(_BUGS_OF, program=title))}"]
        if group[0].packages:
            head.append(wording.say(_COMMAND, package=group[0].packages[0]))
        yield f"bugs/{group[0].program}.md", [*head, *(_bug(describe(record, None), wording) for record in group)]


def _bug(bug: KnownBug, wording: Wording) -> str:
    rows = [(words.RELEASES, escaped(wording.say(bug.affected))), (words.STATE, escaped(bug_state(bug, wording)))]
    rows += [(words.MEMORY, wording.say(words.MEMORIES[bug.memory])), (words.HELPS, prose(what_helps(bug, wording)))]
    rows.append((words.EVIDENCE, f"{escaped(wording.say(words.PROOFS[bug.evidence]))} <{bug.source}>"))
    lines = [f"- {wording.say(label)}{wording.colon}{value}" for label, value in rows if value]
    return "\n\n".join([f"## {bug.id}", prose(wording.sentence(wording.say(bug.symptom))), "\n".join(lines)])


def _card_pages(wording: Wording) -> Iterator[tuple[str, list[str]]]:
    rows = []
    for row in table("cards"):
        memory = row["memory_gb"].replace("|", wording.item_comma) or wording.say(_SHARED)
        rows.append([escaped(wording.item_comma.join(row["names"].split("|"))), memory, row["compute_capability"]])
    yield "cards.md", [f"# {wording.say(_CARDS)}", wording.say(_CARDS_LEAD), _table([_CARD, _MEMORY, _CAPABILITY], rows, wording)]


def _model_pages(wording: Wording) -> Iterator[tuple[str, list[str]]]:
    makers: dict[str, list[str]] = {}
    for row in model_rows():
        makers.setdefault(row.name.partition("/")[0] if "/" in row.name else "", []).append(row.name)
    large = {maker: names for maker, names in makers.items() if maker and len(names) >= _FEWEST}
    rest = [name for maker, names in makers.items() if maker not in large for name in names]
    pages = [(maker, maker, names) for maker, names in sorted(large.items(), key=lambda item: item[0].lower())]
    pages.append((wording.say(_OTHERS), "others", rest))
    made = [(title, file, _model_table(names, wording)) for title, file, names in pages]
    listed = [f"- [{escaped(title)}]({file.lower()}.md)" for title, file, rows in made if rows]
    yield "models/index.md", [f"# {wording.say(_MODELS_LIST)}", wording.say(_MODELS_LEAD, name="Qwen3 8B"), "\n".join(listed)]
    for title, file, rows in made:
        if rows:
            heads = [_MODEL, _PARAMETERS, *(Text(f"{bits} bit", f"{bits} 位") for bits in _BITS)]
            lead = wording.say(_MODELS_LEAD, name=rows[0][0].replace("\\", ""))
            yield f"models/{file.lower()}.md", [f"# {escaped(wording.say(_MODELS, maker=title))}", lead, _table(heads, rows, wording)]


def _model_table(names: list[str], wording: Wording) -> list[list[str]]:
    rows = []
    for name in sorted(names, key=str.lower):
        shape = model_shape(name)
        if shape is not None and (count := parameters.total(shape)):
            weights = [f"{count * bits / 8 / GIB:.1f}" for bits in _BITS]
            rows.append([escaped(name), f"{count / 1e9:.2f} B" if not wording.is_chinese else f"{count / 1e8:.1f} 亿", *weights])
    return rows


def _table(heads: list[Text], rows: list[list[str]], wording: Wording) -> str:
    lines = [[wording.say(head) for head in heads], ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)
