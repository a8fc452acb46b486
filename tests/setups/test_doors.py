"""One question, one answer: options, a config, a line of JSON, the library and the agents' settings come to the same figure."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import oomdoctor
from oomdoctor.case.estimate import Estimate
from oomdoctor.cli.main import cli
from oomdoctor.setups.spec_lines import answer_lines

MODELS = ("Qwen/Qwen3-8B", "mistralai/Mistral-7B-v0.3")
METHODS = ("full", "lora", "qlora")
FRAMEWORKS = ("llamafactory", "transformers", "trl", "axolotl", "ms-swift", "unsloth", "torchtune", None)


def by_options(framework: str | None, model: str, method: str, checkpointing: bool | None) -> int:
    options = ["--method", method, "--batch", "2", "--length", "4096", "--precision", "bf16"]
    options += ["--framework", framework] if framework else []
    options += [] if checkpointing is None else ["--checkpointing" if checkpointing else "--no-checkpointing"]
    return expected(CliRunner().invoke(cli, ["estimate", model, *options, "--format", "json"]).output)


def expected(text: str) -> int:
    size: int = json.loads(text)["per_gpu_bytes"]["expected"]
    return size


@pytest.mark.parametrize("checkpointing", [None, True, False])
@pytest.mark.parametrize(("framework", "method"), list(product(FRAMEWORKS, METHODS)))
def test_options_lines_of_json_and_the_library_agree(framework: str | None, method: str, checkpointing: bool | None) -> None:
    model = MODELS[method == "lora"]
    asked: dict[str, Any] = {"model": model, "method": method, "framework": framework, "micro_batch": 2, "seq_len": 4096}
    line = {**asked, "compute_dtype": "bf16", "gradient_checkpointing": checkpointing, "counter": "nvidia-smi"}
    settings: dict[str, Any] = {"finetuning": method, "micro_batch": 2, "sequence_length": 4096, "precision": "bf16"}
    settings |= {} if checkpointing is None else {"gradient_checkpointing": checkpointing}
    run = oomdoctor.estimate(model=model, framework=framework, settings=settings).estimate
    assert isinstance(run, Estimate)
    assert by_options(framework, model, method, checkpointing) == expected(next(answer_lines([json.dumps(line).encode()]))) == run.expected


CONFIGS = {
    "llamafactory": "model_name_or_path: {model}\nstage: sft\nfinetuning_type: {kind}\nper_device_train_batch_size: 2\ncutoff_len: 4096\nbf16: true\n{packed}",
    "axolotl": "base_model: {model}\n{adapter}sequence_len: 4096\nmicro_batch_size: 2\nbf16: true\n{packed}",
}
WORDS = {
    "llamafactory": {"full": ("full", "", ""), "lora": ("lora", "", ""), "qlora": ("lora", "", "quantization_bit: 4\n")},
    "axolotl": {"full": ("", "", ""), "lora": ("", "adapter: lora\nlora_target_linear: true\n", ""),
                "qlora": ("", "adapter: qlora\nlora_target_linear: true\n", "load_in_4bit: true\n")},
}  # fmt: skip


@pytest.mark.parametrize(("framework", "method"), list(product(CONFIGS, METHODS)))
def test_a_config_agrees_with_the_options_that_say_the_same(tmp_path: Path, framework: str, method: str) -> None:
    kind, adapter, packed = WORDS[framework][method]
    path = tmp_path / "run.yaml"
    path.write_text(CONFIGS[framework].format(model=MODELS[0], kind=kind, adapter=adapter, packed=packed))
    written = expected(CliRunner().invoke(cli, ["estimate", str(path), "--format", "json"]).output)
    assert written == by_options(framework, MODELS[0], method, None)


@pytest.mark.parametrize(("options", "words"), [
    pytest.param(["--zero", "3", "--gpus", "4"], {"strategy": "zero3", "gpus": 4}, id="a ZeRO stage"),
    pytest.param(["--strategy", "fsdp2", "--gpus", "4"], {"strategy": "fsdp2", "gpus": 4}, id="a strategy in words"),
    pytest.param(["--weights", "fp32"], {"weights_dtype": "fp32"}, id="the format of the weights"),
    pytest.param(["--targets", "q_proj,v_proj", "--rank", "64"], {"trainable_modules": "q_proj,v_proj", "lora_rank": 64}, id="targets"),
    pytest.param(["--attention", "eager"], {"attention": "eager"}, id="the attention"),
    pytest.param(["--fused-loss"], {"fused_loss": True}, id="a fused loss"),
    pytest.param(["--packing"], {"packing": "yes"}, id="packing"),
    pytest.param(["--zero", "3", "--gpus", "4", "--offload", "params", "--offload", "optimizer"],
                 {"strategy": "zero3", "gpus": 4, "offload": "params and optimizer cpu"}, id="offloading"),
    pytest.param(["--counter", "max_allocated"], {"counter": "max_allocated"}, id="the counter"),
])  # fmt: skip
def test_options_can_say_what_decides(options: list[str], words: dict[str, Any]) -> None:
    asked = ["estimate", MODELS[0], "--method", "lora", "--batch", "1", "--length", "2048", "--format", "json", *options]
    line = {"model": MODELS[0], "method": "lora", "micro_batch": 1, "seq_len": 2048, "counter": "nvidia-smi", **words}
    said, plain = (expected(next(answer_lines([json.dumps(each).encode()]))) for each in (line, {**line, **dict.fromkeys(words)}))
    assert expected(CliRunner().invoke(cli, asked).output) == pytest.approx(said, rel=0.02)
    assert said != plain


@pytest.mark.parametrize(("options", "said"), [
    pytest.param(["--method", "full", "--rank", "8"], "are mutually exclusive", id="a rank of full training"),
    pytest.param(["--method", "full", "--bits", "4"], "are mutually exclusive", id="packed weights that are trained"),
    pytest.param(["--method", "qlora", "--bits", "16"], "are mutually exclusive", id="QLoRA in 16 bit"),
    pytest.param(["--gpu", "0GB"], "the nearest: 4GB, 6GB, 8GB", id="a card without memory"),
    pytest.param(["--gpu", "-5GB"], "the nearest: 4GB, 6GB, 8GB", id="a card of less than none"),
    pytest.param(["--gpu", "4096GB"], "the nearest: 192GB, 256GB, 288GB", id="a card larger than any"),
    pytest.param(["--length", "1000000000"], "the nearest: 40,960, 81,920, 163,840", id="a length that nothing has"),
    pytest.param(["--length", "10M"], "write 4096 or 4k", id="a length that is no number"),
    pytest.param(["--method", "lora", "--rank", "100000"], "exceeds the width", id="a rank above the width of the model"),
    pytest.param(["--weights", "foo"], "is not a known format", id="a format that is none"),
    pytest.param(["--strategy", "zoro3", "--gpus", "2"], "did you mean zero3", id="a strategy that is none"),
    pytest.param(["--zero", "3", "--strategy", "fsdp2", "--gpus", "2"], "are mutually exclusive", id="two programs that shard"),
    pytest.param(["--method", "lora", "--targets", "foo_proj"], "did you mean", id="a layer that is none"),
    pytest.param(["--serve", "--method", "lora"], "a server does not train", id="a server that trains"),
    pytest.param(["--serve", "--packing"], "a server does not train", id="a server that packs samples"),
    pytest.param(["--framework", "trlx"], "did you mean trl", id="a framework that is none"),
])  # fmt: skip
def test_what_no_run_has_is_said_in_one_line(options: list[str], said: str) -> None:
    done = CliRunner().invoke(cli, ["estimate", MODELS[0], *options])
    assert done.exit_code != 0
    assert said in done.output + str(done.exception)


@pytest.mark.parametrize("options", [
    pytest.param(["--length", "2560k"], id="64 times the length of the model"),
    pytest.param(["--method", "lora", "--rank", "4096"], id="a rank of the width"),
    pytest.param(["--weights", "q4_k_m"], id="a type of GGUF"),
    pytest.param(["--method", "lora", "--targets", "all-linear"], id="every layer"),
    pytest.param(["--strategy", "none"], id="no strategy"),
    pytest.param(["--gpu", "1GB"], id="a small card"),
    pytest.param(["--serve", "--batch", "8", "--length", "2k", "--gpu", "24GB"], id="a server with requests at a time"),
])  # fmt: skip
def test_what_is_only_unusual_is_answered(options: list[str]) -> None:
    done = CliRunner().invoke(cli, ["estimate", MODELS[0], *options])
    assert done.exit_code in (0, 1)
    assert done.exception is None or isinstance(done.exception, SystemExit)


def test_a_model_that_nobody_knows_is_told_by_those_as_large() -> None:
    done = CliRunner().invoke(cli, ["estimate", "--model", "zzqx-8b"])
    assert "similar in size: " in str(done.exception)
    assert "did you mean Qwen/Qwen2.5" in str(CliRunner().invoke(cli, ["estimate", "--model", "Qwen2.5-7C"]).exception)
