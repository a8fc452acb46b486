"""The library as the page has it: what site/worker/bridge reaches of the package and its requirements, and the data that they read."""

from __future__ import annotations

import shutil
from pathlib import Path

from oomdoctor.knowledge.compiled.compile import compile_pack
from site_build.reach import modules_in, reached

BRIDGE = "bridge"
PACKAGES = ("msgspec", "packaging", "yaml")
"""What others made; it has an archive of its own."""
REPORT_STYLE = "oomdoctor/report/charts/report.css"
LEFT_OUT = ("oomdoctor.tracing", "oomdoctor.machine.collect.environment", "oomdoctor.knowledge.compiled.compile")
"""What needs torch, a machine to look at, or the sources of rules: the page asks for none of it."""


def lay_out(root: Path, requirements: Path, target: Path) -> None:
    """Lay the sources of the library into a folder; `requirements` is the folder of the unpacked wheels."""
    modules = {**modules_in(root / "site/worker", BRIDGE), **modules_in(root, "oomdoctor")}
    for name in ("yaml", "packaging"):
        modules |= modules_in(requirements, name)
    modules = {name: path for name, path in modules.items() if not name.startswith(LEFT_OUT)}
    # What the C of msgspec imports is read from no file.
    for name, path in {**reached(BRIDGE, modules), **modules_in(requirements, "msgspec")}.items():
        place = target / name.replace(".", "/")
        _copy(path, place / "__init__.py" if path.name == "__init__.py" else place.with_suffix(".py"))
    for path in requirements.glob("msgspec/*.so"):
        _copy(path, target / "msgspec" / path.name)
    rules = target / "oomdoctor" / "rules"
    for path in sorted((root / "rules" / "tables").glob("*")):
        _copy(path, rules / "tables" / path.name)
    _copy(root / REPORT_STYLE, target / REPORT_STYLE)
    (rules / "pack.json").write_bytes(compile_pack(str(root / "rules"), has_examples=False))


def _copy(path: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, place)
