"""The NVML library itself: which file the loader takes, what version it is, and whether it has the functions that torch looks up.

torch asks for `libnvidia-ml.so.1` with dlopen and for each function with dlsym (c10/cuda/driver_api.cpp); the same is done here.
A stub of a toolkit image or a layer that shares cards often stands in front of the driver's own file.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from oomdoctor.case.environment import Symbol
from oomdoctor.machine.collect.root import Root
from oomdoctor.versions import parse_version, series

_MAPPED = re.compile(r"^[0-9a-f]+-[0-9a-f]+ \S{4} \S+ \S+ \d+ +(/[^\n]{1,4000})$", re.MULTILINE)
_FILE_VERSION = re.compile(r"libnvidia-ml\.so\.(\d{3}\.\d{1,3}(?:\.\d{1,3})?)\Z")
_KERNEL = re.compile(r"Kernel Module(?: for [\w-]{1,20})?\s{1,10}(\d{3}\.\d{1,3}(?:\.\d{1,3})?)")
_MODEL = re.compile(r"^Model:\s{0,20}(\S[^\n]{0,100}?)\s{0,20}$", re.MULTILINE)


class NvmlLibrary(Struct, frozen=True, kw_only=True):
    """The library as the loader finds it."""

    loaded: bool
    path: str | None = None
    version: str | None = None
    """As its file is named; a stub's is not."""
    symbols: Mapping[str, bool] = field(default_factory=dict)
    error: str | None = None
    """Why it cannot be loaded, in the loader's words."""


def load_nvml_library(names: Iterable[str], name: str | None = None) -> NvmlLibrary:
    """Load the library `name` (default: as torch does) and look the functions up. This runs whatever that file runs on loading."""
    import ctypes  # noqa: PLC0415 - only the isolated process loads libraries

    before = mapped_files(Root().read("/proc/self/maps", 8 << 20) or "")
    file = name or ("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
    try:
        handle = ctypes.CDLL(file)
    except OSError as why:
        return NvmlLibrary(loaded=False, error=str(why)[:400])
    path = _loaded_file(mapped_files(Root().read("/proc/self/maps", 8 << 20) or ""), before)
    return NvmlLibrary(loaded=True, path=path, version=version_of_file(path), symbols={symbol: hasattr(handle, symbol) for symbol in names})


def mapped_files(maps: str) -> list[str]:
    """Return the files of /proc/self/maps, in order, each once."""
    return list(dict.fromkeys(_MAPPED.findall(maps)))


def version_of_file(path: str | None) -> str | None:
    """Return the version in the name of the file behind the links."""
    version = _FILE_VERSION.search(path or "")
    return version[1] if version else None


def read_kernel_version(root: Root) -> str | None:
    """Return the version of the kernel module that is loaded."""
    module = _KERNEL.search(root.read("/proc/driver/nvidia/version", 2000) or "")
    plain = (root.read("/sys/module/nvidia/version", 100) or "").strip()
    return module[1] if module else plain if re.fullmatch(r"\d{3}\.[\d.]{1,10}", plain) else None


def read_kernel_cards(root: Root) -> list[str]:
    """Return the names of the cards that the kernel module has, for where NVML does not answer."""
    base = "/proc/driver/nvidia/gpus"
    texts = (root.read(f"{base}/{name}/information", 4000) for name in root.names(base))
    return [model[1] for text in texts if text and (model := _MODEL.search(text))]


def required_symbols(table: Iterable[Mapping[str, str]], torch: str | None) -> list[tuple[str, bool]]:
    """Return the functions that a version of torch looks up, and whether it gives up without them; all of them where it is unknown."""
    version = parse_version(torch)
    # A build before a release has the code of that release: 2.6.0a0 asks for what 2.6 asks for.
    release = series(version, 2) if version is not None else None
    return [(row["symbol"], row["required"] == "yes") for row in table if release is None or _since(row) <= release]


def check_symbols(names: Sequence[tuple[str, bool]], nvml: NvmlLibrary) -> tuple[Symbol, ...]:
    """Return for each function whether the library has it."""
    if not nvml.loaded:
        return ()
    return tuple(Symbol(name=name, found=nvml.symbols.get(name), required=required, library=nvml.path) for name, required in names)


def _loaded_file(after: Sequence[str], before: Sequence[str]) -> str | None:
    """Return the file that loading brought in: the one of that name, else the first new one (a link may have another name)."""
    named = [path for path in after if os.path.basename(path).startswith("libnvidia-ml")]
    new = [path for path in after if path not in before]
    return next(iter([*named, *new]), None)


def _since(row: Mapping[str, str]) -> tuple[int, ...]:
    version = parse_version(row["torch_from"])
    return () if version is None else series(version, 2)
