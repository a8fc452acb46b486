"""Files of DeepSpeed and accelerate that a config names and that are not at hand."""

from __future__ import annotations

import pytest
from config_files import read

from oomdoctor.case.settings import Scalar
from oomdoctor.knowledge.tables.csv_table import table

LLAMAFACTORY = "stage: sft\nfinetuning_type: full\nper_device_train_batch_size: 1\ndeepspeed: {}\n"
GLM4 = "data_config:\n  train_file: t\nmax_input_length: 300\nmax_output_length: 200\n"
STAGE_2 = '{"train_micro_batch_size_per_gpu": "auto", "zero_optimization": {"stage": 2}}'
OPTIONS = "--model_name_or_path m --dataset_name d --max_length 512 --per_device_train_batch_size 1\n"
TRL = "accelerate launch --config_file {} sft.py " + OPTIONS
OWN_LAUNCH = "distributed_type: MULTI_GPU\nnum_processes: 2\n"
NAMES = (
    "zero_stage",
    "offload_optimizer",
    "offload_params",
    "zero_file",
    "launch_file",
    "fsdp",
    "fsdp_version",
    "fsdp_offload",
    "world_size",
)


@pytest.mark.parametrize(("files", "expected"), [
    pytest.param({"a.yaml": LLAMAFACTORY.format("examples/deepspeed/ds_z3_offload_config.json")},
                 {"zero_stage": 3, "offload_optimizer": "cpu", "offload_params": "cpu", "zero_file": "ds_z3_offload_config.json"},
                 id="a file that LLaMA-Factory ships"),
    pytest.param({"a.yaml": LLAMAFACTORY.format("D:\\\\runs\\\\ds_z2_config.json")}, {"zero_stage": 2, "zero_file": "ds_z2_config.json"},
                 id="copied to a folder of Windows"),
    pytest.param({"a.yml": "base_model: m\nsequence_len: 512\nmicro_batch_size: 1\ndeepspeed: deepspeed_configs/zero3_bf16_cpuoffload_params.json\n"},
                 {"zero_stage": 3, "offload_params": "cpu", "zero_file": "zero3_bf16_cpuoffload_params.json"}, id="one of Axolotl"),
    pytest.param({"a.yml": "base_model: m\nsequence_len: 512\nmicro_batch_size: 1\ndeepspeed: deepspeed_configs/zero2.json\n"},
                 {"zero_stage": 2, "offload_optimizer": "cpu", "zero_file": "zero2.json"}, id="whose ZeRO-2 has its optimizer on the host"),
    pytest.param({"a.yaml": GLM4 + "training_args:\n  deepspeed: configs/ds_zero_3.json\n"}, {"zero_stage": 3, "zero_file": "ds_zero_3.json"},
                 id="one of GLM-4"),
    pytest.param({"a.yaml": GLM4 + "training_args:\n  bf16: true\ndeepspeed: configs/ds_zero_3.json\n"}, {}, id="under a block that nobody reads"),
    pytest.param({"a.yaml": LLAMAFACTORY.format("configs/own.json")}, {"zero_file": "own.json"}, id="a file of one's own"),
    pytest.param({"a.yaml": LLAMAFACTORY.format("my_stage3_512.json")}, {"zero_stage": 3, "zero_file": "my_stage3_512.json"},
                 id="one whose name has the stage"),
    pytest.param({"a.yaml": LLAMAFACTORY.format("size32.json")}, {"zero_file": "size32.json"}, id="a number that is no stage"),
    pytest.param({"a.yaml": LLAMAFACTORY.format("null")}, {}, id="none"),
    pytest.param({"a.yaml": LLAMAFACTORY.format("ds_z3_config.json"), "ds_z3_config.json": STAGE_2}, {"zero_stage": 2},
                 id="at hand, and changed: the file itself counts"),
    pytest.param({"run.sh": TRL.format("examples/accelerate_configs/deepspeed_zero2.yaml")},
                 {"zero_stage": 2, "launch_file": "deepspeed_zero2.yaml", "world_size": 8}, id="one of accelerate, with its number of processes"),
    pytest.param({"run.sh": TRL.format("examples/accelerate/fsdp_config_offload.yaml --num_processes 4")},
                 {"fsdp": True, "fsdp_version": 1, "fsdp_offload": True, "launch_file": "fsdp_config_offload.yaml", "world_size": 4},
                 id="whose processes the command counts anew"),
    pytest.param({"run.sh": "trl sft --accelerate_config zero3 " + OPTIONS}, {"zero_stage": 3, "launch_file": "zero3.yaml", "world_size": 8},
                 id="by the word that TRL takes"),
    pytest.param({"run.sh": TRL.format("my_fsdp2_long.yaml")}, {"fsdp": True, "fsdp_version": 2, "launch_file": "my_fsdp2_long.yaml"},
                 id="FSDP 2 by the name of a file of one's own"),
    pytest.param({"run.sh": TRL.format("cluster.yaml")}, {"launch_file": "cluster.yaml"}, id="a launch of which the name says nothing"),
    pytest.param({"run.sh": TRL.format("fsdp2.yaml"), "fsdp2.yaml": OWN_LAUNCH}, {"fsdp": False, "world_size": 2},
                 id="a launch file at hand that says something else"),
])  # fmt: skip
def test_its_name_says_what_it_does(files: dict[str, str], expected: dict[str, Scalar]) -> None:
    found = read(files).settings.known()
    assert {name: found[name] for name in NAMES if name in found} == expected


def test_every_row_says_how_the_run_is_spread_and_has_a_source() -> None:
    for row in table("shipped_files"):
        assert row["source"]
        assert row["zero_stage"] in tuple("0123") if row["name"].endswith(".json") else row["world_size"]
