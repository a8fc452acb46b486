"""The five source articles: each one's situation, the fixes that it gives, and what of it does not hold."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml

from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.render.markdown import render
from oomdoctor.report.wording.wording import Wording

CASES = Path(__file__).parents[2] / "fixtures" / "cases"


@cache
def diagnosis(case: str) -> Diagnosis:
    folder = CASES / case
    expect = yaml.safe_load((folder / "expect.yaml").read_text(encoding="utf-8"))
    config = [str(folder / name) for name in expect.get("config", ())]
    return diagnose_logs([str(path) for path in sorted(folder.glob("*.log"))], load_pack(), config=config)


@pytest.mark.parametrize(("case", "article", "first", "fixes", "in_force"), [
    pytest.param(
        "glm4-lora-multi-gpu", "article-glm4-lora-multi-gpu", "data-parallel-full-replica",
        ["zero2-zero3", "gradient-checkpointing", "shorter-sequences"], ["per_device_train_batch_size"],
        id="several cards, a full copy on each: ZeRO-3, checkpointing, shorter sequences; the batch is 1 already",
    ),
    pytest.param(
        "glm4v-vision-tuning", "article-glm4v-vision", "replicas-gather-on-card-zero",
        ["launch-one-process-per-card", "freeze-vision-tower", "evaluation"], ["per_device_train_batch_size"],
        id="a vision model under plain python: one process a card, a frozen tower, a small evaluation batch",
    ),
    pytest.param(
        "llamafactory-p4-qlora", "article-llamafactory-p4", "small-cards-do-not-add-up",
        ["fp16-instead-of-bf16", "fsdp-full-shard", "shorter-sequences"], ["quantization_bit", "per_device_train_batch_size"],
        id="eight small cards: fp16, FSDP, shorter sequences; four bits and the batch are set already",
    ),
    pytest.param(
        "llama31-staircase", "article-llama31-staircase", "variable-length-staircase",
        ["packing-and-length-grouping", "expandable-segments", "gradient-checkpointing", "fsdp-full-shard", "quantise-4bit-8bit"], [],
        id="memory in steps: packing, expandable segments, checkpointing, FSDP, fewer bits",
    ),
    pytest.param(
        "nvml-assert", "article-nvml-assert", "nvml-symbol-missing",
        ["check-nvml-library", "update-driver", "bigger-card"], ["per_device_train_batch_size"],
        id="an assert of NVML: the library in front of the driver, the driver, a larger card; the batch is 1 already",
    ),
])  # fmt: skip
def test_an_article_s_situation_gets_its_fixes(case: str, article: str, first: str, fixes: list[str], in_force: list[str]) -> None:
    found = diagnosis(case)
    assert found.findings[0].id == first
    offered = {fix.id for finding in found.findings for fix in finding.fixes}
    assert [fix for fix in fixes if fix not in offered] == []
    already = {setting.key.rsplit(".", 1)[-1] for finding in found.findings for setting in finding.already}
    assert [key for key in in_force if key not in already] == []
    assert article in {cite.source for finding in found.findings for cite in finding.cites}


@pytest.mark.parametrize(("case", "article", "claims"), [
    ("glm4-lora-multi-gpu", "article-glm4-lora-multi-gpu", ["0.6", "0.15"]),
    ("glm4v-vision-tuning", "article-glm4v-vision", ["1.3", "1.9", "1.15"]),
    ("llamafactory-p4-qlora", "article-llamafactory-p4", ["2.4"]),
    ("llama31-staircase", "article-llama31-staircase", ["3.7", "3.8"]),
    ("nvml-assert", "article-nvml-assert", ["4.6", "4.13"]),
])  # fmt: skip
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_an_article_gets_wrong_is_said_with_the_correction(case: str, article: str, claims: list[str], lang: str) -> None:
    source = load_pack().source(article)
    assert source is not None
    wrong = [one for one in source.claims if one.id in claims]
    assert [one.verdict for one in wrong] == ["wrong"] * len(claims)
    cited = [cite for finding in diagnosis(case).findings for cite in finding.cites if cite.source == article]
    report = render(compose(diagnosis(case), Wording(lang), "0"))
    for one in wrong:
        cite = next(cite for cite in cited if cite.says.en == one.says.en)
        assert cite.correction is not None and one.correction is not None
        assert one.correction.get(lang).split("`")[0][:20] in report.replace("\\", "")
