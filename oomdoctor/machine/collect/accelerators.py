"""Cards that are not NVIDIA's, as far as files of the kernel tell: AMD, Intel, Ascend, Apple. No tool is started."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.case.environment import Gpu
from oomdoctor.machine.collect.collected import Collected
from oomdoctor.machine.collect.host import Uname
from oomdoctor.machine.collect.root import Root

_DRM = "/sys/class/drm"
_TOPOLOGY = "/sys/class/kfd/kfd/topology/nodes"
_VENDORS = {"0x1002": "amd", "0x8086": "intel"}
_TARGET = re.compile(r"^gfx_target_version (\d{1,8})$", re.MULTILINE)


def collect_accelerators(root: Root, uname: Uname, ram: int | None = None) -> Collected[tuple[Gpu, ...]]:
    """Find the cards of other vendors. `ram` is what an Apple chip shares with its GPU."""
    gpus = [*_amd_and_intel(root), *_ascend(root), *_apple(uname, ram)]
    return Collected(tuple(gpus), {"gpus": "the files of the kernel"} if gpus else {})


def _amd_and_intel(root: Root) -> Iterator[Gpu]:
    targets = iter(list(_targets(root)))
    for card in (name for name in root.names(_DRM) if re.fullmatch(r"card\d{1,3}", name)):
        device = f"{_DRM}/{card}/device"
        vendor = _VENDORS.get((root.read(f"{device}/vendor", 20) or "").strip())
        total = root.number(f"{device}/mem_info_vram_total") if vendor == "amd" else root.number(f"{device}/lmem_total_bytes")
        if vendor is None or not total:
            continue  # a display adapter, or graphics inside the CPU
        used = root.number(f"{device}/mem_info_vram_used") if vendor == "amd" else None
        name = (root.read(f"{device}/product_name", 100) or "").strip() or None
        yield Gpu(
            index=int(card[4:]),
            vendor=vendor,
            name=name,
            total_bytes=total,
            used_bytes=used,
            free_bytes=total - used if used is not None else None,
            architecture=next(targets, None) if vendor == "amd" else None,
        )


def _targets(root: Root) -> Iterator[str]:
    """`gfx90a` of each GPU: 90010 is 9.0.10, printed in hexadecimal but for the first part (LLVM AMDGPU usage)."""
    for node in root.names(_TOPOLOGY):
        target = _TARGET.search(root.read(f"{_TOPOLOGY}/{node}/properties", 8000) or "")
        number = int(target[1]) if target else 0
        if number:
            yield f"gfx{number // 10000}{number // 100 % 100:x}{number % 100:x}"


def _ascend(root: Root) -> Iterator[Gpu]:
    for name in root.names("/dev"):
        device = re.fullmatch(r"davinci(\d{1,3})", name)
        if device:
            yield Gpu(index=int(device[1]), vendor="huawei")


def _apple(uname: Uname, ram: int | None) -> Iterator[Gpu]:
    if uname.platform == "darwin" and uname.machine == "arm64":
        yield Gpu(index=0, vendor="apple", name="Apple GPU", unified=True, total_bytes=ram)
