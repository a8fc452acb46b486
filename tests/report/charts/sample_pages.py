"""One page of each kind of report, made by the commands from fixtures and made files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from click.testing import CliRunner
from report.test_triage_page import failed
from report.test_triage_page import page as triage_page
from series.test_diagnose_series import LEAKING, OOM, STEADY, csv
from snapshots.made_snapshots import leaking, pickled

from oomdoctor.cli.main import cli

FIXTURES = Path(__file__).parents[3] / "fixtures"
STAIRCASE = FIXTURES / "cases" / "llama31-staircase"
LOGS, CONFIGS = ([FIXTURES / "compare" / f"{name}.{end}" for name in ("last-week", "today")] for end in ("log", "yaml"))
MODEL = ("Qwen3 8B", "--method", "lora")

Files = Mapping[str, "str | bytes"]


def page(arguments: Sequence[str | Path], folder: Path, lang: str, files: Files) -> str:
    """Return what a command writes as HTML; `files` lie in the folder, and stand among the arguments by their names."""
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    named = [str(folder / argument) if argument in files else str(argument) for argument in arguments]
    done = CliRunner().invoke(cli, [*named, "--format", "html", "--lang", lang], env={"OOMDOCTOR_CACHE": ""})
    assert done.exit_code in (0, 1), done.output
    return done.output


def _triage(folder: Path, lang: str) -> str:  # noqa: ARG001 - the rows are made
    kinds = ("device-oom", "device-oom", "host-oom", "shm-oom")
    return triage_page([failed(number, number % 5, kind=kinds[number % 4]) for number in range(160)], lang)


def _watched() -> str:
    """Return two cards of one node, as `nvidia-smi --query-gpu` writes them."""
    return csv(LEAKING, [level - 3 * 2**30 for level in STEADY])


def _ranks() -> str:
    """Return a log of four ranks that print their memory, of which the third fails."""
    lines = [
        f"[Rank {rank}] (after {step} iterations) memory (MB) | allocated: {9000 + 90 * step + 400 * rank * (rank == 2)} "
        f"| max allocated: {12000 + 80 * step + 300 * rank} | reserved: {13000 + 80 * step + 500 * rank} | max reserved: {14000 + 80 * step}"
        for step in range(10, 130, 10)
        for rank in range(4)
    ]
    return "\n".join([*lines, f"[rank2]: {OOM}"])


PAGES: Mapping[str, Callable[[Path, str], str]] = {
    "diagnose": lambda folder, lang: page(["diagnose", STAIRCASE / "train.log", "--config", STAIRCASE / "run.sh"], folder, lang, {}),
    "diagnose-ranks": lambda folder, lang: page(["diagnose", "train.log"], folder, lang, {"train.log": _ranks()}),
    "diagnose-series": lambda folder, lang: page(
        ["diagnose", "train.log", "--series", "gpu.csv"], folder, lang, {"train.log": OOM, "gpu.csv": _watched()}
    ),
    "estimate": lambda folder, lang: page(["estimate", *MODEL, "--batch", "2", "--length", "4096", "--gpu", "24GB"], folder, lang, {}),
    "sweep": lambda folder, lang: page(["estimate", *MODEL, "--gpu", "40GB", "--sweep", "batch,length"], folder, lang, {}),
    "plan": lambda folder, lang: page(["plan", "Qwen3 8B", "--gpu", "40GB"], folder, lang, {}),
    "plan-server": lambda folder, lang: page(["plan", FIXTURES / "cases" / "vllm-one-request-too-long" / "train.log"], folder, lang, {}),
    "compare": lambda folder, lang: page(["compare", *LOGS, "--config", *CONFIGS], folder, lang, {}),
    "snapshot": lambda folder, lang: page(["snapshot", "run.pickle"], folder, lang, {"run.pickle": pickled(leaking())}),
    "triage": _triage,
}
"""Kind of page -> what makes it in a folder and a language."""
