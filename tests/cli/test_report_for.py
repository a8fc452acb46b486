"""`report --for PROJECT`: the project's form, in a language that it takes, with the machine that `--env` names."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import oomdoctor
from oomdoctor.cli.main import cli
from oomdoctor.cli.report import PROJECTS
from oomdoctor.errors import UsageError
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.report.issue.form_text import form_text
from oomdoctor.report.wording.wording import Wording

ENVIRONMENT = Path(__file__).parents[2] / "fixtures" / "environments" / "issue-zh.md"
LOG = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.00 GiB is free.\n"
    "hostname: trainer-07\nHF_TOKEN=hf_0123456789abcdefghijklmnopqrstuvwx\n"
)


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "train.log"
    path.write_text(LOG, encoding="utf-8")
    return str(path)


def run(*arguments: str, locale: str = "C.UTF-8") -> Result:
    return CliRunner().invoke(cli, ["report", *arguments], env={"LC_ALL": locale})


@pytest.mark.parametrize("project", PROJECTS)
def test_every_form_is_written_with_a_described_machine(log: str, project: str) -> None:
    done = run(log, "--for", project, "--env", str(ENVIRONMENT))
    assert done.exit_code == 1
    assert "2.4.0+cu121" in done.output or project in ("axolotl", "ollama", "llama-cpp", "comfyui")
    assert "hf_0123456789" not in done.output


@pytest.mark.parametrize(
    ("project", "options", "locale", "mark"),
    [
        pytest.param("pytorch", (), "zh_CN.UTF-8", "(please fill in: ", id="a form in English stays English in a Chinese locale"),
        pytest.param("glm-4", (), "zh_CN.UTF-8", "（请补充：", id="a form in both languages follows the locale"),
        pytest.param("glm-4", (), "en_US.UTF-8", "(please fill in: ", id="and an English locale too"),
        pytest.param("pytorch", ("--lang", "zh"), "C.UTF-8", "（请补充：", id="who asks for a language gets it"),
    ],
)
def test_the_language_is_one_that_the_form_takes(log: str, project: str, options: tuple[str, ...], locale: str, mark: str) -> None:
    assert mark in run(log, "--for", project, *options, locale=locale).output


def test_the_form_goes_into_a_file(log: str, tmp_path: Path) -> None:
    path = tmp_path / "issue.md"
    assert run(log, "--for", "vllm", "--output", str(path), "--exit-zero").exit_code == 0
    assert path.read_text(encoding="utf-8").startswith("<!-- title: [Bug]: ... -->\n\n### Your current environment")


def test_an_unknown_project_is_wrong_use(log: str) -> None:
    assert run(log, "--for", "nobody").exit_code == 2


def test_rules_without_forms_say_so(log: str, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    pack = load_pack(str(tmp_path / "rules"))
    with pytest.raises(UsageError, match="--for vllm: these rules have no form 'vllm'"):
        form_text(oomdoctor.diagnose(Path(log)), "vllm", pack, Wording("en"), "0", is_asked=False, redact=True)


def test_rules_laid_over_the_built_in_ones_leave_their_forms(log: str, tmp_path: Path) -> None:
    (tmp_path / "rules").mkdir()
    assert "Your current environment" in run(log, "--for", "vllm", "--rules", str(tmp_path / "rules")).output
