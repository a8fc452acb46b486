"""Four hundred damaged and hostile inputs, the same each time: an answer to each, harmless, and never "no, certain" of what was not read.

An input is a log (with a failure at its end, or healthy) that is mangled in one or two ways: cut, changed, packed, in another
encoding, woven with what other programs act upon. All run in this process; a hang shows as a test that does not end.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import random
import re
import tarfile
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from oomdoctor.api import pipeline
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.ingest.sources import expand_sources
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.issue.issue import compose_issue
from oomdoctor.report.issue.reply import compose_reply
from oomdoctor.report.render.html import render as html
from oomdoctor.report.render.markdown import render as markdown
from oomdoctor.report.render.terminal import render as terminal
from oomdoctor.report.safety.redact import redact
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording

INPUTS = 400
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 1 has a total capacity of 39.50 GiB of which 812.00 MiB is "
    "free. Of the allocated memory 36.20 GiB is allocated by PyTorch, and 640.00 MiB is reserved by PyTorch but unallocated."
)
TRACE = 'Traceback (most recent call last):\n  File "/opt/run/train.py", line 88, in step\n    loss = model(**batch).loss\n'


def healthy(seed: random.Random) -> bytes:
    return "".join(f"step {step} loss {seed.random():.4f} lr {seed.random():.2e}\n" for step in range(seed.randrange(5, 400))).encode()


def failed(seed: random.Random) -> bytes:
    return healthy(seed) + TRACE.encode() + OOM.encode() + b"\n"


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.log", data)
    return out.getvalue()


def tarred(data: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        member = tarfile.TarInfo("run.log")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    return out.getvalue()


PACKERS: list[Callable[[bytes], bytes]] = [gzip.compress, bz2.compress, lzma.compress]
ENCODINGS = ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "utf-8-sig", "gb18030", "cp1252", "utf-7"]
PIECES = [
    b"\x1b]0;owned\x07", b"\x1b]8;;http://x\x1b\\", b"\x1b[2J\x1b[31m", b"\x1bP+q\x1b\\", b"\x9b31m", b"\x1b[", b"\x1b]52;c;aGk=\x07", b"\0" * 300,
    b"\r" * 500, "\u202e\u2066\u200d\u00ad\U000e0041".encode(), b"[bold red]x[/bold red]", b"[/]", b"<script>alert(1)</script>", b"</pre></code>",
    b"```\n# head\n", b"|a|b|\n|--|--|\n", b"@somebody #12", b"${HOME} $(id) `id`", b'"' * 400, b"'" * 3, b"\\" * 500, b"{" * 3000, b"[" * 3000,
    b'{"a":' * 2000, b"- " * 2000, b"&a [*a]", b"\xff\xfe\xfd", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"%s%n%x" * 50, b"=HYPERLINK(1)", b"A" * 70_000,
    b"9" * 5000, b"1e999 -1 NaN 17179869184.00 GiB", b"> " * 3000, b"[rank3]: " * 800, b"\xc2\xa0" * 900, b"&nbsp;" * 300, b"&#0;&#x110000;", b"<" * 4000,
]  # fmt: skip


def cut(data: bytes, seed: random.Random) -> bytes:
    return data[: seed.randrange(1, len(data))]


def flipped(data: bytes, seed: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(seed.randrange(1, 12)):
        out[seed.randrange(len(out))] ^= 1 << seed.randrange(8)
    return bytes(out)


def holed(data: bytes, seed: random.Random) -> bytes:
    at = seed.randrange(len(data))
    return data[:at] + b"\0" * seed.randrange(1, 5000) + data[at + seed.randrange(1, 200) :]


def shuffled(data: bytes, seed: random.Random) -> bytes:
    size = seed.randrange(1, 600)
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    seed.shuffle(parts)
    return b"".join(parts)


def woven(data: bytes, seed: random.Random) -> bytes:
    for _ in range(seed.randrange(1, 6)):
        at = seed.randrange(len(data))
        data = data[:at] + seed.choice(PIECES) + data[at:]
    return data


def mixed(data: bytes, seed: random.Random) -> bytes:
    """Parts of it in different encodings, as shells append them."""
    lines = data.decode("latin-1").splitlines(keepends=True)
    at = sorted(seed.randrange(len(lines) + 1) for _ in range(2))
    parts = ["".join(lines[: at[0]]), "".join(lines[at[0] : at[1]]), "".join(lines[at[1] :])]
    return b"".join(part.encode(seed.choice(ENCODINGS), "replace") for part in parts)


def encoded(data: bytes, seed: random.Random) -> bytes:
    return data.decode("latin-1").encode(seed.choice(ENCODINGS), "replace")


def on_one_line(data: bytes, seed: random.Random) -> bytes:
    return data.replace(b"\n", seed.choice([b" ", b"\\n", b"<br>", b"\r", b""]))


def as_json(data: bytes, seed: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    for _ in range(seed.randrange(1, 4)):
        text = json.dumps({"log": text})
    return text.encode()


def packed(data: bytes, seed: random.Random) -> bytes:
    return seed.choice(PACKERS)(data)


def behind(data: bytes, seed: random.Random) -> bytes:
    return data + seed.randbytes(seed.randrange(1, 400))


MANGLED = [cut, flipped, holed, shuffled, woven, mixed, encoded, on_one_line, as_json, behind]
NAMES = [
    "run.log", "run\u202egol.log", "ru\u00adn\u200d.log", "run\x1b[31m.log", "[bold]run.log", "run|x`y`.log", "-rf.log", "run\n.log", "<b>run.log", "run%2F..log",
    "\U000e0041run.log", "日志.log", " run .log", "a" * 200 + ".log",
]  # fmt: skip


class Hostile:
    """One input, by its number: its bytes, its name, whether an archive of it is damaged or holds what is not opened."""

    def __init__(self, number: int) -> None:
        seed = random.Random(number)
        data = failed(seed) if seed.random() < 0.4 else healthy(seed)
        self.is_unread = False
        self.name = seed.choice(NAMES)
        kind = number % 5
        if kind < 2:
            for change in seed.sample(MANGLED, kind + 1):
                data = change(data, seed) or b"x"
        elif kind == 2:  # an archive of something mangled is whole
            data = packed(seed.choice(MANGLED)(data, seed) or b"x", seed)
        elif kind == 3:
            whole = packed(data, seed)
            data = seed.choice([cut, flipped, behind, holed])(whole, seed)
            self.is_unread = not is_readable(data) and any(data.startswith(magic) for magic in (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0"))
        else:
            archive = seed.choice([zipped, tarred])(data)
            self.is_unread = archive.startswith(b"PK")
            if not self.is_unread and seed.random() < 0.5:
                archive = cut(archive, seed)
                self.is_unread = len(archive) > 2
            data = archive
        self.data = data


def is_readable(data: bytes) -> bool:
    """Whether the standard library reads an archive to its end without a complaint."""
    for magic, unpack in ((b"\x1f\x8b", gzip.decompress), (b"BZh", bz2.decompress), (b"\xfd7zXZ\0", lzma.decompress)):
        if data.startswith(magic):
            try:
                unpack(data)
            except Exception:  # noqa: BLE001 - each has errors of its own
                return False
    return True


@cache
def pack() -> Pack:
    return load_pack()


WORDING = Wording("en")
REPORTS: dict[str, Callable[[Diagnosis], str]] = {
    "terminal": lambda found: terminal(redact(compose(found, WORDING, "0")), width=80, color=False),
    "markdown": lambda found: markdown(redact(compose(found, WORDING, "0"))),
    "html": lambda found: html(redact(compose(found, WORDING, "0"))),
    "report": lambda found: markdown(redact(compose_issue(found, WORDING, "0"))),
    "reply": lambda found: markdown(redact(compose_reply(found, WORDING, "0"))),
}


def reports(found: Diagnosis, number: int) -> dict[str, str]:
    """The JSON of a diagnosis and one report for people: of five inputs of a kind each comes out in another one."""
    name = list(REPORTS)[number // 5 % len(REPORTS)]
    return {"json": json_text(convert_diagnosis(found, WORDING, "0"), redact=True), name: REPORTS[name](found)}


@pytest.mark.parametrize("part", range(10))
def test_every_hostile_input_gets_a_harmless_answer(part: int, tmp_path: Path) -> None:
    wrong = {}
    for number in range(part * INPUTS // 10, (part + 1) * INPUTS // 10):
        hostile = Hostile(number)
        path = tmp_path / str(number) / hostile.name
        path.parent.mkdir()
        path.write_bytes(hostile.data)
        found = pipeline.diagnose_logs(list(expand_sources([str(path.parent if number % 3 else path)])), pack())
        verdict = found.case.verdict
        said = reports(found, number)
        if hostile.is_unread and (
            verdict.memory_failure == "no" or (verdict.memory_failure == "possible" and verdict.certainty.value == "certain")
        ):
            wrong[number] = f"{verdict.memory_failure}, {verdict.certainty.value} of what was not read"
        for name, text in said.items():
            if FORBIDDEN.search(text) or (name == "json" and FORBIDDEN.search("".join(map(str, json.loads(text).items())))):
                wrong[number] = f"{name} holds a character that a terminal acts upon"
            if len(text) > 400_000:
                wrong[number] = f"{name} is {len(text)} characters long"
    assert wrong == {}


def test_the_inputs_are_of_every_kind() -> None:
    inputs = [Hostile(number) for number in range(INPUTS)]
    assert sum(hostile.is_unread for hostile in inputs) >= 100
    assert len({hostile.data for hostile in inputs}) == INPUTS and {hostile.name for hostile in inputs} == set(NAMES)
