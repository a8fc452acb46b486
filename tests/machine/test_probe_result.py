"""The probe's answer comes from another program: with any form it gives an environment, and with the right one all of it."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.case.environment import Gpu, Python, TorchBuild
from oomdoctor.machine.probe.answer import ProbeResult, decode_answer
from oomdoctor.machine.probe.result import merge_cards, merge_interpreter, merge_torch_build, read_torch_run

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)
NAMES = ["imports", "version", "cuda", "arch_list", "cards", "failed", "error", "device_count", "nccl", "bf16_works"]
ANSWER = {
    "torch": {
        "imports": True, "version": "2.7.0+cu126", "cuda": "12.6", "cuda_available": True, "device_count": 1, "arch_list": ["sm_80", "sm_90"], "bf16_works": True,
        "cards": [{"index": 0, "name": "NVIDIA L4", "total_bytes": 23583850496, "free_bytes": 23000000000, "compute_capability": "8.9"}], "nccl": "2.26.2",
    }
}  # fmt: skip


def answering(said: object) -> ProbeResult:
    return ProbeResult(answer=decode_answer(msgspec.json.encode(said)))


@given(st.dictionaries(st.sampled_from(NAMES), ANY) | ANY, ANY)
def test_no_form_of_an_answer_raises(torch: object, python: object) -> None:
    answer = answering({"torch": torch, "python": python})
    merge_interpreter(answer, Python())
    merge_torch_build(TorchBuild(), answer)
    read_torch_run(answer)
    merge_cards((), answer)


def test_what_torch_says_of_itself_goes_before_what_its_files_say() -> None:
    build = merge_torch_build(TorchBuild(version="2.7.0", cuda="12.6", arch_list=("sm_70",)), answering(ANSWER))
    assert build is not None
    assert (build.version, build.cuda, build.arch_list) == ("2.7.0+cu126", "12.6", ("sm_80", "sm_90"))


def test_a_torch_that_did_not_import_says_nothing_of_its_build() -> None:
    build = TorchBuild(version="2.7.0")
    assert merge_torch_build(build, answering({"torch": {"imports": False, "version": "9.9"}})) is build


def test_cards_of_torch_stand_in_where_nobody_else_knows_any() -> None:
    found = merge_cards((), answering(ANSWER))
    assert found == (
        Gpu(index=0, name="NVIDIA L4", vendor="nvidia", total_bytes=23583850496, free_bytes=23000000000, compute_capability="8.9"),
    )
    known = (Gpu(index=0, name="NVIDIA L4"),)
    assert merge_cards(known, answering(ANSWER)) == known


def test_how_a_run_of_torch_ended() -> None:
    assert read_torch_run(ProbeResult(signal="SIGABRT", error="Aborted")).signal == "SIGABRT"
    assert read_torch_run(ProbeResult(timed_out=True)).timed_out
    run = read_torch_run(answering(ANSWER))
    assert (run.imports, run.cuda_available, run.device_count, run.bf16_works, run.nccl) == (True, True, 1, True, "2.26.2")
