"""What the probe's answer says of an interpreter, of its torch and of the cards.

An answer comes from another program: nothing in it is trusted to have the right form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from oomdoctor.case.environment import Gpu, Python, TorchBuild, TorchRun
from oomdoctor.machine.probe.client import ProbeResult

_CARDS = 64


def interpreter(answer: ProbeResult, layout: Python) -> Python | None:
    """The interpreter as it described itself, on top of what its folder shows; None where it did not."""
    told = None if answer.said is None else answer.said.get("python")
    if not isinstance(told, dict):
        return None
    return Python(
        executable=_text(told.get("executable")) or layout.executable,
        version=_text(told.get("version")),
        prefix=_text(told.get("prefix")),
        kind=layout.kind,
        site_packages=_texts(told.get("site_packages")),
    )


def silence(answer: ProbeResult) -> str:
    """Why an interpreter did not describe itself."""
    if answer.timed_out:
        return "did not answer in time"
    return f"ended by {answer.signal}" if answer.signal else answer.error or "gave no answer"


def torch_build(build: TorchBuild | None, answer: ProbeResult | None) -> TorchBuild | None:
    """The build as read, with what torch itself said of it where it was asked."""
    told = _told(answer)
    if not told.get("imports"):
        return build
    build = build or TorchBuild(version=_text(told.get("version")), cuda=_text(told.get("cuda")), hip=_text(told.get("hip")))
    return replace(build, version=_text(told.get("version")) or build.version, arch_list=_texts(told.get("arch_list")) or build.arch_list)


def torch_run(answer: ProbeResult | None) -> TorchRun:
    """What torch said when it was asked, or how it failed to."""
    told = _told(answer)
    if answer is None or not told:
        return TorchRun(
            error=None if answer is None else answer.error,
            signal=None if answer is None else answer.signal,
            timed_out=answer is not None and answer.timed_out,
        )
    failed = told.get("failed")
    error = _text(told.get("error")) or (next((str(one) for one in failed.values()), None) if isinstance(failed, dict) else None)
    return TorchRun(
        error=error,
        device_count=_number(told, "device_count"),
        imports=_flag(told, "imports"),
        cuda_available=_flag(told, "cuda_available"),
        bf16_works=_flag(told, "bf16_works"),
        bf16_claimed=_flag(told, "bf16_claimed"),
        fp16_works=_flag(told, "fp16_works"),
        allocator_backend=_text(told.get("allocator_backend")),
        allocator_settings=_text(told.get("allocator_settings")),
        nccl=_text(told.get("nccl")),
        cudnn=_text(told.get("cudnn")),
    )


def cards(gpus: tuple[Gpu, ...], answer: ProbeResult | None) -> tuple[Gpu, ...]:
    """The cards as torch describes them, where nothing else does."""
    told = _told(answer)
    listed = told.get("cards")
    if gpus or not isinstance(listed, list):
        return gpus
    vendor = "nvidia" if told.get("cuda") else "amd" if told.get("hip") else None
    return tuple(_card(one, vendor) for one in listed[:_CARDS] if isinstance(one, dict))


def _card(told: Mapping[str, Any], vendor: str | None) -> Gpu:
    return Gpu(
        index=_number(told, "index"),
        name=_text(told.get("name")),
        vendor=vendor,
        total_bytes=_number(told, "total_bytes"),
        free_bytes=_number(told, "free_bytes"),
        compute_capability=_text(told.get("compute_capability")),
        unified=_flag(told, "unified"),
    )


def _number(told: Mapping[str, Any], name: str) -> int | None:
    value = told.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _texts(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _flag(told: Mapping[str, Any], name: str) -> bool | None:
    value = told.get(name)
    return value if isinstance(value, bool) else None


def _told(answer: ProbeResult | None) -> Mapping[str, Any]:
    told = None if answer is None or answer.said is None else answer.said.get("torch")
    return told if isinstance(told, dict) else {}


def _text(value: object) -> str | None:
    return value[:4000] if isinstance(value, str) and value else None
