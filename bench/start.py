"""What short commands take of the processor, in proportion to importing click and rich.

    python bench/start.py .venv/bin/python                   # one state
    python bench/start.py before/bin/python after/bin/python # two, in turn

Each Python should have an installed wheel: a checkout looks at the dates of all rule files at each start. Seconds are of the whole
process, user and system. Where valgrind is installed, instructions are counted, too: they hardly depend on what else the machine does.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from statistics import median

import logs

CONFIG = """\
model_name_or_path: meta-llama/Llama-3.1-8B
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 16
lora_target: all
cutoff_len: 4096
per_device_train_batch_size: 2
gradient_accumulation_steps: 8
bf16: true
"""
COUNTING = ("valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={os.devnull}")
NOTHING = subprocess.DEVNULL
IMPORTS = "import click, rich"


def commands(work: Path) -> dict[str, list[str]]:
    """Return what is measured, by what it is called, as words behind the Python; the imports come first."""
    log, config = work / "train.log", work / "sft.yaml"
    if not log.exists():
        logs.main(["--size", "100KiB", "--output", str(log)])
    config.write_text(CONFIG)
    tool = ["-m", "oomdoctor"]
    return {
        IMPORTS: ["-c", IMPORTS],
        "--version": [*tool, "--version"],
        "estimate of a config": [*tool, "estimate", str(config)],
        "diagnose, 100 KiB": [*tool, "diagnose", str(log), "--exit-zero"],
        "the same, JSON": [*tool, "diagnose", str(log), "--exit-zero", "--format", "json"],
    }


def seconds(words: list[str], work: Path) -> float:
    """Run a command; its seconds of the processor."""
    child = subprocess.Popen(words, cwd=work, env=environment(work), stdin=NOTHING, stdout=NOTHING, stderr=NOTHING)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 1):
        raise SystemExit(f"status {child.returncode}: {' '.join(words)}")
    return used.ru_utime + used.ru_stime


def instructions(words: list[str], work: Path) -> int:
    """Run a command under valgrind; the instructions of the program itself."""
    done = subprocess.run([*COUNTING, *words], cwd=work, env=environment(work), stdin=NOTHING, capture_output=True, text=True, check=False)
    counted = re.search(r"I\s+refs:\s+([\d,]+)", done.stderr)
    if counted is None:
        raise SystemExit(done.stderr)
    return int(counted[1].replace(",", ""))


def environment(work: Path) -> dict[str, str]:
    """Return the variables of a run: its cache is its own."""
    return {**os.environ, "XDG_CACHE_HOME": str(work / "cache")}


def main() -> None:
    """Measure and print a table: of each Python the median and the least of the seconds, and the instructions, with their ratios."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pythons", nargs="+", help="Pythons that have oomdoctor")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--work", default=os.path.join(tempfile.gettempdir(), "oomdoctor-bench"), help="where the inputs are kept")
    options = parser.parse_args()
    work = Path(options.work).resolve()
    work.mkdir(parents=True, exist_ok=True)
    # A relative name of a Python would be looked for in the work folder; its links stay, as they make a virtual environment.
    pythons = [os.path.abspath(python) for python in options.pythons]
    print("| what | state | median | x | least | x | million instructions | x |\n|---|---|---|---|---|---|---|---|")
    base: dict[str, tuple[float, float, float]] = {}
    for what, words in commands(work).items():
        taken: dict[str, list[float]] = {python: [] for python in pythons}
        for number in range(options.rounds + 1):
            for python in pythons:
                spent = seconds([python, *words], work)
                if number:  # the first run fills caches
                    taken[python].append(spent)
        for number, (python, spent) in enumerate(taken.items(), 1):
            counted = instructions([python, *words], work) / 1e6 if shutil.which(COUNTING[0]) else float("nan")
            figures = (median(spent), min(spent), counted)
            middle, least, millions = (f"{figure / of:.2f}" for figure, of in zip(figures, base.setdefault(python, figures)))
            cells = (what, number, f"{figures[0]:.3f} s", middle, f"{figures[1]:.3f} s", least, f"{counted:.0f}", millions)
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
