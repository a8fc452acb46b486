"""A word is not a death: logs of healthy runs that speak of exhausted memory raise no alarm, and their near misses do."""

from __future__ import annotations

from functools import cache

import pytest

from oomdoctor.api import pipeline
from oomdoctor.case.case import Verdict
from oomdoctor.knowledge.pack import Pack, load_pack


@cache
def pack() -> Pack:
    return load_pack()


def verdict(log: str) -> Verdict:
    return pipeline.diagnose_logs(["run.log"], pack(), text=log.encode()).case.verdict


HEALTHY = [
    pytest.param("12:00:01 INFO mem 30.2/32.0 GiB, no OOM so far\n12:10:01 INFO mem 30.4/32.0 GiB\n", id="a monitor that says that nothing ran out"),
    pytest.param("epoch 4 done\nOOM count: 0\n", id="a counter at nought"),
    pytest.param("import torch\nAttributeError: module 'torch.cuda' has no attribute 'OutOfMemoryError'\n", id="a name that an old torch lacks"),
    pytest.param("gpu_util=97 oom_events=0 OOM=false\n", id="switches and counters of a metrics line"),
    pytest.param("Tip: lower --batch if you run out of memory.\nstarting up\n", id="a tip at the start"),
    pytest.param("usage: fit [-h] [--rows N]\nfit: error: unrecognized arguments: --row\nHint: use --rows if the job is out of memory\n", id="argparse, and a hint"),
    pytest.param("WARNING: CUDA out of memory at batch 96, retrying with 48\nepoch 1 done, loss 0.71\n", id="tried again with less, and went on"),
    pytest.param("W: out of memory on the fast path, falling back to the slow path\nprocessed 900 files\nfinished successfully\n", id="another path was taken"),
    pytest.param("commit 77ab01c\nAuthor: A <a@b.c>\n\n    trainer: CUDA out of memory is caught now\n", id="git log"),
    pytest.param("77ab01c fix out of memory in the eval loop\n1f00d2e docs: what to do on out of memory\n", id="git log, one line each"),
    pytest.param("## 2.4.1\n- Fixed an out of memory error with long prompts\n- Faster start\n", id="a change log"),
    pytest.param("try:\n    step()\nexcept RuntimeError as e:\n    if 'out of memory' in str(e):\n        torch.cuda.empty_cache()\n", id="a listing of code"),
    pytest.param("# raises MemoryGone when we are out of memory\ndef alloc(n):\n    return pool.take(n)\n", id="a comment in code"),
    pytest.param("tests/test_alloc.py::test_out_of_memory_is_told PASSED\n1 passed in 0.10s\n", id="pytest"),
    pytest.param("PASS: out of memory is reported once\nok 12 - survives out of memory\n# 12 tests, 0 failures\n", id="a test runner of another language"),
    pytest.param("--- PASS: TestOutOfMemory (0.00s)\nok  \tfarm/alloc\t0.4s\n", id="go test"),
    pytest.param("Collecting oom-guard\n  Downloading oom_guard-0.2-py3-none-any.whl (9 kB)\nSuccessfully installed oom-guard-0.2\n", id="pip"),
    pytest.param("| option | what for |\n|---|---|\n| --swap | when out of memory |\n", id="a table of options"),
    pytest.param("To avoid running out of memory, activations are recomputed.\nStep 12 loss 2.1\n", id="why a program does what it does"),
    pytest.param("OOM killer is disabled for this unit\nStarted farm worker.\n", id="the killer as a thing"),
    pytest.param("oom_score_adj: OOM score adjusted to -500\nlistening on 0.0.0.0:8000\n", id="the score as a thing"),
    pytest.param("INFO  OOM handling: on, retries: 3\nINFO  step 5\n", id="what is switched on"),
    pytest.param("The run finished without running out of memory.\n", id="said in words"),
    pytest.param("训练没有出现 OOM，一切正常\n", id="said in words, in Chinese"),
    pytest.param("提示：如果显存不足，请调小 batch\n开始训练\n", id="a tip in Chinese"),
    pytest.param("警告：显存不足，自动减半 batch 后重试\nepoch 2 loss: 0.31\n训练完成\n", id="halved and went on, in Chinese"),
    pytest.param("peak memory 21.4 GiB of 23.6 GiB\nTraining completed.\n", id="a table of memory"),
    pytest.param("ValueError: bad sample 17, skipping\nstep 100 loss 1.20\nstep 200 loss 1.10\nTraining completed.\n", id="an error that was skipped"),
    pytest.param("cache: not enough memory for 4 tiles, splitting into 8\nimage saved to out.png\n", id="split into smaller parts"),
    pytest.param("[client 7] server could be out of memory, will retry in 5 s\n[client 7] connected\nstep 7\n", id="a client that waits"),
    pytest.param("Allocation of 812 MB failed: out of memory, offloading to host\n31.2 tok/s\n", id="moved to the host, and answers"),
    pytest.param("Searching batch size: 64 out of memory, reducing\nbatch size 32 fits\nepoch 1 done\n", id="a search for the batch size"),
    pytest.param("fuzz: OutOfMemoryErrors: 0, timeouts: 0, execs: 120000\n", id="a fuzzer's figures"),
    pytest.param('{"job": 9, "state": "done", "OOM": 0, "exit": 0}\n', id="a record in JSON"),
    pytest.param("Q: what if it goes out of memory?\nA: use a smaller model.\n", id="questions and answers"),
    pytest.param("## Docs: the out of memory page has a dead link\nPlease update it.\n", id="a request about documents"),
    pytest.param("### Feature request\nIt would be great if runs that are out of memory were told so by mail.\n", id="a wish"),
    pytest.param("Loss is NaN after 90 steps. No OOM.\n", id="another trouble, and none of memory"),
    pytest.param("# 3.2\n- out of memory in the sampler no longer stops the server\n- faster\n", id="a list of changes"),
    pytest.param("1a2b3c4 reduce peaks: out of memory with 70B\n5d6e7f8 next\n", id="a log of changes, each behind its number"),
    pytest.param("pool.c:99:    die(\"cannot allocate %zu bytes\", n);\n", id="what grep prints"),
    pytest.param("11 EAGAIN Try again\n12 ENOMEM Cannot allocate memory\n", id="a table of error numbers"),
    pytest.param("watchd[30]: looking for out of memory conditions\nready\n", id="what a watcher looks for"),
    pytest.param("常见问题\n问：显存不足怎么办？\n答：减小批大小。\n", id="questions and answers in Chinese"),
    pytest.param("the model is too large (not enough memory), so part of it is on the host\nanswer: 4\n", id="a part on the host"),
    pytest.param("[W] trial 4: out of memory; pruned\n[I] trial 5 finished with value 0.3\n", id="a trial that was pruned"),
    pytest.param("CUDA out of memory. Tried to allocate 1.20 GiB\nusing batch size 26\nEpoch 1/3 loss 1.2\nEpoch 2/3 loss 1.1\n", id="a known message in a search for the batch size"),
    pytest.param("task: set the score so that OOM does not end the shell\nchanged=1\n", id="what does not happen"),
    pytest.param("memory_limit = 8Gi # OOM below 6Gi\n1 added\n", id="a comment behind a setting"),
    pytest.param("batch,gb,status\n64,12.1,ok\n128,,OOM\n", id="cells of a table"),
    pytest.param("3 of 40 trials ran out of memory and were discarded\nbest loss 0.21\n", id="trials that were discarded"),
    pytest.param("tiles: 8 GB could not be allocated, trying another way\nepoch 1 done\n", id="another way of doing it"),
    pytest.param("oom_events_total{pod=\"a\"} 0\n# HELP oom_events_total out of memory events\n", id="metrics of a cluster"),
    pytest.param("mode=fast\nOOM retries enabled, margin 5%\nserver is listening on port 8000\n", id="a server that is ready"),
]  # fmt: skip


@pytest.mark.parametrize("log", HEALTHY)
def test_a_word_is_no_alarm(log: str) -> None:
    found = verdict(log)
    assert found.memory_failure == "no", found


@pytest.mark.parametrize("log", [
    pytest.param("farm: fatal: out of memory\n", id="a program's last word"),
    pytest.param("OOM count: 2\nfarmd: error: cannot allocate 3 pages\n", id="a counter, then a refusal"),
    pytest.param("Tip: lower --batch if you run out of memory.\nFarmError: out of device memory\n", id="a tip, then the failure"),
    pytest.param("WARNING: out of memory at batch 96, retrying with 48\nFarmError: out of memory at batch 48\n", id="tried again in vain"),
    pytest.param("step 1\nstep 2\nstep 3\nstep 4\nstep 5\nERROR: not enough memory for the optimizer, stopping\n", id="the last line of a longer log"),
    pytest.param("no cards were lost\nout of memory\n", id="a denial in another line"),
    pytest.param("显存不足，程序终止\n", id="in Chinese"),
    pytest.param("could not allocate 3 blocks: OOM\n", id="could not is no could"),
    pytest.param("Failed to load the model\nModel loading was stopped due to insufficient system resources.\n", id="a desktop program that refuses to load a model"),
    pytest.param("Error: 0 of 4 workers ready: out of memory: 0 bytes left\n", id="noughts that are no counters"),
    pytest.param("training is OOM on my box, 24 GB, please help\n", id="somebody who says so"),
    pytest.param("step 1\nstep 2\nstep 3\nstep 4\nfarm: out of memory\n", id="a longer log that ends with the words"),
    pytest.param("terminate called after throwing an instance of 'farm::full'\n  what():  out of memory\n", id="what a C++ program threw, in its own line"),
    pytest.param("10:00:01 | CRITICAL | farm:run - not enough memory, exiting\n", id="columns of a logger"),
    pytest.param("FarmOOMError: device 0 is full\n", id="in the name of an error"),
    pytest.param("thread 'main' panicked at src/a.rs:3: out of memory\n", id="a panic"),
    pytest.param("GPU 0 ran out of memory while it was handling request 3, shutting down\n", id="a number that denies nothing"),
    pytest.param("FarmError: the pool is out of memory. Reducing the batch size may help.\n", id="advice is no handling"),
    pytest.param("not enough memory. Try reducing the batch.\n", id="advice behind the failure"),
    pytest.param("time=\"10:00:01\" level=fatal msg=\"cannot allocate 12 GB on device 0\"\n", id="keys and values"),
])  # fmt: skip
def test_a_failure_is_an_alarm(log: str) -> None:
    assert verdict(log).memory_failure in ("yes", "possible")


@pytest.mark.parametrize(("log", "survived"), [
    pytest.param("CUDA out of memory at batch 96, retrying with 48\nepoch 1 done, loss 0.71\n", True, id="tried again, and went on"),
    pytest.param("epoch 1 done, loss 0.71\nepoch 2 done, loss 0.65\n", False, id="nothing happened"),
    pytest.param("OOM count: 0\nepoch 2 done, loss 0.65\n", False, id="a counter at nought"),
    pytest.param("job-1  | OOM Detected, reducing batch/grad size to 0/4.██▊  | 2/9 [00:00<00:01,  3.91it/s]\njob-1  | Traceback (most recent call last):\n"
                 "job-1  |   File \"/srv/dreambooth/memory.py\", line 90, in decorator\n", False, id="a bar that ends the line of the failure is no work behind it"),
])  # fmt: skip
def test_what_was_handled_is_said_to_be_survived(log: str, survived: bool) -> None:
    assert verdict(log).survived is survived


@pytest.mark.parametrize(("log", "failure"), [
    pytest.param("RuntimeError: CUDA out of memory. Tried to allocate more than 1EB memory.", "no", id="a size beyond all numbers"),
    pytest.param("[2026-03-11 10:00:00 +0000] [7] [CRITICAL] WORKER TIMEOUT (pid:81)\n[2026-03-11 10:00:01 +0000] [7] [ERROR] Worker (pid:81) was sent SIGKILL! Perhaps out of memory?", "no", id="a supervisor's guess behind its own time-out"),
    pytest.param("[2026-03-11 10:00:00 +0000] [7] [CRITICAL] WORKER TIMEOUT (pid:80)\n[2026-03-11 10:00:01 +0000] [7] [ERROR] Worker (pid:81) was sent SIGKILL! Perhaps out of memory?", "yes", id="a supervisor's guess about another worker"),
    pytest.param("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4194304.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 20.02 GiB is free.", "no", id="a size beyond all memories"),
    pytest.param("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 900.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 20.02 GiB is free.", "yes", id="more than a card, as scores of long prompts are"),
    pytest.param("RuntimeError: CUDA driver error: out of memory", "possible", id="the driver's own words have two readings"),
])  # fmt: skip
def test_a_size_that_nothing_has_is_no_shortage(log: str, failure: str) -> None:
    assert verdict(log).memory_failure == failure


@pytest.mark.parametrize(("ending", "failure"), [
    pytest.param("RuntimeError: kernel_of_graph(3, &buffer) API call failed at graph.main.cpp, line 81", "yes", id="a call that failed and says not why"),
    pytest.param("terminate called without an active exception\nAborted (core dumped)", "yes", id="a program that was aborted"),
    pytest.param("ValueError: labels must be integers", "no", id="an error with a reason of its own"),
    pytest.param("step 1 loss 2.10\nstep 2 loss 2.05\nTraining completed.", "no", id="a run that went on"),
])  # fmt: skip
def test_a_warning_names_an_error_that_names_nothing(ending: str, failure: str) -> None:
    warning = "[W402 10:00:00.000000000 CUDACachingAllocator.cpp:508] expandable_segments: memory mapping failed with OOM on device 0 while trying to map 41943040 bytes (free: 20971520, total: 25757220864)."
    assert verdict(f"{warning}\n{ending}\n").memory_failure == failure
