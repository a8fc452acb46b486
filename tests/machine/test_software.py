"""Packages, torch's build, variables and interpreters: read from files, never imported or run."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.machine.collect.interpreter import choose_interpreter, describe_layout, find_executable, is_running_interpreter
from oomdoctor.machine.collect.packages import collect_packages, normalise_name
from oomdoctor.machine.collect.torch_build import collect_torch_build
from oomdoctor.machine.collect.variables import collect_variables

RELEASES = [{"torch": "2.6", "cuda": "12.4", "arch_list": "sm_80 sm_90"}]


def installed(folder: Path, *names: str, direct: str | None = None) -> Path:
    for name in names:
        (folder / name).mkdir(parents=True)
        if direct is not None:
            (folder / name / "direct_url.json").write_text(direct)
    return folder


def test_packages_are_found_by_their_metadata_folders(tmp_path: Path) -> None:
    installed(
        tmp_path,
        "torch-2.6.0+cu124.dist-info",
        "flash_attn-2.7.3.dist-info",
        "nvidia_cublas_cu12-12.4.5.8.dist-info",
        "requests-2.32.0.dist-info",
        "peft-0.14.0-py3.11.egg-info",
    )
    found = collect_packages([str(tmp_path)], ["torch", "flash-attn", "nvidia-cublas*", "peft"])
    assert {name: one.version for name, one in found.value.items()} == {
        "flash-attn": "2.7.3",
        "nvidia-cublas-cu12": "12.4.5.8",
        "peft": "0.14.0",
        "torch": "2.6.0+cu124",
    }
    assert found.origins["packages.torch"] == "package metadata"


def test_the_first_on_the_path_counts_and_the_others_are_named(tmp_path: Path) -> None:
    first, second = installed(tmp_path / "user", "torch-2.1.2.dist-info"), installed(tmp_path / "venv", "torch-2.6.0.dist-info")
    found = collect_packages([str(first), str(second), str(first)], ["torch"]).value["torch"]
    assert (found.version, found.shadowed) == ("2.1.2", ("2.6.0",))


@pytest.mark.parametrize(
    ("direct", "wanted"),
    [
        pytest.param('{"url": "https://x/y.git", "vcs_info": {"vcs": "git", "commit_id": "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"}}', (False, "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"), id="from git"),
        pytest.param('{"url": "file:///srv/llamafactory", "dir_info": {"editable": true}}', (True, None), id="editable"),
        pytest.param("not json at all", (False, None), id="a damaged file"),
    ],
)  # fmt: skip
def test_where_a_package_came_from(direct: str, wanted: tuple[bool, str | None], tmp_path: Path) -> None:
    installed(tmp_path, "llamafactory-0.9.4.dev0.dist-info", direct=direct)
    found = collect_packages([str(tmp_path)], ["llamafactory"]).value["llamafactory"]
    assert (found.editable, found.commit) == wanted


def test_a_folder_that_is_not_there_has_no_packages() -> None:
    assert collect_packages(["/no/such/folder"], ["torch"]).value == {}


@given(st.text("abcXYZ019-_.", min_size=1, max_size=30))
def test_a_normalised_name_stays_as_it_is(name: str) -> None:
    assert normalise_name(normalise_name(name)) == normalise_name(name)


def torch_folder(folder: Path, version: str, library: bytes | None = None) -> str:
    (folder / "torch" / "lib").mkdir(parents=True)
    (folder / "torch" / "version.py").write_text(version)
    if library is not None:
        (folder / "torch" / "lib" / "libtorch_python.so").write_bytes(library)
    return str(folder)


NEW = "from typing import Optional\n\n__all__ = ['__version__', 'debug', 'cuda', 'git_version', 'hip', 'xpu']\n__version__ = '{}'\ndebug = False\ncuda: Optional[str] = {}\ngit_version = 'abc123'\nhip: Optional[str] = {}\nxpu: Optional[str] = None\n"
OLD = "__version__ = '1.13.1+cu117'\ndebug = False\ncuda = '11.7'\ngit_version = 'abc123'\nhip = None\n"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param(NEW.format("2.6.0+cu124", "'12.4'", "None"), ("2.6.0+cu124", "12.4", None, "cuda"), id="CUDA"),
        pytest.param(NEW.format("2.6.0+rocm6.2.4", "None", "'6.2.41134-65d174c3e'"), ("2.6.0+rocm6.2.4", None, "6.2.41134-65d174c3e", "rocm"), id="ROCm"),
        pytest.param(NEW.format("2.6.0+cpu", "None", "None"), ("2.6.0+cpu", None, None, "cpu"), id="the CPU alone"),
        pytest.param(OLD, ("1.13.1+cu117", "11.7", None, "cuda"), id="without annotations"),
        pytest.param("import os\nos.abort()\n__version__ = '2.6.0'\n", ("2.6.0", None, None, None), id="a file that would run something"),
        pytest.param("", (None, None, None, None), id="an empty file"),
    ],
)  # fmt: skip
def test_what_torch_was_built_for_is_read_as_text(text: str, wanted: tuple[str | None, ...], tmp_path: Path) -> None:
    found = collect_torch_build([torch_folder(tmp_path, text)], RELEASES).value
    assert found is not None
    assert (found.version, found.cuda, found.hip, found.backend) == wanted


@pytest.mark.parametrize(
    ("library", "wanted", "origin"),
    [
        pytest.param(b"\x7fELF\0\0sm_\0sm_50 sm_60 sm_90a compute_90\0more\0sm_70\0", ("sm_50", "sm_60", "sm_90a", "compute_90"), "libtorch_python", id="the longest list in the library"),
        pytest.param(b"\0gfx900 gfx90a gfx1100\0", ("gfx900", "gfx90a", "gfx1100"), "libtorch_python", id="ROCm's names"),
        pytest.param(b"\x7fELF no list here\0", ("sm_80", "sm_90"), "the table of releases", id="the table where the library is silent"),
        pytest.param(None, ("sm_80", "sm_90"), "the table of releases", id="the table where there is no library"),
    ],
)  # fmt: skip
def test_architectures_come_from_the_library_itself(library: bytes | None, wanted: tuple[str, ...], origin: str, tmp_path: Path) -> None:
    found = collect_torch_build([torch_folder(tmp_path, NEW.format("2.6.0+cu124", "'12.4'", "None"), library)], RELEASES)
    assert found.value is not None
    assert found.value.arch_list == wanted
    assert found.origins["torch.arch_list"] == origin


def test_a_build_that_nobody_knows_has_a_gap(tmp_path: Path) -> None:
    found = collect_torch_build([torch_folder(tmp_path, NEW.format("2.6.0+cu118", "'11.8'", "None"))], RELEASES)
    assert found.value is not None
    assert found.value.arch_list == ()
    assert [gap.what for gap in found.gaps] == ["architectures of torch"]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400), st.binary(max_size=400))
def test_whatever_the_files_of_torch_hold_nothing_raises(tmp_path: Path, version: bytes, library: bytes) -> None:
    folder = tmp_path / "torch" / "lib"
    folder.mkdir(parents=True, exist_ok=True)
    (folder.parent / "version.py").write_bytes(version)
    (folder / "libtorch_python.so").write_bytes(library)
    collect_torch_build([str(tmp_path)], RELEASES)


def test_only_variables_of_the_table_are_kept_and_none_that_sounds_like_a_secret() -> None:
    environ = {
        "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True", "NCCL_P2P_DISABLE": "1", "NCCL_AUTH_TOKEN": "t0ps3cret", "RANK": "3", "HOME": "/home/alice",
        "VLLM_API_KEY": "sk-1", "VLLM_USE_V1": "1", "HF_TOKEN": "hf_x", "AWS_SECRET_ACCESS_KEY": "x", "SLURM_NTASKS": "8", "WANDB_API_KEY": "y", "OMP_NUM_THREADS": "4" * 5000,
    }  # fmt: skip
    found = collect_variables(environ, table("variables")).value
    assert found.variables.keys() == {"PYTORCH_CUDA_ALLOC_CONF", "NCCL_P2P_DISABLE", "VLLM_USE_V1", "OMP_NUM_THREADS"}
    assert found.launcher == {"RANK": "3", "SLURM_NTASKS": "8"}
    assert len(found.variables["OMP_NUM_THREADS"]) <= 400


def environment_folder(folder: Path) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").write_text("")
    installed(folder / "lib" / "python3.9" / "site-packages", "torch-2.0.1.dist-info")
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.9.19\n")
    return folder


def test_the_active_environment_runs_the_training(tmp_path: Path) -> None:
    folder = environment_folder(tmp_path / "train")
    own = "/opt/tools/bin/python"
    assert choose_interpreter(None, {"VIRTUAL_ENV": str(folder)}, own) == str(folder / "bin" / "python")
    assert choose_interpreter(None, {"CONDA_PREFIX": str(folder)}, own) == str(folder / "bin" / "python")
    assert choose_interpreter(None, {"VIRTUAL_ENV": str(tmp_path / "gone")}, own) == own
    assert choose_interpreter(None, {}, own) == own
    assert choose_interpreter(str(folder), {"VIRTUAL_ENV": "/elsewhere"}, own) == str(folder / "bin" / "python")


def test_an_interpreter_that_cannot_be_started_still_shows_its_packages(tmp_path: Path) -> None:
    found = describe_layout(str(environment_folder(tmp_path) / "bin" / "python"), {})
    assert (found.version, found.kind) == ("3.9.19", "venv")
    assert collect_packages(found.site_packages, ["torch"]).value["torch"].version == "2.0.1"


def test_a_path_is_our_own_interpreter_only_by_its_name() -> None:
    assert is_running_interpreter("/a/bin/python", "/a/bin/python")
    assert not is_running_interpreter("/b/bin/python", "/a/bin/python")
    assert find_executable("") is None


def test_a_file_in_the_working_directory_is_not_looked_for_in_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "python").write_text("")
    assert find_executable("python") == str(tmp_path / "python")
