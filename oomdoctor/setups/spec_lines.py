"""Lines of JSON in, lines of JSON out: the contract of `estimate --spec FILE --format jsonl`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Union

from msgspec import DecodeError, Raw, Struct, ValidationError
from msgspec.json import Decoder, decode, encode
from msgspec.structs import replace

from oomdoctor.knowledge.tables.likeness import did_you_mean
from oomdoctor.memory.estimate import estimate
from oomdoctor.setups.spec import RefusedSpec, Spec, setup_from_spec

LONGEST_LINE = 1 << 20
"""Bytes; a question has a few hundred, and a file without line ends must not be read into memory whole."""
_LONGEST = 60


class SpecBytes(Struct, frozen=True):
    """The memory a run uses on each GPU, in bytes."""

    expected: int
    low: int
    high: int


class SpecAnswer(Struct, frozen=True, kw_only=True):
    """The answer to one question. Names and meaning are those of the evaluation's contract."""

    id: Union[str, int, None] = None
    per_gpu_bytes: SpecBytes | None = None
    terms: Mapping[str, int] = {}
    assumptions: tuple[str, ...] = ()
    refused: str | None = None
    """Why the question has no answer."""


def answer_lines(lines: Iterable[bytes]) -> Iterator[str]:
    """Yield one answer per question; an invalid line is answered too, with the reason, and one that is too long ends the output."""
    decoder = Decoder(Spec)
    for line in lines:
        if len(line) >= LONGEST_LINE:
            yield encode(SpecAnswer(refused="a line longer than a mebibyte is not a question; nothing after it was read")).decode()
            return
        if not line.strip():
            continue
        try:
            answer = _answer(decoder.decode(line))
            answer = replace(answer, assumptions=(*_unknown_keys(line), *answer.assumptions))
        except (DecodeError, ValidationError) as error:
            answer = SpecAnswer(refused=str(error))
        yield encode(answer).decode()


def _unknown_keys(line: bytes) -> Iterator[str]:
    known = Spec.__struct_fields__
    for key in decode(line, type=dict[str, Raw]):
        if key not in known:
            yield f"the key {key[:_LONGEST]} is not known and is ignored{did_you_mean(key[:_LONGEST], known)}"


def _answer(spec: Spec) -> SpecAnswer:
    run = setup_from_spec(spec)
    if isinstance(run, RefusedSpec):
        return SpecAnswer(id=spec.id, refused=run.why)
    needed = estimate(*run)
    return SpecAnswer(
        id=spec.id,
        per_gpu_bytes=SpecBytes(needed.expected, needed.low, needed.high),
        terms=needed.terms,
        assumptions=tuple(assumption.text.en for assumption in needed.assumptions),
    )
