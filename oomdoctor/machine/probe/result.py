"""What the probe's answer adds to an environment: the interpreter, its torch, and the cards that torch sees."""

from __future__ import annotations

from msgspec.structs import asdict, replace

from oomdoctor.case.environment import Gpu, Python, TorchBuild, TorchRun
from oomdoctor.machine.probe.answer import ProbeResult, TorchAnswer

_CARDS = 64
_NO_ANSWER = TorchAnswer()


def merge_interpreter(result: ProbeResult, layout: Python) -> Python | None:
    """Return the interpreter as it described itself, on top of what its folder shows; None where it did not."""
    answer = result.answer.python if result.answer is not None else None
    if answer is None:
        return None
    return Python(
        executable=answer.executable or layout.executable,
        version=answer.version,
        prefix=answer.prefix,
        kind=layout.kind,
        site_packages=answer.site_packages,
    )


def explain_failure(result: ProbeResult) -> str:
    """Return why an interpreter did not describe itself."""
    if result.timed_out:
        return "did not respond in time"
    return f"killed by {result.signal}" if result.signal else result.error or "returned no answer"


def merge_torch_build(build: TorchBuild | None, result: ProbeResult | None) -> TorchBuild | None:
    """Return the build as its files show it, with what torch itself says of it where it was asked."""
    answer = _torch_answer(result) or _NO_ANSWER
    if not answer.imports:
        return build
    build = build or TorchBuild(version=answer.version, cuda=answer.cuda, hip=answer.hip)
    return replace(build, version=answer.version or build.version, arch_list=answer.arch_list or build.arch_list)


def read_torch_run(result: ProbeResult | None) -> TorchRun:
    """Return what torch said when it was asked, or how it failed to."""
    answer = _torch_answer(result)
    if answer is None:
        return TorchRun() if result is None else TorchRun(error=result.error, signal=result.signal, timed_out=result.timed_out)
    return TorchRun(
        error=answer.error or next(iter(answer.failed.values()), None),
        device_count=answer.device_count,
        imports=answer.imports,
        cuda_available=answer.cuda_available,
        bf16_works=answer.bf16_works,
        bf16_claimed=answer.bf16_claimed,
        fp16_works=answer.fp16_works,
        allocator_backend=answer.allocator_backend,
        allocator_settings=answer.allocator_settings,
        nccl=answer.nccl,
        cudnn=answer.cudnn,
    )


def merge_cards(gpus: tuple[Gpu, ...], result: ProbeResult | None) -> tuple[Gpu, ...]:
    """Return the cards; as torch describes them where nothing else does."""
    answer = _torch_answer(result)
    if gpus or answer is None:
        return gpus
    vendor = "nvidia" if answer.cuda else "amd" if answer.hip else None
    return tuple(Gpu(vendor=vendor, **asdict(card)) for card in answer.cards[:_CARDS])


def _torch_answer(result: ProbeResult | None) -> TorchAnswer | None:
    """Return what torch said; None where it was not asked or nothing of use came back."""
    answer = result.answer.torch if result is not None and result.answer is not None else None
    return None if answer == _NO_ANSWER else answer
