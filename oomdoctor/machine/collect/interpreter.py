"""Which interpreter runs the training, and where its packages lie, as far as that shows without starting it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

from oomdoctor.case.environment import Python
from oomdoctor.machine.collect.root import Root

_LIB = re.compile(r"python3\.\d{1,2}t?")
_HOME_VERSION = re.compile(r"^version(?:_info)?\s{0,3}=\s{0,3}(\d{1,2}\.\d{1,2}(?:\.\d{1,3})?)", re.MULTILINE)


def choose_interpreter(python: str | None, environ: Mapping[str, str], default: str = sys.executable) -> str:
    """Return the interpreter that was asked for, else that of the active environment, else our own."""
    if python is not None:
        return find_executable(python) or python
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        interpreter = find_executable(environ.get(name, ""))
        if interpreter is not None:
            return interpreter
    return default


def find_executable(path: str) -> str | None:
    """Return the interpreter at a path: itself, or that of the environment whose folder it is."""
    if not path:
        return None
    if os.path.isfile(path):
        return os.path.abspath(path)  # a bare name would be looked for in PATH
    candidates = (
        os.path.join(path, *parts) for parts in (("bin", "python"), ("bin", "python3"), ("Scripts", "python.exe"), ("python.exe",))
    )
    return next((candidate for candidate in candidates if os.path.isfile(candidate)), None)


def is_running_interpreter(path: str, current: str = sys.executable) -> bool:
    """Return whether a path is the interpreter that runs now. A virtual environment's is a link to one that is not the same environment."""
    return bool(path) and os.path.abspath(path) == os.path.abspath(current)


def describe_running_interpreter(path: list[str] | None = None) -> Python:
    """Describe the interpreter that runs now."""
    prefix, here = sys.prefix, os.getcwd()  # `python -m` puts the working directory first, which no training run of another script has
    return Python(
        executable=sys.executable,
        version=".".join(str(part) for part in sys.version_info[:3]),
        prefix=prefix,
        kind=_kind(prefix),
        site_packages=tuple(
            folder for folder in (sys.path if path is None else path) if folder not in ("", here) and os.path.isdir(folder)
        ),
    )


def describe_layout(path: str, environ: Mapping[str, str]) -> Python:
    """Describe an interpreter that is not started: its environment's layout says where packages are. What .pth files add is not seen."""
    prefix = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    root = Root()
    version = _HOME_VERSION.search(root.read(os.path.join(prefix, "pyvenv.cfg"), 4096) or "")
    folders = [folder for folder in environ.get("PYTHONPATH", "").split(os.pathsep) if folder]
    folders += [
        os.path.join(prefix, "lib", name, "site-packages") for name in root.names(os.path.join(prefix, "lib")) if _LIB.fullmatch(name)
    ]
    folders.append(os.path.join(prefix, "Lib", "site-packages"))
    return Python(
        executable=path,
        version=version[1] if version else None,
        prefix=prefix,
        kind=_kind(prefix),
        site_packages=tuple(folder for folder in folders if os.path.isdir(folder)),
    )


def _kind(prefix: str) -> str:
    if os.path.isfile(os.path.join(prefix, "pyvenv.cfg")):
        return "venv"
    return "conda" if os.path.isdir(os.path.join(prefix, "conda-meta")) else "system"
