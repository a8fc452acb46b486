"""What the words of an environment report mean: versions, platforms, systems, names of cards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.machine.reports.merge_facts import MOST_GPUS, Fact
from oomdoctor.units import parse_size

_NOTHING = re.compile(
    r"(?:could not collect|not (?:available|installed|found|detected|supported)|module not found|no cuda|no xpu|n/?a|none|null)\b.{0,60}"
    r"|unknown\b.{0,60}|<fill in>.{0,60}|[-?\s]*",
    re.IGNORECASE,
)
_VERSION = re.compile(
    r"v?(\d{1,5}(?:\.\d{1,8}){0,4}(?:[.-]?(?:a|b|rc|dev|post|alpha|beta)\d{0,12}){0,3}(?:\+[\w.]{1,40})?)(?=$|[\s,;(|，；（])"
)
_DRIVER = re.compile(r"(?<![\d.])\d{3}\.\d{1,3}(?:\.\d{1,3})?")
_LINUX = re.compile(
    r"Linux-(?P<kernel>.{1,120}?)-(?P<machine>x86_64|aarch64|arm64|ppc64le|riscv64|i686|armv\dl)(?:-with-(?P<libc>.{1,60}))?\Z"
)
_WINDOWS = re.compile(r"Windows-[\w.]{1,20}-(?P<release>\d{1,2}\.\d{1,2}\.\d{1,6})")
_MAC = re.compile(r"(?:macOS|Darwin)-(?P<version>\d[\d.]{0,12})-(?P<machine>arm64|x86_64)")
_LIBC = re.compile(r"(glibc|musl)[- ]?(\d[\d.]{0,8})")
_MACHINE = re.compile(r"\s*\((x86_64|aarch64|arm64|ppc64le|64-bit|amd64)\)\s*\Z", re.IGNORECASE)
_MAKERS = (
    ("amd", re.compile(r"\bamd\b|radeon|instinct|\bMI\d{2,3}", re.IGNORECASE)),
    ("intel", re.compile(r"intel|\barc\b|gaudi", re.IGNORECASE)),
    ("huawei", re.compile(r"ascend|huawei|\b910[A-D]", re.IGNORECASE)),
    ("nvidia", re.compile(r"nvidia|geforce|tesla|quadro|\b(?:rtx|gtx)\b|titan|\b[APVTLHB]\d{1,3}\b|\bG[BH]\d{2,3}\b", re.IGNORECASE)),
    ("apple", re.compile(r"\bapple\b|\bM[1-9]\b")),
)
"""In this order: an Intel Arc A770 has a number like an NVIDIA card, a Tesla M4 one like an Apple chip."""
_GFX = re.compile(r"\((gfx[0-9a-f]{3,5})[:\w+-]{0,40}\)")
_NAMED = re.compile(r"[\w\-()\[\]®™./+, ]{2,80}")


def known_value(value: str) -> str | None:
    """Return a value without the marks around it; None where the tool says that it does not know."""
    value = value.strip(" `*'\"[]")
    return None if _NOTHING.fullmatch(value) else value


def leading_version(value: str) -> str | None:
    """Return the version that a value begins with: `2.3.0+cu121` of `2.3.0+cu121 (True)`."""
    version = _VERSION.match(value)
    return version[1] if version else None


def read_driver(value: str) -> Iterator[Fact]:
    """Read the version of the driver."""
    version = _DRIVER.search(value[:60])
    if version:
        yield ("driver", "version"), version[0]


def read_platform(value: str) -> Iterator[Fact]:
    """Read what Python's `platform.platform()` says: kernel, architecture, C library, and WSL by the name of its kernel."""
    if parts := _LINUX.match(value):
        yield ("host", "system"), "linux"
        yield ("host", "kernel"), parts["kernel"]
        yield ("host", "architecture"), parts["machine"]
        yield ("host", "wsl"), _wsl(parts["kernel"])
        yield from read_libc(parts["libc"] or "")
    elif parts := _WINDOWS.match(value):
        yield ("host", "system"), "windows"
        yield ("host", "kernel"), parts["release"]
    elif parts := _MAC.match(value):
        yield ("host", "system"), "macos"
        yield ("host", "architecture"), parts["machine"]
        yield ("host", "os"), f"macOS {parts['version']}"


def _wsl(kernel: str) -> int:
    return 2 if "WSL2" in kernel or "microsoft-standard" in kernel else 1 if "Microsoft" in kernel else 0


def read_libc(value: str) -> Iterator[Fact]:
    """Read the C library, `glibc 2.35` of `glibc-2.35`."""
    if library := _LIBC.match(value):
        yield ("host", "libc"), f"{library[1]} {library[2]}"


def read_system(value: str) -> Iterator[Fact]:
    """Read the name of the operating system, with the architecture behind it in brackets."""
    if value.startswith(("Linux-", "Windows-", "macOS-")):
        yield from read_platform(value)
        return
    machine = _MACHINE.search(value)
    name = value[: machine.start()] if machine else value
    name = name.removeprefix("Microsoft ").strip()
    if name in ("linux", "win32", "darwin") or len(name) > 100:
        return
    yield ("host", "os"), name
    yield ("host", "system"), "windows" if name.startswith("Windows") else "macos" if name.lower().startswith("mac") else "linux"
    if machine and machine[1].lower() != "64-bit":
        yield ("host", "architecture"), machine[1]


def read_interpreter(value: str) -> Iterator[Fact]:
    """Python's version, and conda where its builder signs it."""
    version = leading_version(value)
    if version is None:
        return
    yield ("python", "version"), version
    if "conda" in value:
        yield ("python", "kind"), "conda"


def read_torch(value: str) -> Iterator[Fact]:
    """Read torch's version; Hugging Face's tools put behind it whether it saw a card."""
    version = leading_version(value)
    if version is None:
        return
    yield ("packages", "torch", "version"), version
    seen = re.search(r"\((True|False|GPU|CUDA)\)", value)
    if seen:
        yield ("torch_run", "cuda_available"), seen[1] != "False"


def read_cards(indices: str, value: str) -> Iterator[Fact]:
    """One line of cards: `0` or `0,1,2` and the name that they share."""
    value = value.partition("(UUID")[0].strip()
    architecture = _GFX.search(value)
    name = value[: architecture.start()].strip() if architecture else value
    if not _NAMED.fullmatch(name) or name.endswith("..."):
        return
    for index in gpu_indices(indices):
        yield ("gpus", index, "name"), name
        if (maker := vendor_of(name)) is not None:
            yield ("gpus", index, "vendor"), maker
        if architecture:
            yield ("gpus", index, "architecture"), architecture[1]


def gpu_indices(text: str) -> list[str]:
    """`0,1,2` as keys of cards."""
    return [str(int(number)) for number in re.findall(r"\d{1,3}", text)[:MOST_GPUS]]


def vendor_of(name: str) -> str | None:
    """Who makes a card of this name."""
    return next((maker for maker, form in _MAKERS if form.search(name)), None)


def program_name(value: str) -> str:
    """Return the name of a program without the folders that it lies in."""
    return re.split(r"[/\\]", value)[-1][:80]


def read_size(path: tuple[str, ...], value: str) -> Iterator[Fact]:
    """Read a size with its unit."""
    size = parse_size(value)
    if size is not None and 0 < size < 1 << 60:
        yield path, size
