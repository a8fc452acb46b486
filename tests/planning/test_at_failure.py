"""Which samples explain what was on the card."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from planning.runs import a_run

from oomdoctor.case.event import Certainty, Event, Kind, Outcome, Place
from oomdoctor.case.incident import Incident
from oomdoctor.planning.at_failure import at_failure, explaining_length

RUN = a_run(gradient_checkpointing=True)


def a_failure(allocated: int, phase: str | None = "backward") -> Incident:
    root = Event(
        signature="torch-cuda-oom",
        kind=Kind.DEVICE_OOM,
        certainty=Certainty.CERTAIN,
        outcome=Outcome.FAILURE,
        place=Place("train.log", 0),
        text="",
        fields={"allocated_bytes": allocated, "requested_bytes": 0},
    )
    return Incident(kind=Kind.DEVICE_OOM, root=root, certainty=Certainty.CERTAIN, phase=phase)


@given(st.integers(2, 512))
def test_the_length_that_was_there_is_found_again(steps: int) -> None:
    length = steps * 64
    at = at_failure(replace(RUN, length=length), a_failure(1))
    assert at is not None
    assert explaining_length(RUN, a_failure(at.expected)) == length


def test_less_than_the_weights_or_more_than_any_sample_has_another_reason() -> None:
    assert explaining_length(RUN, a_failure(1 << 30)) is None
    assert explaining_length(RUN, a_failure(1 << 50)) is None


def test_without_a_known_moment_nothing_is_said() -> None:
    assert at_failure(RUN, a_failure(20 << 30, None)) is None
    assert explaining_length(RUN, a_failure(20 << 30, None)) is None
