"""TOML configs: read with their places, and edited one value at a time."""

from __future__ import annotations

import pytest
from config_files import read

from oomdoctor.case.settings import Scalar
from oomdoctor.configs.edit.change import ConfigChange
from oomdoctor.configs.edit.patch import patch
from oomdoctor.configs.readers.toml import read_toml
from oomdoctor.knowledge.tables.shapes import model_shape

TITAN = """\
# a run of my own
[model]
flavor = "8B"  # small

[training]
local_batch_size = 2
seq_len = 8_192
steps = 1_000

[activation_checkpoint]
mode = {mode}
{more}
"""


MODEL = "[model]\n{}\n[training]\nlocal_batch_size = 2\nseq_len = 512\n"


@pytest.mark.parametrize(("model", "expected"), [
    pytest.param('name = "llama3"\nflavor = "8B"', "meta-llama/Meta-Llama-3-8B", id="family and flavor"),
    pytest.param('flavor = "405B"', "meta-llama/Llama-3.1-405B", id="the default family"),
    pytest.param('name = "llama3"\nflavor = "70B_varlen"', "meta-llama/Meta-Llama-3-70B", id="with another attention"),
    pytest.param('name = "deepseek_v3"\nflavor = "16B"', "deepseek-ai/DeepSeek-V2-Lite", id="of another family"),
    pytest.param('name = "llama4"\nflavor = "17bx16e"', "meta-llama/Llama-4-Scout-17B-16E", id="with experts"),
    pytest.param('name = "qwen3"\nflavor = "30B-A3B"', "Qwen/Qwen3-30B-A3B", id="with active parameters"),
    pytest.param('name = "llama3"\nflavor = "debugmodel"', None, id="a model for tests"),
])  # fmt: skip
def test_a_flavor_of_torchtitan_is_a_model(model: str, expected: str | None) -> None:
    run = read({"t.toml": MODEL.format(model)})
    shape = model_shape(run.settings.model or "")
    assert (None if shape is None else shape.name) == expected
    assert (run.framework, run.version, run.settings.finetuning) == ("torchtitan", "0.2.2", "full")


@pytest.mark.parametrize(("command", "settings"), [
    pytest.param("--job.config_file a.toml --training.seq_len 512", {"sequence_length": 512, "framework_version": "0.2.2"}, id="of the releases with TOML"),
    pytest.param("--module qwen3 --config qwen3_0_6b --training.max_context_length 512 --training.num_tokens_per_microbatch_per_dp_rank 2048",
                 {"model": "Qwen/Qwen3-0.6B", "sequence_length": 512, "micro_batch": 4, "micro_batch_tokens": 2048}, id="of those with configs in Python"),
    pytest.param("--module llama3 --training.mixed_precision_param float32 --parallelism.data_parallel_replicate_degree 2",
                 {"precision": "fp32", "sharded_copies": 2}, id="copies of a sharded model"),
])  # fmt: skip
def test_a_command_of_torchtitan(command: str, settings: dict[str, Scalar]) -> None:
    run = read({"run.sh": f"torchrun --nproc_per_node 8 -m torchtitan.train {command}\n"})
    assert run.settings.known() == {"finetuning": "full", "world_size": 8, **settings}


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param('a = "x # y"  # note', {"a": "x # y"}, id="a text with the sign of a note"),
    pytest.param("[t]\na.b = 1_000\n[ u . v ]\nc = 'w'", {"t.a.b": 1000, "u.v.c": "w"}, id="tables and dotted keys"),
    pytest.param("a = [1, 'b', \"c\"]", {"a": (1, "b", "c")}, id="a list"),
    pytest.param("a = true\nb = -2\nc = 3e-4", {"a": True, "b": -2, "c": 3e-4}, id="plain values"),
    pytest.param('a = """\nb = 1\n"""\nc = 2', {"c": 2}, id="a text of several lines is passed over"),
    pytest.param("a = [\n  'b = 1',\n]\nc = 2", {"c": 2}, id="a list of several lines is passed over"),
    pytest.param("a 1\n= 2\n[\n", {}, id="what is no TOML says nothing"),
])  # fmt: skip
def test_what_is_read(text: str, expected: dict[str, Scalar]) -> None:
    assert {setting.key: setting.value for setting in read_toml("a.toml", text).written} == expected


@pytest.mark.parametrize(("mode", "more", "expected"), [
    pytest.param("'selective'", "selective_ac_option = 'op'", (None, "op"), id="chosen operations"),
    pytest.param("'selective'", "selective_ac_option = '3'", (None, "3"), id="every third layer"),
    pytest.param("'selective'", "", (None, 2), id="every second where nothing is chosen"),
    pytest.param("'full'", "selective_ac_option = '3'", (True, "no"), id="everything, and the option is not looked at"),
    pytest.param("'none'", "selective_ac_option = 'op'", (False, "no"), id="nothing"),
])  # fmt: skip
def test_torchtitan_says_what_is_computed_again(mode: str, more: str, expected: tuple[bool | None, Scalar]) -> None:
    settings = read({"run.toml": TITAN.format(mode=mode, more=more)}).settings
    assert (settings.micro_batch, settings.sequence_length) == (2, 8192)
    assert (settings.gradient_checkpointing, settings.selective_checkpointing) == expected


@pytest.mark.parametrize(("key", "to", "line"), [
    pytest.param("training.local_batch_size", "1", "local_batch_size = 1", id="a number in place of another"),
    pytest.param("activation_checkpoint.mode", "full", "mode = 'full'", id="a text in the quotes of the old one"),
    pytest.param("training.enable_cpu_offload", "true", "enable_cpu_offload = true", id="a key that its table lacks"),
    pytest.param("parallelism.pipeline_parallel_degree", "2", "[parallelism]\npipeline_parallel_degree = 2", id="a table that is not there"),
])  # fmt: skip
def test_what_is_written(key: str, to: str, line: str) -> None:
    text = TITAN.format(mode="'selective'", more="")
    done = patch("run.toml", text.encode(), [ConfigChange(file="run.toml", key=key, to=to)])
    assert not done.refusals
    assert line in done.data.decode()
    assert "# small" in done.data.decode()


def test_a_key_that_stands_twice_is_left_alone() -> None:
    done = patch("run.toml", b"[a]\nb = 1\n[a]\nb = 2\n", [ConfigChange(file="run.toml", key="a.b", to="3")])
    assert done.refusals
