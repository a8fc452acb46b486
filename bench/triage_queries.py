"""How long an operator's questions take over the rows of a triage: the queries of docs/triage.md, over made rows.

    python bench/triage_queries.py --rows 1000000 --work FOLDER

The rows come from a seed, the same each time, and are kept in the folder between runs. The median of three runs is printed.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from msgspec.json import encode

from oomdoctor.api.fleet.query import query
from oomdoctor.triage.row import Failed, JobRow, Retry
from oomdoctor.triage.store.export import write_table

DOCS = Path(__file__).parents[1] / "docs" / "triage.md"
QUESTIONS = re.findall(r"^\*(.+?)\*\n\n```sql\n(.*?)\n```", DOCS.read_text(encoding="utf-8"), re.M | re.S)
"""The questions that docs/triage.md answers, each with its query."""
DAY = 86400
FIRST = 1748736000
LAYOUTS = ("slurm", "torchrun", "kubernetes-pod", "ray", "docker", "loki")
NAMES = ("sft", "dpo", "eval", "pretrain", "serve")
MODELS = ("qwen2.5-7b", "glm-4-9b", "llama-3.1-8b", "mixtral-8x7b", None)
KINDS = (("device-oom", 70), ("host-oom", 20), ("masked-device-oom", 7), ("shm-oom", 3))
RETRIES: tuple[Retry, ...] = ("stop", "smaller", "retry", "unknown")
SETTLE = "look at the node's kernel log"


def made_rows(count: int, seed: int) -> Iterator[JobRow]:
    """Yield rows of a year: four of a hundred jobs died of memory."""
    dice = random.Random(seed)
    kinds = [kind for kind, weight in KINDS for _ in range(weight)]
    for number in range(count):
        user = f"u{int(dice.paretovariate(0.6)) % 400:03d}"
        chance = dice.random()
        failed: Failed = "yes" if chance < 0.04 else "possible" if chance < 0.045 else "unread" if chance < 0.055 else "no"
        died = failed == "yes"
        ended = FIRST + number * 365 * DAY // count
        kind = dice.choice(kinds) if died else "none"
        name = f"{dice.choice(NAMES)}-{user}"
        group = format(zlib.crc32(f"{user} {kind} {name}".encode()), "08x") if died else None
        node = f"node-{dice.randrange(500):03d}"
        yield JobRow(
            job=f"logs/{user}\t{7_000_000 + number}", native=str(7_000_000 + number), layout=dice.choice(LAYOUTS), name=name, user=user,
            partition=dice.choice(("a100", "h100", "cpu")), model=dice.choice(MODELS) if died else None,
            config_key=f"{dice.randrange(2000):04x}" if died else None, ended=ended, day=time.strftime("%Y-%m-%d", time.gmtime(ended)),
            nodes=(node,), node=node if died else None, files=(f"logs/{user}/{name}-{number}.out", f"logs/{user}/{name}-{number}.err"),
            bytes=dice.randrange(1 << 20), read_bytes=dice.randrange(1 << 20), memory_failure=failed, kind=kind,
            evidence=dice.choice(("log", "log", "log", "sacct")) if died else None, settle=SETTLE if failed == "possible" else None,
            certainty="certain" if died else None, first_rank=dice.randrange(8) if died else None,
            requested_bytes=dice.randrange(1 << 34) if died else None, total_bytes=80 << 30 if died else None,
            text="torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB." if died else None,
            versions={"torch": dice.choice(("2.4.1", "2.9.0", "2.13.0"))} if died else {}, group=group, fingerprint=group, campaign=group,
            retry=dice.choice(RETRIES) if died else "unknown", gpu_seconds_lost=dice.randrange(8 * DAY) if died else None,
        )  # fmt: skip


def main() -> None:
    """Make the rows where they are not there yet, and time each question."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--form", choices=["parquet", "sqlite", "jsonl"], default="parquet")
    parser.add_argument("--work", type=Path, required=True)
    options = parser.parse_args()
    path = options.work / f"rows-{options.rows}-{options.seed}.{options.form}"
    if not path.exists():
        began = time.perf_counter()
        write_table(map(encode, made_rows(options.rows, options.seed)), str(path))
        print(f"{time.perf_counter() - began:.1f} s to make {path.stat().st_size / 1e6:.0f} MB")
    for question, sql in QUESTIONS:
        seconds = []
        for _ in range(3):
            began = time.perf_counter()
            answer = query(sql, rows=str(path))
            seconds.append(time.perf_counter() - began)
        print(f"{statistics.median(seconds):6.2f} s  {len(answer.rows):5} rows  {question}")


if __name__ == "__main__":
    main()
