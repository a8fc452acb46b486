"""Programs that run with the recorder in their environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from fake_torch import write_fake_torch

from oomdoctor.record.injection import inject

PYTHON = str(getattr(sys, "_base_executable", sys.executable))


def environment(**variables: str) -> dict[str, str]:
    """The variables of this process without those of Python."""
    return {**{name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COVERAGE"))}, **variables}


class Recorded:
    """Runs programs with a torch of some version; they find it beside themselves, whatever their interpreter is told."""

    def __init__(self, place: Path) -> None:
        self.place, self.folder, self.user = place, place / "evidence", place / "user"

    def run(
        self,
        program: str,
        version: str = "2.13.0",
        *options: str,
        level: int = 1,
        watched: bool = True,
        variables: dict[str, str] | None = None,
        python: str = PYTHON,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program; without a version it has the torch of its interpreter."""
        shutil.rmtree(self.folder, ignore_errors=True)
        script = self.place / "program.py"
        site = write_fake_torch(self.place / version / "site-packages", version) if version else self.user
        script.write_text(f"import sys; sys.path.append({str(site)!r})\n{program}")
        plain = environment(PYTHONPATH=str(self.user), **(variables or {}))
        injection = inject(str(self.folder), level)
        assert injection is not None
        given = injection.environment(plain) if watched else plain
        return subprocess.run([python, *options, str(script)], env=given, capture_output=True, text=True, timeout=600, cwd=self.place)
