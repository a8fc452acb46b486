"""Describe an interpreter, and with `--deep` its torch. The user's own interpreter runs this, 3.7 or newer.

It imports the standard library alone (and torch with `--deep`), and prints one line of JSON behind a mark, so that whatever
else an environment prints at its start does no harm.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from functools import partial
from typing import Any, Callable, Dict  # noqa: UP035 - as 3.7 has them

MARK = "oomdoctor-probe:"

Answer = Dict[str, Any]  # noqa: UP006 - as 3.7 has it
"""A part of the answer, as probe/answer.py reads it."""


def interpreter() -> Answer:
    """Return what the interpreter knows of itself."""
    return {
        "executable": sys.executable,
        "version": platform.python_version(),
        "prefix": sys.prefix,
        "site_packages": [folder for folder in sys.path if folder and os.path.isdir(folder)],
    }


def attempt(out: Answer, name: str, ask: Callable[[], Any]) -> None:
    """Keep one answer; one that fails is left out."""
    try:
        value = ask()
    except Exception as why:  # noqa: BLE001 - anything at all may come out of a broken torch
        out.setdefault("failed", {})[name] = f"{type(why).__name__}: {str(why)[:400]}"
        return
    if value is not None:
        out[name] = value


def product_works(torch: Any, kind: Any) -> bool:
    """Return whether a small product of this type comes out right on the first card."""
    ones = torch.ones((16, 16), dtype=kind, device="cuda:0")
    return bool(abs(float((ones @ ones).float().sum()) - 4096.0) < 1.0)


def allocator_settings(torch: Any) -> Any:
    """Return the allocator's settings in force, as the snapshot names them."""
    snapshot = torch.cuda.memory._snapshot() if hasattr(torch.cuda.memory, "_snapshot") else {}
    settings = snapshot.get("allocator_settings") or {}
    return ",".join(f"{name}:{value}" for name, value in sorted(settings.items()))[:400] or None


def free(torch: Any, index: int) -> int:
    """Return what the driver says is free on a card."""
    return int(torch.cuda.mem_get_info(index)[0])


def cards(torch: Any) -> list[Answer]:
    """Return what torch says of each card."""
    described: list[Answer] = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        card = {
            "index": index,
            "name": properties.name,
            "total_bytes": int(properties.total_memory),
            "compute_capability": f"{properties.major}.{properties.minor}",
            "unified": bool(getattr(properties, "is_integrated", False)) or None,
        }
        attempt(card, "free_bytes", partial(free, torch, index))
        described.append(card)
    return described


def deep() -> Answer:
    """Import torch and ask it."""
    out: Answer = {"imports": False}
    try:
        import torch  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - it may end this process, and only --deep wants it
    except BaseException as why:  # noqa: BLE001 - SystemExit and the like as well
        out["error"] = f"{type(why).__name__}: {str(why)[:600]}"
        return out
    out["imports"] = True
    attempt(out, "version", lambda: str(torch.__version__))
    attempt(out, "cuda", lambda: torch.version.cuda)
    attempt(out, "hip", lambda: getattr(torch.version, "hip", None))
    attempt(out, "cuda_available", lambda: bool(torch.cuda.is_available()))
    attempt(out, "device_count", lambda: int(torch.cuda.device_count()))
    attempt(out, "arch_list", lambda: list(torch.cuda.get_arch_list()))
    attempt(out, "cudnn", lambda: str(torch.backends.cudnn.version() or "") or None)
    if out.get("cuda_available"):
        attempt(out, "cards", lambda: cards(torch))
        attempt(out, "nccl", lambda: ".".join(str(part) for part in torch.cuda.nccl.version()))
        attempt(out, "allocator_backend", torch.cuda.get_allocator_backend)
        attempt(out, "bf16_claimed", lambda: bool(torch.cuda.is_bf16_supported()))
        attempt(out, "bf16_works", lambda: product_works(torch, torch.bfloat16))
        attempt(out, "fp16_works", lambda: product_works(torch, torch.float16))
        attempt(out, "allocator_settings", lambda: allocator_settings(torch))
    return out


def main(arguments: list[str]) -> None:
    """Print the answer."""
    answer: Answer = {"python": interpreter()}
    if "--deep" in arguments:
        answer["torch"] = deep()
    sys.stdout.write(f"\n{MARK}{json.dumps(answer)}\n")
    sys.stdout.flush()
    # Libraries that crash while they are taken down must not spoil the answer.
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
