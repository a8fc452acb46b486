"""Notebooks say their settings in code cells, in shell lines, and in files that cells write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from config_files import read

import oomdoctor
from oomdoctor.configs.edit.change import ConfigChange
from oomdoctor.configs.edit.patch import patch
from oomdoctor.configs.readers.read import read_config

IMPORTS = "from peft import LoraConfig\nfrom transformers import AutoModelForCausalLM\nfrom trl import SFTConfig, SFTTrainer\n"
LOADS = 'model_id = "Qwen/Qwen2.5-7B"\nmodel = AutoModelForCausalLM.from_pretrained(model_id)\n'
TRAINS = "lora = LoraConfig(r=8)\nargs = SFTConfig(per_device_train_batch_size=2, max_length=2048)\n"
AXOLOTL = "%%writefile run.yaml\nbase_model: Qwen/Qwen2.5-7B\nadapter: lora\nmicro_batch_size: 3\nsequence_len: 512\n"
COMMAND = "!llamafactory-cli train --stage sft \\\n  --model_name_or_path {name} --finetuning_type lora --cutoff_len 1024\n"


def notebook(*cells: str, joined: bool = False) -> str:
    """The text of a notebook, with a line of its own for each line of a cell unless `joined`."""
    made: list[dict[str, object]] = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "source": cell if joined else cell.splitlines(keepends=True)} for cell in cells
    ]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": ["r=64 is not code"]}, *made], "nbformat": 4}, indent=1)


@pytest.mark.parametrize(("cells", "framework", "expected"), [
    pytest.param([IMPORTS, LOADS, TRAINS], "trl", {"model": "Qwen/Qwen2.5-7B", "lora_rank": 8, "micro_batch": 2, "sequence_length": 2048},
                 id="names of one cell stand in the next"),
    pytest.param(["%pip install trl\n!nvidia-smi\n" + IMPORTS, LOADS, TRAINS], "trl", {"micro_batch": 2}, id="magics beside code"),
    pytest.param(["args = SFTConfig(per_device_train_batch_size=\n", IMPORTS, LOADS, TRAINS], "trl", {"micro_batch": 2},
                 id="a cell that is no Python"),
    pytest.param(['name = "Qwen/Qwen3-8B"\n', COMMAND], "llamafactory", {"model": "Qwen/Qwen3-8B", "sequence_length": 1024},
                 id="a command over two lines, with a name of Python in it"),
    pytest.param([AXOLOTL, "!axolotl train run.yaml\n"], "axolotl", {"micro_batch": 3, "sequence_length": 512}, id="a file that a cell writes"),
    pytest.param(["%env PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True\n", IMPORTS, LOADS, TRAINS], "trl",
                 {"alloc_conf": "expandable_segments:True"}, id="a variable by a magic"),
    pytest.param(['import os\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:64"\n', IMPORTS, LOADS, TRAINS], "trl",
                 {"alloc_conf": "max_split_size_mb:64"}, id="a variable by os.environ"),
    pytest.param(["%%bash\nvllm serve Qwen/Qwen3-8B --max-model-len 4096\n"], "vllm", {"max_model_len": 4096}, id="a cell of a shell"),
    pytest.param(["text = '''\nper_device_train_batch_size=9\n'''\n", IMPORTS, LOADS, TRAINS], "trl", {"micro_batch": 2},
                 id="what stands in a text is no setting"),
])  # fmt: skip
@pytest.mark.parametrize("joined", [False, True], ids=["a string a line", "one string a cell"])
def test_what_cells_say(cells: list[str], framework: str, expected: dict[str, object], joined: bool) -> None:
    run = read({"train.ipynb": notebook(*cells, joined=joined)})
    assert run.framework == framework
    assert {name: getattr(run.settings, name) for name in expected} == expected


def test_a_setting_has_the_line_of_the_file() -> None:
    text = notebook(IMPORTS, LOADS, TRAINS)
    place = read({"train.ipynb": text}).places["micro_batch"]
    assert "per_device_train_batch_size=2" in text.splitlines()[place.line - 1]


def test_secrets_of_the_environment_are_not_read() -> None:
    configs = read_config("a.ipynb", notebook('import os\nos.environ["HF_TOKEN"] = "hf_x"\n%env WANDB_API_KEY=abc\n').encode()) or []
    assert [given for config in configs for given in config.written] == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": 3}', '{"cells": [{"cell_type": "code", "source": {"a": 1}}]}'])
def test_what_is_no_notebook_says_nothing(text: str) -> None:
    assert [given for config in read_config("a.ipynb", text.encode()) or [] for given in config.written] == []


def test_a_notebook_with_large_pictures_is_read_whole() -> None:
    cells = json.loads(notebook(IMPORTS, LOADS, TRAINS))
    cells["cells"][1]["outputs"] = [{"data": {"image/png": "A" * (3 << 20)}}]
    assert read({"train.ipynb": json.dumps(cells, indent=1)}).settings.micro_batch == 2


CHANGED = [
    ("a value in a call", "per_device_train_batch_size", "1", "per_device_train_batch_size=1, max_length=2048"),
    ("the rank of an adapter", "lora_r", "4", "LoraConfig(r=4)"),
]


@pytest.mark.parametrize(("key", "to", "now"), [pytest.param(*case[1:], id=case[0]) for case in CHANGED])
@pytest.mark.parametrize("joined", [False, True], ids=["a string a line", "one string a cell"])
@pytest.mark.parametrize("name", ["train.ipynb", "train.py"])
def test_a_value_is_changed_where_it_stands(key: str, to: str, now: str, joined: bool, name: str) -> None:
    text = notebook(IMPORTS, LOADS, TRAINS, joined=joined) if name.endswith(".ipynb") else IMPORTS + LOADS + TRAINS
    line = next(given.line for config in read_config(name, text.encode()) or [] for given in config.written if given.key == key)
    patched = patch(name, text.encode(), [ConfigChange(file=name, key=key, to=to, line=line)])
    assert len(patched.made) == 1
    assert now in patched.data.decode()
    assert len(patched.data) == len(text.encode())


@pytest.mark.parametrize(("before", "key"), [
    pytest.param("batch = 4\nargs = SFTConfig(per_device_train_batch_size=batch * 2)\n", "per_device_train_batch_size", id="worked out"),
    pytest.param("batch = 4\nbatch = 8\nargs = SFTConfig(per_device_train_batch_size=batch)\n", "per_device_train_batch_size",
                 id="a name that is given two values"),
    pytest.param("args = SFTConfig(max_length=2)\n", "per_device_train_batch_size", id="not there"),
    pytest.param("batch = 4\nargs = SFTConfig(per_device_train_batch_size=batch)\nother = SFTConfig(per_device_eval_batch_size=batch)\n",
                 "per_device_train_batch_size", id="a name that another setting has too"),
])  # fmt: skip
def test_what_is_not_plain_is_left(before: str, key: str) -> None:
    change = ConfigChange(file="train.py", key=key, to="1", line=before.count("\n"))
    lines = before.splitlines()
    there = next((number for number, text in enumerate(lines, 1) if key in text), len(lines))
    patched = patch("train.py", before.encode(), [ConfigChange(file="train.py", key=key, to="1", line=there), change][:1])
    assert (patched.data.decode(), len(patched.refusals)) == (before, 1)


def test_a_name_that_is_given_once_is_changed() -> None:
    before = "batch = 4\nargs = SFTConfig(per_device_train_batch_size=batch)\n"
    patched = patch("train.py", before.encode(), [ConfigChange(file="train.py", key="per_device_train_batch_size", to="1", line=2)])
    assert patched.data.decode() == before.replace("4", "1")


def test_fix_writes_into_a_notebook(tmp_path: Path) -> None:
    file = tmp_path / "train.ipynb"
    loads = LOADS.replace("(model_id)", "(model_id, quantization_config=BitsAndBytesConfig(load_in_4bit=True))")
    trains = TRAINS.replace("=2,", '=4, gradient_checkpointing=True, bf16=True, optim="paged_adamw_8bit",')
    file.write_text(notebook(IMPORTS, loads, trains), encoding="utf-8")
    changes = oomdoctor.fix(file, gpu="12GB", review=True)
    made = [change for step in changes.applied.steps for change in step.made]
    assert made
    assert all(change.key in changes.applied.files[str(file)].decode() for change in made)


def test_an_argument_that_a_call_lacks_stands_behind_the_other_of_the_change() -> None:
    before = "args = SFTConfig(per_device_train_batch_size=4, seed=1)\n"
    smaller = ConfigChange(file="train.py", key="per_device_train_batch_size", to="1", line=1)
    more = ConfigChange(file="train.py", key="gradient_accumulation_steps", to="4", after="per_device_train_batch_size")
    patched = patch("train.py", before.encode(), [smaller, more])
    assert patched.data.decode() == "args = SFTConfig(per_device_train_batch_size=1, gradient_accumulation_steps=4, seed=1)\n"
