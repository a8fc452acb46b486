"""Lines of JSON in, lines of JSON out: the contract of `estimate --spec FILE --format jsonl`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import DecodeError, ValidationError
from msgspec.json import Decoder, encode

from oomdoctor.memory.estimate import estimate
from oomdoctor.setups.spec import RefusedSpec, Spec, setup_from_spec


def answer_lines(lines: Iterable[bytes]) -> Iterator[str]:
    """One answer for each question; a line that is none is answered too, with the reason."""
    decoder = Decoder(Spec)
    for line in lines:
        if not line.strip():
            continue
        try:
            answer = _answer(decoder.decode(line))
        except (DecodeError, ValidationError) as why:
            answer = _refusal(None, str(why))
        yield encode(answer).decode()


def _answer(spec: Spec) -> dict[str, Any]:
    made = setup_from_spec(spec)
    if isinstance(made, RefusedSpec):
        return _refusal(spec.id, made.why)
    answer = estimate(*made)
    return {
        "id": spec.id,
        "per_gpu_bytes": {"expected": answer.expected, "low": answer.low, "high": answer.high},
        "terms": answer.terms,
        "assumptions": [assumption.text.en for assumption in answer.assumptions],
        "refused": None,
    }


def _refusal(id_: object, why: str) -> dict[str, Any]:
    return {"id": id_, "per_gpu_bytes": None, "terms": {}, "assumptions": [], "refused": why}
