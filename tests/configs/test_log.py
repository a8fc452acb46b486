"""What a log prints of the settings, and what a file says beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_files import pack

from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.settings import RunConfig, Scalar

OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.\n"


def of_log(text: str, *config: Path) -> RunConfig:
    found = diagnose_logs(["x.log"], pack(), text=(text + OOM).encode(), config=[str(path) for path in config]).case.training
    assert found is not None
    return found


PRINTED: list[tuple[str, str, dict[str, Scalar]]] = [
    ("printed arguments", "TrainingArguments(\nbf16=True,\neval_strategy=IntervalStrategy.STEPS,\nper_device_train_batch_size=5,\nprediction_loss_only=False,\n)\n",
     {"precision": "bf16", "eval_strategy": "steps", "micro_batch": 5, "prediction_loss_only": False}),
    ("a command", "+ torchrun --nproc_per_node 2 t.py --per_device_train_batch_size 3 --gradient_accumulation_steps 4 --use_liger_kernel True\n",
     {"micro_batch": 3, "accumulation": 4, "fused_cross_entropy": True, "world_size": 2, "global_batch": 24}),
    ("a YAML dump", "per_device_train_batch_size: 2\nquantization_bit: 4\nfinetuning_type: lora\ncutoff_len: 900\n",
     {"micro_batch": 2, "load_bits": 4, "finetuning": "qlora", "sequence_length": 900}),
    ("a ZeRO line", "[2026-02-11 09:14:31,774] [INFO] [logging.py:96:log_dist] [Rank 0] Creating torch.bfloat16 ZeRO stage 2 optimizer\n", {"zero_stage": 2}),
    ("a server", "INFO non-default args: {'max_num_batched_tokens': 5000, 'gpu_memory_utilization': 0.8, 'enforce_eager': True}\n",
     {"max_batched_tokens": 5000, "memory_share": 0.8, "enforce_eager": True}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), [pytest.param(*row[1:], id=row[0]) for row in PRINTED])
def test_settings_are_read_from(text: str, wanted: dict[str, Scalar]) -> None:
    found = of_log(text)
    assert {name: str(found.settings.known().get(name)) for name in wanted} == {name: str(value) for name, value in wanted.items()}
    assert all(place.file == "x.log" for place in found.places.values())


def test_a_file_beats_the_log_and_the_difference_is_said(tmp_path: Path) -> None:
    config = tmp_path / "sft.yaml"
    config.write_text("finetuning_type: lora\ncutoff_len: 900\nper_device_train_batch_size: 4\n")
    found = of_log("  Instantaneous batch size per device = 8\n", config)
    assert found.settings.micro_batch == 4
    (one,) = found.issues
    assert (one.id, one.line, one.what.en) == ("another-file-in-force", 3, "the log shows 8, this file has 4")


def test_a_file_that_agrees_with_the_log_is_left_in_peace(tmp_path: Path) -> None:
    config = tmp_path / "sft.yaml"
    config.write_text("finetuning_type: lora\ncutoff_len: 900\nper_device_train_batch_size: 4\n")
    assert of_log("  Instantaneous batch size per device = 4\n", config).issues == ()


def test_a_log_without_settings_gives_none() -> None:
    assert diagnose_logs(["x.log"], pack(), text=OOM.encode()).case.training is None


def test_a_file_beside_is_followed_and_one_elsewhere_is_a_gap(tmp_path: Path) -> None:
    config = tmp_path / "a.yaml"
    config.write_text("finetuning_type: lora\ncutoff_len: 900\ndeepspeed: examples/d.json\n")
    found = diagnose_logs(["x.log"], pack(), text=OOM.encode(), config=[str(config)])
    assert [(gap.what, gap.how) for gap in found.case.gaps] == [("examples/d.json", "give this file too")]
    (tmp_path / "d.json").write_text('{"zero_optimization": {"stage": 2}}')
    found = diagnose_logs(["x.log"], pack(), text=OOM.encode(), config=[str(config)])
    assert found.case.gaps == ()
    assert found.case.training is not None
    assert found.case.training.settings.zero_stage == 2


def test_no_file_outside_of_the_folder_is_opened(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"zero_optimization": {"stage": 3}}')
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "a.yaml").write_text(f"finetuning_type: lora\ncutoff_len: 900\ndeepspeed: {tmp_path}/secret.json\nconfig: ../secret.json\n")
    found = diagnose_logs(["x.log"], pack(), text=OOM.encode(), config=[str(folder / "a.yaml")])
    assert found.case.training is not None
    assert found.case.training.settings.zero_stage is None


def test_a_file_that_nobody_reads_is_not_in_force(tmp_path: Path) -> None:
    (tmp_path / "d.json").write_text('{"zero_optimization": {"stage": 3}}')
    config = tmp_path / "f.yaml"
    config.write_text(
        "data_config:\n  train_file: t\ntraining_args:\n  output_dir: o\n  generation_config:\n    deepspeed: configs/d.json\n"
    )
    found = diagnose_logs(["x.log"], pack(), text=OOM.encode(), config=[str(config)]).case.training
    assert found is not None
    assert found.settings.zero_stage is None
    assert [one.id for one in found.issues] == ["key-under-wrong-block"]


def test_what_is_no_text_is_a_gap(tmp_path: Path) -> None:
    binary = tmp_path / "training_args.bin"
    binary.write_bytes(b"PK\x03\x04\x00\x00\x00archive")
    found = diagnose_logs(["x.log"], pack(), text=OOM.encode(), config=[str(binary)])
    assert [gap.why for gap in found.case.gaps] == ["a binary file, not a config"]


def test_facts_have_the_common_names() -> None:
    facts = of_log("per_device_train_batch_size: 2\n").facts()
    assert facts == {"training.micro_batch": 2}
