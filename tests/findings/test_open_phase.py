"""Where only a message is left, what to do depends on when the run died; where something tells that, nothing is left open."""

from __future__ import annotations

import pytest

import oomdoctor
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.document import BriefSteps, Style
from oomdoctor.report.wording.wording import Wording

FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked} MiB. GPU 0 has a total capacity of 23.65 GiB of which 21.06 MiB is"
    " free. Including non-PyTorch memory, this process has 23.62 GiB memory in use. Of the allocated memory {held} GiB is allocated by PyTorch,"
    " and {idle} MiB is reserved by PyTorch but unallocated.\n"
)
ROOMY, TIGHT = FULL.format(asked=296, held=22.71, idle=587.44), FULL.format(asked=90, held=23.26, idle=9.44)
IN_A_STEP = (
    'Traceback (most recent call last):\n  File "/srv/job/fit.py", line 41, in <module>\n    loss.backward()\n'
    '  File "/opt/venv/lib/python3.11/site-packages/torch/_tensor.py", line 581, in backward\n    torch.autograd.backward(\n'
)
WITH_BATCH = "{'per_device_train_batch_size': 8, 'gradient_accumulation_steps': 2, 'output_dir': 'out'}\n"
OTHERS = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 74.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 45.06 MiB is"
    " free. Process 21702 has 14.94 GiB memory in use. Including non-PyTorch memory, this process has 8.60 GiB memory in use. Of the allocated"
    " memory 8.21 GiB is allocated by PyTorch, and 9.49 MiB is reserved by PyTorch but unallocated.\n"
)


def found(log: str) -> Diagnosis:
    return oomdoctor.diagnose(log.encode())


@pytest.mark.parametrize(("log", "expected"), [
    pytest.param(ROOMY, ["training-step", "loading", "generating"], id="a cache that was used: a step is the likeliest"),
    pytest.param(TIGHT, ["loading", "training-step", "generating"], id="hardly any cache and a small request: loading is"),
])  # fmt: skip
def test_the_likeliest_time_stands_first(log: str, expected: list[str]) -> None:
    open_phase = found(log).open_phase
    assert open_phase is not None
    assert [phase.id for phase in open_phase.phases] == expected


@pytest.mark.parametrize("log", [
    pytest.param(IN_A_STEP + ROOMY, id="the traceback tells"),
    pytest.param(WITH_BATCH + ROOMY, id="the settings are those of a training run"),
    pytest.param("  4%|4         | 21/520 [00:58<23:11,  2.79s/it]" + ROOMY, id="steps had passed"),
    pytest.param(FULL.format(asked=4096, held=22.71, idle=587.44), id="one request of a good part of the card is no weight"),
    pytest.param(OTHERS, id="somebody else holds the card"),
    pytest.param("the job ended without a message\n", id="no failure of memory"),
])  # fmt: skip
def test_nothing_is_left_open_where_the_log_tells(log: str) -> None:
    assert found(log).open_phase is None


@pytest.mark.parametrize(("lang", "evidence"), [("en", "the traceback above it"), ("zh", "看报错上方的堆栈")])
@pytest.mark.parametrize("log", [ROOMY, TIGHT])
def test_each_time_has_what_to_type_and_one_line_tells_which_it_was(log: str, lang: str, evidence: str) -> None:
    blocks = compose(found(log), Wording(lang), "0").blocks
    *times, settling = next(block.steps for block in blocks if isinstance(block, BriefSteps))
    assert all(any(span.style is Style.CODE for span in step.do) for step in times)
    told = "".join(span.text for span in settling.do)
    assert evidence in told
    assert "--config" not in told
