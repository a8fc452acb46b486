"""What every command that prints a text of the user's prints of a run that has the same text everywhere, in every format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from in_process import oomdoctor
from redaction.leaks import log
from snapshots.made_snapshots import filled, pickled

from oomdoctor.cli.report import PROJECTS

_SETTINGS = (
    "model_name_or_path: Qwen/Qwen2.5-7B",
    "stage: sft",
    "finetuning_type: lora",
    "per_device_train_batch_size: 64",
    "cutoff_len: 8192",
)
_TRIAGE = ("triage", "logs", "jobs", "--records", "sacct.psv", "--store", "store")
_DIAGNOSE = ("diagnose", "train.log", "-c", "sft.yaml", "--env", "none")
COMMANDS: dict[str, Sequence[str]] = {
    **{f"diagnose, {form}": (*_DIAGNOSE, "-f", form) for form in ("terminal", "markdown", "json", "html", "svg", "sarif")},
    "diagnose, its machine": ("diagnose", "train.log", "--env", "env.txt", "-f", "json"),
    "diagnose --reply": (*_DIAGNOSE, "--reply"),
    "diagnose --lang zh": (*_DIAGNOSE, "--lang", "zh", "--full"),
    "diagnose --series": ("diagnose", "train.log", "--series", "gpu.csv", "--env", "none", "--full"),
    **{f"snapshot, {form}": ("snapshot", "oom.pickle", "-f", form, "--full") for form in ("terminal", "markdown", "json", "html")},
    "report": ("report", "train.log", "--config", "sft.yaml", "--env", "none"),
    **{f"report --for {name}": ("report", "train.log", "--config", "sft.yaml", "--env", "none", "--for", name) for name in PROJECTS},
    **{f"compare, {form}": ("compare", "train.log", "other.log", "-f", form) for form in ("terminal", "markdown", "json", "html")},
    **{f"compare configs, {form}": ("compare", "sft.yaml", "other.yaml", "-f", form) for form in ("terminal", "json")},
    **{f"check, {form}": ("check", "sft.yaml", "--gpu", "24GB", "-f", form) for form in ("terminal", "markdown", "json", "sarif")},
    **{f"plan, {form}": ("plan", "sft.yaml", "--gpu", "24GB", "-f", form) for form in ("terminal", "markdown", "json", "html")},
    **{f"estimate, {form}": ("estimate", "sft.yaml", "--gpu", "24GB", "-f", form) for form in ("terminal", "json", "html")},
    "estimate --cards": ("estimate", "sft.yaml", "--cards"),
    "estimate --formats": ("estimate", "sft.yaml", "--method", "lora", "--gpu", "24GB", "--formats"),
    "estimate --sweep": ("estimate", "sft.yaml", "--gpu", "24GB", "--sweep", "batch=1,2,length=4k,8k"),
    "fix": ("fix", "sft.yaml", "--gpu", "24GB", "--dry-run"),
    "fix of a log": ("fix", "train.log", "--config", "sft.yaml", "--dry-run"),
    **{f"env, {form}": ("env", "--from", "env.txt", "-f", form) for form in ("terminal", "markdown", "json", "html")},
    "verdict": ("verdict", "train.log"),
    "verdict, json": ("verdict", "train.log", "-f", "json"),
    "triage": (*_TRIAGE, "-o", "rows.jsonl"),
    "triage, csv": (*_TRIAGE, "-o", "rows.csv"),
    "triage, json": (*_TRIAGE, "-f", "json"),
    "triage report": ("triage", "report", "--store", "store"),
    "triage report, html": ("triage", "report", "--store", "store", "-o", "triage.html"),
    **{f"triage show, {lang}": ("triage", "show", "1", "--store", "store", "--full", "--lang", lang) for lang in ("en", "zh")},
    **{f"triage users, {form}": ("triage", "users", "--store", "store", "-f", form) for form in ("terminal", "markdown", "json")},
    **{f"triage mails, {form}": ("triage", "mails", "--store", "store", "-f", form) for form in ("terminal", "json")},
    "triage metrics": ("triage", "metrics", "--store", "store"),
    "triage merge": ("triage", "merge", "store", "--store", "merged", "-f", "json"),
    "triage sql": ("triage", "sql", "SELECT * FROM jobs", "--store", "store", "-f", "json"),
}
"""In the order in which they run: the later ones of triage read what the first one kept."""
WRITTEN = ("rows.jsonl", "rows.csv", "triage.html")


def answers(text: str, folder: Path, *, commands: Sequence[str] = tuple(COMMANDS)) -> Iterator[tuple[str, str]]:
    """Yield each command with what it prints, and each file that one wrote."""
    _write(text, folder)
    for name in commands:
        done = oomdoctor(COMMANDS[name], here=folder)
        yield name, done.stdout + done.stderr
    for topic in (f"CUDA out of memory {text}", f"fragmentation {text}", text):
        done = oomdoctor(("explain", "--", topic), here=folder)
        yield f"explain {topic}", done.stdout + done.stderr
    for name in WRITTEN:
        if (folder / name).is_file():
            yield name, (folder / name).read_text(encoding="utf-8")


def _write(text: str, folder: Path) -> None:
    line = text.replace("\n", " ")
    quoted = json.dumps(text, ensure_ascii=False)
    config = "".join(f"{setting}\nnote_{number}: {quoted}\n# {line}\n" for number, setting in enumerate(_SETTINGS))
    (folder / "sft.yaml").write_text(config, encoding="utf-8")
    (folder / "other.yaml").write_text(config.replace("8192", "4096"), encoding="utf-8")
    (folder / "train.log").write_text(log(text) + f"\n{text}\n", encoding="utf-8")
    (folder / "other.log").write_text(log(text).replace("2.00", "3.00"), encoding="utf-8")
    (folder / "env.txt").write_text(
        f"PyTorch version: 2.6.0+cu124\nOS: {line}\nGPU 0: NVIDIA L40S\nLD_LIBRARY_PATH={line}\n{text}\n", encoding="utf-8"
    )
    (folder / "oom.pickle").write_bytes(pickled(filled((frame := f"/home/ann/app/{line}.py:7:hold",), asking=(frame,))))
    cards = "".join(f"2026/01/02 03:04:{second:02d}.000, {line}, 0, {1000 + second} MiB, 24564 MiB\n" for second in range(20))
    (folder / "gpu.csv").write_text(f"timestamp, name, index, memory.used [MiB], memory.total [MiB]\n{cards}", encoding="utf-8")
    (folder / "jobs").mkdir(exist_ok=True)
    for number in (1, 2):
        (folder / "jobs" / f"slurm-700{number}.out").write_text(log(text), encoding="utf-8")
    (folder / "sacct.psv").write_text("JobID|JobName|User|State\n7001|train|ann|FAILED\n7002|train|bob|FAILED\n", encoding="utf-8")
