"""How a fix is written if no known program has a key for it: in the forms that people use most."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from oomdoctor.advice.frameworks import framework
from oomdoctor.case.diagnosis import TypedLine
from oomdoctor.findings.conditions import KnownFacts, evaluate
from oomdoctor.knowledge.pack import Pack
from oomdoctor.knowledge.records.fix import FixRecord, TypedRecord

_MOST = 2
_UNKNOWN, _TORCH = "unknown", "pytorch"
_ON_TORCH = ("accelerators", "bf16", "bitsandbytes", "cuda", "nccl", "pytorch", "triton")
"""What program names begin with if their messages come from PyTorch or a layer below it."""


def typed_lines(pack: Pack, fix: FixRecord, known: KnownFacts) -> tuple[TypedLine, ...]:
    """Return the lines for this run, the most common first; for a known program, only its own and those that any script can contain."""
    return tuple(list(_lines(pack, fix, known))[:_MOST])


def _lines(pack: Pack, fix: FixRecord, known: KnownFacts) -> Iterator[TypedLine]:
    running = _running(pack, known)
    in_code = {record.framework for record in pack.frameworks if record.in_code}
    for typed in fix.typed:
        if _is_of(typed, running, known, in_code) and (typed.when is None or evaluate(typed.when, known).truth):
            yield TypedLine(line=typed.line, by=typed.by, value=typed.value)


def _running(pack: Pack, known: KnownFacts) -> str | None:
    """Return the running program, if it has its own settings; a layer below another program is not specific enough."""
    name = framework(known, pack.frameworks)
    record = next((record for record in pack.frameworks if record.framework == name), None)
    return None if record is None or record.layer is not None or name == _UNKNOWN else name


def _is_of(typed: TypedRecord, running: str | None, known: KnownFacts, in_code: Collection[str]) -> bool:
    """Return whether a line applies to the run: a library with its own messages would be recognized by them.

    If nothing is known about the program, the lines of trainers apply to whatever runs in Python, as far as the log shows.
    """
    if not typed.of or running in typed.of:
        return True
    if running is None:
        return known.facts.get("incident.in_python") is not False and any(name not in in_code for name in typed.of)
    return _TORCH in typed.of and str(known.facts.get("incident.program")).startswith(_ON_TORCH)
