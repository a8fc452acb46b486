"""Pack the built page as the wheel oomdoctor-page, which `pip install 'oomdoctor[web]'` brings.

`python tools/build_page_wheel.py --site dist/site`. A distribution of its own: the page is larger than the program (a Python for the
browser is most of it), so that those who never open it do not download it, and the program's wheel needs neither node nor npm. The same
page gives the same bytes. The licences of what others made are in its metadata, and their texts lie in it.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import sys
import zipfile
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tools")]

from site_build.downloads import Lock, read_lock  # noqa: E402

_PACKAGE = "oomdoctor_page"
_DATE = (1980, 1, 1, 0, 0, 0)
_MODULE = '''"""The built page of oomdoctor, which `oomdoctor web` opens: site/ holds its files."""\n'''
_README = """The page of oomdoctor, built: it says in a browser why a model run ran out of memory, and whether a run fits.
It computes there, and nothing is sent anywhere.

    pip install 'oomdoctor[web]'
    oomdoctor web
"""


def main() -> None:
    """Write the wheel, and print its name and sum."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--site", type=Path, default=ROOT / "dist" / "site", help="the built page (default: dist/site)")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder of the wheel (default: dist)")
    asked = parser.parse_args()
    if not (asked.site / "version.json").is_file():
        parser.error(f"{asked.site}: no built page is there; python tools/build_site.py --out {asked.site}")
    wheel = write_wheel(asked.site, asked.out)
    sys.stdout.write(f"{hashlib.sha256(wheel.read_bytes()).hexdigest()}  {wheel.name}\n")


def write_wheel(site: Path, out: Path) -> Path:
    """Write the wheel of a built page into a folder, and return its path."""
    version = json.loads((site / "version.json").read_bytes())["version"]
    inside = f"{_PACKAGE}-{version}.dist-info"
    files = dict(_files(site, inside, version))
    record = "".join(f"{name},sha256={_digest(data)},{len(data)}\n" for name, data in sorted(files.items())) + f"{inside}/RECORD,,\n"
    out.mkdir(parents=True, exist_ok=True)
    wheel = out / f"{_PACKAGE}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in [*sorted(files.items()), (f"{inside}/RECORD", record.encode())]:
            info = zipfile.ZipInfo(name, _DATE)
            info.external_attr = 0o644 << 16
            archive.writestr(info, data, zipfile.ZIP_DEFLATED, 9)
    return wheel


def _files(site: Path, inside: str, version: str) -> Iterator[tuple[str, bytes]]:
    listed = json.loads((site / "version.json").read_bytes())["files"]
    for name in (*listed, "version.json", "sw.js"):
        yield f"{_PACKAGE}/site/{name}", (site / name).read_bytes()
    yield f"{_PACKAGE}/__init__.py", _MODULE.encode()
    yield f"{inside}/METADATA", metadata(version, read_lock(ROOT / "site"))
    yield f"{inside}/WHEEL", b"Wheel-Version: 1.0\nGenerator: oomdoctor\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    yield f"{inside}/licenses/LICENSE", (ROOT / "LICENSE").read_bytes()
    yield f"{inside}/licenses/licenses.txt", (site / "licenses.txt").read_bytes()


def metadata(version: str, lock: Lock) -> bytes:
    """Return the metadata of the wheel: whose work it holds, and under which licences."""
    licences = dict.fromkeys(
        ["Apache-2.0", "PSF-2.0", *(f"({each.licence})" if " " in each.licence else each.licence for each in lock.files)]
    )
    told = EmailMessage()
    for name, value in (
        ("Metadata-Version", "2.4"),
        ("Name", "oomdoctor-page"),
        ("Version", version),
        ("Summary", "The built page of oomdoctor, for oomdoctor web"),
        ("License-Expression", " AND ".join(licences)),
        ("License-File", "LICENSE"),
        ("License-File", "licenses.txt"),
        ("Requires-Python", ">=3.10"),
        ("Description-Content-Type", "text/plain"),
    ):
        told[name] = value
    return told.as_bytes() + _README.encode()


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


if __name__ == "__main__":
    main()
