"""How many training steps had passed before a failure, by counters of many programs."""

from __future__ import annotations

import pytest

from oomdoctor.parse.traceback import whole_traceback
from oomdoctor.reading.progress import find_steps_passed


@pytest.mark.parametrize(("text", "steps"), [
    pytest.param(b"  6%|6         | 311/4876 [10:44<2:37:01,  2.06s/it]Traceback", 311, id="a bar of training"),
    pytest.param(b"\r  1%| | 3/300 [00:04<06:40]\r  1%| | 4/300 [00:05<06:39]", 4, id="the last state of a bar"),
    pytest.param(b"global_step: 120\n", 120, id="a counter with its name"),
    pytest.param(b"iteration 5/100 | loss 2.1\n", 5, id="Megatron's iterations"),
    pytest.param(b"Loading checkpoint shards:  75%|7| 3/4 [00:08<00:02,  2.01s/it]\n", None, id="a bar of loading"),
    pytest.param(b"Map: 100%|#| 52002/52002 [00:12<00:00, 4210.11 examples/s]\n", None, id="a bar of data"),
    pytest.param(b"model.safetensors:  10%|#| 12/4988 [00:01<04:00, 12.0MB/s]\n", None, id="a bar of bytes"),
    pytest.param(b"Capturing CUDA graph shapes:  40%|4| 14/35 [00:02<00:03]\n", None, id="a bar of a server's start"),
    pytest.param(b" 10%|1| 50/500 [01:00<09:00]\nEvaluating:  20%|2| 4/20 [00:01<00:05]\n", 50, id="an evaluation after steps"),
    pytest.param(b"100%|##| 3000001/3000001 [03:33<00:00, 14061.26it/s]\n", None, id="a bar at its end"),
    pytest.param(b"loss 2.1\n", None, id="no counter"),
])  # fmt: skip
def test_steps_that_had_passed(text: bytes, steps: int | None) -> None:
    assert find_steps_passed(text) == steps


FRAMES = b'Traceback (most recent call last):\n  File "/opt/run.py", line 3, in main\n    step()\n'


@pytest.mark.parametrize(("before", "kept"), [
    pytest.param(b"step 1\n" + FRAMES, FRAMES, id="from its head on"),
    pytest.param(b"[rank1]: " + FRAMES, b"[rank1]: " + FRAMES, id="with the rank before it"),
    pytest.param(b" 6%|6 | 311/4876 [10:44<2:37:01]" + FRAMES, FRAMES, id="without the bar before it"),
    pytest.param(FRAMES + b"the above was caught\n" + FRAMES, FRAMES, id="the last of two"),
    pytest.param(b"step 1\n", b"", id="none"),
    pytest.param(b"Traceback (most recent call last):\n", b"", id="a head alone"),
])  # fmt: skip
def test_the_traceback_that_leads_to_a_message(before: bytes, kept: bytes) -> None:
    assert whole_traceback(before) == kept
