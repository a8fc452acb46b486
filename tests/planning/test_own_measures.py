"""What the program that runs can do at no cost goes before what is dearer."""

from __future__ import annotations

from pathlib import Path

import oomdoctor

MEGATRON = """\
torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size 2 --num-layers 32 --hidden-size 4096 \\
  --ffn-hidden-size 11008 --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --micro-batch-size 2 \\
  --global-batch-size 64 --bf16 --swiglu --vocab-size 32000 --use-flash-attn
"""


def first(folder: Path, text: str) -> list[str]:
    file = folder / "run.sh"
    file.write_text(text, encoding="utf-8")
    return [measure.fix for measure in oomdoctor.plan(file, gpu="80GB").plans[0].measures]


def test_megatron_divides_its_optimizer_before_it_spreads_its_layers(tmp_path: Path) -> None:
    assert "distributed-optimizer" in first(tmp_path, MEGATRON)


def test_where_it_is_divided_already_something_else_comes_first(tmp_path: Path) -> None:
    text = MEGATRON.replace("--bf16", "--bf16 --use-distributed-optimizer").replace("micro-batch-size 2", "micro-batch-size 8")
    assert "distributed-optimizer" not in first(tmp_path, text)
