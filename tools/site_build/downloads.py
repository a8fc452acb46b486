"""What others made and the page ships: fetched once by name and version, and checked against site/lock.json."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from msgspec import Struct, field
from msgspec.json import decode


class Locked(Struct, frozen=True, kw_only=True):
    name: str
    version: str
    origin: str = field(name="from")
    file: str
    sha256: str
    licence: str
    source: str
    tag: tuple[str, str, str] | None = None
    """Platform, Python and ABI of a wheel that is not for this machine. Of one with C of another machine only the Python is taken."""


class Lock(Struct, frozen=True, kw_only=True):
    python: str
    files: tuple[Locked, ...]


class WrongFile(Exception):
    """A file that is not the one that is locked."""


def read_lock(site: Path) -> Lock:
    return decode((site / "lock.json").read_bytes(), type=Lock)


def fetch(locked: Locked, cache: Path) -> Path:
    """Return the file, from the folder `cache` where it lies there. Raise WrongFile where its hash is not the locked one."""
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / locked.file
    if not path.exists():
        if locked.origin == "npm":
            _run("npm", "pack", "--silent", f"{locked.name}@{locked.version}", cwd=cache)
        else:
            platform, python, abi = locked.tag or ("any", "3", "none")
            named = ["--platform", platform, "--python-version", python, "--implementation", abi[:2], "--abi", abi] if locked.tag else []
            wanted = ["--no-deps", "--only-binary=:all:", *named, "--dest", str(cache), f"{locked.name}=={locked.version}"]
            _run(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", *wanted, cwd=cache)
    if not path.exists():
        raise WrongFile(f"{locked.name} {locked.version} did not come as {locked.file}")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if digest != locked.sha256:
        raise WrongFile(f"{path}: its SHA-256 is {digest}, and {locked.sha256} is locked")
    return path


def _extract(archive: tarfile.TarFile, folder: Path) -> None:
    """Unpack an archive whose sum is known; the filter came with Python 3.10.12 and 3.11.4."""
    if hasattr(tarfile, "data_filter"):
        archive.extractall(folder, filter="data")
    else:
        archive.extractall(folder)


def unpack(path: Path, folder: Path) -> Path:
    """Unpack a package of npm or a wheel; return the folder with its files."""
    if path.name.endswith(".tgz"):
        with tarfile.open(path) as archive:
            _extract(archive, folder)
        return folder / "package"
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
    return folder


def _run(*command: str, cwd: Path) -> None:
    subprocess.run(command, cwd=cwd, check=True, stdout=subprocess.DEVNULL)
