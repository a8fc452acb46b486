"""oomdoctor: from what is left of a run that died to what ran out, where first, why, and what to change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oomdoctor.case.diagnosis import Diagnosis

__version__ = "0.1.0"


def diagnose(
    text_or_path: str | bytes | os.PathLike[str], *, config: Sequence[str] = (), rules: str | None = None, jobs: int = 1
) -> Diagnosis:
    """The diagnosis of a log.

    A `PathLike`, or a string that names an existing file or folder, is read; any other string (and bytes) is the text
    of a log itself. `config` are paths of the run's config files, `rules` is a folder of rules to use instead of the
    built-in ones. Raises RuleError where a rule file of that folder is wrong; what cannot be read in a log is a gap of the
    case and never an exception.
    """
    from oomdoctor.api.pipeline import diagnose_logs as run  # noqa: PLC0415
    from oomdoctor.ingest.sources import expand_sources  # noqa: PLC0415
    from oomdoctor.knowledge.pack import load_pack  # noqa: PLC0415 - importing the package stays free of its work

    pack = load_pack(rules)
    if isinstance(text_or_path, str) and not _names_a_file(text_or_path):
        text_or_path = text_or_path.encode("utf-8", "surrogatepass")
    if isinstance(text_or_path, bytes):
        return run(["<text>"], pack, jobs=jobs, text=text_or_path, config=config)
    return run(list(expand_sources([os.fspath(text_or_path)])), pack, jobs=jobs, config=config)


def _names_a_file(text: str) -> bool:
    try:
        return "\n" not in text and len(text) < 4096 and os.path.exists(text)
    except ValueError:
        return False
