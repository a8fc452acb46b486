"""Builds the rule pack into the wheel; all else is in setup.cfg."""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent


class BuildWithPack(build_py):
    """build_py, and after it the pack of the rules that were just copied."""

    def run(self) -> None:
        super().run()
        if getattr(self, "editable_mode", False):
            return
        sys.path.insert(0, str(HERE))
        from oomdoctor.knowledge.compiled.compile import compile_pack  # noqa: PLC0415 - needs the source tree on the path

        pack = Path(self.build_lib) / "oomdoctor" / "rules" / "pack.json"
        pack.write_bytes(compile_pack(str(HERE / "rules")))


setup(cmdclass={"build_py": BuildWithPack})
