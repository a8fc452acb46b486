"""A server that the built-in rules do not have is one file, beside that of its framework."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

import oomdoctor
from oomdoctor.case.serving import EngineName, Served
from oomdoctor.cli.main import cli
from oomdoctor.errors import UsageError
from oomdoctor.memory.servers.engines import DEFAULT_SERVER, ENGINES

FRAMEWORK = """\
framework: quickserve
title: QuickServe
order: 5
programs: [python -m quickserve]
unknown_keys: refused
settings:
  memory_share: [card_share]
  max_model_len: [longest]
  max_num_seqs: [most_requests]
  model: [model]
  method:
    - {key: '*', map: {'*': serve}}
source: quickserve 1.4 documentation
keys:
  source: quickserve 1.4 documentation
  versions: ['1.4']
  spans:
    - {names: card_share longest most_requests model}
"""
SERVER = """\
server: quickserve
title: QuickServe
engine: vllm
fraction_option: card_share
messages: {blocks: 'quickserve: no cache is left'}
defaults:
  memory_share: [{value: 0.7, source: quickserve 1.4 documentation}]
  max_batched_tokens:
    - {value: 6000, card_gb: 60, source: quickserve 1.4 documentation}
    - {value: 3000, source: quickserve 1.4 documentation}
  max_num_seqs: [{value: 48, source: quickserve 1.4 documentation}]
"""
COMMAND = "python -m quickserve.launch --model Qwen/Qwen2.5-7B-Instruct --longest 8192\n"


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of rules with a server and its framework."""
    folder = tmp_path_factory.mktemp("rules")
    for part, text in (("frameworks", FRAMEWORK), ("servers", SERVER)):
        (folder / part).mkdir()
        (folder / part / "quickserve.yaml").write_text(text)
    return folder


@pytest.fixture
def script(tmp_path: Path) -> Path:
    """A script that starts the server."""
    path = tmp_path / "serve.sh"
    path.write_text(COMMAND)
    return path


def served(script: Path, rules: Path, gpu: str = "RTX 4090") -> Served:
    found = oomdoctor.estimate(script, gpu=gpu, rules=rules).estimate
    assert isinstance(found, Served)
    return found


def test_its_command_is_read_and_its_defaults_count(script: Path, rules: Path) -> None:
    server = served(script, rules).server
    assert (server.program.name, server.memory_fraction, server.batched, server.requests, server.length) == (
        "quickserve",
        0.7,
        3000,
        48,
        8192,
    )
    assert served(script, rules, "A100-80GB").server.batched == 6000


def test_its_options_go_before_its_defaults(script: Path, rules: Path) -> None:
    script.write_text(COMMAND.replace("\n", " --card-share 0.85 --most-requests 16\n"))
    server = served(script, rules).server
    assert (server.memory_fraction, server.requests) == (0.85, 16)


def test_reports_use_its_words(script: Path, rules: Path) -> None:
    options = ["--gpu", "RTX 4090", "--rules", str(rules), "--format", "markdown", "--lang", "en"]
    estimated, planned = (CliRunner().invoke(cli, [verb, str(script), *options]).output for verb in ("estimate", "plan"))
    assert estimated.startswith("**It starts.** QuickServe serving Qwen/Qwen2.5-7B") and "card\\_share 0.7" in estimated
    assert planned.startswith("**It starts.** QuickServe with Qwen/Qwen2.5-7B")


def test_its_own_message_says_where_a_start_ends(script: Path, rules: Path) -> None:
    script.write_text(COMMAND.replace("\n", " --card-share 0.5\n"))
    options = ["--gpu", "RTX 4090", "--rules", str(rules), "--format", "markdown", "--lang", "en"]
    assert "quickserve: no cache is left" in CliRunner().invoke(cli, ["estimate", str(script), *options]).output


def test_check_names_a_typo_in_its_options_and_judges_its_memory(script: Path, rules: Path) -> None:
    script.write_text(COMMAND.replace("longest", "longset"))
    result = oomdoctor.check(script, gpu="RTX 4090", rules=rules)
    assert [(issue.id, issue.key, issue.replacement) for issue in result.config.issues] == [("key-unknown", "--longset", "--longest")]
    assert result.memory is not None and isinstance(result.memory.estimate, Served)


def test_the_built_in_rules_do_not_know_it(script: Path) -> None:
    with pytest.raises(UsageError):
        oomdoctor.estimate(script, gpu="RTX 4090")


def test_every_engine_can_be_named() -> None:
    assert set(ENGINES) == set(get_args(EngineName))
    assert DEFAULT_SERVER in ENGINES
