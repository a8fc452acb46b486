"""Build what is released, the same bytes wherever it is built: `python tools/release.py --out dist`.

Writes the wheel, the sdist, their SHA-256 and, with `--sbom`, a bill of materials (CycloneDX) of what the wheel brings along. Two things
would differ from one machine to the next: modes of files, which the umask decides, and an sdist's order, owners and times. So the tree
is built from a copy with fixed modes, and the sdist is packed anew. Times are those of the last commit, or SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
_FILE, _FOLDER, _PROGRAM = 0o644, 0o755, 0o755


def main() -> None:
    """Build into a folder, and print the sums."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    parser.add_argument("--sbom", action="store_true", help="also write sbom.json; needs an index of packages")
    parser.add_argument("--no-isolation", action="store_true", help="build with the setuptools at hand instead of a fresh one")
    asked = parser.parse_args()
    made = build(ROOT, asked.out, isolated=not asked.no_isolation)
    if asked.sbom:
        made.append(write_sbom(next(path for path in made if path.suffix == ".whl"), asked.out / "sbom.json"))
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in made]
    (asked.out / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    sys.stdout.write("".join(lines))


def build(root: Path, out: Path, *, isolated: bool) -> list[Path]:
    """Return the wheel and the sdist of a tree, written to `out`."""
    out.mkdir(parents=True, exist_ok=True)
    when = os.environ.get("SOURCE_DATE_EPOCH") or last_commit(root)
    with tempfile.TemporaryDirectory() as folder:
        tree = copy_tree(root, Path(folder) / "oomdoctor")
        command = [
            sys.executable,
            "-m",
            "build",
            "--outdir",
            str(Path(folder) / "out"),
            *([] if isolated else ["--no-isolation"]),
            str(tree),
        ]
        environment = os.environ | {"SOURCE_DATE_EPOCH": when, "PYTHONWARNINGS": "ignore"}
        # What setuptools writes itself gets its mode from the umask.
        done = subprocess.run(command, env=environment, umask=0o022, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stdout[-4000:] + done.stderr[-4000:])
        (wheel,), (sdist,) = (list((Path(folder) / "out").glob(kind)) for kind in ("*.whl", "*.tar.gz"))
        (out / wheel.name).write_bytes(wheel.read_bytes())
        (out / sdist.name).write_bytes(repacked(sdist.read_bytes(), int(when)))
    return [out / wheel.name, out / sdist.name]


def last_commit(root: Path) -> str:
    """Return the time of the last commit, in seconds since 1970; 1980 (a zip knows no earlier time) where nobody can say."""
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "315532800"


def copy_tree(root: Path, to: Path) -> Path:
    """Copy what git tracks, or all but what is built where there is no git, with fixed modes."""
    done = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    names = [os.fsdecode(name) for name in done.stdout.split(b"\0") if name] if done.returncode == 0 else list(_files(root))
    for name in names:
        source, target = root / name, to / name
        if not source.is_file():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(_PROGRAM if source.stat().st_mode & 0o100 else _FILE)
    for folder in (to, *(path for path in to.rglob("*") if path.is_dir())):
        folder.chmod(_FOLDER)
    return to


def _files(root: Path) -> list[str]:
    skipped = {"build", "dist", "__pycache__", "node_modules"}
    names = (path.relative_to(root) for path in root.rglob("*") if path.is_file())
    return [
        str(name) for name in names if not any(part in skipped or part.startswith(".") or part.endswith(".egg-info") for part in name.parts)
    ]


def repacked(data: bytes, when: int) -> bytes:
    """Return a .tar.gz with its members sorted, of one owner and one time."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(data)) as old, tarfile.open(fileobj=plain, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda each: each.name):
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mtime, member.pax_headers = when, {}
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=when) as file:
        file.write(plain.getvalue())
    return packed.getvalue()


def write_sbom(wheel: Path, to: Path) -> Path:
    """Write which packages an installation of the wheel has, with their licences, as CycloneDX 1.6."""
    with tempfile.TemporaryDirectory() as folder:
        installed, tool = Path(folder) / "installed", Path(folder) / "tool"
        for place, packages in ((installed, [str(wheel)]), (tool, ["cyclonedx-bom>=7.5,<8"])):
            subprocess.run([sys.executable, "-m", "venv", *(["--without-pip"] if place == installed else []), str(place)], check=True)
            pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install", "--quiet", *packages]
            subprocess.run(pip, check=True)
        command = [str(tool / "bin" / "cyclonedx-py"), "environment", str(installed / "bin" / "python")]
        subprocess.run([*command, "--output-reproducible", "--of", "JSON", "--output-file", str(to)], check=True)
    return to


if __name__ == "__main__":
    main()
