"""The probe's answer comes from another program: with any form it gives an environment, and with the right one all of it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.case.environment import Gpu, Python, TorchBuild
from oomdoctor.machine.probe import result as answered
from oomdoctor.machine.probe.client import ProbeResult

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
)
NAMES = ["imports", "version", "cuda", "arch_list", "cards", "failed", "error", "device_count", "nccl", "bf16_works"]
SAID = {
    "torch": {
        "imports": True, "version": "2.7.0+cu126", "cuda": "12.6", "cuda_available": True, "device_count": 1, "arch_list": ["sm_80", "sm_90"], "bf16_works": True,
        "cards": [{"index": 0, "name": "NVIDIA L4", "total_bytes": 23583850496, "free_bytes": 23000000000, "compute_capability": "8.9"}], "nccl": "2.26.2",
    }
}  # fmt: skip


@given(st.dictionaries(st.sampled_from(NAMES), ANY) | ANY, ANY)
def test_no_form_of_an_answer_raises(torch: object, python: object) -> None:
    answer = ProbeResult(said={"torch": torch, "python": python})
    answered.interpreter(answer, Python())
    answered.torch_build(TorchBuild(), answer)
    answered.torch_run(answer)
    answered.cards((), answer)


def test_what_torch_says_of_itself_goes_before_what_its_files_say() -> None:
    build = answered.torch_build(TorchBuild(version="2.7.0", cuda="12.6", arch_list=("sm_70",)), ProbeResult(said=SAID))
    assert build is not None
    assert (build.version, build.cuda, build.arch_list) == ("2.7.0+cu126", "12.6", ("sm_80", "sm_90"))


def test_a_torch_that_did_not_import_says_nothing_of_its_build() -> None:
    build = TorchBuild(version="2.7.0")
    assert answered.torch_build(build, ProbeResult(said={"torch": {"imports": False, "version": "9.9"}})) is build


def test_cards_of_torch_stand_in_where_nobody_else_knows_any() -> None:
    found = answered.cards((), ProbeResult(said=SAID))
    assert found == (
        Gpu(index=0, name="NVIDIA L4", vendor="nvidia", total_bytes=23583850496, free_bytes=23000000000, compute_capability="8.9"),
    )
    known = (Gpu(index=0, name="NVIDIA L4"),)
    assert answered.cards(known, ProbeResult(said=SAID)) == known


def test_how_a_run_of_torch_ended() -> None:
    assert answered.torch_run(ProbeResult(signal="SIGABRT", error="Aborted")).signal == "SIGABRT"
    assert answered.torch_run(ProbeResult(timed_out=True)).timed_out
    run = answered.torch_run(ProbeResult(said=SAID))
    assert (run.imports, run.cuda_available, run.device_count, run.bf16_works, run.nccl) == (True, True, 1, True, "2.26.2")
