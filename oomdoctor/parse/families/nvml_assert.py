"""NVML asserts of PyTorch 2.1 to 2.13, which replace an out-of-memory message while it is being written.

The line number of an assert identifies the torch release (official wheels; read from their sources).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.case.event import Value
from oomdoctor.parse.signature import Match

_CALLS = {
    "nvmlInit_v2": ("nvml-init-assert", 0),
    "nvmlDeviceGetHandleByPciBusId_v2": ("nvml-handle-assert", 1),
    "nvmlDeviceGetComputeRunningProcesses": ("nvml-procs-assert", 2),
}
_ALLOCATOR_LINES = {
    "2.1": (1123, 1139, 1154),
    "2.2": (799, 815, 830),
    "2.3": (813, 829, 844),
    "2.4": (806, 823, 838),
    "2.5": (963, 980, 995),
    "2.6": (983, 1000, 1015),
    "2.7": (983, 1001, 1016),
    "2.8": (1098, 1116, 1131),
    "2.9": (1090, 1108, 1123),
    "2.10": (1124, 1139, 1154),
    "2.11": (1135, 1150, 1165),
    "2.12": (1289, 1304, 1319),
    "2.13": (1377, 1392, 1407),
}
_SYMBOL_LINES = {22: "2.1", 28: "2.2", 27: "2.3-2.4", 33: "2.5-2.7", 38: "2.8-2.9", 37: "2.10-2.13", 70: "2.14-2.15"}
_PREFIXES = {"2.1": ("../c10", "/opt/conda"), "2.9": ("/pytorch/",), "2.10": ("/pytorch/",)}
"""If two releases share a line, the path before the file name decides: pip 2.1 prints `../c10`, later ones `/pytorch/c10`."""

_FILE = re.compile(r"(?P<file>CUDACachingAllocator|PeerToPeerAccess|driver_api)\.cpp(?:[\"”“]?(?:\s?:\s?|[^\d\n]{1,40})(?P<line>\d{1,5}))?")
_CONDITION = re.compile(r"NVML_SUCCESS\s*==\s*(?:r\b|DriverAPI::get\(\)->(?P<call>nvml\w{3,60}?)_\s?\()")
_LOOKED_UP = re.compile(r"\br\.(?P<symbol>(?P<api>nvml|cu)\w{3,80}?)_\s")
_PREFIX = re.compile(r"[^\s\"“”]{0,200}\Z")
_BACK = 420
"""The condition of an assert is at most this many characters before its file."""
_LIBRARY = re.compile(r"Can't\s+find\s+\w{3,80}:\s+(?P<library>[^\s:]{1,400}):\s+undefined\s+symbol")
_NO_LIBRARY = re.compile(
    r"handle_1\s[^\n]{0,120}?driver_api\.cpp[\"”“]?\s?:\s?(?P<line>\d{1,5})[^\n]{0,120}?Can't\s+open\s+(?P<library>libnvidia-ml[\w.]{1,20})"
)
_WARNING = re.compile(
    r"\b(?P<call>nvml(?:Init_v2|DeviceGetHandleByPciBusId(?:_v2)?|DeviceGetComputeRunningProcesses))\s+failed;\s+omitting\s+per-process"
)


def parse(text: str) -> Iterator[Match]:
    """Yield every NVML assert or warning in `text`."""
    for file in _FILE.finditer(text):
        before = text[max(0, file.start() - _BACK) : file.start()].rpartition("\n\n")[2]
        match = _assert(text, file, before)
        if match is not None:
            yield match
    for missing in _NO_LIBRARY.finditer(text):
        fields: dict[str, Value] = {"library": missing["library"], "source_line": int(missing["line"]), "torch_version_hint": "2.1"}
        yield Match("nvml-library-missing-21", missing.start(), missing.end(), fields)
    for warning in _WARNING.finditer(text):
        yield Match("nvml-warning-omitting", warning.start(), warning.end(), {"nvml_call": warning["call"]})


def _assert(text: str, file: re.Match[str], before: str) -> Match | None:
    """Return the assert that names a file: its condition is before the file name, its line number after it."""
    form = _LOOKED_UP if file["file"] == "driver_api" else _CONDITION
    candidates = list(form.finditer(before))
    if not candidates:
        return None
    condition = candidates[-1]
    start = file.start() - len(before) + condition.start()
    if file["file"] == "PeerToPeerAccess":
        peer: dict[str, Value] = {"source_file": "PeerToPeerAccess.cpp"}
        if condition["call"]:
            peer["nvml_call"] = condition["call"]
        return Match("nvml-p2p-assert", start, file.end(), peer)
    if file["line"] is None:
        return None
    prefix = _PREFIX.search(before)
    path = prefix[0] if prefix else ""
    if file["file"] == "driver_api":
        return _symbol(text, start, file, condition)
    return _allocator(start, file, condition["call"] or "nvmlDeviceGetComputeRunningProcesses", path)


def _allocator(start: int, file: re.Match[str], call: str, prefix: str) -> Match:
    name, column = _CALLS.get(call, ("nvml-procs-assert", 2))
    line = int(file["line"])
    fields: dict[str, Value] = {"nvml_call": call, "source_line": line, "source_file": "CUDACachingAllocator.cpp"}
    versions = [version for version, lines in _ALLOCATOR_LINES.items() if lines[column] == line]
    if len(versions) > 1:
        versions = [version for version in versions if any(prefix.startswith(start) for start in _PREFIXES.get(version, ()))] or versions
    if versions:
        fields["torch_version_hint"] = "-".join(versions[:: max(1, len(versions) - 1)])
    if name == "nvml-procs-assert" and prefix.startswith("/opt/conda"):
        name = "nvml-procs-assert-conda"
    return Match(name, start, file.end(), fields)


def _symbol(text: str, start: int, file: re.Match[str], condition: re.Match[str]) -> Match:
    line = int(file["line"])
    fields: dict[str, Value] = {"symbol": condition["symbol"], "source_line": line, "source_file": "driver_api.cpp"}
    library = _LIBRARY.search(text, file.end(), file.end() + 600)
    if library:
        fields["library"] = library["library"]
    if condition["api"] == "cu":
        return Match("cuda-symbol-missing", start, library.end() if library else file.end(), fields)
    if line in _SYMBOL_LINES:
        fields["torch_version_hint"] = _SYMBOL_LINES[line]
    if condition["symbol"] != "nvmlDeviceGetNvLinkRemoteDeviceType":
        name = "nvml-symbol-missing-any"
    elif library and not re.match(r"/(?:usr/)?lib(?:64|/[\w-]+-linux-gnu)?/", library["library"]):
        name = "nvml-symbol-missing-shim"
    else:
        name = "nvml-symbol-missing-remotedevicetype"
    return Match(name, start, library.end() if library else file.end(), fields)
