"""Logs that mean harm, and machines that do: bounded work, an answer, and nothing that reaches the terminal as a command."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import os
import re
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

import oomdoctor
from oomdoctor import opening
from oomdoctor.api import pipeline
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.ingest import compression
from oomdoctor.ingest.sources import MissingSource, expand_sources
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.render.html import render as html
from oomdoctor.report.render.markdown import render as markdown
from oomdoctor.report.render.terminal import render as terminal
from oomdoctor.report.safety.redact import redact
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording

ROOT = Path(__file__).parents[1]
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 23.69 GiB of which 1.02 GiB is free. "
    "Including non-PyTorch memory, this process has 22.66 GiB memory in use. Of the allocated memory 21.40 GiB is allocated by PyTorch, and "
    "512.00 MiB is reserved by PyTorch but unallocated."
)
HANG_S = 60
"""A guard against hanging, far above what anything here takes."""


@cache
def pack() -> Pack:
    return load_pack()


def diagnosis(data: bytes) -> Diagnosis:
    return pipeline.diagnose_logs(["run.log"], pack(), text=data)


def said(found: Diagnosis) -> tuple[str, list[str]]:
    return found.case.verdict.memory_failure, [event.signature for event in found.case.events]


def reports(found: Diagnosis) -> dict[str, str]:
    document = redact(compose(found, Wording("en"), "0.0.0"))
    return {
        "json": json_text(convert_diagnosis(found, Wording("en"), "0.0.0"), redact=True),
        "markdown": markdown(document), "html": html(document), "terminal": terminal(document, width=100, color=False),
    }  # fmt: skip


@pytest.mark.parametrize("data", [
    pytest.param(OOM.encode() + b"x" * (10 << 20), id="ten megabytes after it on its line"),
    pytest.param(b"x" * (10 << 20) + b" " + OOM.encode(), id="ten megabytes before it on its line"),
    pytest.param(b" " * (4 << 20) + OOM.encode() + b" " * (4 << 20), id="blanks without end around it"),
    pytest.param(b"\0" * 5000 + b"\n" + OOM.encode() + b"\n" + b"\0" * 5000, id="NUL bytes around it, as a file system leaves them"),
    pytest.param(b"\xe6\x98\n" + OOM.encode() + b"\xe6\x98", id="half a character before and after it"),
    pytest.param(b"\xff\xfa\xc0\x80\xed\xa0\x80" + b"\n" + OOM.encode(), id="bytes that are no text"),
    pytest.param(b"\r" * 100_000 + OOM.encode() + b"\r" * 100_000, id="carriage returns without end"),
    pytest.param(b"\n" * 3_000_000 + OOM.encode(), id="empty lines without end"),
    pytest.param(b"\x1b[" * 100_000 + b"\n" + OOM.encode(), id="escapes without end"),
    pytest.param(b"\x1b]0;" + b"a" * 50_000 + b"\n" + OOM.encode(), id="a window title without end"),
    pytest.param(b"<" * 50_000 + b"\n" + OOM.encode(), id="tags without end"),
    pytest.param(b"> " * 50_000 + b"\n" + OOM.encode(), id="quotes without end"),
    pytest.param(b"[rank3]: " * 9000 + b"\n" + OOM.encode(), id="prefixes without end"),
    pytest.param("\ufeff".encode() + OOM.encode("utf-8"), id="a mark of byte order"),
    pytest.param(("\ufeff" + OOM).encode("utf-16-le"), id="PowerShell's UTF-16"),
])  # fmt: skip
def test_the_failure_is_found(data: bytes) -> None:
    found = diagnosis(data)
    assert said(found)[0] == "yes"
    for form, report in reports(found).items():
        assert len(report) < 200_000, form


@pytest.mark.parametrize(("data", "failure"), [
    pytest.param(b"", "no", id="an empty log"),
    pytest.param(b"\0" * (1 << 20), "no", id="only NUL bytes"),
    pytest.param(bytes(range(256)) * 4000, "no", id="every byte there is"),
    pytest.param(b"x" * (10 << 20), "no", id="one line of ten megabytes"),
    pytest.param(b"\x80\x04\x95\x20\0\0\0\0\0\0\0\x8c\x05posix\x94\x8c\x06system\x94\x93\x94", "no", id="a pickle that wants to run code"),
    pytest.param(b"\x7fELF" + os.urandom(4096), "no", id="a program"),
    pytest.param(b"PK\x03\x04" + bytes(range(256)), "possible", id="the beginning of a zip: it is not read"),
    pytest.param(b"\x1f\x8b", "possible", id="the beginning of gzip and nothing more: its rest was not read"),
    pytest.param(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x80 #\0\\", "possible", id="gzip and then junk"),
    pytest.param(gzip.compress(b"PK\x03\x04" + bytes(99)), "possible", id="a zip in gzip"),
])  # fmt: skip
def test_there_is_nothing_to_find(data: bytes, failure: str) -> None:
    found = diagnosis(data)
    assert found.case.verdict.memory_failure == failure
    assert set(reports(found)) == {"json", "markdown", "html", "terminal"}


PACKERS: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}
HEALTHY = "".join(f"step {step} loss 1.{step * 7919 % 1000}\n" for step in range(3000)).encode()
DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut in half": lambda data: data[: len(data) // 2],
    "cut before its last byte": lambda data: data[:-1],
    "with a wrong checksum": lambda data: data[:-12] + bytes(byte ^ 0xFF for byte in data[-12:-4]) + data[-4:],
    "with a changed byte": lambda data: data[: len(data) // 3] + bytes([data[len(data) // 3] ^ 0x10]) + data[len(data) // 3 + 1 :],
    "with garbage behind it": lambda data: data + b"\x07garbage\xfe" * 9,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("packer", PACKERS)
def test_a_damaged_archive_is_never_called_fine(packer: str, damage: str) -> None:
    verdict = diagnosis(DAMAGES[damage](PACKERS[packer](HEALTHY))).case.verdict
    assert (verdict.memory_failure, verdict.certainty.value) == ("possible", "possible")


@pytest.mark.parametrize("damage", ["cut before its last byte", "with garbage behind it"])
@pytest.mark.parametrize("packer", PACKERS)
def test_what_can_be_read_of_a_damaged_archive_is_read(packer: str, damage: str) -> None:
    found = diagnosis(DAMAGES[damage](PACKERS[packer](HEALTHY + OOM.encode())))
    assert said(found)[0] == "yes" and len(found.case.gaps) == 1


def test_behind_a_damaged_member_the_next_is_read() -> None:
    first = PACKERS["gzip"](HEALTHY)
    assert said(diagnosis(first[: len(first) // 2] + PACKERS["gzip"](OOM.encode())))[0] == "yes"


STEPS = HEALTHY[: 40 << 10].decode()


@pytest.mark.parametrize("data", [
    *(pytest.param((STEPS + OOM).encode(name), id=f"{name} without a mark") for name in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")),
    pytest.param((STEPS + OOM).encode("utf-32"), id="UTF-32 with its mark"),
    pytest.param(STEPS.encode() + OOM.encode("utf-16-le"), id="UTF-16 behind UTF-8, as a shell appends it"),
    pytest.param(STEPS.encode() + OOM.encode("utf-16"), id="the same with a mark"),
    pytest.param(STEPS.encode("utf-16") + OOM.encode(), id="UTF-8 behind UTF-16"),
    pytest.param(b"\xfe\xff" + STEPS.encode("utf-16-be") + b"\n" + OOM.encode(), id="UTF-8 behind UTF-16 of the other order"),
    pytest.param(STEPS.encode("utf-16") + STEPS.encode() + OOM.encode("utf-16-le"), id="from one to the other and back"),
    pytest.param("训练开始，加载模型权重，请稍候。\n".encode("utf-16") + OOM.encode("utf-16-le"), id="ideographs before it"),
    pytest.param("CUDA 内存不足。尝试分配 2.00 GiB\n".encode("gbk"), id="GBK"),
    pytest.param(("训练开始 ██\n" * 30).encode() + "CUDA 内存不足。尝试分配 2.00 GiB\n".encode("gbk"), id="GBK behind UTF-8"),
    pytest.param(("第一步 损失 1.2\n" * 9000 + "CUDA 内存不足。尝试分配 2.00 GiB\n").encode("gbk"), id="a long log in GBK"),
    pytest.param(OOM.replace(" ", "\u00a0").encode(), id="no-break blanks"),
    pytest.param(OOM.replace(" ", "&nbsp;").encode(), id="no-break blanks of HTML"),
    pytest.param(OOM.replace("memory", "mem\u00adory").replace("GPU", "G\u200dPU").encode(), id="soft hyphens and joiners"),
])  # fmt: skip
@pytest.mark.parametrize("way", ["as text", "as a file", "in an archive"])
def test_a_message_in_any_encoding_is_read(data: bytes, way: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_bytes(gzip.compress(data) if way == "in an archive" else data)
    found = diagnosis(data) if way == "as text" else pipeline.diagnose_logs([str(path)], pack())
    assert said(found)[0] == "yes"
    assert found.case.incidents[0].root.size("requested_bytes") == 2 << 30


@pytest.mark.parametrize(("text", "failure", "gaps"), [
    pytest.param("\ud800", "no", 0, id="a lone surrogate"),
    pytest.param(OOM + "\udcff", "yes", 0, id="an escaped byte"),
    pytest.param("PK\x03\x04" + OOM, "possible", 1, id="like a zip: it is not read, and the report says so"),
    pytest.param("\x1f\x8b" + OOM, "yes", 0, id="like gzip: a text is not unpacked"),
])  # fmt: skip
def test_a_pasted_text_is_never_an_error(text: str, failure: str, gaps: int) -> None:
    case = oomdoctor.diagnose(text).case
    assert (case.verdict.memory_failure, len(case.gaps)) == (failure, gaps)


@pytest.mark.parametrize("count", [10_000, 100_000])
def test_a_message_that_is_repeated_costs_no_more_events(count: int) -> None:
    found = diagnosis((OOM.encode() + b"\n") * count)
    assert said(found)[0] == "yes"
    assert len(found.case.events) < 25_000
    assert len(reports(found)["json"]) < 4_000_000


ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\x1bP+q\x1b\\\x85\x7f\x00\x08\u202e\u2066"
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
CONTROL_NAME = "run\x1b]0;owned\x07\x1b[31m\u202e.log"


def command(arguments: Sequence[str | bytes]) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8"}
    call: list[str | bytes] = [sys.executable, "-m", "oomdoctor", *arguments]
    return subprocess.run(call, env=environment, capture_output=True, timeout=HANG_S, check=False, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("form", ["terminal", "markdown", "json", "html"])
def test_no_escape_of_a_log_or_a_name_reaches_the_output(form: str, tmp_path: Path) -> None:
    path = tmp_path / CONTROL_NAME
    lines = [
        f"{ESCAPES}step 1{ESCAPES}",
        f'  File "/x/{ESCAPES}a.py", line 3, in f{ESCAPES}g',
        f"{ESCAPES}{OOM.replace('GPU 3', 'GPU 3' + ESCAPES)}{ESCAPES}",
    ]
    lines += [f"Process {ESCAPES} name=py{ESCAPES}thon", f"Killed process 9 (py{ESCAPES}thon) total-vm:1kB, anon-rss:1kB, file-rss:0kB"]
    path.write_bytes("\n".join(lines).encode())
    done = command(["diagnose", "--format", form, str(path), str(tmp_path / f"missing{CONTROL_NAME}")])
    assert done.returncode == 1, done.stderr.decode()
    assert FORBIDDEN.findall(done.stdout.decode()) == []
    assert FORBIDDEN.findall(done.stderr.decode()) == []
    if form == "json":
        assert FORBIDDEN.findall("".join(strings(json.loads(done.stdout)))) == []


@pytest.mark.parametrize("arguments", [
    pytest.param([CONTROL_NAME], id="a file that is not there"),
    pytest.param(["--rules", CONTROL_NAME, "x"], id="rules that are not there"),
    pytest.param(["--env", CONTROL_NAME, "x"], id="facts that are not there"),
    pytest.param(["--output", f"nowhere/{CONTROL_NAME}", os.devnull], id="an output that cannot be written"),
    pytest.param([f"--{CONTROL_NAME}"], id="an option that does not exist"),
])  # fmt: skip
def test_no_escape_of_an_argument_reaches_the_error(arguments: list[str]) -> None:
    done = command(["diagnose", *arguments])
    assert done.returncode == 2
    assert done.stderr
    assert FORBIDDEN.findall(done.stderr.decode()) == []


@pytest.mark.parametrize("form", ["terminal", "markdown", "json", "html"])
@pytest.mark.parametrize("to_file", [False, True], ids=["to standard output", "to a file"])
def test_a_name_that_is_no_unicode(form: str, to_file: bool, tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/run\xff\xfe.log"
    try:
        with open(path, "wb") as file:
            file.write(OOM.encode())
    except OSError:
        pytest.skip("the file system takes no such name")
    out = tmp_path / "report"
    done = command(["diagnose", "--format", form, *(["--output", str(out)] if to_file else []), path])
    assert done.returncode == 1, done.stderr.decode()
    report = (out.read_bytes() if to_file else done.stdout).decode()
    assert ('"requested_bytes":2147483648' in report.replace(" ", "")) if form == "json" else ("2.00 GiB" in report)


@pytest.mark.parametrize(("order", "link"), [
    *(pytest.param(["diagnose"], link, id=f"diagnose, {link}") for link in ("itself", "a symbolic link", "another spelling", "a log in the folder")),
    *(pytest.param(order.split(), "a hard link", id=f"{order}, a hard link")
      for order in ("diagnose", "diagnose --reply", "report", "check", "estimate", "plan", "compare", "env --from")),
])  # fmt: skip
def test_no_command_writes_over_what_it_read(order: list[str], link: str, tmp_path: Path) -> None:
    is_config = order[0] in ("check", "estimate", "plan")
    log, other = tmp_path / ("run.yaml" if is_config else "run.log"), tmp_path / "other"
    log.write_text(
        "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\nbf16: true\n"
        if is_config
        else f"PyTorch version: 2.6.0+cu124\nOS: Ubuntu 22.04.4 LTS (x86_64)\n{OOM}\n"
    )
    before = log.read_bytes()
    output = {"itself": log, "another spelling": tmp_path / "." / ".." / tmp_path.name / log.name}.get(link, other)
    if link == "a symbolic link":
        other.symlink_to(log)
    elif link == "a hard link":
        os.link(log, other)
    elif link == "a log in the folder":
        output = log
    inputs = [str(tmp_path if link == "a log in the folder" else log)] * (2 if order[0] == "compare" else 1)
    card = ["--gpu", "RTX 4090"] if order[0] == "plan" else []
    done = command([*order, *inputs, *card, "-o", str(output)])
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr.decode()
    assert b"not overwritten" in done.stderr
    assert log.read_bytes() == before


@pytest.mark.parametrize("form", ["terminal", "markdown", "html"])
def test_markup_of_a_log_stays_text(form: str, tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(
        f"<script>alert(1)</script> <img src=x onerror=alert(1)>\n</code></pre><script>x()</script> {OOM} </pre><script>y()</script>\n```\n# head\n"
    )
    done = command(["diagnose", "--format", form, str(path)])
    assert done.returncode == 1
    if form == "html":
        assert b"<script>x" not in done.stdout and b"<script>y" not in done.stdout and b"<img src=x" not in done.stdout


def strings(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for pair in value.items() for one in pair for text in strings(one)]
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []


def gaps(*names: str) -> list[tuple[str, str]]:
    return [(gap.what, gap.why) for gap in pipeline.diagnose_logs(list(expand_sources(names)), pack()).case.gaps]


def test_a_pipe_that_nobody_writes_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_FIRST_BYTES_S", 0.05)
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    assert gaps(path) == [(path, "no process writes to this pipe")]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "compressed"])
def test_a_pipe_with_a_writer_that_takes_its_time(packed: bool, tmp_path: Path) -> None:
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    data = b"".join(b"step %d\n" % number for number in range(30_000)) + OOM.encode() + b"\n"
    data = gzip.compress(data) if packed else data

    def writer() -> None:
        with open(path, "wb", buffering=0) as pipe:
            for at in range(0, len(data), len(data) // 7 + 1):
                pipe.write(data[at : at + len(data) // 7 + 1])
                time.sleep(0.01)

    thread = threading.Thread(target=writer, daemon=True)
    thread.start()
    found = pipeline.diagnose_logs([path], pack())
    thread.join(HANG_S)
    assert said(found)[0] == "yes" and found.case.gaps == ()


def test_a_pipe_whose_writer_says_nothing_and_leaves(tmp_path: Path) -> None:
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    threading.Thread(target=lambda: open(path, "wb").close(), daemon=True).start()
    found = pipeline.diagnose_logs([path], pack())
    assert found.case.verdict.memory_failure == "no" and found.case.sources[0].size == 0


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/urandom"])
def test_a_device_without_end(path: str) -> None:
    assert gaps(path) == [(path, "a device, not a log")]


def test_a_loop_of_links(tmp_path: Path) -> None:
    (tmp_path / "a.log").symlink_to("b.log")
    (tmp_path / "b.log").symlink_to("a.log")
    (tmp_path / "round").symlink_to(".")
    (tmp_path / "run.log").write_text(OOM)
    found = pipeline.diagnose_logs(list(expand_sources([str(tmp_path)])), pack())
    assert [source.name for source in found.case.sources] == [str(tmp_path / "run.log")]
    assert len(gaps(str(tmp_path / "a.log"))) == 1


def test_what_is_no_file_in_a_folder_is_named_and_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.log")
    (tmp_path / "endless.log").symlink_to("/dev/zero")
    (tmp_path / "run.log").write_text("step 1\n")
    found = pipeline.diagnose_logs(list(expand_sources([str(tmp_path)])), pack())
    assert [source.name for source in found.case.sources] == [str(tmp_path / "run.log")]
    assert found.case.verdict.memory_failure == "no"  # a pipe is no log that was not read
    assert [(gap.what, gap.why.rpartition("(")[2]) for gap in found.case.gaps] == [(f"{tmp_path}/endless.log, {tmp_path}/pipe.log", "2)")]


@pytest.mark.parametrize("folder", ["/proc", "/sys"])
def test_the_files_of_the_kernel_are_left_alone(folder: str) -> None:
    if not os.path.isdir(folder):
        pytest.skip("no such folder here")
    assert [source.name for source in expand_sources([folder]) if isinstance(source, MissingSource)] == [folder]


def test_a_file_without_end_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    with path.open("wb") as file:
        file.truncate(2 << 40)
    assert [why.partition(":")[0] for _, why in gaps(str(path))] == ["larger than 1 TiB"]


def test_a_folder_without_permission_is_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    (tmp_path / "run.log").write_text(OOM)
    if os.access(closed, os.R_OK):
        real = os.scandir

        def scandir(path: str = ".") -> object:
            if path == str(closed):
                raise PermissionError(13, "Permission denied", path)
            return real(path)

        monkeypatch.setattr(os, "scandir", scandir)
    found = pipeline.diagnose_logs(list(expand_sources([str(tmp_path)])), pack())
    assert said(found)[0] == "yes"
    assert [(gap.what, gap.why) for gap in found.case.gaps] == [(str(closed), "permission denied")]


def while_it_is_read(path: Path, change: Callable[[], object]) -> Diagnosis:
    """The diagnosis of a file that something happens to after its first bytes were read."""
    changed = threading.Event()

    def progress(_count: int) -> None:
        if not changed.is_set():
            changed.set()
            change()

    found = pipeline.diagnose_logs([str(path)], pack(), progress=progress)
    assert changed.is_set()
    return found


IN_ORDER = 1 << 20


@pytest.mark.parametrize("size", [IN_ORDER, 24 << 20], ids=["a file that is read in order", "a file that is read in parts"])
def test_a_file_that_changes_while_it_is_read(size: int, tmp_path: Path) -> None:
    line = b"a line of a log that says nothing\n"
    text = OOM.encode() + b"\n" + line * (size // len(line))
    path = tmp_path / "run.log"

    def grow() -> None:
        with path.open("ab") as file:
            file.write(line * 20_000)

    def said_after(change: Callable[[], object]) -> str:
        path.write_bytes(text)
        return while_it_is_read(path, change).case.verdict.memory_failure

    assert [said_after(change) for change in (grow, path.unlink, lambda: os.truncate(path, 1000))] == ["yes"] * 3
    gone = "yes" if size == IN_ORDER else "no"  # what was read before the change counts
    assert [said_after(change) for change in (lambda: os.truncate(path, 0), lambda: path.write_bytes(b"new"))] == [gone] * 2


def test_a_file_that_is_gone_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "run.log"
    path.write_text(OOM)
    names = list(expand_sources([str(path)]))
    path.unlink()
    found = pipeline.diagnose_logs(names, pack())
    assert [(gap.what, gap.why) for gap in found.case.gaps] == [(str(path), "no such file")]


@pytest.mark.parametrize("jobs", [1, 4])
def test_one_broken_log_among_many_stops_nothing(jobs: int, tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"{number:02}.log").write_text(OOM if number == 17 else "fine\n")
    (tmp_path / "03.log").write_bytes(gzip.compress(OOM.encode() * 50)[:40])
    (tmp_path / "05.log").write_bytes(b"PK\x03\x04")
    with zipfile.ZipFile(tmp_path / "06.log", "w") as archive:
        archive.writestr("x", OOM)
    (tmp_path / "07.log").write_bytes(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\x80 #\0\\")
    found = pipeline.diagnose_logs(list(expand_sources([str(tmp_path)])), pack(), jobs=jobs)
    assert said(found)[0] == "yes"
    assert {Path(gap.what).name for gap in found.case.gaps} == {"03.log", "05.log", "06.log", "07.log"}


def test_a_bomb_on_disk_ends_as_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LARGEST", 4 << 20)
    path = tmp_path / "bomb.log.gz"
    path.write_bytes(gzip.compress(OOM.encode() + b"\n" + b"\0" * (64 << 20)))
    assert path.stat().st_size < 100_000
    found = pipeline.diagnose_logs([str(path)], pack())
    assert said(found)[0] == "yes"
    assert len(found.case.gaps) == 1 and not found.case.sources[0].complete


def test_spliced_and_damaged_messages_crash_nothing() -> None:
    """Five hundred inputs of the fuzzer, the same each time; what keeps patterns linear is held by tests/test_patterns.py."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    call = [sys.executable, str(ROOT / "bench" / "fuzz.py"), "--inputs", "500", "--seed", "1", "--jobs", "1"]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[1:2]) == (0, ["0 crashes"]), done.stdout + done.stderr
