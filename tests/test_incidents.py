"""What is root, what is consequence, what was survived, and what stays open."""

from __future__ import annotations

from functools import cache

import pytest

from oomdoctor.api import pipeline
from oomdoctor.case.case import Case
from oomdoctor.case.event import Event
from oomdoctor.knowledge.pack import Pack, load_pack

OOM = (
    "{tag}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU {gpu} has a total capacity of 23.69 GiB of which "
    "1.02 GiB is free. Including non-PyTorch memory, this process has 22.66 GiB memory in use. Of the allocated memory 21.40 GiB is allocated "
    "by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated."
)
SIGTERM = "W0105 10:00:01.100000 90 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 91 closing signal SIGTERM"
EXIT_9 = "E0105 10:00:01.100000 90 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) local_rank: 2 (pid: 93) of binary: /opt/env/bin/python"
CHILD = "E0105 10:00:01.100000 90 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 91) of binary: /opt/env/bin/python"
KERNEL = "[ 512.100000] Out of memory: Killed process 93 (python) total-vm:900000kB, anon-rss:800000kB, file-rss:4kB, shmem-rss:0kB, UID:0 pgtables:9kB oom_score_adj:0"
STEP_OVER = "slurmstepd: error: Detected 1 oom_kill event in StepId=77120.0. Some of the step tasks have been OOM Killed."
CUDNN = "RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED"
CRASH = "E0105 10:00:01.100000 90 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -11) local_rank: 1 (pid: 92) of binary: /opt/env/bin/python"
WAITED = "[rank1]:[E105 10:00:01.100 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=90, OpType=ALLREDUCE, NumelIn=12, NumelOut=12, Timeout(ms)=600000) ran for 600011 milliseconds before timing out."
TEARDOWN = "[rank1]:[E105 10:00:01.100 ProcessGroupNCCL.cpp:621] Some NCCL operations have failed or timed out."
REFUSED = "node7:512:790 [2] include/shm.h:26 NCCL WARN Call to shm_open failed : Permission denied"
SEGMENT = "node7:512:790 [2] include/shm.h:48 NCCL WARN Error while creating shared memory segment nccl-shm-recv-5f1b9d20c44e71aa-1-0-2 (size 4460544)"
ASSERT = "RuntimeError: CUDA error: device-side assert triggered"
BAR = " 41%|####      | {step}/900 [10:00<12:00,  1.50s/it]"
SKIPPED = "WARNING: ran out of memory with exception: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 7.93 GiB total capacity; 7.20 GiB already allocated; 17.56 MiB free; 46.25 MiB cached);\n Skipping batch"


class EndedThere:
    """Nothing in the logs stands behind their failures."""

    def went_on(self, event: Event) -> bool:  # noqa: ARG002 - the protocol's
        return False

    def ended_well(self, event: Event) -> bool:  # noqa: ARG002 - the protocol's
        return False


@cache
def pack() -> Pack:
    return load_pack()


def case(*lines: str) -> Case:
    return pipeline.diagnose_logs(["run.log"], pack(), text="\n".join(lines).encode()).case


@pytest.mark.parametrize(("lines", "failure", "kind"), [
    pytest.param([OOM.format(tag="", gpu=0)], "yes", "device-oom", id="an explicit message"),
    pytest.param([OOM.format(tag="", gpu=0), SIGTERM, CHILD], "yes", "device-oom", id="an explicit message and the launcher's end"),
    pytest.param([CHILD], "possible", "consequence", id="only what a launcher says"),
    pytest.param([EXIT_9], "yes", "host-oom", id="SIGKILL of a rank is likely the kernel's, and the other reading is named"),
    pytest.param(["Killed"], "yes", "host-oom", id="Killed alone, which little else sends"),
    pytest.param(["Loading checkpoint shards:  25%|##5  | 1/4 [00:20<01:00, 20.00s/it]", EXIT_9], "yes", "host-oom", id="SIGKILL while a model is loading"),
    pytest.param([EXIT_9, KERNEL], "yes", "host-oom", id="SIGKILL with the kernel's own line"),
    pytest.param([CUDNN], "possible", "masked-device-oom", id="a library that could not start has two readings"),
    pytest.param([ASSERT, CUDNN], "no", "look-alike", id="a library error after a failed assert is its echo"),
    pytest.param([ASSERT], "no", "look-alike", id="an index error on the device"),
    pytest.param([CRASH], "no", "look-alike", id="a segmentation fault that a launcher reports"),
    pytest.param([CRASH, CHILD], "no", "look-alike", id="a segmentation fault and what followed"),
    pytest.param([CUDNN, CRASH], "possible", "masked-device-oom", id="how a process ended answers no question that stood before"),
    pytest.param([CRASH, CUDNN], "no", "look-alike", id="a library error after a segmentation fault"),
    pytest.param([OOM.format(tag="", gpu=0), CRASH], "yes", "device-oom", id="an explicit message and a segmentation fault at the end"),
    pytest.param([WAITED], "no", "look-alike", id="a collective that waited its full time"),
    pytest.param([BAR.format(step=100), KERNEL, BAR.format(step=140), WAITED], "yes", "host-oom", id="the others worked on until they waited for the one that was killed"),
    pytest.param(
        [BAR.format(step=100), "RuntimeError: CUDA error: out of memory", "Converting: 100%|####| 3000/3000 [00:00<00:00, 2000.00 examples/s]"],
        "yes", "device-oom", id="a bar of another length is no progress of the run",
    ),
    pytest.param([BAR.format(step=100), KERNEL, BAR.format(step=140)], "no", "none", id="a process was killed that nobody missed"),
    pytest.param([BAR.format(step=100), STEP_OVER, BAR.format(step=140)], "yes", "host-oom", id="a step that lost a process, and the progress of another step"),
    pytest.param(["Killed", WAITED], "yes", "host-oom", id="a collective that waited for a rank that was killed"),
    pytest.param([OOM.format(tag="", gpu=0), WAITED], "yes", "device-oom", id="a collective that waited for a rank without memory"),
    pytest.param([TEARDOWN], "possible", "consequence", id="NCCL's end follows any error"),
    pytest.param([SEGMENT], "yes", "shm-oom", id="a segment of shared memory that could not be made"),
    pytest.param([REFUSED, SEGMENT], "no", "look-alike", id="a segment that was refused for another reason"),
    pytest.param(["everything is fine"], "no", "none", id="nothing"),
    pytest.param([BAR.format(step=100), SKIPPED, BAR.format(step=101), BAR.format(step=140)], "no", "none", id="a batch was skipped and the run went on"),
    pytest.param([BAR.format(step=100), SKIPPED], "yes", "device-oom", id="a batch was skipped and nothing came after"),
    pytest.param(
        [BAR.format(step=100), SKIPPED, BAR.format(step=140), OOM.format(tag="", gpu=0)], "yes", "device-oom", id="survived once, died later"
    ),
])  # fmt: skip
def test_verdict(lines: list[str], failure: str, kind: str) -> None:
    found = case(*lines).verdict
    assert (found.memory_failure, found.kind.value) == (failure, kind)


def test_the_first_rank_is_the_root_and_the_others_are_counted() -> None:
    lines = [OOM.format(tag=f"[rank{rank}]: ", gpu=rank) for rank in (5, 0, 3)]
    (incident,) = case(*lines, SIGTERM, CHILD).incidents
    assert (incident.root.rank, incident.ranks, incident.gpus, incident.count) == (5, (0, 3, 5), (0, 3, 5), 3)
    assert {event.signature for event in incident.consequences} == {"elastic-sending-sigterm", "elastic-exitcode-other"}


def test_a_kill_after_a_device_failure_is_its_consequence() -> None:
    (incident,) = case(OOM.format(tag="[rank1]: ", gpu=1), EXIT_9).incidents
    assert incident.kind.value == "device-oom"
    assert [event.fields.get("exit_code") for event in incident.consequences] == [-9]


def test_two_memories_that_ran_out_are_two_incidents() -> None:
    found = case(OOM.format(tag="", gpu=0), KERNEL)
    assert [incident.kind.value for incident in found.incidents] == ["device-oom", "host-oom"]


def test_possible_names_the_check_that_settles_it() -> None:
    assert case(EXIT_9).verdict.settle == "sigkill"
    assert case(CUDNN).verdict.settle == "library-not-initialized"
    assert case(CHILD).verdict.settle == "first-rank-log"


def test_a_warning_before_the_error_is_evidence_and_not_the_root() -> None:
    warning = "[W105 10:00:00.1 CUDACachingAllocator.cpp:3600] Warning: memory allocation failed with OOM on device 0 while trying to allocate 2147483648 bytes (free: 1095216660, total: 25436943811)"
    (incident,) = case(warning, OOM.format(tag="", gpu=0)).incidents
    assert incident.root.signature == "torch-cuda-oom-24-rename"
    assert case(warning).verdict.memory_failure == "no"


def test_files_of_several_ranks_are_ordered_by_time() -> None:
    late = "2026-01-05 10:00:09,000 " + OOM.format(tag="", gpu=0)
    early = "2026-01-05 10:00:01,000 " + OOM.format(tag="", gpu=1)
    events = [
        event
        for name, text in (("a.log", late), ("b.log", early))
        for event in pipeline.diagnose_logs([name], pack(), text=text.encode()).case.events
    ]
    from oomdoctor.judging.incidents import find_incidents

    (incident,) = find_incidents(events, EndedThere())
    assert incident.root.place.source == "b.log"


@pytest.mark.parametrize(("lines", "phase"), [
    pytest.param(['  File "/x/torch/autograd/__init__.py", line 9, in backward', "    run()"], "backward", id="backward"),
    pytest.param(
        ['  File "/x/transformers/trainer.py", line 9, in training_step', "    self.accelerator.backward(loss, **kwargs)"],
        "backward",
        id="a traceback that is cut at the call of backward",
    ),
    pytest.param(['  File "/x/transformers/trainer.py", line 9, in evaluation_loop', "    x"], "evaluation", id="evaluation"),
    pytest.param(['  File "/x/transformers/modeling_utils.py", line 9, in from_pretrained', "    x"], "model-load", id="load"),
    pytest.param(['  File "/x/torch/optim/adamw.py", line 9, in step', "    x"], "optimizer-step", id="optimizer"),
    pytest.param(["nothing about frames"], None, id="unknown is unknown"),
])  # fmt: skip
def test_phase_from_the_traceback(lines: list[str], phase: str | None) -> None:
    found = case("Traceback (most recent call last):", *lines, OOM.format(tag="", gpu=0))
    assert found.incidents[0].phase == phase


def test_a_system_call_of_nccl_is_settled_by_its_own_log() -> None:
    assert case("RuntimeError: NCCL Error 2: unhandled system error").verdict.settle == "nccl-debug"
    assert case(CHILD).verdict.settle == "first-rank-log"
