"""Machines as NVML described them: what is found of each, and the report that a person reads, in both languages."""

from __future__ import annotations

from pathlib import Path

import pytest
from machine.recorded import machine

from oomdoctor.knowledge.pack import load_pack
from oomdoctor.machine.facts import environment_facts
from oomdoctor.machine.findings import environment_findings
from oomdoctor.report.machine.environment import compose_environment
from oomdoctor.report.render.markdown import render
from oomdoctor.report.safety.redact import redact
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.environment import convert_environment
from oomdoctor.report.wording.wording import Wording

RECORDINGS = sorted((Path(__file__).parent / "nvml").glob("*.json"))
EACH = [pytest.param(path, id=path.stem) for path in RECORDINGS]


@pytest.mark.parametrize("path", EACH)
def test_findings_are_exactly_those_that_the_machine_has(path: Path, tmp_path: Path) -> None:
    recording, environment = machine(path, tmp_path)
    found = environment_findings(environment, load_pack())
    assert tuple(one.id for one in found) == recording.expect


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("path", EACH)
def test_report_reads_as_blessed(path: Path, lang: str, tmp_path: Path, bless: bool) -> None:
    _, environment = machine(path, tmp_path)
    found = environment_findings(environment, load_pack())
    report = render(redact(compose_environment(environment, found, environment_facts(environment), Wording(lang), "0.0.0", path.stem)))
    golden = path.with_suffix(f".{lang}.md")
    if bless:
        golden.write_text(report, encoding="utf-8")
    assert report == golden.read_text(encoding="utf-8")


def test_processes_of_other_people_show_their_program_but_not_their_name(tmp_path: Path) -> None:
    _, environment = machine(Path(__file__).parent / "nvml" / "t4.json", tmp_path)
    report = render(redact(compose_environment(environment, (), environment_facts(environment), Wording("en"), "0.0.0")))
    assert "jupyter-lab 2718" in report
    assert "alice" not in report
    plain = json_text(convert_environment(environment, (), Wording("en"), "0.0.0", redact=True), redact=True)
    assert "jupyter-lab" in plain
    assert "alice" not in plain
