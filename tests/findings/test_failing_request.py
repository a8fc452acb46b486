"""Which request failed: the signs of rows, which of several counts, and the arithmetic of sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from builtin_rule_set import builtin_rule_set
from msgspec.structs import replace

from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.findings.conditions import Fact
from oomdoctor.findings.platform import platform
from oomdoctor.findings.request_product import is_product, is_size, rounded_request
from oomdoctor.findings.surroundings import surroundings
from oomdoctor.knowledge.compiled.compile import packed
from oomdoctor.knowledge.load import load_file
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.knowledge.records.request import RequestFile
from oomdoctor.units import GIB, MIB

FULL = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 has a total capacity of 39.49 GiB of which 90.02 MiB is free.\n"
HEAD = "Traceback (most recent call last):\n"
FRAME = '  File "/srv/env/lib/python3.11/site-packages/{path}", line {line}, in {name}\n    {source}\n'
TRAIN = FRAME.format(path="transformers/trainer.py", line=2551, name="training_step", source="loss = self.compute_loss(model, inputs)")
MLP = FRAME.format(path="models/demo.py", line=71, name="forward", source="return self.down(self.act(self.gate(x)))")
GATHER = FRAME.format(path="trl/trainer/grpo_trainer.py", line=812, name="_score", source="x = special_step(logits)")
SERVER = FRAME.format(path="vllm/v1/worker/gpu_model_runner.py", line=3021, name="special_step", source="x = special_step(logits)")
ROW = """
  - id: {id}
    operation: {operation}
    programs: [{programs}]
    {phases}
    signs: [{sign}]
    source: test
    example: x
    near_miss: x
"""


def row(id: str, programs: str, sign: str, operation: str = "logits", phases: str = "") -> str:
    return ROW.format(id=id, programs=programs, sign=sign, operation=operation, phases=f"phases: [{phases}]" if phases else "")


def pack_with(rows: str, folder: Path) -> Pack:
    """Return the built-in rules with these rows of requests alone."""
    file = folder / "own.yaml"
    file.write_text("requests:" + rows, encoding="utf-8")
    requests = tuple((str(file), record) for record in load_file(file, RequestFile).requests)
    rules = builtin_rule_set()
    printed = tuple(loaded for loaded in rules.signatures if loaded.program == "pytorch" or "/frameworks/" in loaded.path)
    few = replace(rules, requests=requests, signatures=printed, problems=(), fixes=(), bugs=(), checks=(), changes=(), forms=(), sheets=())
    return Pack(packed(few, rules.root, has_examples=False))


@pytest.mark.parametrize(
    ("rows", "log", "chosen"),
    [
        pytest.param([row("first", "any", "{frame: 'special_step'}")], HEAD + MLP + FULL, None, id="no sign is there"),
        pytest.param([row("first", "ollama", "{frame: 'self.down'}")], HEAD + MLP + FULL, None, id="a program that did not run has no row"),
        pytest.param([row("first", "any", "{frame: 'self.down'}")], HEAD + MLP + FULL, "first", id="a frame shows it"),
        pytest.param([row("first", "any", "{message: 'Tried to allocate 512'}")], FULL, "first", id="the message shows it"),
        pytest.param([row("first", "any", "{message: 'warming up'}")], "warming up\n" + FULL, "first", id="so does a line before the message"),
        pytest.param([row("first", "any", "{near: 'after all'}")], FULL + "after all\n", "first", id="what stands behind the message is near it"),
        pytest.param([row("first", "any", "{near: 'Tried', computes: kv-cache}")], FULL, None, id="all parts of a sign must hold"),
        pytest.param([row("first", "any", "{frame: 'self.down'}", phases="backward")], HEAD + TRAIN + MLP + FULL, None, id="another phase"),
        pytest.param([row("first", "any", "{message: 'Tried'}", phases="backward")], FULL, "first", id="a phase that nobody knows excludes nothing"),
        pytest.param(
            [row("first", "any", "{near: 'Tried'}"), row("second", "any", "{frame: 'self.down'}")], HEAD + MLP + FULL, "second",
            id="what failed goes before what stands near",
        ),
        pytest.param(
            [row("first", "any", "{frame: 'compute_loss'}"), row("second", "any", "{frame: 'self.down'}")], HEAD + TRAIN + MLP + FULL, "second",
            id="the innermost frame counts",
        ),
        pytest.param(
            [row("first", "any", "{frame: 'self.down'}", "activations"), row("second", "any", "{frame: 'compute_loss'}")],
            HEAD + TRAIN + MLP + FULL, "second", id="an operation in particular goes before what any pass has",
        ),
        pytest.param(
            [row("first", "any", "{frame: 'self.down'}"), row("second", "transformers", "{frame: 'compute_loss'}")],
            HEAD + TRAIN + MLP + FULL, "second", id="the program that is named goes before any program",
        ),
        pytest.param(
            [row("first", "vllm", "{frame: 'special_step'}"), row("second", "trl", "{frame: 'special_step'}")],
            HEAD + GATHER + SERVER + FULL, "second", id="a trainer goes before the server inside it",
        ),
    ],
)  # fmt: skip
def test_the_row_that_is_chosen(rows: list[str], log: str, chosen: str | None, tmp_path: Path) -> None:
    request = diagnose_logs(["example.log"], pack_with("".join(rows), tmp_path), text=log.encode()).request
    assert request is not None
    assert request.id == chosen


def test_no_request_without_a_failure_of_memory() -> None:
    assert diagnose_logs(["example.log"], load_pack(), text=b"KeyError: 'labels'\n").request is None


def test_the_figures_of_a_request() -> None:
    request = diagnose_logs(["example.log"], load_pack(), text=FULL.encode()).request
    assert request is not None
    assert (request.size, request.missing) == (512 * MIB, 512 * MIB - (request.free or 0))
    assert request.total is not None
    assert round(request.total / GIB, 2) == 39.49


@pytest.mark.parametrize(("log", "asks"), [(FULL, True), (HEAD + MLP + FULL, False)], ids=["without frames", "with frames"])
def test_an_unknown_operation_asks_for_the_frames(log: str, asks: bool, tmp_path: Path) -> None:
    request = diagnose_logs(["example.log"], pack_with(row("first", "any", "{frame: 'nowhere'}"), tmp_path), text=log.encode()).request
    assert request is not None
    assert request.id is None
    assert (request.settled_by is not None) is asks


FACTS: dict[str, Fact] = {"training.micro_batch": 4, "training.sequence_length": 1024, "log.vocab_size": 50304}


@pytest.mark.parametrize(
    ("factors", "requested", "is_one"),
    [
        pytest.param(["micro_batch", "sequence_length", "vocabulary", 4], 786 * MIB, True, id="whole blocks of the allocator"),
        pytest.param(["micro_batch", "sequence_length", "vocabulary", 4], 790 * MIB, False, id="more than a block away"),
        pytest.param(["micro_batch", "sequence_length", "vocabulary", 2], 786 * MIB, False, id="of half the type"),
        pytest.param(["micro_batch", "eval_batch", 4], 786 * MIB, False, id="a quantity that nobody knows"),
        pytest.param(["micro_batch", 1024], 4096, False, id="a size too small to tell"),
        pytest.param(["micro_batch", 1024], None, False, id="no size"),
    ],
)
def test_products(factors: list[str | int | float], requested: int | None, is_one: bool) -> None:
    assert is_product(factors, requested, FACTS) is is_one


@pytest.mark.parametrize(
    ("size", "asked"),
    [(1000, 2 * MIB), (MIB + 1, 20 * MIB), (11 * MIB, 12 * MIB), (64 * MIB, 64 * MIB)],
    ids=["tiny", "small", "odd", "even"],
)
def test_what_the_allocator_asks_for(size: int, asked: int) -> None:
    assert rounded_request(size) == asked
    assert is_size(asked, asked)


def test_lines_of_other_ranks_are_left_out() -> None:
    around = surroundings(b"[rank1]: mine\n[rank0]: not mine\nanybody's\n", b"[rank1]: after\n", 1)
    assert around.before == ("mine", "anybody's")
    assert around.after == ("after",)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("/Users/x/run.py: killed", "macos"),
        (r'  File "C:\work\run.py", line 3', "windows"),
        ("container exited with code 137", "container"),
        ("Last State: Terminated  Reason: OOMKilled", "kubernetes"),
        ("/opt/ml/code/train.py", "managed-job"),
        ("/home/x/run.py: Killed", None),
    ],
)
def test_platforms(line: str, name: str | None) -> None:
    assert platform(["step 3", line]) == name
