"""Environment -> Document: the verdict, what stands out and what to do, then the machine in facts; what few people need is folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from oomdoctor.case.diagnosis import Finding, KnownBug
from oomdoctor.case.environment import Environment, Folder, Gpu, GpuProcess, Host, Package, TorchRun
from oomdoctor.case.gap import Gap
from oomdoctor.case.text import Text
from oomdoctor.report.diagnosis.steps import first_of_each
from oomdoctor.report.document import Block, Document, Facts, Folded, Heading, Paragraph, Row, Span, Style
from oomdoctor.report.handbook.bugs import installed_bugs
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.report.wording import environment as texts
from oomdoctor.report.wording.environment import FINE_FACTS, gap_text
from oomdoctor.report.wording.phrases import bare, spans
from oomdoctor.report.wording.wording import Wording
from oomdoctor.units import format_size

_FIRST = ("transformers", "accelerate", "peft", "trl", "deepspeed", "bitsandbytes", "flash-attn", "vllm", "llamafactory")
"""Packages that show on the first screen where they are installed."""
_CARDS = 16
_GAPS = 8
_HOLDERS = 4


def compose_environment(
    environment: Environment,
    findings: Sequence[Finding],
    facts: Mapping[str, object],
    wording: Wording,
    version: str,
    name: str | None = None,
    *,
    bugs: Sequence[KnownBug] = (),
) -> Document:
    """Compose the report. `facts` are the environment's own; `name` is the file that it was read from; `bugs` are of what is installed."""
    grave = [finding for finding in findings if finding.severity != "note"]
    blocks = [
        *_verdict(findings, environment, wording),
        *_findings(grave, texts.FOUND, wording),
        *first_of_each(grave, wording),
        *_findings([finding for finding in findings if finding.severity == "note"], texts.NOTES, wording),
        *_fine(facts, wording),
        *_section(texts.CARDS, _cards(environment, facts, wording), wording),
        *_section(texts.SOFTWARE, _software(environment, wording), wording),
        *_section(texts.MACHINE, _machine(environment.host, wording), wording),
        *_unknown(environment.gaps, wording),
        *installed_bugs(bugs, wording),
        *_folded(environment, wording),
    ]
    blocks.sort(key=lambda block: isinstance(block, Folded))
    return Document(f"oomdoctor {version} · {name or wording.say(texts.THIS_MACHINE)}", tuple(blocks), lang=wording.lang)


def _section(title: Text, rows: Iterable[Row], wording: Wording) -> Iterator[Block]:
    """Yield a heading and what stands below it; neither where nothing is known."""
    known = tuple(rows)
    if known:
        yield Heading(wording.say(title))
        yield Facts(known)


def _verdict(findings: Sequence[Finding], environment: Environment, wording: Wording) -> Iterator[Block]:
    errors, warnings = (sum(finding.severity == severity for finding in findings) for severity in ("error", "warning"))
    if errors:
        yield Paragraph((Span(wording.count(texts.ERRORS, errors), Style.BAD),))
    elif warnings:
        yield Paragraph((Span(wording.count(texts.WARNINGS, warnings), Style.WARN),))
    elif missing := _not_judged(environment):
        yield Paragraph((Span(wording.say(missing), Style.WARN),))
    else:
        yield Paragraph((Span(wording.say(texts.GOOD), Style.GOOD),))


def _not_judged(environment: Environment) -> Text | None:
    """Return what is missing of what a run needs, so that nothing can be called fine; None where torch and a card are there."""
    has_torch = environment.torch is not None or "torch" in environment.packages
    if environment.gpus:
        return None if has_torch else texts.CARD_ALONE
    if environment.gpus_known or environment.driver.state == "no-library":
        return texts.TORCH_WITHOUT_CARD if has_torch else texts.NEITHER
    return texts.TORCH_ALONE if has_torch else texts.NOTHING


def _findings(findings: Sequence[Finding], title: Text, wording: Wording) -> Iterator[Block]:
    if findings:
        yield Heading(wording.say(title))
    for finding in findings:
        yield Paragraph((Span(bare(wording.say(finding.title)), Style.STRONG), Span(wording.colon), *spans(wording.say(finding.why))))


def _fine(facts: Mapping[str, object], wording: Wording) -> Iterator[Block]:
    fine = [wording.say(text) for name, expected, text in FINE_FACTS if name in facts and facts[name] == expected]
    if fine:
        yield Paragraph((Span(wording.say(texts.ALL_FINE) + wording.comma.join(fine) + wording.stop, Style.DIM),))


def _cards(environment: Environment, facts: Mapping[str, object], wording: Wording) -> Iterator[Row]:
    if not environment.gpus:
        yield Row("", wording.say(texts.NO_CARDS), environment.driver.message or "")
    for first, last, description, gpu in _alike(environment.gpus, facts, wording):
        index = str(first) if first == last else f"{first}-{last}"
        yield Row(wording.say(texts.GPU, index=index), description, _process_list(gpu.processes, wording))
        for entry in gpu.slices:
            yield Row(
                "", wording.comma.join(part for part in (entry.name, _free_memory(entry.total_bytes, entry.free_bytes, wording)) if part)
            )
    driver = environment.driver
    if driver.version:
        cuda = facts.get("environment.driver_cuda")
        yield Row(wording.say(texts.DRIVER), driver.version, wording.say(texts.CUDA_UP_TO, value=cuda) if cuda else "")
    if driver.library:
        missing = [symbol.name for symbol in environment.symbols if symbol.required and symbol.found is False]
        note = wording.say(texts.LACKS, names=wording.comma.join(missing)) if missing else ""
        yield Row(wording.say(texts.NVML), driver.library, note, Style.BAD if missing else Style.PLAIN)


def _alike(gpus: Sequence[Gpu], facts: Mapping[str, object], wording: Wording) -> Iterator[tuple[int, int, str, Gpu]]:
    """Yield the cards in order, neighbours that read the same as one: first index, last index, text, first card."""
    rows: list[tuple[int, int, str, Gpu]] = []
    for number, gpu in enumerate(gpus):
        index = number if gpu.index is None else gpu.index
        description = wording.comma.join(_card(gpu, facts, index, wording))
        plain = not gpu.processes and not gpu.slices
        if rows and plain and rows[-1][1:3] == (index - 1, description) and not rows[-1][3].processes and not rows[-1][3].slices:
            rows[-1] = (rows[-1][0], index, description, rows[-1][3])
        else:
            rows.append((index, index, description, gpu))
    yield from rows[:_CARDS]


def _card(gpu: Gpu, facts: Mapping[str, object], index: int, wording: Wording) -> Iterator[str]:
    yield gpu.name or gpu.architecture or wording.say(texts.UNKNOWN_CARD)
    memory = _free_memory(gpu.total_bytes, gpu.free_bytes, wording)
    if memory:
        yield memory
    if gpu.compute_capability:
        yield wording.say(texts.CAPABILITY, value=gpu.compute_capability)
    native = facts.get(f"environment.gpu.{index}.bf16_native")
    if native is not None:
        yield wording.say(texts.BF16_NATIVE if native else texts.BF16_EMULATED)
    if gpu.mig:
        yield wording.say(texts.MIG, n=len(gpu.slices)) if gpu.slices else wording.say(texts.MIG_EMPTY)
    if gpu.nvlink:
        yield wording.count(texts.NVLINK, gpu.nvlink)
    if gpu.ecc_uncorrected:
        yield wording.say(texts.ERRORS_OF_CARD, n=gpu.ecc_uncorrected)
    flags = (
        (texts.REPAIR_PENDING, gpu.repair_pending),
        (texts.UNIFIED, gpu.unified),
        (texts.ECC, gpu.ecc),
        (texts.EXCLUSIVE, gpu.exclusive),
        (texts.HIDDEN, gpu.visible is False),
    )
    yield from (wording.say(label) for label, holds in flags if holds)


def _process_list(processes: Sequence[GpuProcess], wording: Wording) -> str:
    names = []
    for process in processes[:_HOLDERS]:
        parts = [f"{process.name or 'pid'} {process.pid}", format_size(process.used_bytes) if process.used_bytes else ""]
        whose = "" if process.own is None else wording.say(texts.OWN if process.own else texts.NOT_OWN)
        names.append(" ".join(part for part in parts if part) + whose)
    if len(processes) > _HOLDERS:
        names.append(f"+ {len(processes) - _HOLDERS}")
    return wording.say(texts.HELD_BY, names=wording.comma.join(names)) if names else ""


def _software(environment: Environment, wording: Wording) -> Iterator[Row]:
    torch = environment.torch
    if torch is not None and torch.version:
        built = f"CUDA {torch.cuda}" if torch.cuda else f"ROCm {torch.hip}" if torch.hip else None
        note = wording.say(texts.BUILT_FOR, value=built) if built else wording.say(texts.CPU_ONLY) if torch.backend == "cpu" else ""
        yield Row(wording.say(texts.TORCH), torch.version, wording.comma.join(part for part in (note, " ".join(torch.arch_list)) if part))
    elif "torch" in environment.packages:
        yield Row(wording.say(texts.TORCH), environment.packages["torch"].version)
    else:
        yield Row(wording.say(texts.TORCH), wording.say(texts.NO_TORCH))
    if environment.torch_run is not None:
        reported = wording.comma.join(_torch_facts(environment.torch_run, wording))
        if reported:
            yield Row(wording.say(texts.TORCH_SAID), reported)
    for name in _FIRST:
        if name in environment.packages:
            yield _package(name, environment.packages[name], wording)
    python = environment.python
    if python.version or python.executable:
        named = wording.comma.join(part for part in (f"Python {python.version}" if python.version else "", python.kind) if part)
        yield Row(wording.say(texts.PYTHON), named or python.executable or "", python.executable or "" if named else "")


def _torch_facts(run: TorchRun, wording: Wording) -> Iterator[str]:
    if run.error:
        yield clean_line(run.error, 200)
    if run.cuda_available is not None:
        count = run.device_count or 0
        some = wording.count(texts.SEES, count) if count else wording.say(texts.SEES_SOME)
        yield some if run.cuda_available else wording.say(texts.SEES_NONE)
    if run.allocator_backend:
        yield wording.say(texts.ALLOCATOR, value=run.allocator_backend)
    if run.nccl:
        yield f"NCCL {run.nccl}"


def _package(name: str, package: Package, wording: Wording) -> Row:
    notes = [wording.say(texts.COMMIT, value=package.commit[:12])] if package.commit else []
    if package.editable:
        notes.append(wording.say(texts.EDITABLE))
    return Row(name, package.version, wording.comma.join(notes))


def _machine(host: Host, wording: Wording) -> Iterator[Row]:
    named = [part for part in (host.os, host.kernel, host.architecture, host.libc, host.model) if part]
    if host.wsl:
        named.append(f"WSL {host.wsl}")
    if host.container and host.container != "none":
        named.append(host.container)
    if named:
        yield Row(wording.say(texts.OS), wording.comma.join(named))
    if host.ram_bytes:
        free = host.ram_available_bytes
        both = {"free": format_size(free), "total": format_size(host.ram_bytes)} if free is not None else {}
        yield Row(wording.say(texts.RAM), wording.say(texts.AVAILABLE_OF, **both) if both else format_size(host.ram_bytes))
    if host.swap_bytes:
        yield Row(wording.say(texts.SWAP), _free_memory(host.swap_bytes, host.swap_free_bytes, wording))
    group = host.cgroup
    if group is not None and group.limit_bytes is not None:
        limit = format_size(group.limit_bytes)
        used = None if group.used_bytes is None else format_size(group.used_bytes)
        value = wording.say(texts.LIMIT_OF, limit=limit, used=used) if used else wording.say(texts.LIMIT_ALONE, limit=limit)
        yield Row(wording.say(texts.LIMIT), value)
    yield from _folder(texts.SHM, host.shm, wording)
    yield from _folder(texts.DISK, host.disk, wording)
    if host.memlock_unlimited is not None:
        lockable = host.memlock_bytes
        yield Row(
            wording.say(texts.MEMLOCK),
            wording.say(texts.UNLIMITED) if lockable is None else wording.say(texts.AT_MOST, size=format_size(lockable)),
        )


def _folder(label: Text, folder: Folder | None, wording: Wording) -> Iterator[Row]:
    if folder is not None and folder.total_bytes:
        yield Row(wording.say(label), _free_memory(folder.total_bytes, folder.free_bytes, wording))


def _free_memory(total: int | None, free: int | None, wording: Wording) -> str:
    if total is None:
        return ""
    return format_size(total) if free is None else wording.say(texts.FREE_OF, free=format_size(free), total=format_size(total))


def _unknown(gaps: Sequence[Gap], wording: Wording) -> Iterator[Block]:
    if gaps:
        yield Heading(wording.say(texts.UNKNOWN))
        yield Facts(tuple(Row(gap_text(gap.what, wording), gap_text(gap.why, wording), gap.how or "") for gap in gaps[:_GAPS]))


def _folded(environment: Environment, wording: Wording) -> Iterator[Block]:
    rest = {name: package for name, package in environment.packages.items() if name not in (*_FIRST, "torch")}
    rows = [_package(name, package, wording) for name, package in rest.items()]
    yield from _fold(texts.PACKAGES, rows, rest, wording)
    for title, values in ((texts.VARIABLES, environment.variables), (texts.LAUNCHER, environment.launcher)):
        yield from _fold(title, [Row(name, value, style=Style.CODE) for name, value in values.items()], values, wording)
    symbols = [
        Row(symbol.name, wording.say(texts.MISSING if symbol.found is False else texts.THERE))
        for symbol in environment.symbols
        if symbol.found is not None
    ]
    yield from _fold(texts.FUNCTIONS, symbols, [symbol.name for symbol in environment.symbols], wording)


def _fold(title: Text, rows: Sequence[Row], names: Iterable[str], wording: Wording) -> Iterator[Block]:
    if rows:
        gist = clean_line((wording.comma.rstrip() + wording.blank).join(names), 120)
        yield Folded(wording.say(title, n=len(rows)), (Facts(tuple(rows)),), gist)
