"""Whole diagnoses of the logs under fixtures/cases/, as a person reads them, in both languages."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from oomdoctor import pipeline
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.compose import compose
from oomdoctor.report.markdown import render as markdown
from oomdoctor.report.redact import redact
from oomdoctor.report.terminal import render as terminal

CASES = sorted(path.parent for path in (Path(__file__).parents[2] / "fixtures" / "cases").glob("*/train.log"))
VERDICTS = {
    "glm4-lora-multi-gpu": ("yes", "device-oom", "data-parallel-full-replica"),
    "glm4v-vision-tuning": ("yes", "device-oom", "replicas-gather-on-card-zero"),
    "healthy-run": ("no", "none", None),
    "host-kill-dmesg": ("yes", "host-oom", "kernel-killed-a-process"),
    "llama31-staircase": ("yes", "device-oom", "variable-length-staircase"),
    "llamafactory-p4-qlora": ("yes", "device-oom", "small-cards-do-not-add-up"),
    "nvml-assert": ("yes", "masked-device-oom", "nvml-symbol-missing"),
    "shm-bus-error": ("yes", "shm-oom", "shm-too-small"),
    "survived-smaller-batch": ("no", "none", "pressure-survived"),
    "vllm-full-card": ("yes", "device-oom", "card-occupied-at-start"),
}


@cache
def diagnosis(case: Path) -> Diagnosis:
    return pipeline.diagnose(["train.log"], load_pack(), text=(case / "train.log").read_bytes())


def test_every_case_is_listed() -> None:
    assert [case.name for case in CASES] == sorted(VERDICTS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_verdict_and_first_finding(case: Path) -> None:
    found = diagnosis(case)
    first = found.findings[0].id if found.findings else None
    assert (found.case.verdict.memory_failure, found.case.verdict.kind.value, first) == VERDICTS[case.name]


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_report(case: Path, lang: str, bless: bool) -> None:
    golden = case / f"report.{lang}.md"
    report = markdown(redact(compose(diagnosis(case), lang, "0.0.0")))
    if bless:
        golden.write_text(report, encoding="utf-8")
    assert report == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_a_report_fits_one_screen(case: Path, lang: str) -> None:
    lines = terminal(redact(compose(diagnosis(case), lang, "0.0.0")), width=100, color=False).splitlines()
    assert len(lines) <= 64
