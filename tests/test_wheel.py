"""What is released: the same bytes each time, the wheel carries the rules and their pack, and works outside of the tree."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from oomdoctor import __version__
from oomdoctor.knowledge.compiled.compile import compile_pack
from oomdoctor.knowledge.pack import Pack, builtin_rules
from oomdoctor.report.wire.schemas import REPORTS

ROOT = Path(__file__).parents[1]


def build(out: Path, umask: int) -> dict[str, bytes]:
    """What tools/release.py writes, without network."""
    pytest.importorskip("build")
    command = [sys.executable, str(ROOT / "tools/release.py"), "--no-isolation", "--out", str(out)]
    done = subprocess.run(command, umask=umask, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return {path.name: path.read_bytes() for path in out.iterdir()}


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return build(tmp_path_factory.mktemp("released"), 0o022)


@pytest.fixture(scope="module")
def wheel(released: dict[str, bytes], tmp_path_factory: pytest.TempPathFactory) -> Path:
    (name,) = (name for name in released if name.endswith(".whl"))
    path = tmp_path_factory.mktemp("wheel") / name
    path.write_bytes(released[name])
    return path


def test_another_build_is_the_same_bytes_whatever_the_umask(released: dict[str, bytes], tmp_path: Path) -> None:
    assert sorted(released) == ["SHA256SUMS", f"oomdoctor-{__version__}-py3-none-any.whl", f"oomdoctor-{__version__}.tar.gz"]
    assert build(tmp_path / "again", 0o077) == released


def test_the_sdist_holds_what_the_tests_and_a_packager_need(released: dict[str, bytes]) -> None:
    with tarfile.open(fileobj=io.BytesIO(released[f"oomdoctor-{__version__}.tar.gz"])) as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "setup.cfg", "setup.py", "pyproject.toml", "rules/layouts.yaml"} <= inside
    assert {"tests/test_wheel.py", "tools/release.py", "skills/oomdoctor/SKILL.md", "share/man/man1/oomdoctor.1"} <= inside


def test_every_rule_file_is_in_the_wheel(wheel: Path) -> None:
    inside = {name for name in zipfile.ZipFile(wheel).namelist() if name.startswith("oomdoctor/rules/")}
    rules = Path(builtin_rules())
    wanted = {f"oomdoctor/rules/{path.relative_to(rules).as_posix()}" for path in rules.rglob("*.yaml")}
    assert wanted <= inside
    assert "oomdoctor/rules/pack.json" in inside


def test_every_module_and_the_schema_are_in_the_wheel(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    wanted = {path.relative_to(ROOT).as_posix() for path in (ROOT / "oomdoctor").rglob("*.py")}
    data = {"oomdoctor/py.typed", "oomdoctor/report/charts/report.css", *(f"oomdoctor/report/schema/{name}.json" for name in REPORTS)}
    assert wanted | data <= inside


def test_manual_pages_and_completions_are_in_the_wheel(wheel: Path) -> None:
    inside = {name.partition(".data/data/")[2] for name in zipfile.ZipFile(wheel).namelist()}
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "share").rglob("*") if path.is_file()} <= inside


def test_the_shipped_pack_is_the_one_that_the_rules_give(wheel: Path) -> None:
    shipped = zipfile.ZipFile(wheel).read("oomdoctor/rules/pack.json")
    assert Pack(shipped).signatures == Pack(compile_pack(builtin_rules())).signatures


@pytest.mark.parametrize("zipped", [pytest.param(False, id="unpacked"), pytest.param(True, id="imported from the zip itself")])
def test_it_diagnoses_outside_of_the_tree(wheel: Path, tmp_path: Path, zipped: bool) -> None:
    place = wheel if zipped else tmp_path / "site"
    if not zipped:
        zipfile.ZipFile(wheel).extractall(place)
    log = tmp_path / "x.log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.\n")
    command = [sys.executable, "-m", "oomdoctor", "diagnose", str(log), "--format", "json", "--exit-zero"]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(place), "XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert json.loads(done.stdout)["verdict"]["memory_failure"] == "yes"
    assert {path.name.partition("-")[0] for path in tmp_path.glob("cache/*/*")} <= {"patterns"}, "rules are compiled in the wheel"


def test_a_fresh_environment_has_the_program_that_uvx_and_pipx_run(wheel: Path, tmp_path: Path) -> None:
    """As `uvx oomdoctor` and `pipx run oomdoctor` do: an environment of its own, the wheel in it, its program of the package's name started.

    What it requires is that of this environment, as there may be no index here.
    """
    home = tmp_path / "the home folder of somebody 的主目录"
    home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home / "tool")], check=True)
    scripts = home / "tool" / ("Scripts" if os.name == "nt" else "bin")
    python = str(scripts / "python")
    found = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], capture_output=True, encoding="utf-8", check=True
    )
    (Path(found.stdout.strip()) / "required.pth").write_text("\n".join({sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}))
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps", str(wheel)]
    subprocess.run(install, check=True, capture_output=True, env=os.environ | {"PYTHONWARNINGS": "ignore"})
    (home / "train.log").write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB.\n")
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "c"),
    }
    for arguments, wanted, status in ((["--version"], f"oomdoctor {__version__}", 0), (["diagnose", "train.log"], "GPU memory ran out", 1)):
        done = subprocess.run(
            [str(scripts / "oomdoctor"), *arguments], cwd=home, env=environ, capture_output=True, encoding="utf-8", check=False
        )
        assert (done.returncode, wanted in done.stdout) == (status, True), done.stdout + done.stderr
