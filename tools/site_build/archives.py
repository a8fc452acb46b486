"""Archives that are the same whenever they are made: sorted names, fixed dates, no names of people or folders."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

_DATE = (1980, 1, 1, 0, 0, 0)


def zip_folder(*folders: Path) -> bytes:
    """Return all files of some folders as a zip that is not packed: what packs the whole of it packs better."""
    out = io.BytesIO()
    files = {path.relative_to(folder).as_posix(): path for folder in folders for path in folder.rglob("*") if path.is_file()}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            info = zipfile.ZipInfo(name, _DATE)
            info.external_attr = 0o644 << 16
            archive.writestr(info, files[name].read_bytes())
    return out.getvalue()


def packed(data: bytes) -> bytes:
    """Return data as gzip."""
    return gzip.compress(data, 9, mtime=0)


def without_comments(name: str, text: str) -> str:
    """Return a script or a stylesheet without comments of their own lines and without indentation; template texts stay as they are."""
    if not name.endswith((".js", ".css")):
        return text
    kept: list[str] = []
    is_comment = is_template = False
    for line in text.split("\n"):
        bare = line.strip()
        is_comment = not is_template and (is_comment or bare.startswith("/*"))
        if is_comment or (not is_template and (not bare or bare.startswith("//"))):
            is_comment = is_comment and "*/" not in bare
            continue
        kept.append(line if is_template else bare)
        is_template ^= name.endswith(".js") and line.count("`") % 2 == 1
    return "\n".join(kept) + "\n"
