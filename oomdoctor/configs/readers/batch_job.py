"""Batch scripts of Slurm: what `#SBATCH` lines ask for, and the variables that Slurm sets from it (sbatch and srun manual pages)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.settings import Scalar, WrittenSetting
from oomdoctor.configs.parsed_config import ParsedConfig, plain_value

_DIRECTIVE = re.compile(r"^#SBATCH[ \t]+(?P<options>[^\r\n#]{1,500})", re.MULTILINE)
_OPTION = re.compile(r"(?P<name>--[a-z][a-z-]{1,40}|-[A-Za-z])(?:[ \t]*=[ \t]*|[ \t]+|(?<=-[A-Za-z])(?=\d))(?P<value>[^\s-][^\s]{0,200})")
_SHORT = {"-N": "--nodes", "-n": "--ntasks", "-G": "--gpus", "-c": "--cpus-per-task"}
_CARDS = ("--gres", "--gpus-per-node", "--gpus", "--gpus-per-task")
_CARD = re.compile(r"(?:\A|,)(?:gres/)?(?:gpu(?::|\Z))?(?:(?P<type>[A-Za-z][\w.-]{0,60}):)?(?P<count>\d{1,4})?(?:\(|,|\Z)")
_KEPT = ("--nodes", "--ntasks", "--ntasks-per-node", "--mem")
_VARIABLES = {
    "--nodes": ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    "--ntasks": ("SLURM_NTASKS", "SLURM_NPROCS"),
    "--ntasks-per-node": ("SLURM_NTASKS_PER_NODE",),
    "gpus_per_node": ("SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"),
}


class BatchJob(Struct, frozen=True):
    """What a batch script asks for, and the variables that its commands are given."""

    config: ParsedConfig
    variables: dict[str, str]


def read_job(file: str, text: str) -> BatchJob | None:
    """Return what the `#SBATCH` lines of a script ask for; None where it has none."""
    written = per_node(
        setting
        for match in _DIRECTIVE.finditer(text)
        for setting in job_settings(file, match["options"], text.count("\n", 0, match.start()) + 1)
    )
    if not written:
        return None
    variables = {name: str(setting.value) for setting in written for name in _VARIABLES.get(setting.key, ())}
    return BatchJob(ParsedConfig(file=file, form="job", written=written, program="sbatch", framework="slurm"), variables)


def job_settings(file: str, options: str, line: int) -> Iterator[WrittenSetting]:
    """Yield the settings of options that sbatch and srun both take; `--gres=gpu:a100:4` says a card and a number."""
    for match in _OPTION.finditer(options):
        name = _SHORT.get(match["name"], match["name"])
        if name in _CARDS:
            for key, value in _cards(name, match["value"]):
                yield WrittenSetting(key=key, value=value, file=file, line=line)
        elif name in _KEPT:
            yield WrittenSetting(key=name, value=_least(name, match["value"]), file=file, line=line)


def per_node(settings: Iterable[WrittenSetting], nodes: int = 1) -> tuple[WrittenSetting, ...]:
    """Return the settings with the tasks of a node, where only those of all nodes are said; `nodes` is the number that nobody says."""
    written = tuple(settings)
    by_key = {setting.key: setting for setting in written}
    tasks, nodes_option = by_key.get("--ntasks"), by_key.get("--nodes")
    if tasks is None or "--ntasks-per-node" in by_key or not isinstance(tasks.value, int):
        return written
    machines = nodes_option.value if nodes_option is not None and isinstance(nodes_option.value, int) and nodes_option.value > 0 else nodes
    return (*written, replace(tasks, key="--ntasks-per-node", value=max(1, tasks.value // machines)))


def srun_options(texts: Sequence[str]) -> int:
    """Return how many words after `srun` are options of its own, with their values."""
    at = 0
    while at < len(texts) and texts[at].startswith("-"):
        alone = texts[at] in _FLAGS or "=" in texts[at] or re.fullmatch(r"-[A-Za-z]\d+", texts[at]) is not None
        at += 1 if alone or at + 1 >= len(texts) else 2
    return min(at, len(texts))


_FLAGS = frozenset({
    "-l", "--label", "-u", "--unbuffered", "--exclusive", "--overlap", "-s", "--oversubscribe", "-v", "--verbose", "-Q", "--quiet",
    "-O", "--overcommit", "--exact", "--pty", "-W0", "--no-kill", "-k", "--container-mount-home", "--no-container-mount-home",
    "--container-writable", "--disable-status", "-X", "--multi-prog", "--whole", "--contiguous", "--spread-job", "--use-min-nodes",
})  # fmt: skip
"""Options of srun that take no value, or one only behind `=`."""


def _cards(name: str, value: str) -> Iterator[tuple[str, Scalar]]:
    if name == "--gres" and "gpu" not in value:
        return
    card = _CARD.search(value[value.index("gpu") :] if name == "--gres" else value)
    if card is None:
        return
    if card["type"]:
        yield "gpu_type", card["type"]
    yield (
        {"--gres": "gpus_per_node", "--gpus-per-node": "gpus_per_node", "--gpus": "gpus", "--gpus-per-task": "gpus_per_task"}[name],
        int(card["count"] or 1),
    )


def _least(name: str, value: str) -> Scalar:
    """Return a value as it is written; of a range of nodes (`2-4`) the least."""
    return plain_value(value.partition("-")[0] if name == "--nodes" else value)
