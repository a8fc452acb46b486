"""What docs/integrations.md shows holds: its table of codes, its examples, its links."""

from __future__ import annotations

import re
import shlex
from typing import Literal, cast

import click
import pytest
import yaml
from script_programs import ROOT

from oomdoctor.api.fleet.verdict import CODES, exit_code
from oomdoctor.cli.fleet.triage import triage
from oomdoctor.cli.fleet.verdict import verdict
from oomdoctor.cli.runs.run import run
from oomdoctor.triage.row import Failed, JobRow, Retry

PAGE = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```(yaml|sh)\n(.*?)^```", PAGE, re.M | re.S)
ROWS = re.findall(r"^\| `([\w-]+)` \|.*\| (\d+) \| (\d+) \| (\d+) \|$", PAGE, re.M)
OUTCOMES = ("possible", "no", "unread")


@pytest.mark.parametrize(("word", "plain", "nvrx", "job"), ROWS, ids=[row[0] for row in ROWS])
def test_the_table_of_codes_is_true(word: str, plain: str, nvrx: str, job: str) -> None:
    failed: Failed = cast(Literal["possible", "no", "unread"], word) if word in OUTCOMES else "yes"
    retry: Retry = "unknown" if word in OUTCOMES else cast(Retry, word)
    row = JobRow(job="j", native="j", layout="plain", memory_failure=failed, retry=retry)
    assert [str(exit_code(row, scheme)) for scheme in ("plain", "nvrx", "job")] == [plain, nvrx, job]


def test_the_table_has_every_word() -> None:
    assert {row[0] for row in ROWS} == {*Retry.__args__, *OUTCOMES}  # type: ignore[attr-defined]


def test_the_policy_of_the_job_takes_the_agreed_code() -> None:
    (shown,) = (yaml.safe_load(text) for form, text in EXAMPLES if form == "yaml" and "podFailurePolicy" in text)
    assert [rule["onExitCodes"]["values"] for rule in shown["spec"]["podFailurePolicy"]["rules"]] == [[CODES["job"]]]


@pytest.mark.parametrize("text", [text for form, text in EXAMPLES if form == "yaml"])
def test_examples_in_yaml_can_be_read(text: str) -> None:
    assert yaml.safe_load(text)


def test_commands_have_the_options_that_are_shown() -> None:
    in_triage = click.Context(triage)
    commands = {name: triage.get_command(in_triage, name) for name in triage.list_commands(in_triage)} | {"verdict": verdict, "run": run}
    shown = re.findall(r"\boomdoctor (?:triage )?(\w+) ([^|&\n]*)", "\n".join(text for form, text in EXAMPLES if form == "sh"))
    assert len(shown) >= 5
    for name, rest in shown:
        command = commands[name]
        assert command is not None, name
        known = {option for parameter in command.params for option in parameter.opts}
        own = rest.partition("-- ")[0]  # behind it stands the command that is run
        assert {word for word in shlex.split(own) if word.startswith("--")} <= known, name


def test_links_lead_somewhere() -> None:
    links = [link.split("#")[0] for link in re.findall(r"\]\(\.\./([^)]*)\)", PAGE)]
    assert [link for link in links if not (ROOT / link).exists()] == []
