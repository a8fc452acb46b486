"""What the installed torch was built for, read as text: torch/version.py, and the list of architectures in libtorch_python."""

from __future__ import annotations

import mmap
import os
import re
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from oomdoctor.case.environment import TorchBuild
from oomdoctor.case.gap import Gap
from oomdoctor.machine.collect.collected import Collected
from oomdoctor.machine.collect.root import Root

_ASSIGNED = re.compile(
    r"^(__version__|cuda|hip|xpu|git_version)\s{0,3}(?::[^=\n]{1,60})?=\s{0,3}(?:'([^'\n]{0,100})'|\"([^\"\n]{0,100})\"|None)", re.MULTILINE
)
_ARCHES = re.compile(rb"(?:(?:sm|compute)_\d{2,3}[af]?|gfx[0-9a-f]{3,4})(?: (?:(?:sm|compute)_\d{2,3}[af]?|gfx[0-9a-f]{3,4})){0,40}(?=\0)")
_LARGEST = 256 << 20
_TRIES = 4000
_BACKENDS = (("cuda", "cuda"), ("hip", "rocm"), ("xpu", "xpu"))


def collect_torch_build(folders: Sequence[str], releases: Iterable[Mapping[str, str]]) -> Collected[TorchBuild | None]:
    """Read the torch that Python would import from these folders. `releases` serves where the library is silent."""
    root = Root()
    for folder in folders:
        text = root.read(os.path.join(folder, "torch", "version.py"), 20_000)
        if text is None:
            continue
        origin = "torch/version.py"
        assigned = {name: single or double or None for name, single, double in _ASSIGNED.findall(text)}
        build = TorchBuild(
            version=assigned.get("__version__"),
            cuda=assigned.get("cuda"),
            hip=assigned.get("hip"),
            backend=next((name for key, name in _BACKENDS if assigned.get(key)), "cpu" if "cuda" in assigned else None),
            git=assigned.get("git_version"),
        )
        origins = {"torch": origin}
        if build.backend not in ("cuda", "rocm"):
            return Collected(build, origins)
        listed, source = _architectures(folder), "libtorch_python"
        if not listed:
            listed, source = released_architectures(build, releases), "the table of releases"
        gaps = () if listed else (Gap("architectures of torch", "this build is not in the table of releases", "oomdoctor env --deep"),)
        return Collected(replace(build, arch_list=listed), {**origins, **({"torch.arch_list": source} if listed else {})}, gaps)
    return Collected(None)


def released_architectures(build: TorchBuild, releases: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the architectures of a published build, by its version and CUDA."""
    version = ".".join((build.version or "").split(".")[:2])
    for row in releases:
        if row["torch"] == version and row["cuda"] == build.cuda:
            return tuple(row["arch_list"].split())
    return ()


def _architectures(folder: str) -> tuple[str, ...]:
    """Return what `torch.cuda.get_arch_list()` would say: one text in the library, architectures with blanks between them."""
    path = os.path.join(folder, "torch", "lib", "libtorch_python.so")
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if not 0 < size <= _LARGEST:
                return ()
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _listed(data)
    except (OSError, ValueError):
        return ()


def _listed(data: mmap.mmap) -> tuple[str, ...]:
    best: list[str] = []
    for sign in (b"\0sm_", b"\0gfx"):
        at = data.find(sign)
        for _ in range(_TRIES):
            if at < 0:
                break
            arches = _ARCHES.match(data, at + 1, at + 1001)
            if arches and arches[0].count(b" ") >= len(best):
                best = arches[0].decode().split()
            at = data.find(sign, at + 1)
    return tuple(best)
