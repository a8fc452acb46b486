"""The plan for each source article's situation, as a person reads it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from oomdoctor import __version__
from oomdoctor.cli.main import cli

CASES = sorted(path.parent for path in (Path(__file__).parents[2] / "fixtures" / "cases").glob("*/plan.yaml"))


def planned(case: Path, *more: str) -> str:
    """What `plan` says of a case, without the version."""
    wanted = wishes(case)["arguments"]
    arguments = [str(case / one) if os.path.exists(case / one) else one for one in wanted]
    return CliRunner().invoke(cli, ["plan", *arguments, *more]).output.replace(f"oomdoctor {__version__}", "oomdoctor")


def wishes(case: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((case / "plan.yaml").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_the_plan_is_the_one_that_was_read(case: Path, lang: str, bless: bool) -> None:
    golden = case / f"plan.{lang}.md"
    found = planned(case, "--format", "markdown", "--lang", lang)
    if bless:
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case.name))
def test_the_first_plan_does_what_it_must(case: Path) -> None:
    found, wanted = json.loads(planned(case, "--format", "json")), wishes(case)
    assert bool(found["wall"]) is wanted.get("nothing_fits", False)
    first = {measure["fix"] for measure in found["plans"][0]["measures"]} if found["plans"] else set()
    assert first >= set(wanted.get("first", []))


def test_each_article_has_a_plan() -> None:
    assert {case.name for case in CASES} >= {
        "glm4-lora-multi-gpu", "glm4v-vision-tuning", "llama31-staircase", "llamafactory-p4-qlora", "nvml-assert",
    }  # fmt: skip
