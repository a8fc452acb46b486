"""The tables of frameworks, their keys and the checks fit one another."""

from __future__ import annotations

import pytest
from builtin_rule_set import builtin_rule_set

from oomdoctor.knowledge.records.check import CheckRecord
from oomdoctor.knowledge.records.framework import FrameworkRecord

RULES = builtin_rule_set()
FRAMEWORKS = {record.framework: record for _, record in RULES.frameworks}
KEYS = {name: {key for span in one.keys.spans for key in span.names.split()} for name, one in FRAMEWORKS.items() if one.keys is not None}


@pytest.mark.parametrize("record", [pytest.param(one, id=name) for name, one in FRAMEWORKS.items() if name in KEYS])
def test_settings_stand_on_keys_that_the_framework_has(record: FrameworkRecord) -> None:
    known = set(record.extra) | set().union(*(KEYS.get(name, set()) for name in (record.framework, *record.shares)))
    sources = [source if isinstance(source, str) else source.key for listed in record.settings.values() for source in listed]
    ends = {source.rpartition(".")[2] for source in sources} - {"*"}
    # Arguments of the example scripts beside TrainingArguments, and of adapters, have no class of their own.
    loose = {"max_seq_length", "model_max_length", "block_size", "max_length", "load_in_4bit", "load_in_8bit", "lora_r", "lora_rank", "lora_target_modules",
             "attn_implementation", "use_flash_attention_2", "activation_offloading", "offload", "model_name_or_path", "model_name", "fsdp_sharding_strategy",
             "version", "fsdp_version", "cpu_offload", "offload_params", "state_dict_type", "sync_each_batch", "dtype", "torch_dtype",
             "peft_config", "q_lora", "use_lora", "use_peft", "use_peft_lora"}  # fmt: skip
    assert ends - known <= (loose if record.framework == "transformers" else set())


@pytest.mark.parametrize("record", [pytest.param(one, id=one.framework) for one in FRAMEWORKS.values()])
def test_new_names_exist_and_shared_frameworks_too(record: FrameworkRecord) -> None:
    known = set().union(*(KEYS.get(name, set()) for name in (record.framework, *record.shares)))
    assert set(record.renamed.values()) <= known
    assert set(record.shares) <= set(FRAMEWORKS)


@pytest.mark.parametrize("check", [pytest.param(one, id=one.id) for _, one in RULES.checks])
def test_a_check_cites_what_exists_and_stands_somewhere(check: CheckRecord) -> None:
    assert set(check.cites) <= {one.id for one in RULES.sources}
    for name in check.at:
        kind, _, rest = name.partition(".")
        assert kind in ("training", "given")
        assert kind == "training" or rest.split(".")[0] in ("hf", *FRAMEWORKS) or rest.startswith(tuple(FRAMEWORKS))


@pytest.mark.parametrize("check", [pytest.param(one, id=one.id) for _, one in RULES.checks])
def test_a_check_speaks_both_languages(check: CheckRecord) -> None:
    for words in (check.what, check.why):
        assert any("\u4e00" <= char <= "\u9fff" for char in words.zh)
        assert not any("\u4e00" <= char <= "\u9fff" for char in words.en)
        assert "!" not in words.en and "——" not in words.zh
    assert not check.what.en.endswith(".") and not check.what.zh.endswith("。")
    assert check.why.en.endswith(".") and check.why.zh.endswith("。")
