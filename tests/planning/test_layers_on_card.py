"""How many layers of a GGUF model a card takes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planning.runs import a_run

from oomdoctor.api.estimate import estimate
from oomdoctor.api.plan import plan
from oomdoctor.case.estimate import Estimate
from oomdoctor.case.plan import MemoryBudget
from oomdoctor.case.setup import Setup
from oomdoctor.errors import UsageError
from oomdoctor.planning.memory_budget import judge_fit
from oomdoctor.planning.sizing.layers import as_it_fits, fewer, on_card
from oomdoctor.units import GIB


def run(model: str = "Qwen/Qwen3-8B", framework: str = "llama.cpp", **settings: Any) -> Setup:
    return a_run(model, framework, method="serve", max_model_len=8192, **settings)


def card(size: float) -> MemoryBudget:
    return MemoryBudget("a card", int(size * GIB), int(size * GIB * 0.97))


@pytest.mark.parametrize(("framework", "size", "settings", "layers"), [
    pytest.param("llama.cpp", 24.0, {}, None, id="all of them fit"),
    pytest.param("llama.cpp", 4.0, {}, 20, id="a part of them"),
    pytest.param("ollama", 4.0, {}, 20, id="Ollama starts llama.cpp"),
    pytest.param("llama.cpp", 4.0, {"gpu_layers": 99}, 99, id="a number that was told stands"),
    pytest.param("koboldcpp", 4.0, {}, None, id="a program that does not look"),
])  # fmt: skip
def test_what_a_program_puts_on_a_card_by_itself(framework: str, size: float, settings: dict[str, Any], layers: int | None) -> None:
    placed = as_it_fits(run(framework=framework, **settings), card(size)).ggml
    assert placed is not None
    assert placed.layers == pytest.approx(layers, abs=3) if layers else placed.layers is None


def test_one_more_layer_would_not_leave_what_is_kept_free() -> None:
    placed = as_it_fits(run(), card(4.0))
    assert judge_fit(placed, card(4.0)).fits == "yes"
    assert judge_fit(placed, card(4.0)).needed.expected + GIB <= 4 * GIB
    note = on_card(placed)
    assert note is not None
    assert f"-ngl {placed.ggml and placed.ggml.layers}" in note.text.en
    assert on_card(run()) is None


def test_experts_go_to_the_host_before_whole_layers() -> None:
    placed = as_it_fits(run("Qwen/Qwen3-30B-A3B"), card(12.0)).ggml
    assert placed is not None
    assert placed.layers is None
    assert 0 < placed.host_experts < 48


def test_a_run_that_does_not_fit_is_told_how_many_layers_do() -> None:
    told = run(gpu_layers=99)
    other = fewer(told, judge_fit(told, card(4.0)))
    assert other is not None
    assert (other.fits, other.sets[0][0]) == ("yes", "gpu_layers")
    assert fewer(told, judge_fit(told, card(24.0))) is None
    assert fewer(run(gpu_layers=1), judge_fit(run(gpu_layers=1), card(0.5))) is None


def test_a_plan_puts_fewer_layers_on_the_card_and_says_that_it_is_slower(tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text("llama-server -m Qwen3-32B-Q4_K_M.gguf -c 8192 -ngl 99\n")
    first = plan([str(script)], gpu="RTX 3060 12GB").plans[0]
    assert [measure.fix for measure in first.measures] == ["part-of-model-in-host-memory"]
    assert [setting.key for setting in first.measures[0].settings] == ["-ngl"]
    assert first.time is not None
    assert first.time > 2
    script.write_text("llama-server -m Qwen3-32B-Q4_K_M.gguf -c 8192\n")
    assert plan([str(script)], gpu="RTX 3060 12GB").fits == "yes"


@pytest.mark.parametrize(("command", "answer"), [
    pytest.param("aphrodite run org/m --max-model-len 8192", "Aphrodite", id="Aphrodite"),
    pytest.param("mlc_llm serve HF://org/m", "the closest that is: vllm", id="MLC"),
    pytest.param("echo aphrodite", "nothing to read", id="a word alone"),
])  # fmt: skip
def test_a_server_that_is_not_counted_is_named_with_the_nearest(tmp_path: Path, command: str, answer: str) -> None:
    (tmp_path / "r.sh").write_text(f"{command}\n")
    with pytest.raises(UsageError, match=answer):
        estimate([str(tmp_path / "r.sh")], gpu="RTX 4090")


@pytest.mark.parametrize(("gpu", "tokens"), [
    pytest.param("RTX 3060 12GB", 4096, id="a small card"),
    pytest.param("RTX 4090", 32768, id="24 GB"),
    pytest.param("A100-80GB", 40960, id="a large one, up to the model's own"),
])  # fmt: skip
def test_the_context_that_ollama_takes_by_the_size_of_the_card(gpu: str, tokens: int) -> None:
    found = estimate(model="qwen3:8b", gpu=gpu, framework="ollama").estimate
    assert isinstance(found, Estimate)
    assert found.setup.length == tokens


def test_a_gguf_file_is_served_and_a_plain_name_is_trained() -> None:
    served, trained = (estimate(model=name).estimate for name in ("Qwen3-8B-Q4_K_M.gguf", "Qwen3-8B"))
    assert (served.setup.task, trained.setup.task) == ("infer", "train")
