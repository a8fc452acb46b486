"""The table of situations: what each row holds, and what the tool says of it beside what an expert says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from yaml_table import read_table

from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.diagnosis import Diagnosis, Fix
from oomdoctor.ingest.sources import expand_sources
from oomdoctor.knowledge.pack import load_pack

FOLDER = Path(__file__).parent / "situations"
NONE = "none"
"""What a row expects first where nothing is wrong: no finding, or no advice."""
ANY = "any"
EVERYWHERE = {"pytorch", "environment", "python", "shell", "linux"}
"""Whose keys are no program's: calls of PyTorch and Python, variables of the environment, the shell and the kernel."""
LAYERS = {"deepspeed", "fsdp", "accelerate"}
"""What other trainers are started with or run on; its keys count where the trainer is one of `LAYERED`."""
LAYERED = {
    "axolotl",
    "diffusers",
    "glm4",
    "llamafactory",
    "llama-cookbook",
    "ms-swift",
    "openrlhf",
    "transformers",
    "trl",
    "unsloth",
    "verl",
}

Row = dict[str, Any]


def rows() -> Iterator[tuple[str, Row]]:
    """Yield (group, row) of every file."""
    for path in sorted(FOLDER.glob("*.yaml")):
        for row in read_table(path):
            yield path.stem, row


def diagnosis(row: Row, folder: Path) -> Diagnosis:
    """Return what the tool says of a row, whose files are written to `folder`."""
    files: dict[str, str] = row.get("files") or {"train.log": row["log"]}
    configs = row.get("config", [])
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    logs = [name for name in files if name not in configs]
    inputs = [str(folder / logs[0])] if len(logs) == 1 else [str(folder)]
    return diagnose_logs(list(expand_sources(inputs)), load_pack(), config=[str(folder / name) for name in configs])


def misses(row: Row, found: Diagnosis) -> dict[str, str]:
    """Return where the tool does not say what an expert says, and what it says instead; the words are those of the table."""
    missed = dict(_first_misses(row, found))
    fixes = unique_fixes(found.findings)
    said = fixes[0].id if fixes else NONE
    if "advice" in row and not {said, ANY} & set(row["advice"]):
        missed["advice"] = said
    foreign = sorted({change.framework for fix in fixes for change in fix.settings} - _allowed(row))
    if "program" in row and foreign:
        missed["program"] = ", ".join(foreign)
    lost = [text for text in row.get("shows", []) if not any(text in line for fix in fixes for line in _lines(fix))]
    if lost:
        missed["shows"] = "not " + ", ".join(lost)
    shown = [text for text in row.get("hides", []) if any(text in line for fix in fixes for line in _keys(fix))]
    if shown:
        missed["hides"] = ", ".join(shown)
    return missed


def _first_misses(row: Row, found: Diagnosis) -> Iterator[tuple[str, str]]:
    """Yield what is missed of the verdict, the first finding, and how sure it may be."""
    verdict = found.case.verdict.memory_failure
    if verdict not in row["verdict"]:
        yield "verdict", verdict
    first = found.findings[0] if found.findings else None
    said = {first.id, first.cause} if first is not None else {NONE}
    if not (said | {ANY}) & set(row["first"]):
        yield "first", first.id if first is not None else NONE
    sure = [one.id for one in found.findings if one.cause is not None and one.confidence.value in ("certain", "likely")]
    if row.get("hidden") and sure:
        yield "sure", ", ".join(sure)


def _allowed(row: Row) -> set[str]:
    """Return the programs whose keys may stand in the advice of a row."""
    programs = set(row.get("program", []))
    return programs | EVERYWHERE | (LAYERS if programs & (LAYERED | LAYERS) else set())


def _keys(fix: Fix) -> Iterator[str]:
    yield from (f"{change.key}: {change.to}" for change in fix.settings)
    if fix.command:
        yield fix.command


def _lines(fix: Fix) -> Iterator[str]:
    yield from _keys(fix)
    yield fix.how.en
