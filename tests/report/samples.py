"""Small diagnoses, built by hand: one for each kind of verdict."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from oomdoctor.case.case import Case, Source, Verdict
from oomdoctor.case.diagnosis import Cite, Diagnosis, Evidence, Finding, Fix
from oomdoctor.case.event import Certainty, Event, Kind, Outcome, Place, Value
from oomdoctor.case.gap import Gap
from oomdoctor.case.incident import Incident, LedgerEntry
from oomdoctor.case.settings import ProposedSetting
from oomdoctor.case.text import Text
from oomdoctor.units import GIB, MIB

OOM = (
    "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 23.69 GiB of which "
    "419.84 MiB is free. Process 4711 has 1.25 GiB memory in use. Including non-PyTorch memory, this process has 22.02 GiB memory in use. "
    "Of the allocated memory 20.10 GiB is allocated by PyTorch, and 1.31 GiB is reserved by PyTorch but unallocated. If reserved but "
    "unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation "
    "for Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)


def event(
    signature: str,
    kind: Kind,
    text: str,
    *,
    line: int | None = 1,
    source: str = "train.log",
    rank: int | None = None,
    certainty: Certainty = Certainty.CERTAIN,
    outcome: Outcome = Outcome.FAILURE,
    from_end: int | None = None,
    frame: str | None = None,
    time: str | None = None,
    **fields: Value,
) -> Event:
    return Event(
        signature=signature,
        kind=kind,
        certainty=certainty,
        outcome=outcome,
        text=text,
        rank=rank,
        frame=frame,
        time=time,
        fields=fields,
        place=Place(source, (line or 1) * 80, line, from_end),
    )


def diagnosis(
    memory_failure: str,
    reason: str,
    *incidents: Incident,
    kind: Kind | None = None,
    certainty: Certainty = Certainty.CERTAIN,
    settle: str | None = None,
    survived: bool = False,
    findings: tuple[Finding, ...] = (),
    gaps: tuple[Gap, ...] = (),
    unread: int = 0,
    sources: tuple[Source, ...] = (Source(name="train.log", size=12 * MIB),),
) -> Diagnosis:
    kind = kind or (incidents[0].kind if incidents else Kind.NONE)
    events = tuple(event for incident in incidents for event in (incident.root, *incident.repeats, *incident.consequences))
    verdict = Verdict(memory_failure=memory_failure, kind=kind, certainty=certainty, reason=reason, settle=settle, survived=survived)
    case = Case(
        sources=sources,
        events=events,
        incidents=incidents,
        verdict=verdict,
        gaps=gaps,
        unread=unread,
        facts={"log.bf16": "true", "log.batch_size": 4},
    )
    return Diagnosis(case=case, findings=findings)


BATCH = Fix(
    id="smaller-batch",
    title=Text("Lower the batch per card", "减小单卡 batch"),
    how=Text(
        "Halve the batch per card and double the accumulation steps: the result of the training stays the same.",
        "单卡 batch 减半，梯度累积步数加倍：训练效果不变。",
    ),
    settings=(
        ProposedSetting(framework="llamafactory", key="per_device_train_batch_size", to="2", file="sft.yaml", before="4"),
        ProposedSetting(framework="llamafactory", key="gradient_accumulation_steps", to="8", file="sft.yaml", before="4"),
    ),
    costs=Text("each step takes a little longer", "每步稍慢一些"),
    safety="safe",
)
CHECKPOINTING = Fix(
    id="gradient-checkpointing",
    title=Text("Turn gradient checkpointing on", "打开梯度检查点"),
    how=Text("Activations are computed again in backward instead of kept.", "激活值不再保存，反向传播时重新计算。"),
    settings=(ProposedSetting(framework="transformers", key="gradient_checkpointing", to="true"),),
    costs=Text("a step takes about 30 % longer.", "每步大约慢 30 %。"),
)
FREE_CARD = Fix(
    id="free-the-card",
    title=Text("Free the card", "腾出这张卡"),
    how=Text("Another process holds memory on this card.", "另一个进程占着这张卡的显存。"),
    command="nvidia-smi --query-compute-apps=pid,used_memory --format=csv",
)
SEGMENTS = Fix(
    id="expandable-segments",
    title=Text("Let segments grow", "使用可扩展段"),
    how=Text("Less is reserved without being used.", "减少已保留却未使用的显存。"),
    command="export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
    safety="safe",
)
OFFLOAD = Fix(
    id="offload", title=Text("Offload the optimizer", "把优化器放到内存"), how=Text("ZeRO-3 with offload.", "ZeRO-3 加 offload。")
)

TOO_LARGE = Finding(
    id="batch-too-large",
    cause="batch-too-large",
    severity="error",
    confidence=Certainty.LIKELY,
    title=Text("The batch does not fit beside the model", "模型之外放不下这么大的 batch"),
    why=Text(
        "PyTorch itself holds 20.10 GiB of the 23.69 GiB in live tensors when backward asks for 2.00 GiB more. "
        "Almost nothing is lost to fragmentation, so only less work per step helps.",
        "反向传播再申请 2.00 GiB 时，23.69 GiB 里已有 20.10 GiB 是在用的张量。碎片很少，只有减小每步的计算量才有用。",
    ),
    evidence=(Evidence(place=Place("train.log", 96320, 1204), text=OOM),),
    unknowns=(Text("the sequence length", "序列长度"),),
    fixes=(BATCH, CHECKPOINTING, SEGMENTS),
    cites=(
        Cite(
            source="article-1",
            title="Fixing OOM in LLaMA-Factory",
            url="https://example.org/oom",
            says=Text("`empty_cache` after every step avoids OOM.", "每步之后调用 `empty_cache` 可以避免 OOM。"),
            verdict="wrong",
            correction=Text(
                "`empty_cache` returns only unused memory, which the allocator would have given back by itself before failing.",
                "`empty_cache` 只归还未使用的显存，分配器在报错之前本来就会自动归还。",
            ),
        ),
        Cite(
            source="pytorch",
            title="PyTorch: CUDA semantics",
            url="https://pytorch.org/docs/stable/notes/cuda.html",
            says=Text("What is reserved and unused counts as used for the driver.", "已保留未使用的部分在驱动看来也是已用。"),
            verdict="right",
        ),
    ),
)
NEIGHBOUR = Finding(
    id="other-process-on-gpu",
    cause="other-process-on-gpu",
    severity="warning",
    confidence=Certainty.CERTAIN,
    title=Text("Another process uses this card", "这张卡上还有别的进程"),
    why=Text("Process 4711 holds 1.25 GiB of the card.", "进程 4711 占用了 1.25 GiB 显存。"),
    evidence=(Evidence(place=Place("train.log", 96320, 1204), text=OOM),),
    fixes=(FREE_CARD, OFFLOAD),
)


def device_oom() -> Diagnosis:
    root = event(
        "torch-cuda-oom-24-rename",
        Kind.DEVICE_OOM,
        OOM,
        line=1204,
        rank=3,
        frame="/home/alice/LLaMA-Factory/src/train.py:88 in step",
        requested_bytes=2 * GIB,
        free_bytes=int(419.84 * MIB),
        total_bytes=int(23.69 * GIB),
        allocated_bytes=int(20.10 * GIB),
        reserved_unallocated_bytes=int(1.31 * GIB),
        process_bytes=int(22.02 * GIB),
        gpu_index=3,
        other_processes=({"pid": 4711, "used_bytes": int(1.25 * GIB)},),
    )
    parts = (
        ("live tensors", 20.10, "measured"),
        ("reserved but unallocated", 1.31, "measured"),
        ("this process outside PyTorch", 0.61, "derived"),
        ("other processes", 1.25, "measured"),
        ("free", 0.41, "measured"),
    )
    repeats = tuple(event(root.signature, Kind.DEVICE_OOM, OOM, line=1200 + rank, rank=rank) for rank in range(8) if rank != 3)
    followed = [
        event(
            "torchelastic-child-failed",
            Kind.CONSEQUENCE,
            "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
            line=1310,
            exit_code=1,
        ),
        *(
            event(
                "nccl-abort",
                Kind.CONSEQUENCE,
                f"gpu-node7:4102{n}:4137{n} [{n}] NCCL INFO comm 0x55d0 rank {n} - Abort COMPLETE",
                line=1320 + n,
                rank=n,
            )
            for n in range(12)
        ),
    ]
    incident = Incident(
        root=root,
        kind=Kind.DEVICE_OOM,
        certainty=Certainty.CERTAIN,
        repeats=repeats,
        count=16,
        consequences=tuple(followed),
        phase="backward",
        ranks=tuple(range(8)),
        gpus=tuple(range(8)),
        derived={"request_share": 0.084, "request_as_product": None},
        ledger=tuple(LedgerEntry(what=what, bytes=int(size * GIB), of="gpu 3", source=source) for what, size, source in parts),
    )
    gaps = (Gap("driver version", "not in the log", "oomdoctor env"),)
    return diagnosis("yes", "device-oom", incident, findings=(TOO_LARGE, NEIGHBOUR), gaps=gaps)


def host_kill_possible() -> Diagnosis:
    root = event(
        "elastic-childfailed-sigkill",
        Kind.CONSEQUENCE,
        "  exitcode  : -9 (pid: 41022)",
        line=None,
        from_end=12,
        rank=2,
        exit_code=-9,
        signal="SIGKILL",
        source="/home/alice/runs/sft.log",
    )
    incident = Incident(root=root, kind=Kind.CONSEQUENCE, certainty=Certainty.POSSIBLE, phase="data-loading", ranks=(2,))
    return diagnosis("possible", "consequence", incident, certainty=Certainty.POSSIBLE, settle="sigkill")


def look_alike() -> Diagnosis:
    root = event(
        "hf-bf16-gpu-4x",
        Kind.LOOK_ALIKE,
        "ValueError: Your setup doesn't support bf16/gpu. You need Ampere+ GPU with cuda>=11.0",
        line=57,
        feature="bf16",
    )
    fix = Fix(
        id="fp16-instead-of-bf16",
        title=Text("Train in fp16", "改用 fp16 训练"),
        how=Text("Swap the two switches.", "把两个开关对调。"),
        settings=(
            ProposedSetting(framework="llamafactory", key="bf16", to="false", file="sft.yaml", before="true"),
            ProposedSetting(framework="llamafactory", key="fp16", to="true", file="sft.yaml", before="false"),
        ),
        safety="safe",
    )
    finding = Finding(
        id="bf16-unsupported",
        cause="bf16-unsupported",
        severity="error",
        confidence=Certainty.CERTAIN,
        title=Text("bf16 is not supported on this card", "这张卡不支持 bf16"),
        why=Text(
            "bf16 needs compute capability 8.0 (Ampere). Older cards have fp16.",
            "bf16 需要计算能力 8.0（Ampere）以上。更早的卡可以用 fp16。",
        ),
        evidence=(Evidence(place=root.place, text=root.text),),
        fixes=(fix,),
    )
    incident = Incident(root=root, kind=Kind.LOOK_ALIKE, certainty=Certainty.CERTAIN)
    return diagnosis("no", "look-alike", incident, findings=(finding,))


def nothing_found() -> Diagnosis:
    sources = tuple(Source(name=f"rank{n}.log", size=4 * MIB, complete=n != 2) for n in range(3))
    return diagnosis("no", "none", sources=sources)


def nothing_read() -> Diagnosis:
    gap = Gap("run.log.zst", "zstandard is not installed", 'pip install "oomdoctor[zst]"')
    return diagnosis("no", "nothing-read", sources=(), gaps=(gap,))


def survived() -> Diagnosis:
    root = event(
        "torch-cuda-oom-22",
        Kind.DEVICE_OOM,
        "| WARNING: CUDA out of memory. Tried to allocate 512.00 MiB. GPU 0 ...; skipping batch",
        line=88,
        rank=0,
        requested_bytes=512 * MIB,
        free_bytes=100 * MIB,
        gpu_index=0,
    )
    incident = Incident(root=root, kind=Kind.DEVICE_OOM, certainty=Certainty.CERTAIN, count=12, survived=True, phase="forward", ranks=(0,))
    return diagnosis("no", "survived", incident, survived=True, unread=4821)


def killed_by_kernel() -> Diagnosis:
    root = event(
        "kernel-oom-memcg",
        Kind.HOST_OOM,
        "Nov 20 10:22:33 gpu-node7 kernel: Memory cgroup out of memory: Killed process 4211 (python) "
        "total-vm:90177536kB, anon-rss:64172032kB",
        source="dmesg.txt",
        line=9,
        pid=4211,
        comm="python",
        scope="memcg",
        total_vm_bytes=86 * GIB,
        anon_rss_bytes=int(61.2 * GIB),
    )
    return diagnosis("yes", "host-oom", Incident(root=root, kind=Kind.HOST_OOM, certainty=Certainty.CERTAIN))


def masked() -> Diagnosis:
    root = event(
        "cublas-not-initialized",
        Kind.MASKED_DEVICE_OOM,
        "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
        line=300,
        certainty=Certainty.POSSIBLE,
    )
    incident = Incident(root=root, kind=Kind.MASKED_DEVICE_OOM, certainty=Certainty.POSSIBLE, phase="forward")
    return diagnosis("possible", "masked-device-oom", incident, certainty=Certainty.POSSIBLE, settle="library-not-initialized")


def other_ranks_log() -> Diagnosis:
    root = event("elastic-childfailed-exit1", Kind.CONSEQUENCE, "exitcode  : 1 (pid: 31)", line=20, rank=0, exit_code=1, first_rank=5)
    incident = Incident(root=root, kind=Kind.CONSEQUENCE, certainty=Certainty.POSSIBLE)
    return diagnosis("possible", "consequence", incident, certainty=Certainty.POSSIBLE, settle="first-rank-log")


def kernel_resource() -> Diagnosis:
    text = "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 163840, Hardware limit: 101376."
    root = event("triton-out-of-resources", Kind.KERNEL_RESOURCE, text, shared_mem_required_bytes=163840, shared_mem_limit_bytes=101376)
    return diagnosis("no", "kernel-resource", Incident(root=root, kind=Kind.KERNEL_RESOURCE, certainty=Certainty.CERTAIN))


def shm() -> Diagnosis:
    text = (
        "RuntimeError: DataLoader worker (pid 77) is killed by signal: Bus error. "
        "It is possible that dataloader's workers are out of shared memory."
    )
    root = event("dataloader-bus-error", Kind.SHM_OOM, text, line=44, certainty=Certainty.LIKELY)
    incident = Incident(root=root, kind=Kind.SHM_OOM, certainty=Certainty.LIKELY, phase="data-loading")
    later = Incident(
        root=event("torch-cuda-oom-22", Kind.DEVICE_OOM, "CUDA out of memory.", line=90), kind=Kind.DEVICE_OOM, certainty=Certainty.CERTAIN
    )
    return diagnosis("yes", "shm-oom", incident, later, certainty=Certainty.LIKELY)


ALL = {
    sample.__name__: sample
    for sample in (
        device_oom,
        host_kill_possible,
        look_alike,
        nothing_found,
        nothing_read,
        survived,
        killed_by_kernel,
        masked,
        other_ranks_log,
        kernel_resource,
        shm,
    )
}


def with_fields(base: Diagnosis, fields: Mapping[str, Value]) -> Diagnosis:
    """The diagnosis with other fields in the first incident's root."""
    incident = base.case.incidents[0]
    changed = replace(incident, root=replace(incident.root, fields=fields))
    return replace(base, case=replace(base.case, incidents=(changed, *base.case.incidents[1:])))
