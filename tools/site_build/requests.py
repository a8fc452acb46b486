"""Requests that use what the page can: every case of the fixtures, and each other kind of question. Tests and the build ask the same ones.

A request is that of site/PROTOCOL.md; an input has `at`, where its file lies in the repository, or a `text`.
"""

from __future__ import annotations

import base64
import bz2
import gzip
import json
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Asked = dict[str, Any]
_CONFIGS = (".yaml", ".yml", ".json", ".sh", ".py", ".toml")
_OURS = ("expect.yaml",)
_PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "xz": lzma.compress, "bz2": bz2.compress}
_PLAN_OF = "fixtures/compare/today.yaml"


def all_requests(root: Path) -> list[Asked]:
    """Return all requests, each with an id that says what it is."""
    return [*case_requests(root), *other_requests(root)]


def case_requests(root: Path) -> list[Asked]:
    """Return the diagnosis of each case, every other one in Chinese."""
    out = []
    for number, folder in enumerate(sorted((root / "fixtures/cases").iterdir())):
        files = [path for path in sorted(folder.iterdir()) if path.suffix != ".md" and path.name not in _OURS and path.is_file()]
        inputs = [{"path": path.name, "role": _role(path), "at": str(path.relative_to(root))} for path in files]
        if any(given["role"] == "log" for given in inputs):
            lang = "zh" if number % 2 else "en"
            out.append({"type": "diagnose", "id": f"diagnose {folder.name}", "lang": lang, "inputs": inputs})
    return out


def other_requests(root: Path) -> Iterator[Asked]:
    """Yield the other questions, and logs in every form."""
    config = [{"path": "sft.yaml", "at": _PLAN_OF}]
    log = (root / "fixtures/compare/today.log").read_bytes()
    yield {"type": "diagnose", "id": "pasted", "text": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."}
    of = {"type": "render", "of": "pasted"}
    for form in ("html", "markdown", "json", "reply", "issue"):
        yield {**of, "id": f"rendered as {form}", "form": form}
    yield {**of, "id": "the form of a project", "form": "issue", "project": "vllm"}
    folder = [{"path": f"run/{name}", "at": f"fixtures/compare/{name}"} for name in ("last-week.log", "today.log")]
    yield {"type": "diagnose", "id": "a folder", "inputs": folder}
    for name, pack in _PACKERS.items():
        yield {"type": "diagnose", "id": f"packed by {name}", "inputs": [{"path": f"run.log.{name}", "bytes": pack(log)}]}
    yield {"type": "diagnose", "id": "another encoding", "inputs": [{"path": "run.log", "bytes": log.decode().encode("utf-16")}]}
    monitored = "timestamp, index, memory.used [MiB], memory.total [MiB]\n" + "".join(
        f"2026/01/02 10:00:{second:02}.000, 0, {min(24000, 9000 + 300 * second)} MiB, 24564 MiB\n" for second in range(60)
    )
    beside = [{"path": "run.log", "at": "fixtures/compare/today.log"}, {"path": "gpu.csv", "text": monitored}]
    yield {"type": "diagnose", "id": "with memory over time", "inputs": beside}
    filler = b"step 1 loss 2.0\n" * (1 << 17)
    yield {"type": "diagnose", "id": "a log of megabytes", "inputs": [{"path": "run.log", "bytes": filler + log + filler}]}
    lora = {"finetuning": "lora", "micro_batch": 2, "sequence_length": 4096}
    yield {"type": "estimate", "id": "estimate of a run", "question": {"model": "Qwen2.5-7B", "gpu": "24GB", "settings": lora}}
    yield {"type": "estimate", "id": "estimate of a server", "question": {"model": "Qwen2.5-7B", "gpu": "L40S", "serve": True}}
    yield {"type": "estimate", "id": "estimate of a config", "lang": "zh", "inputs": config, "question": {"gpu": "RTX 4090", "gpus": 4}}
    yield {"type": "sweep", "id": "sweep", "question": {"model": "Qwen2.5-7B", "gpu": "24GB", "settings": lora}}
    yield {"type": "cards", "id": "cards", "question": {"model": "Qwen2.5-7B", "settings": lora}}
    yield {"type": "formats", "id": "formats", "question": {"model": "Qwen2.5-7B", "gpu": "24GB", "settings": lora}}
    yield {"type": "settings", "id": "settings of a config", "inputs": config}
    yield {"type": "plan", "id": "plan of a config", "inputs": config, "question": {"gpu": "RTX 4090"}}
    yield {"type": "plan", "id": "plan of a server", "question": {"model": "Qwen3-32B", "gpu": "24GB", "serve": True}}
    yield {"type": "check", "id": "check", "inputs": config, "gpu": "L40S"}
    spec = '{"model": "Qwen2.5-7B", "method": "lora", "seq_len": 4096}'
    yield {"type": "answer_specs", "id": "specs", "lines": [spec, "{}", "no JSON"]}


def _role(path: Path) -> str:
    return "config" if path.suffix in _CONFIGS else "log"


def as_json(root: Path, requests: list[Asked]) -> str:
    """Return requests as tools/site_build/requests.mjs reads them."""
    return json.dumps({"root": str(root), "requests": [_with_base64(request) for request in requests]})


def _with_base64(request: Asked) -> Asked:
    inputs = [
        {**given, "bytes": None, "base64": base64.b64encode(given["bytes"]).decode()} if "bytes" in given else given
        for given in request.get("inputs", [])
    ]
    return {**request, "inputs": inputs} if inputs else request
