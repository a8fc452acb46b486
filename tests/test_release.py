"""What is released: two builds are the same bytes, the archives hold what a stranger needs, and the version tells which rules."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from oomdoctor import __version__
from oomdoctor.knowledge.compiled.compile import compile_pack
from oomdoctor.knowledge.pack import Pack, builtin_rules, load_pack

ROOT = Path(__file__).parents[1]


def build(out: Path, umask: int) -> dict[str, bytes]:
    pytest.importorskip("build")
    command = [sys.executable, str(ROOT / "tools/release.py"), "--no-isolation", "--out", str(out)]
    done = subprocess.run(command, umask=umask, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return {path.name: path.read_bytes() for path in out.iterdir()}


def test_two_builds_are_the_same_bytes_whatever_the_umask(tmp_path: Path) -> None:
    first, second = build(tmp_path / "a", 0o022), build(tmp_path / "b", 0o077)
    assert sorted(first) == ["SHA256SUMS", f"oomdoctor-{__version__}-py3-none-any.whl", f"oomdoctor-{__version__}.tar.gz"]
    assert first == second
    with tarfile.open(tmp_path / "a" / f"oomdoctor-{__version__}.tar.gz") as sdist:
        inside = {name.partition("/")[2] for name in sdist.getnames()}
    assert {"README.md", "CHANGELOG.md", "LICENSE", "setup.cfg", "setup.py", "pyproject.toml", "rules/layouts.yaml"} <= inside
    assert {"tests/test_release.py", "tools/release.py", "skills/oomdoctor/SKILL.md", "share/man/man1/oomdoctor.1"} <= inside


def test_the_version_tells_which_rules() -> None:
    done = subprocess.run([sys.executable, "-m", "oomdoctor", "--version"], capture_output=True, text=True, check=True)
    pack = load_pack()
    assert done.stdout == f"oomdoctor {__version__} (rules {pack.version}: {pack.size} messages, {len(pack.problems)} problems)\n"
    assert re.fullmatch(r"[0-9a-f]{8}", pack.version)


def test_another_word_in_a_rule_is_another_version(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    shutil.copytree(builtin_rules(), rules)
    assert Pack(compile_pack(str(rules))).version == load_pack().version
    sources = (rules / "sources.yaml").read_text(encoding="utf-8")
    (rules / "sources.yaml").write_text(sources.replace("title: ", "title: New ", 1), encoding="utf-8")
    assert Pack(compile_pack(str(rules))).version != load_pack().version
