"""Options that a log shows in commands and dumps of arguments."""

from __future__ import annotations

import pytest

from oomdoctor.parse.options import options_in


@pytest.mark.parametrize(
    ("text", "options"),
    [
        pytest.param("$ torchrun --nproc_per_node 4 train.py --bf16 --lr=1e-5", {"nproc_per_node": "4", "bf16": "true", "lr": "1e-5"}, id="a command"),
        pytest.param("vllm serve m \\\n  --max-model-len 8192 \\\n  --enforce-eager", {"max_model_len": "8192", "enforce_eager": "true"}, id="over lines"),
        pytest.param("llama-server -m m.gguf -ub 512 -ngl 99", {"ub": "512", "ngl": "99"}, id="options of one dash"),
        pytest.param("args: Namespace(batch=8, dtype='bf16')", {"batch": "8", "dtype": "bf16"}, id="a dump of arguments"),
        pytest.param("INFO non-default args: {'max_num_seqs': 64, 'seed': 0}", {"max_num_seqs": "64", "seed": "0"}, id="a dictionary"),
        pytest.param("a.py --batch 8 --len 1\na.py --batch 4 --len 2", {"batch": "8", "len": "1"}, id="the first of two"),
    ],
)  # fmt: skip
def test_options_are_read(text: str, options: dict[str, str]) -> None:
    assert {name: value for name, value in options_in(text).items() if name not in ("m",)} == options


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Try lowering --gpu-memory-utilization when starting the engine.", id="a hint names one"),
        pytest.param("step 12 - loss 1.2 - lr 3e-5", id="dashes between figures"),
        pytest.param("-" * 80, id="a rule"),
        pytest.param("2026-11-02 10:00:01 worker-3 up", id="a date"),
    ],
)
def test_what_is_no_command_gives_none(text: str) -> None:
    assert options_in(text) == {}


def test_an_endless_line_is_read_at_its_beginning_and_options_are_capped() -> None:
    assert len(options_in(" ".join(f"--option{n} {n}" for n in range(100_000)))) <= 120
