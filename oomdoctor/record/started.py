"""What was started: the config files that a command names, and the interpreter that it runs in."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module

from oomdoctor.machine.collect.variables import sounds_secret
from oomdoctor.opening import open_file
from oomdoctor.record.evidence import CONFIGS, EvidenceGap
from oomdoctor.record.folder import EvidenceFolder
from oomdoctor.record.redacting import redact_bytes

_ENDINGS = (".yaml", ".yml", ".json", ".toml", ".sh", ".bash", ".slurm", ".sbatch")
_NAMED = re.compile(r"[\w./~+@:-]{1,300}?\.(?:yaml|yml|json|toml|sh|bash|slurm|sbatch)(?![\w.])")
_MOST_BYTES, _MOST_FILES, _MOST_WORDS = 1 << 20, 32, 2000
_SHEBANG = re.compile(rb"#!\s*(\S{1,400}python[\w.]{0,8})\s")


_MATTERS = re.compile(
    r"(?:CUDA|PYTORCH|TORCH|NCCL|OMP|MKL|HF|SLURM|NVIDIA|HIP|ROCR|HSA|XLA|ASCEND|NPU|RAY|VLLM|SGLANG|DS|DEEPSPEED|ACCELERATE|FSDP|"
    r"MALLOC|TORCHELASTIC|TF|JAX|LLAMAFACTORY)_|(?:LOCAL_|WORLD_|GROUP_|NODE_)?(?:RANK|WORLD_SIZE|SIZE)$|LD_PRELOAD$|TOKENIZERS_PARALLELISM$|"
    r"MASTER_(?:ADDR|PORT)$|CUBLAS_|ZE_AFFINITY"
)
_LONGEST = 400


def variables(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that matter for memory or say how a run was started; none whose name sounds like a secret."""
    return {
        name: value[:_LONGEST].encode("utf-8", "replace").decode()
        for name, value in sorted(environ.items())
        if _MATTERS.match(name) and not sounds_secret(name)
    }


def copy_configs(command: Sequence[str], cwd: str, folder: EvidenceFolder) -> None:
    """Copy the config files and scripts that a command names, and those that they name."""
    taken: set[str] = set()
    for path in _config_files(command, cwd):
        name, ending = os.path.splitext(os.path.basename(path))
        free = next(
            free for number in range(1, _MOST_FILES + 2) if (free := f"{name}{'' if number == 1 else f'-{number}'}{ending}") not in taken
        )
        taken.add(free)
        data = _read(path)
        if data is None or len(data) > _MOST_BYTES:
            folder.gaps.append(EvidenceGap(what=path, why="it is larger than 1 MiB" if data else "it cannot be read"))
        else:
            folder.write(f"{CONFIGS}/{free}", redact_bytes(data))


def interpreter_of(command: Sequence[str]) -> str | None:
    """Return the Python that a command runs in: itself, or the one in the first line of a script such as torchrun; None where unknown."""
    path: str | None = import_module("shutil").which(command[0]) if command else None
    if path is None:
        return None
    if re.match(r"python[\d.]*$", os.path.basename(path)):
        return path
    shebang = _SHEBANG.match(_read(path, 512) or b"")
    return os.fsdecode(shebang[1]) if shebang else None


def _config_files(command: Sequence[str], cwd: str) -> Iterator[str]:
    """Yield the files in the order in which they are named; a path counts from the working directory, else from the file that names it."""
    seen: set[str] = set()
    named = [(name, cwd) for word in command[:_MOST_WORDS] for name in (word, word.partition("=")[2].lstrip("@"), *_NAMED.findall(word))]
    for name, beside in named:
        if len(seen) >= _MOST_FILES:
            return
        path = next((full for place in (cwd, beside) if _is_config(full := os.path.join(place, os.path.expanduser(name)))), None)
        if path is not None and (real := os.path.realpath(path)) not in seen:
            seen.add(real)
            yield path
            text = (_read(path) or b"")[:_MOST_BYTES].decode("utf-8", "replace")
            named += [(inner, os.path.dirname(path)) for inner in _NAMED.findall(text)[:_MOST_WORDS]]


def _is_config(path: str) -> bool:
    return path.lower().endswith(_ENDINGS) and os.path.isfile(path)


def _read(path: str, most: int = _MOST_BYTES + 1) -> bytes | None:
    try:
        with open_file(path) as file:
            return file.read(most)
    except (OSError, ValueError):
        return None
