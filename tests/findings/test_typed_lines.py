"""How a fix is typed where no program is known, and that no step of a screen is a bare heading."""

from __future__ import annotations

import pytest
from builtin_rule_set import builtin_rule_set

from oomdoctor.advice.typed import typed_lines
from oomdoctor.case.event import Certainty, Event, Kind, Outcome, Place
from oomdoctor.findings.conditions import Fact, KnownFacts
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.diagnosis.do_this import HOW
from oomdoctor.report.wording.phrases import bare
from oomdoctor.report.wording.wording import Wording

TORCH: dict[str, Fact] = {"incident.program": "pytorch"}


def lines(fix: str, facts: dict[str, Fact], program: str = "pytorch") -> list[str]:
    pack = load_pack()
    record = pack.fix(fix)
    assert record is not None
    place = Place("train.log", 0, 1, None)
    root = Event(
        signature="a-message", kind=Kind.DEVICE_OOM, certainty=Certainty.CERTAIN, outcome=Outcome.FAILURE, text="", place=place, fields={}
    )
    return [typed.line for typed in typed_lines(pack, record, KnownFacts(facts, [root], {"a-message": program}, (root,)))]


@pytest.mark.parametrize(("fix", "facts", "program", "expected"), [
    pytest.param("smaller-batch", TORCH, "pytorch", ["per_device_train_batch_size=1", "--batch_size 1"], id="a message alone: the trainer, a script"),
    pytest.param("smaller-batch", {**TORCH, "incident.inference": "server"}, "pytorch", ["pipeline(batch_size=1)", "--batch_size 1"],
                 id="what only answers has no batch of training"),
    pytest.param("smaller-batch", {**TORCH, "log.framework": "nanogpt"}, "pytorch", ["DataLoader(batch_size=1)"],
                 id="of a program that is known no key of another, only plain PyTorch"),
    pytest.param("smaller-batch", {"incident.program": "tensorflow"}, "tensorflow", ["model.fit(batch_size=1)"], id="TensorFlow in its own words"),
    pytest.param("smaller-batch", {"incident.program": "paddle"}, "paddle", ["paddle.io.DataLoader(batch_size=1)"], id="PaddlePaddle in its own"),
    pytest.param("half-precision", TORCH, "pytorch", ["torch_dtype=torch.bfloat16", "model.to(torch.bfloat16)"],
                 id="a library that would be known by its message has no line"),
    pytest.param("smaller-pictures-or-tiles", {**TORCH, "incident.inference": "server", "log.framework": "comfyui"}, "pytorch",
                 ["VAE Decode (Tiled)"], id="ComfyUI by its node"),
    pytest.param("raise-container-memory-limit", {"log.framework": "vllm"}, "linux kernel",
                 ["docker run --memory=SIZE", "#SBATCH --mem=SIZE"], id="what the machine understands holds for any program"),
    pytest.param("raise-container-memory-limit", {"incident.platform": "kubernetes"}, "linux kernel",
                 ["kubectl set resources deploy/NAME --limits=memory=SIZE"], id="a pod by what sets pods"),
    pytest.param("smaller-batch", {"incident.program": "rocm", "incident.in_python": False}, "rocm", [], id="no line of Python where none is shown"),
    pytest.param("fewer-workers", {"log.framework": "vllm", "incident.program": "ray"}, "ray", [], id="no loader of PyTorch where Ray ran out"),
])  # fmt: skip
def test_a_fix_is_written_for_what_runs(fix: str, facts: dict[str, Fact], program: str, expected: list[str]) -> None:
    assert lines(fix, facts, program) == expected


def test_every_line_can_be_typed() -> None:
    for _, fix in builtin_rule_set().fixes:
        for typed in fix.typed:
            assert typed.line.isascii(), fix.id
            assert typed.line == typed.line.strip(), fix.id
            assert "..." not in typed.line, f"{fix.id}: a line is whole"


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_every_fix_says_how_in_what_a_screen_has_room_for(lang: str) -> None:
    wording = Wording(lang)
    for _, fix in builtin_rule_set().fixes:
        how = bare(wording.first_sentences(wording.say(fix.how), 1))
        assert fix.typed or fix.command or fix.settings or len(how) <= HOW, fix.id


def test_no_fix_has_a_line_twice() -> None:
    for _, fix in builtin_rule_set().fixes:
        listed = [(typed.line, str(typed.when)) for typed in fix.typed]
        assert len(listed) == len(set(listed)), fix.id
