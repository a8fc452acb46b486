"""A framework or a card that the built-in rules do not have is one file, or one row."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import oomdoctor
from oomdoctor.case.plan import Measure
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.planning.framework_keys import measure_keys

ROOT = Path(__file__).parents[2]
FRAMEWORK = """\
framework: gigatron
title: Gigatron
names: [giga]
order: 20
in_logs: {pattern: '\\bgigatron/(?:core|training)\\b'}
programs: [pretrain_giga.py]
signs:
  - [micro_batch_size, recompute_granularity]
unknown_keys: refused
settings:
  micro_batch: [micro_batch_size]
  sequence_length: [seq_length]
  tensor_parallel: [tensor_model_parallel_size]
  gradient_checkpointing:
    - {key: recompute_granularity, map: {full: true, selective: false, none: false}}
signatures:
  - {setting: [recompute_granularity], value: [full, selective, None], forms: [dots], source: 'gigatron/arguments.py'}
log_settings:
  gradient_checkpointing:
    - {key: recompute_granularity, map: {full: true, selective: false, none: false}}
writes:
  micro_batch: {key: micro_batch_size, default: '1'}
  sequence_length: seq_length
  gradient_checkpointing: {key: recompute_granularity, values: {'true': full}}
  tensor_parallel: {key: tensor_model_parallel_size, since: '0.5'}
writes_source: gigatron/arguments.py
source: gigatron/arguments.py
keys:
  source: gigatron/arguments.py
  versions: ['0.11.0', '0.12.0']
  spans:
    - {names: micro_batch_size global_batch_size seq_length tensor_model_parallel_size recompute_granularity recompute_method}
    - {until: '0.11.0', names: checkpoint_activations}
"""
CONFIG = "micro_batch_size: 8\nseq_length: 4096\nrecompute_granularity: selective  # as shipped\n"
LOG = """\
  recompute_granularity ........................... selective
  File "/opt/gigatron/core/transformer/mlp.py", line 81, in forward
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.20 GiB is free. \
Including non-PyTorch memory, this process has 77.90 GiB memory in use. Of the allocated memory 76.00 GiB is allocated by PyTorch, and \
500.00 MiB is reserved by PyTorch but unallocated.
"""


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of rules with one file."""
    folder = tmp_path_factory.mktemp("rules")
    (folder / "frameworks").mkdir()
    (folder / "frameworks" / "gigatron.yaml").write_text(FRAMEWORK)
    return folder


@pytest.fixture(autouse=True)
def run_of_it(tmp_path: Path) -> None:
    """A run of the framework: its config and its log."""
    (tmp_path / "train.yaml").write_text(CONFIG)
    (tmp_path / "train.log").write_text(LOG)


def test_its_settings_are_read_from_its_config(rules: Path, tmp_path: Path) -> None:
    run = oomdoctor.check(tmp_path / "train.yaml", rules=rules).config
    assert run.framework == "gigatron"
    assert run.settings.known() == {"micro_batch": 8, "sequence_length": 4096, "gradient_checkpointing": False}


def test_its_settings_are_read_from_its_log(rules: Path, tmp_path: Path) -> None:
    case = oomdoctor.diagnose(tmp_path / "train.log", rules=rules).case
    assert case.facts["log.framework"] == "gigatron"
    assert case.training is not None and case.training.settings.gradient_checkpointing is False


def test_fixes_show_its_keys(rules: Path, tmp_path: Path) -> None:
    found = oomdoctor.diagnose(tmp_path / "train.log", config=tmp_path / "train.yaml", rules=rules)
    fixes = {fix.id: fix for finding in found.findings for fix in finding.fixes}
    assert [(one.framework, one.key, one.before, one.to) for one in fixes["smaller-batch"].settings] == [
        ("gigatron", "micro_batch_size", "8", "2")
    ]
    assert [(one.key, one.to) for one in fixes["gradient-checkpointing"].settings] == [("recompute_granularity", "full")]


def test_plans_show_its_keys(rules: Path) -> None:
    keys = measure_keys(load_pack(over=str(rules)), None, {}, "gigatron")
    assert keys.has("gradient-checkpointing") and not keys.has("quantise-4bit-8bit")
    written = keys.of_measure(Measure(fix="gradient-checkpointing", sets=(("gradient_checkpointing", True),))).settings
    assert [(one.key, one.to) for one in written] == [("recompute_granularity", "full")]


def test_fix_writes_its_keys(rules: Path, tmp_path: Path) -> None:
    config = tmp_path / "train.yaml"
    changes = oomdoctor.fix(config, log=tmp_path / "train.log", only=["gradient-checkpointing", "smaller-batch"], review=True, rules=rules)
    assert changes.applied.files[str(config)].decode() == (
        "micro_batch_size: 4\nseq_length: 4096\nrecompute_granularity: full  # as shipped\n"
    )


def test_check_names_a_typo_in_its_keys_with_the_nearest_one(rules: Path, tmp_path: Path) -> None:
    (tmp_path / "train.yaml").write_text(CONFIG.replace("seq_length", "seq_lenght"))
    (issue,) = oomdoctor.check(tmp_path / "train.yaml", rules=rules).config.issues
    assert (issue.id, issue.key, issue.replacement, issue.line) == ("key-unknown", "seq_lenght", "seq_length", 2)
    assert issue.what.en == "Gigatron has no key `seq_lenght`; a similar key is `seq_length`"


def test_the_built_in_rules_are_still_there_below_it(rules: Path) -> None:
    pack, builtin = load_pack(over=str(rules)), load_pack()
    assert set(pack.names("problems")) == set(builtin.names("problems"))
    assert set(pack.names("frameworks")) == {*builtin.names("frameworks"), "gigatron"}


def test_a_file_of_a_framework_that_exists_takes_its_place(tmp_path: Path) -> None:
    (tmp_path / "frameworks").mkdir()
    (tmp_path / "frameworks" / "trl.yaml").write_text("framework: trl\ntitle: My TRL\nwrites: {micro_batch: my_batch}\n")
    pack = load_pack(over=str(tmp_path))
    fix = pack.fix("smaller-batch")
    assert [one.title for one in pack.frameworks if one.framework == "trl"] == ["My TRL"]
    assert fix is not None and [row.key for row in fix.settings if row.framework == "trl"] == ["my_batch"]


def test_a_card_is_one_row(tmp_path: Path) -> None:
    for part in ("oomdoctor", "rules"):
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__", "signatures", "problems", "fixes"))
    with (tmp_path / "rules" / "tables" / "cards.csv").open("a") as cards:
        cards.write("GeForce RTX 9990,13.0,no,48,a test\n")
    code = "from oomdoctor.knowledge.tables.cards import card_named; print(card_named('rtx 9990'), card_named('9990').capability)"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environ, cwd=tmp_path)
    assert "GeForce RTX 9990" in done.stdout and done.stdout.rstrip().endswith("13.0")
