"""The automaton of the page finds what the search of the library finds, and nothing else."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from oomdoctor.ingest.prefilter import FindPrefilter
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.parse.recogniser import Recogniser

NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(NODE is None, reason="no node here")
SCRIPT = Path(__file__).with_name("prefilter.mjs")


class Search(NamedTuple):
    literals: list[bytes]
    data: bytes
    start: int = 0
    end: int | None = None
    mask: list[bool] | None = None

    def as_json(self) -> dict[str, object]:
        return {**self._asdict(), "literals": [literal.hex() for literal in self.literals], "data": self.data.hex(), "end": self.last}

    @property
    def last(self) -> int:
        return len(self.data) if self.end is None else self.end

    def wanted(self) -> list[int]:
        numbers = [number for number in range(len(self.literals)) if self.mask is None or self.mask[number]]
        hits = FindPrefilter([self.literals[number] for number in numbers], numbers).find(self.data, self.start, self.last)
        return [value for hit in hits for value in hit]


def hits(searches: list[Search]) -> list[list[int]]:
    text = json.dumps([search.as_json() for search in searches])
    done = subprocess.run([str(NODE), str(SCRIPT)], input=text, capture_output=True, text=True, check=True)
    answer: list[list[int]] = json.loads(done.stdout)
    return answer


def made(seed: int) -> Search:
    """Literals of few letters, so that they overlap and begin alike, and data of them and of noise."""
    chance = random.Random(seed)
    letters = bytes(chance.sample(range(256), chance.choice([2, 3, 8])))
    literals = list({bytes(chance.choices(letters, k=chance.randrange(1, 7))) for _ in range(chance.randrange(1, 14))})
    data = b"".join(chance.choice([*literals, bytes(chance.choices(letters, k=3)), b"\0\xff"]) for _ in range(chance.randrange(40)))
    start = chance.randrange(len(data) + 1)
    mask = [chance.random() < 0.5 for _ in literals] if chance.random() < 0.5 else None
    return Search(literals, data, start, chance.randrange(start, len(data) + 1), mask)


def test_it_finds_what_the_library_finds() -> None:
    searches = [made(seed) for seed in range(400)]
    assert hits(searches) == [search.wanted() for search in searches]


EVERY_BYTE = [bytes([byte]) for byte in range(256)]


@pytest.mark.parametrize("search", [
    pytest.param(Search([b"memory", b"out of memory", b"of mem", b"y"], b"CUDA out of memory"), id="literals inside each other, and with one end"),
    pytest.param(Search([b"aa"], b"aaaa"), id="occurrences that overlap"),
    pytest.param(Search(EVERY_BYTE, bytes(range(256)) * 2), id="every byte is a literal"),
    pytest.param(Search([b"same", b"same"], b"the same"), id="one literal twice, under two numbers"),
    pytest.param(Search(["显存不足".encode()], "CUDA 显存不足".encode()), id="characters of several bytes"),
    pytest.param(Search([b"cut"], b"a cut at the end cu", 3, 19), id="a beginning is cut off on either side"),
    pytest.param(Search([b"a", b"b"], b"abab", mask=[False, True]), id="only what the mask names"),
    pytest.param(Search([b"a"], b""), id="no data"),
    pytest.param(Search([b"x"], b"x" * 100_000), id="more hits than there was room for at first"),
])  # fmt: skip
def test_at_the_edges(search: Search) -> None:
    assert hits([search]) == [search.wanted()]


def test_all_literals_of_the_rules_in_a_real_log() -> None:
    literals = Recogniser(load_pack()).literals.texts
    log = b"".join(path.read_bytes() for path in sorted(Path("fixtures/cases").glob("*/*.log"))[:20])
    search = Search(literals, log)
    wanted = search.wanted()
    assert len(wanted) > 200
    assert hits([search]) == [wanted]
