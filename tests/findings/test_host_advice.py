"""Host memory is no one bundle: what ran and what limited it decide the finding, the key and its value."""

from __future__ import annotations

import pytest
from findings.situation import Situation, said_first

import oomdoctor
from oomdoctor.advice.fixes import unique_fixes
from oomdoctor.report.wording.phrases import setting_line

DESCRIBED_POD = """\
    State:          Terminated
      Reason:       OOMKilled
      Exit Code:    137
    Limits:
      cpu:             16
      memory:          {limit}
    Requests:
      cpu:             16
      memory:          {limit}
"""
VOLUME = """\
Volumes:
  shm:
    Type:       EmptyDir (a temporary directory that shares a pod's lifetime)
    Medium:     Memory
    SizeLimit:  40Gi
"""
MEMCG = (
    "[90211.31] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg={group},task_memcg={group},"
    "task=python,pid=3011,uid=0\n"
    "[90211.31] Memory cgroup out of memory: Killed process 3011 (python) total-vm:51200000kB, anon-rss:30408704kB, file-rss:1024kB, "
    "shmem-rss:0kB, UID:0 pgtables:61000kB oom_score_adj:0\n"
)
GLOBAL = (
    "[7712.10] trainer invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE|__GFP_COMP), order=0, oom_score_adj=0\n"
    "[7712.11] Out of memory: Killed process 6203 (python3) total-vm:90000000kB, anon-rss:60817408kB, file-rss:0kB, shmem-rss:0kB, UID:1000 "
    "pgtables:120000kB oom_score_adj:0\n"
    "[7712.99] oom_reaper: reaped process 6203 (python3), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB\n"
)
LOADING = "Loading checkpoint shards:  40%|####      | 2/5 [00:31<00:47, 15.80s/it]\n"
SLURM = "slurmstepd: error: Detected 1 oom_kill event in StepId=5502.0. Some of the step tasks have been OOM Killed.\n"

SITUATIONS = [
    Situation("a pod that reached its limit gets a quarter more than it had", DESCRIBED_POD.format(limit="96Gi"),
              "pod-memory-limit", "raise-container-memory-limit", "resources.limits.memory: 128Gi"),
    Situation("a large pod is never told a smaller limit", DESCRIBED_POD.format(limit="400Gi"),
              "pod-memory-limit", "raise-container-memory-limit", "resources.limits.memory: 512Gi"),
    Situation("a small pod gets whole GiB", DESCRIBED_POD.format(limit="6Gi"),
              "pod-memory-limit", "raise-container-memory-limit", "resources.limits.memory: 8Gi"),
    Situation("a pod whose limit is not shown gets no invented number", "    Last State:     Terminated\n      Reason:       OOMKilled\n",
              "pod-memory-limit", "raise-container-memory-limit", "resources.limits.memory: <N>Gi"),
    Situation("a manifest below the state says the limit", "trainer-0   0/1   OOMKilled   2 (30s ago)   9m\n    resources:\n      limits:\n        memory: 20Gi\n",
              "pod-memory-limit", "raise-container-memory-limit", "resources.limits.memory: 28Gi"),
    Situation("the kernel's line names the pod", MEMCG.format(group="/kubepods/burstable/pod1f2e/9a0c"),
              "pod-memory-limit", "raise-container-memory-limit", "resources.limits.memory: 40Gi"),
    Situation("an evicted pod asked for too little", "Warning  Evicted  3m  kubelet  The node was low on resource: memory. Threshold quantity: 100Mi, "
              "available: 90112Ki. Container fit was using 41943040Ki, request is 8Gi, has larger consumption of memory.\n",
              "node-evicted-the-pod", "raise-memory-request", "resources.requests.memory: 52Gi"),
    Situation("a step of Slurm that was asked for with --mem", "#SBATCH --mem=60G\n" + SLURM,
              "job-memory-limit", "raise-container-memory-limit", "sbatch --mem 80G"),
    Situation("a step of Slurm that was asked for by cores", "#SBATCH --mem-per-cpu=4G\n" + SLURM,
              "job-memory-limit", "raise-container-memory-limit", "sbatch --mem-per-cpu 5G"),
    Situation("Slurm's account tells the largest use", "5502.batch    batch  OUT_OF_ME+  0:125   50331648K\n",
              "job-memory-limit", "raise-container-memory-limit", "sbatch --mem 60G"),
    Situation("seff tells use and limit", SLURM + "Memory Utilized: 31.60 GB\nMemory Efficiency: 98.75% of 32.00 GB\n",
              "job-memory-limit", "raise-container-memory-limit", "sbatch --mem 40G"),
    Situation("the job's record tells the limit", "   ReqTRES=cpu=8,mem=180G,node=1,billing=8\n" + SLURM,
              "job-memory-limit", "raise-container-memory-limit", "sbatch --mem 240G"),
    Situation("Slurm's accounting enforces the limit", "slurmstepd: error: StepId=391.batch exceeded memory limit (7526939136 > 4294967296), being killed\n",
              "job-memory-limit", "raise-container-memory-limit", "sbatch --mem 9G"),
    Situation("Slurm without any figure gets no invented number", "srun: error: node4: task 1: Out Of Memory\n",
              "job-memory-limit", "raise-container-memory-limit", "sbatch --mem <N>G"),
    Situation("PBS ends a job above its memory", "=>> PBS: job killed: mem 33554500kb exceeded limit 33554432kb\n",
              "job-memory-limit", "raise-container-memory-limit", "qsub -l mem=44gb"),
    Situation("HTCondor counts in MiB", "Error from slot1_4@node9: Job has gone over memory limit of 4096 megabytes. Peak usage: 4210 megabytes.\n",
              "job-memory-limit", "raise-container-memory-limit", "request_memory: 6144"),
    Situation("LSF ends a job above its memory", "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.\n",
              "job-memory-limit", "raise-container-memory-limit", "bsub -M <N>G"),
    Situation("a container of docker reached its limit", "$ docker run --gpus all --memory=32g img python fit.py\n" + MEMCG.format(group="/docker/4af09c11d0ab"),
              "container-memory-limit", "raise-container-memory-limit", "docker run --memory 40g"),
    Situation("a group of the kernel that nobody names", MEMCG.format(group="/user.slice/job7"),
              "container-memory-limit", "raise-container-memory-limit", "memory.max: 40G"),
    Situation("YARN counts what is beside the heap", "Reason: Container killed by YARN for exceeding memory limits. 12.2 GB of 12 GB physical memory used. "
              "Consider boosting spark.executor.memoryOverhead.\n",
              "executor-container-limit", "spark-memory", "spark.executor.memoryOverhead: 4g"),
    Situation("the heap of an executor of Spark", "spark-submit --executor-memory 6g job.py\norg.apache.spark.SparkException: Job aborted\n"
              "Caused by: java.lang.OutOfMemoryError: Java heap space\n", "java-heap-full", "java-heap", "spark.executor.memory: 12g"),
    Situation("the heap of a plain Java program", "+ java -Xmx3g -jar indexer.jar\nException in thread \"main\" java.lang.OutOfMemoryError: Java heap space\n",
              "java-heap-full", "java-heap", "-Xmx6g"),
    Situation("the heap of Node.js", "NODE_OPTIONS=--max-old-space-size=3000 npm run build\n"
              "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n",
              "node-heap-full", "node-heap", "NODE_OPTIONS=--max-old-space-size=6144"),
    Situation("the heap of Node.js without a setting", "FATAL ERROR: Ineffective mark-compacts near heap limit Allocation failed - JavaScript heap out of memory\n",
              "node-heap-full", "node-heap", "NODE_OPTIONS=--max-old-space-size=8192"),
    Situation("a matrix of numpy", "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 29.8 GiB for an array with shape (63246, 63246) and data type float64\n",
              "array-larger-than-memory", "array-in-pieces", "numpy.memmap(mode=\"r\")"),
    Situation("a vector of R", "Error: cannot allocate vector of size 7.5 Gb\nExecution halted\n", "array-larger-than-memory", "array-in-pieces"),
    Situation("a table that pandas reads whole", "pandas.errors.ParserError: Error tokenizing data. C error: out of memory\n",
              "array-larger-than-memory", "array-in-pieces", "pandas.read_csv(chunksize=100000)"),
    Situation("a compiler that was killed", "c++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.\n",
              "build-takes-the-memory", "fewer-build-jobs", "MAX_JOBS=2"),
    Situation("a build that was told how many jobs", "MAX_JOBS=16 pip install flash-attn --no-build-isolation\nnvcc error   : 'cicc' died due to signal 9 (Kill signal)\n",
              "build-takes-the-memory", "fewer-build-jobs", "MAX_JOBS=4"),
    Situation("pip was killed by the kernel", "./env.sh: line 4: 771 Killed                  pip install flash-attn --no-build-isolation\n",
              "build-takes-the-memory", "fewer-build-jobs", "MAX_JOBS=2"),
    Situation("Colab ends the session", "Your session crashed after using all available RAM.\n", "notebook-memory-used-up", "load-less-at-once"),
    Situation("Kaggle restarts the session", "Your notebook tried to allocate more memory than is available. It has restarted.\n",
              "notebook-memory-used-up", "load-less-at-once"),
    Situation("a shell cannot fork", "bash: fork: Cannot allocate memory\n", "fork-was-refused", "allow-overcommit", "sysctl vm.overcommit_memory=1"),
    Situation("a large parent cannot start a child", "Traceback (most recent call last):\n  File \"/usr/lib/python3.12/subprocess.py\", line 1955, in _execute_child\n"
              "    self.pid = _fork_exec(\nOSError: [Errno 12] Cannot allocate memory\n", "fork-was-refused", "allow-overcommit", "sysctl vm.overcommit_memory=1"),
    Situation("the shell limits addresses", "virtual memory              (kbytes, -v) 16000000\nRuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. "
              "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4294967296 bytes. Error code 12 (Cannot allocate memory)\n",
              "address-space-is-limited", "raise-address-space", "ulimit -v unlimited"),
    Situation("the page file of Windows", "OSError: [WinError 1455] The paging file is too small for this operation to complete. Error loading \"C:\\env\\lib\\x.dll\"\n",
              "windows-page-file", "raise-page-file"),
    Situation("Ray ends a worker", "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\nMemory on the node (IP: 10.3.0.9, ID: 77aa) "
              "where the task (task ID: 1c, name=tokenize, pid=311, memory used=22.00GB) was running was 61.00GB / 62.00GB (0.983870), which exceeds the memory "
              "usage threshold of 0.95.\n", "ray-memory-monitor", "ray-memory-settings", "ray.remote(memory=28 * 1024**3)"),
    Situation("one process is killed while it loads", LOADING + "./run.sh: line 3: 4411 Killed                  python serve.py\n",
              "checkpoint-load-exceeds-host-ram", "low-cpu-memory-loading"),
    Situation("a loader worker is killed", "RuntimeError: DataLoader worker (pid 4120) is killed by signal: Killed.\n", "loader-worker-died", "fewer-workers"),
    Situation("the kernel's report is at hand", GLOBAL, "kernel-killed-a-process", "low-cpu-memory-loading"),
]  # fmt: skip


@pytest.mark.parametrize("case", SITUATIONS, ids=[case.says for case in SITUATIONS])
def test_what_comes_first(case: Situation) -> None:
    problem, fix, line = said_first(case.log)
    assert (problem, fix) == (case.problem, case.fix)
    assert case.line in (None, line)


NOT_SAID = [
    ("a pod is not told of docker or Slurm", DESCRIBED_POD.format(limit="96Gi"), "docker|sbatch"),
    ("Slurm is not told of docker", "#SBATCH --mem=60G\n" + SLURM, "docker|resources"),
    ("an array is not told of loader workers", "MemoryError: Unable to allocate 29.8 GiB for an array with shape (63246, 63246) and data type float64\n", "workers"),
    ("a report of the kernel is not asked for the report of the kernel", GLOBAL, "dmesg"),
    ("a process that loads alone is not told to shard", LOADING + "./run.sh: line 3: 4411 Killed                  python serve.py\n", "fsdp"),
    ("a heap is not told of docker", "Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space\n", "docker|workers"),
    ("a notebook is not told of loader workers", "Your session crashed after using all available RAM.\n", "workers|docker"),
]  # fmt: skip


@pytest.mark.parametrize(("log", "words"), [pytest.param(log, words, id=says) for says, log, words in NOT_SAID])
def test_what_is_not_said(log: str, words: str) -> None:
    fixes = unique_fixes(oomdoctor.diagnose(log.encode()).findings)
    said = " ".join([line for fix in fixes for line in (fix.command or "", *(setting_line(row.key, row.to) for row in fix.settings))])
    assert fixes
    assert not [word for word in words.split("|") if word in said]


def test_a_volume_in_memory_is_named_beside_the_limit() -> None:
    fixes = unique_fixes(oomdoctor.diagnose((DESCRIBED_POD.format(limit="96Gi") + VOLUME).encode()).findings)
    assert [(fix.id, fix.frees_bytes) for fix in fixes[:2]] == [("raise-container-memory-limit", None), ("smaller-memory-volume", 40 << 30)]


def test_a_volume_on_the_disk_takes_no_memory() -> None:
    on_disk = VOLUME.replace("Memory", "")
    assert "smaller-memory-volume" not in [
        fix.id for fix in unique_fixes(oomdoctor.diagnose((DESCRIBED_POD.format(limit="96Gi") + on_disk).encode()).findings)
    ]


def test_one_kill_is_one_kill() -> None:
    assert oomdoctor.diagnose(GLOBAL.encode()).case.incidents[0].count == 1
