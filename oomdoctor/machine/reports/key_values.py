"""Lines of a key and a value: the reports of torch, vLLM, SGLang, transformers, accelerate, LLaMA-Factory and DeepSpeed.

These tools share their words, and people cut, mix and retype what they print: each line is read for itself, whatever stands around it.
Sources: torch/utils/collect_env.py (0.4 to 2.13), vllm/collect_env.py, sglang/check_env.py, transformers/cli/system.py,
accelerate/commands/env.py, llamafactory/extras/env.py, deepspeed/env_report.py.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from oomdoctor.machine.collect.packages import normalise_name
from oomdoctor.machine.reports.merge_facts import Fact
from oomdoctor.machine.reports.values import (
    gpu_indices,
    known_value,
    leading_version,
    read_cards,
    read_driver,
    read_interpreter,
    read_libc,
    read_platform,
    read_size,
    read_system,
    read_torch,
    vendor_of,
)

Read = Callable[[str], Iterator[Fact]]

_LINE = re.compile(
    r"^\s{0,40}(?:[-*+•·]\s{1,8}|\d{1,2}[.)、]\s{0,8})?(?P<key>[^\s:：=|.][^:：=|]{0,80}?)(?:[:：]|\s\.{3,40}\s)\s*(?P<value>.{0,600})$"
)
_ASIDE = re.compile(r"\s*[(（][^()（）]{0,40}[)）]?\s*\Z")
_CARD_LINE = re.compile(r"^gpu\s?(?P<indices>\d{1,3}(?:,\d{1,3}){0,255})(?P<capability> compute capability)?\Z")
_MODELS = re.compile(r"^GPU (?P<index>\d{1,3}): (?P<name>.{1,120})$")
_CAPABILITY = re.compile(r"\d{1,2}\.\d\Z")
_XPU = re.compile(
    r"\* \[(?P<index>\d{1,3})\] _XpuDeviceProperties\(.{0,60}?name='(?P<name>[^']{1,80})'(?:.{0,300}?total_memory=(?P<size>\d{1,9})MB)?"
)
_COMMIT = re.compile(r"[0-9a-f]{7,40}\Z")
_CONFIGURED = re.compile(r"['\"]?(?P<name>PYTORCH_[A-Z_]{0,20}ALLOC_CONF)['\"]?: ['\"](?P<value>[^'\"]{1,300})['\"]")
_TIMES = re.compile(r"\s*[x×*]\s*(\d{1,2})\Z|\A(\d{1,2})\s*[x×*]\s*")

_LONGEST_NAME = 40
_AFTER_NAME = re.compile(r"\s?[（]|\s\(|[,;，；、]")
"""What people write behind the name of a card: its memory in brackets, a list."""
_ALIASES = {"pytorch": "torch", "llama-factory": "llamafactory", "swift": "ms-swift", "flash-attention": "flash-attn"}


def find_tool(line: str) -> str | None:
    """Return the tool that prints such a line, where only one does."""
    return next((tool for tool, form in _TOOLS if form.search(line)), None)


_TOOLS = (
    (
        "collect_env",
        re.compile(r"^(?:Collecting environment information|PyTorch version\s*:|Is debug build\s*:|CUDA used to build PyTorch\s*:)"),
    ),
    ("transformers env", re.compile(r"^\s*-?\s*`?transformers`? version\s*:")),
    ("accelerate env", re.compile(r"^\s*-?\s*`Accelerate` version\s*:")),
    ("llamafactory-cli env", re.compile(r"^\s*-?\s*`?llamafactory`? version\s*:")),
    ("sglang check_env", re.compile(r"^Python: \d\.\d{1,2}\.\d{1,2}.{0,20}\(")),
    ("ds_report", re.compile(r"^DeepSpeed (?:C\+\+/CUDA extension op report|general environment info)|^torch install path \.{3}")),
)


def read_line(line: str) -> Iterator[Fact]:
    """Read what a line that a tool printed says; nothing where it is none."""
    if card := _MODELS.match(line.strip()):
        yield from read_cards(card["index"], card["name"])
    elif xpu := _XPU.search(line):
        yield from read_cards(xpu["index"], xpu["name"])
        if xpu["size"]:
            yield ("gpus", xpu["index"], "total_bytes"), int(xpu["size"]) << 20
    elif pair := _pair(line):
        key, value = pair
        if key in _KEYS:
            yield from _KEYS[key](value)
        elif card := _CARD_LINE.match(key):
            yield from _capability(card["indices"], value) if card["capability"] else read_cards(card["indices"], value)
        else:
            yield from _package(key, value)


def read_handwritten_line(line: str) -> Iterator[Fact]:
    """Read what a person wrote in such a line (`显卡：RTX 4090`): good where no tool says it."""
    pair = _pair(line)
    if pair is not None and pair[0] in _HANDWRITTEN_KEYS:
        yield from _HANDWRITTEN_KEYS[pair[0]](pair[1])


def _pair(line: str) -> tuple[str, str] | None:
    """Return the key of a line, as the tables write it, and a value that says something."""
    pair = _LINE.match(line)
    if pair is None or (value := known_value(pair["value"])) is None:
        return None
    key = " ".join(pair["key"].replace("`", "").replace("*", "").lower().split())
    return _ASIDE.sub("", key), value


def _package(key: str, value: str) -> Iterator[Fact]:
    name = normalise_name(key.removesuffix("版本").removesuffix("version").strip())
    name = _ALIASES.get(name, name)
    version = leading_version(value)
    if version is None or len(name) > _LONGEST_NAME or " " in name:
        return
    if name == "torch":
        yield from read_torch(value)
    else:
        yield ("packages", name, "version"), version


def _capability(indices: str, value: str) -> Iterator[Fact]:
    if _CAPABILITY.match(value):
        for index in gpu_indices(indices):
            yield ("gpus", index, "compute_capability"), value


def _models(value: str) -> Iterator[Fact]:
    """Read the first card of `GPU models and configuration`, on the same line where there is only one; ROCm and macOS print no number."""
    first = _MODELS.match(value)
    if first:
        yield from read_cards(first["index"], first["name"])
    elif vendor_of(value) is not None:
        yield from read_cards("0", value)


def _card(value: str) -> Iterator[Fact]:
    """Read a card without its number, which is the first one. People write `2 x RTX 3090`."""
    times = _TIMES.search(value)
    name = _AFTER_NAME.split(_TIMES.sub("", value))[0].strip()
    if vendor_of(name) is None:
        return
    count = int(times[1] or times[2]) if times else 1
    yield from read_cards(",".join(str(index) for index in range(max(1, count))), name)


def _count(value: str) -> Iterator[Fact]:
    if value.isdecimal() and 0 < int(value[:4]) <= 64:
        yield ("torch_run", "device_count"), int(value)


def _bool(*path: str) -> Read:
    def read(value: str) -> Iterator[Fact]:
        if value.lower() in ("true", "yes", "false", "no"):
            yield path, value.lower() in ("true", "yes")

    return read


def _numbered(*path: str) -> Read:
    def read(value: str) -> Iterator[Fact]:
        if (version := leading_version(value)) is not None:
            yield path, version

    return read


def _size(*path: str) -> Read:
    def read(value: str) -> Iterator[Fact]:
        yield from read_size(path, value)

    return read


def _backend(path: str, backend: str) -> Read:
    """Read what torch was built for, by the compiler's version."""

    def read(value: str) -> Iterator[Fact]:
        release = re.match(r"\d{1,8}(?:\.\d{1,6}){0,2}", value)
        if release:
            yield ("torch", "backend"), backend
            if path:
                yield ("torch", path), ".".join(release[0].split(".")[:2]) if path == "cuda" else release[0]

    return read


def _deepspeed(value: str) -> Iterator[Fact]:
    """`0.14.2, 8c5be1f, master`: version, commit, branch."""
    parts = [part.strip() for part in value.split(",")]
    if (version := leading_version(parts[0])) is not None:
        yield ("packages", "deepspeed", "version"), version
    if len(parts) > 1 and _COMMIT.match(parts[1]):
        yield ("packages", "deepspeed", "commit"), parts[1]


def _shm(value: str) -> Iterator[Fact]:
    yield ("host", "shm", "path"), "/dev/shm"  # noqa: S108 - a name in a report
    yield from read_size(("host", "shm", "total_bytes"), value)


def _commit(value: str) -> Iterator[Fact]:
    if _COMMIT.match(value):
        yield ("packages", "llamafactory", "commit"), value


def _allocator(value: str) -> Iterator[Fact]:
    """Read the allocator's settings: a text up to torch 2.12, a dict of the variables that are set from 2.13 on."""
    variables = list(_CONFIGURED.finditer(value))
    for variable in variables:
        yield ("variables", variable["name"]), variable["value"]
    if not variables and re.fullmatch(r"[\w:,.\[\]> -]{1,300}", value):
        yield ("variables", "PYTORCH_CUDA_ALLOC_CONF"), value


def _loading(value: str) -> Iterator[Fact]:
    if value in ("LAZY", "EAGER", "DEFAULT"):
        yield ("variables", "CUDA_MODULE_LOADING"), value


def _npu(value: str) -> Iterator[Fact]:
    yield ("gpus", "0", "vendor"), "huawei"
    yield ("gpus", "0", "name"), value[:80]


_KEYS: Mapping[str, Read] = {
    # torch's and vLLM's collect_env
    "pytorch version": read_torch,
    "cuda used to build pytorch": _backend("cuda", "cuda"),
    "rocm used to build pytorch": _backend("hip", "rocm"),
    "xpu used to build pytorch": _backend("", "xpu"),
    "os": read_system,
    "libc version": read_libc,
    "python version": read_interpreter,
    "python platform": read_platform,
    "is cuda available": _bool("torch_run", "cuda_available"),
    "cuda_module_loading set to": _loading,
    "gpu models and configuration": _models,
    "nvidia driver version": read_driver,
    "caching allocator config": _allocator,
    # transformers, accelerate, llamafactory
    "platform": read_platform,
    "gpu type": _card,
    "npu type": _npu,
    "gpu number": _count,
    "gpu memory": _size("gpus", "0", "total_bytes"),
    "system ram": _size("host", "ram_bytes"),
    "git commit": _commit,
    # sglang
    "python": read_interpreter,
    "cuda available": _bool("torch_run", "cuda_available"),
    "cuda driver version": read_driver,
    "pytorch": read_torch,
    # ds_report
    "torch version": read_torch,
    "torch cuda version": _backend("cuda", "cuda"),
    "torch hip version": _backend("hip", "rocm"),
    "deepspeed info": _deepspeed,
    "shared memory (/dev/shm) size": _shm,
}
"""Keys in lower case, without what stands in brackets behind them (`PyTorch version (GPU?)`)."""
_HANDWRITTEN_KEYS: Mapping[str, Read] = {
    "gpu": _card,
    "gpus": _card,
    "显卡": _card,
    "显卡型号": _card,
    "gpu型号": _card,
    "操作系统": read_system,
    "系统": read_system,
    "driver version": read_driver,
    "nvidia driver": read_driver,
    "驱动版本": read_driver,
    "驱动": read_driver,
    "python版本": read_interpreter,
    "python 版本": read_interpreter,
    "torch": read_torch,
    "torch版本": read_torch,
    "torch 版本": read_torch,
    "pytorch版本": read_torch,
    "pytorch 版本": read_torch,
}
"""Keys that no tool prints and people write in their reports."""
