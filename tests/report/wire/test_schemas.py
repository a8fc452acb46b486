"""The published schemas say what the commands write."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from jsonschema import Draft202012Validator
from report.published import SCHEMAS, validate

import oomdoctor
from oomdoctor.cli.main import cli
from oomdoctor.report.wire.schemas import REPORTS, schema_text

FOLDER = Path(oomdoctor.__file__).parent / "report" / "schema"
FIXTURES = Path(__file__).parents[3] / "fixtures"
LOG = str(FIXTURES / "cases" / "glm4-lora-multi-gpu" / "train.log")
SERVER = str(FIXTURES / "cases" / "vllm-one-request-too-long" / "train.log")
COMPARED = FIXTURES / "compare"
CONFIG = str(COMPARED / "today.yaml")
MACHINES = [str(FIXTURES / "environments" / f"{name}.txt") for name in ("torch-2.13-cuda", "nvidia-smi-535-mig", "torch-2.3-wsl")]
MODEL = ("--model", "Qwen/Qwen2.5-7B-Instruct")


@pytest.mark.parametrize("name", REPORTS)
def test_a_published_schema_is_up_to_date(name: str, bless: bool) -> None:
    path = FOLDER / f"{name}.json"
    if bless:
        path.write_text(schema_text(name), encoding="utf-8")
    assert path.read_text(encoding="utf-8") == schema_text(name)


def test_each_schema_is_published_and_is_one() -> None:
    assert {path.stem for path in FOLDER.iterdir()} == set(REPORTS)
    for schema in SCHEMAS.values():
        Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("arguments", [
    pytest.param(("diagnose", LOG, "--exit-zero", "--env", "none"), id="a diagnosis of a training run"),
    pytest.param(("diagnose", SERVER, "--exit-zero", "--env", "none", "--no-redact"), id="a diagnosis of a server"),
    pytest.param(("diagnose", LOG, "--exit-zero", "--env", MACHINES[0]), id="a diagnosis with a machine"),
    pytest.param(("estimate", CONFIG, *MODEL, "--gpus", "2", "--gpu", "RTX 4090"), id="an estimate with a card"),
    pytest.param(("estimate", CONFIG, *MODEL, "--format", "jsonl"), id="an estimate in a line"),
    pytest.param(("estimate", "--serve", *MODEL, "--gpu", "24GB"), id="an estimate of a server"),
    pytest.param(("estimate", CONFIG, *MODEL, "--gpu", "24GB", "--sweep", "batch,length"), id="a sweep with a card"),
    pytest.param(("estimate", CONFIG, *MODEL, "--cards"), id="the usual cards"),
    pytest.param(("estimate", "--serve", *MODEL, "--gpu", "24GB", "--formats"), id="the formats of a server's weights"),
    pytest.param(("estimate", "--serve", *MODEL, "--sweep", "length"), id="a sweep of a server without a card"),
    pytest.param(("plan", CONFIG, *MODEL, "--gpu", "24GB"), id="plans of a training run"),
    pytest.param(("plan", CONFIG, *MODEL, "--gpu", "8GB"), id="a training run that nothing makes fit"),
    pytest.param(("plan", SERVER), id="plans of a server"),
    pytest.param(("check", CONFIG), id="a check without a card"),
    pytest.param(("check", CONFIG, *MODEL, "--gpu", "24GB"), id="a check with a card"),
    *(pytest.param(("env", "--from", path), id=f"a machine from {Path(path).stem}") for path in MACHINES),
    pytest.param(("env", "--from", str(COMPARED / "today-env.txt"), "--no-redact"), id="a machine with its names"),
    pytest.param(("compare", str(COMPARED / "last-week.log"), str(COMPARED / "today.log")), id="two logs"),
    pytest.param(("compare", MACHINES[0], MACHINES[2]), id="two machines"),
    pytest.param(("verdict", LOG), id="a verdict for a launcher"),
    pytest.param(("explain",), id="the contents of the handbook"),
    pytest.param(("explain", "fragmentation"), id="a problem"),
    pytest.param(("explain", "serving"), id="an area"),
])  # fmt: skip
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_what_a_command_writes_fits_its_schema(arguments: tuple[str, ...], lang: str) -> None:
    form = () if "--format" in arguments else ("--format", "json")
    run = CliRunner().invoke(cli, [*arguments, *form, "--lang", lang])
    validate(json.loads(run.stdout))
