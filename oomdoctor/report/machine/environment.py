"""Environment -> Document: the verdict, what stands out and what to do, then the machine in facts; what few people need is folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.case.diagnosis import Finding
from oomdoctor.case.environment import Environment, Folder, Gpu, GpuProcess, Host, Package, TorchRun
from oomdoctor.case.gap import Gap
from oomdoctor.report.diagnosis.steps import full_step
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Row, Span, Steps, Style
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording.environment import FINE, counted, gap_word, word
from oomdoctor.report.wording.phrases import bare, blank, comma, spans, stop
from oomdoctor.units import format_size

_FIRST = ("transformers", "accelerate", "peft", "trl", "deepspeed", "bitsandbytes", "flash-attn", "vllm", "llamafactory")
"""Packages that show on the first screen where they are installed."""
_CARDS = 16
_GAPS = 8
_HOLDERS = 4


def compose_environment(
    environment: Environment, found: Sequence[Finding], facts: Mapping[str, object], lang: str, version: str, name: str | None = None
) -> Document:
    """The report in `lang`. `facts` are the environment's own; `name` is the file that it was read from."""
    grave = [one for one in found if one.severity != "note"]
    blocks = [
        *_verdict(found, lang),
        *_findings(grave, "found", lang),
        *_what_to_do(grave, lang),
        *_findings([one for one in found if one.severity == "note"], "notes", lang),
        *_fine(facts, lang),
        *_section("cards", _cards(environment, facts, lang), lang),
        *_section("software", _software(environment, lang), lang),
        *_section("machine", _machine(environment.host, lang), lang),
        *_unknown(environment.gaps, lang),
        *_folded(environment, lang),
    ]
    blocks.sort(key=lambda block: isinstance(block, Folded))
    return Document(f"oomdoctor {version} · {name or word('this-machine', lang)}", tuple(blocks), lang="zh" if lang == "zh" else "en")


def _section(title: str, rows: Iterable[Row], lang: str) -> Iterator[Block]:
    """A heading and what stands below it; neither where nothing is known."""
    known = tuple(rows)
    if known:
        yield Heading(word(title, lang))
        yield Facts(known)


def _verdict(found: Sequence[Finding], lang: str) -> Iterator[Block]:
    errors, warnings = (sum(one.severity == severity for one in found) for severity in ("error", "warning"))
    if errors:
        yield Paragraph((Span(counted("errors", lang, errors), Style.BAD),))
    elif warnings:
        yield Paragraph((Span(counted("warnings", lang, warnings), Style.WARN),))
    else:
        yield Paragraph((Span(word("good", lang), Style.GOOD),))


def _findings(found: Sequence[Finding], title: str, lang: str) -> Iterator[Block]:
    if found:
        yield Heading(word(title, lang))
    for one in found:
        colon = "：" if lang == "zh" else ": "
        yield Paragraph((Span(bare(one.title.get(lang)), Style.STRONG), Span(colon), *spans(one.why.get(lang))))


def _what_to_do(found: Sequence[Finding], lang: str) -> Iterator[Block]:
    """The first fix of each finding; they are things of their own, so that none waits for another. The other fixes are folded."""
    first = unique_fixes([replace(one, fixes=one.fixes[:1]) for one in found])
    others = [fix for fix in unique_fixes(found) if fix not in first]
    if first:
        yield Heading(word("do", lang))
        yield Steps(tuple(full_step(fix, lang) for fix in first))
    if others:
        gist = comma(lang).join(bare(fix.title.get(lang)) for fix in others)
        steps = Steps(tuple(full_step(fix, lang) for fix in others), first=1 + len(first))
        yield Folded(word("other-ways", lang, n=len(others)), (steps,), clean_line(gist, 160))


def _fine(facts: Mapping[str, object], lang: str) -> Iterator[Block]:
    fine = [said.get(lang) for name, wanted, said in FINE if name in facts and facts[name] == wanted]
    if fine:
        yield Paragraph((Span(word("fine", lang) + comma(lang).join(fine) + stop(lang), Style.DIM),))


def _cards(environment: Environment, facts: Mapping[str, object], lang: str) -> Iterator[Row]:
    if not environment.gpus:
        yield Row("", word("no-cards", lang), environment.driver.message or "")
    for first, last, said, gpu in _alike(environment.gpus, facts, lang):
        index = str(first) if first == last else f"{first}-{last}"
        yield Row(word("gpu", lang, index=index), said, _held(gpu.processes, lang))
        for one in gpu.slices:
            yield Row("", comma(lang).join(part for part in (one.name, _room(one.total_bytes, one.free_bytes, lang)) if part))
    driver = environment.driver
    if driver.version:
        cuda = facts.get("environment.driver_cuda")
        yield Row(word("driver", lang), driver.version, word("cuda-up-to", lang, value=cuda) if cuda else "")
    if driver.library:
        missing = [one.name for one in environment.symbols if one.required and one.found is False]
        note = word("lacks", lang, names=comma(lang).join(missing)) if missing else ""
        yield Row(word("nvml", lang), driver.library, note, Style.BAD if missing else Style.PLAIN)


def _alike(gpus: Sequence[Gpu], facts: Mapping[str, object], lang: str) -> Iterator[tuple[int, int, str, Gpu]]:
    """The cards in their order; neighbours of which the same is to be said stand in one row: first, last, words, the first card."""
    rows: list[tuple[int, int, str, Gpu]] = []
    for number, gpu in enumerate(gpus):
        index = number if gpu.index is None else gpu.index
        said = comma(lang).join(_card(gpu, facts, index, lang))
        plain = not gpu.processes and not gpu.slices
        if rows and plain and rows[-1][1:3] == (index - 1, said) and not rows[-1][3].processes and not rows[-1][3].slices:
            rows[-1] = (rows[-1][0], index, said, rows[-1][3])
        else:
            rows.append((index, index, said, gpu))
    yield from rows[:_CARDS]


def _card(gpu: Gpu, facts: Mapping[str, object], index: int, lang: str) -> Iterator[str]:
    yield gpu.name or gpu.architecture or "?"
    room = _room(gpu.total_bytes, gpu.free_bytes, lang)
    if room:
        yield room
    if gpu.compute_capability:
        yield word("capability", lang, value=gpu.compute_capability)
    native = facts.get(f"environment.gpu.{index}.bf16_native")
    if native is not None:
        yield word("bf16-native" if native else "bf16-emulated", lang)
    if gpu.mig:
        yield word("mig", lang, n=len(gpu.slices)) if gpu.slices else word("mig-empty", lang)
    if gpu.nvlink:
        yield word("nvlink" if gpu.nvlink > 1 else "nvlink-one", lang, n=gpu.nvlink)
    if gpu.ecc_uncorrected:
        yield word("errors-of-card", lang, n=gpu.ecc_uncorrected)
    flags = (
        ("repair-pending", gpu.repair_pending),
        ("unified", gpu.unified),
        ("ecc", gpu.ecc),
        ("exclusive", gpu.exclusive),
        ("hidden", gpu.visible is False),
    )
    yield from (word(name, lang) for name, so in flags if so)


def _held(processes: Sequence[GpuProcess], lang: str) -> str:
    names = []
    for one in processes[:_HOLDERS]:
        parts = [f"{one.name or 'pid'} {one.pid}", format_size(one.used_bytes) if one.used_bytes else ""]
        whose = "" if one.own is None else word("own" if one.own else "not-own", lang)
        names.append(" ".join(part for part in parts if part) + whose)
    if len(processes) > _HOLDERS:
        names.append(f"+ {len(processes) - _HOLDERS}")
    return word("held-by", lang, names=comma(lang).join(names)) if names else ""


def _software(environment: Environment, lang: str) -> Iterator[Row]:
    torch = environment.torch
    if torch is not None and torch.version:
        built = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}" if torch.hip else None
        note = word("built-for", lang, value=built) if built else word("cpu-only", lang) if torch.backend == "cpu" else ""
        yield Row(word("torch", lang), torch.version, comma(lang).join(part for part in (note, " ".join(torch.arch_list)) if part))
    elif "torch" in environment.packages:
        yield Row(word("torch", lang), environment.packages["torch"].version)
    else:
        yield Row(word("torch", lang), word("no-torch", lang))
    if environment.torch_run is not None:
        said = comma(lang).join(_said(environment.torch_run, lang))
        if said:
            yield Row(word("torch-said", lang), said)
    for name in _FIRST:
        if name in environment.packages:
            yield _package(name, environment.packages[name], lang)
    python = environment.python
    if python.version or python.executable:
        named = comma(lang).join(part for part in (f"Python {python.version}" if python.version else "", python.kind) if part)
        yield Row(word("python", lang), named or python.executable or "", python.executable or "" if named else "")


def _said(run: TorchRun, lang: str) -> Iterator[str]:
    if run.error:
        yield clean_line(run.error, 200)
    if run.cuda_available is not None:
        count = run.device_count or 0
        yield word("sees-none", lang) if not count else word("sees-one" if count == 1 else "sees", lang, n=count)
    if run.allocator_backend:
        yield word("allocator", lang, value=run.allocator_backend)
    if run.nccl:
        yield f"NCCL {run.nccl}"


def _package(name: str, one: Package, lang: str) -> Row:
    notes = [word("commit", lang, value=one.commit[:12])] if one.commit else []
    if one.editable:
        notes.append(word("editable", lang))
    return Row(name, one.version, comma(lang).join(notes))


def _machine(host: Host, lang: str) -> Iterator[Row]:
    named = [part for part in (host.os, host.kernel, host.architecture, host.libc, host.model) if part]
    if host.wsl:
        named.append(f"WSL {host.wsl}")
    if host.container and host.container != "none":
        named.append(host.container)
    if named:
        yield Row(word("os", lang), comma(lang).join(named))
    if host.ram_bytes:
        free = host.ram_available_bytes
        both = {"free": format_size(free), "total": format_size(host.ram_bytes)} if free is not None else {}
        yield Row(word("ram", lang), word("available-of", lang, **both) if both else format_size(host.ram_bytes))
    if host.swap_bytes:
        yield Row(word("swap", lang), _room(host.swap_bytes, host.swap_free_bytes, lang))
    group = host.cgroup
    if group is not None and group.limit_bytes is not None:
        used = "?" if group.used_bytes is None else format_size(group.used_bytes)
        yield Row(word("limit", lang), word("limit-of", lang, limit=format_size(group.limit_bytes), used=used))
    yield from _folder("shm", host.shm, lang)
    yield from _folder("disk", host.disk, lang)
    if host.memlock_unlimited is not None:
        limit = host.memlock_bytes
        yield Row(word("memlock", lang), word("unlimited", lang) if limit is None else word("at-most", lang, size=format_size(limit)))


def _folder(name: str, one: Folder | None, lang: str) -> Iterator[Row]:
    if one is not None and one.total_bytes:
        yield Row(word(name, lang), _room(one.total_bytes, one.free_bytes, lang))


def _room(total: int | None, free: int | None, lang: str) -> str:
    if total is None:
        return ""
    return format_size(total) if free is None else word("free-of", lang, free=format_size(free), total=format_size(total))


def _unknown(gaps: Sequence[Gap], lang: str) -> Iterator[Block]:
    if gaps:
        yield Heading(word("unknown", lang))
        yield Facts(tuple(Row(gap_word(gap.what, lang), gap_word(gap.why, lang), gap.how or "") for gap in gaps[:_GAPS]))


def _folded(environment: Environment, lang: str) -> Iterator[Block]:
    rest = {name: one for name, one in environment.packages.items() if name not in (*_FIRST, "torch")}
    rows = [_package(name, one, lang) for name, one in rest.items()]
    yield from _fold("packages", rows, rest, lang)
    for title, values in (("variables", environment.variables), ("launcher", environment.launcher)):
        yield from _fold(title, [Row(name, value, style=Style.CODE) for name, value in values.items()], values, lang)
    symbols = [
        Row(one.name, word("missing" if one.found is False else "there", lang)) for one in environment.symbols if one.found is not None
    ]
    yield from _fold("functions", symbols, [one.name for one in environment.symbols], lang)


def _fold(title: str, rows: Sequence[Row], names: Iterable[str], lang: str) -> Iterator[Block]:
    if rows:
        gist = clean_line((comma(lang).rstrip() + blank(lang)).join(names), 120)
        yield Folded(word(title, lang, n=len(rows)), (Facts(tuple(rows)),), gist)
