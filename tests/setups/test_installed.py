"""Versions of frameworks that are installed beside the tool, and where they count."""

from __future__ import annotations

from pathlib import Path

import pytest

import oomdoctor
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.setups.programs.installed import installed_frameworks

TRL = "model_name_or_path: Qwen/Qwen3-8B\ndataset_name: d\nmax_length: 4096\npacking: true\nper_device_train_batch_size: 4\nbf16: true\n"


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "site-packages"
    for name in (
        "trl-0.24.0.dist-info",
        "ms_swift-3.5.3.dist-info",
        "vllm-0.11.0.dist-info",
        "torchtune-nightly.dist-info",
        "no_framework-1.0.dist-info",
    ):
        (folder / name).mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.mark.parametrize(("framework", "version"), [
    pytest.param("trl", "0.24.0", id="one that is installed"),
    pytest.param("ms-swift", "3.5.3", id="by the name of its folder"),
    pytest.param("torchtune", None, id="what is no version is none"),
    pytest.param("axolotl", None, id="one that is not"),
    pytest.param("no-framework", None, id="another package"),
])  # fmt: skip
def test_what_is_installed(framework: str, version: str | None, beside: Path) -> None:
    assert beside.is_dir()
    assert installed_frameworks(load_pack()).get(framework) == version


def test_without_a_version_of_the_run_the_installed_one_counts_and_is_named(beside: Path, tmp_path: Path) -> None:
    config = tmp_path / "sft.yaml"
    config.write_text(TRL)
    assert beside.is_dir()
    run, plans = oomdoctor.estimate(config, gpu="A100-40GB").estimate, oomdoctor.plan(config, gpu="A100-40GB")
    for assumptions in (run.assumptions, plans.now.assumptions):
        told = [each.text.en for each in assumptions if each.id == "framework_version"]
        assert told == ["TRL 0.24.0, as installed alongside oomdoctor"]
    assert run.setup.stack.version == plans.now.setup.stack.version == "0.24.0"


@pytest.mark.parametrize(("named", "version"), [
    pytest.param(None, "0.11.0", id="nobody names one"), pytest.param("0.19.0", None, id="somebody does"),
])  # fmt: skip
def test_a_server_counts_as_it_is_installed(named: str | None, version: str | None, beside: Path, tmp_path: Path) -> None:
    script = tmp_path / "serve.sh"
    script.write_text("vllm serve Qwen/Qwen2.5-7B --max-model-len 128000\n")
    assert beside.is_dir()
    settings = {} if named is None else {"server_version": named}
    served = oomdoctor.estimate(script, gpu="RTX 4090", settings=settings).estimate
    planned = oomdoctor.plan(script, gpu="RTX 4090", server_version=named).now
    assert served.setup == planned.setup
    for assumptions in (served.assumptions, planned.assumptions):
        assert [each.id for each in assumptions if each.id.endswith("_version")] == ([] if version is None else ["framework_version"])
