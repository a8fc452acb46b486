"""`oomdoctor --version` tells which rules these are."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

from oomdoctor import __version__
from oomdoctor.knowledge.compiled.compile import compile_pack
from oomdoctor.knowledge.pack import Pack, builtin_rules, load_pack


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
