"""No key, token or password of a run lies in its evidence folder: drawn anew in each run, in every place that the folder copies from."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

from redaction.drawn_secrets import MAKERS, drawn_password, drawn_token

ROOT = Path(__file__).parents[2]
KINDS = 40


def test_nothing_secret_lies_in_the_folder(tmp_path: Path) -> None:
    random = Random()
    tokens = [drawn_token(row, random) for row in random.sample(MAKERS, KINDS)]
    passwords = [drawn_password(random) for _ in range(4)]
    secrets = [*tokens, *passwords]
    config = tmp_path / "train.yaml"
    config.write_text("".join(f"note_{number}: {token}\n" for number, token in enumerate(tokens)) + f"db_password: {passwords[0]}\n")
    variables = {f"TORCH_NOTE_{number}": f"https://user:{token}@host/x" for number, token in enumerate(tokens)}
    program = "import os, sys\nprint(open(sys.argv[1]).read())\nraise RuntimeError('login with ' + os.environ['TORCH_NOTE_0'])"
    words = [sys.executable, "-c", program, str(config), "--api-key", passwords[1], f"--db_password={passwords[2]}", *tokens]
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "NCCL_SECRET_VALUE": passwords[3], **variables}
    with (tmp_path / "log").open("wb") as log:
        watched = [sys.executable, "-m", "oomdoctor", "run", "--out", "run", "--", *words]
        assert subprocess.run(watched, cwd=tmp_path, env=environ, stdout=log, stderr=log, timeout=600).returncode == 1
    written = {
        path.relative_to(tmp_path).as_posix(): path.read_text("utf-8", "replace")
        for path in (tmp_path / "run").rglob("*")
        if path.is_file()
    }
    assert {"run/run.json", "run/log.txt", "run/configs/train.yaml", "run/report.json"} <= set(written)
    assert [(name, secret[:6]) for name, text in written.items() for secret in secrets if secret in text] == []
