"""`oomdoctor --version` tells which rules these are."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from oomdoctor import __version__
from oomdoctor.knowledge.compiled.compile import compile_pack
from oomdoctor.knowledge.pack import Pack, load_pack


def test_the_version_tells_which_rules() -> None:
    done = subprocess.run([sys.executable, "-m", "oomdoctor", "--version"], capture_output=True, text=True, check=True)
    pack = load_pack()
    assert done.stdout == f"oomdoctor {__version__} (rules {pack.version}: {pack.size} messages, {len(pack.problems)} problems)\n"
    assert re.fullmatch(r"[0-9a-f]{8}", pack.version)


def test_another_word_in_a_rule_is_another_version(tmp_path: Path) -> None:
    for folder in ("rules", "the same", "others"):
        (tmp_path / folder).mkdir()
        title = "New" if folder == "others" else "Notes"
        (tmp_path / folder / "sources.yaml").write_text(f"sources: [{{id: notes, title: {title}}}]\n")
    rules, same, others = (Pack(compile_pack(str(tmp_path / folder))).version for folder in ("rules", "the same", "others"))
    assert rules == same != others
