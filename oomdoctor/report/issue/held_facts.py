"""What the text around a log already says, by the names under which it would be asked for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from oomdoctor.machine.reports.read import read_report
from oomdoctor.setups.words.told import read_told

_COMMAND = re.compile(
    r"^[\s`$>#]{0,12}(?:[A-Z_]{2,40}=\S{1,200} ){0,8}"
    r"(?:python3?|torchrun|deepspeed|accelerate launch|llamafactory-cli|swift|axolotl|vllm serve|ollama run"
    r"|srun|sbatch|docker run|bash \S{1,80}\.sh)\b \S",
    re.MULTILINE,
)
_CONFIG = re.compile(r"(?:^[ \t]{0,8}[\w.-]{2,60}\s?[:=] ?\S[^\n]{0,120}\n){4}", re.MULTILINE)
_ARGUMENTS = re.compile(r"\b\w{0,30}(?:Config|Arguments)\(")
_VERSIONS = {
    "torch": "log.torch_version",
    "transformers": "log.transformers_version",
    "vllm": "log.vllm_version",
    "llamafactory": "log.llamafactory_version",
}


def held_facts(text: str) -> frozenset[str]:
    """Return the names of what a text says."""
    return frozenset(_held(text)) if text else frozenset()


def _held(text: str) -> Iterator[str]:
    environment = read_report(text.encode("utf-8", "replace"), "-")
    for package, name in _VERSIONS.items():
        if environment.packages.get(package):
            yield name
    if environment.torch is not None and environment.torch.version:
        yield "log.torch_version"
    if environment.gpus:
        yield "told.card"
    run = read_told(text)
    if run.card is not None:
        yield "told.card"
    if run.settings.model is not None and run.method_is_told:
        yield "told.model"
    if run.settings.micro_batch is not None and run.settings.sequence_length is not None:
        yield "training.micro_batch"
    if _COMMAND.search(text) or _CONFIG.search(text) or _ARGUMENTS.search(text):
        yield "told.command"
    if "Traceback (most recent call last)" in text:
        yield "told.traceback"
