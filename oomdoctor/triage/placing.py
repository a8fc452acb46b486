"""What file paths say about files, and which files are read together (rules/layouts.yaml)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from oomdoctor.ingest.runs import stem_of, unrotated
from oomdoctor.knowledge.pattern import fragments
from oomdoctor.knowledge.records.layout import LayoutRecord
from oomdoctor.triage.listing import ARCHIVES, ListedFolder
from oomdoctor.triage.log_file import LogFile, PlacedFile

PLAIN = "plain"
"""The layout of a log whose path matches no known layout."""
ARCHIVE = "archive"
BESIDE = "beside"
"""The layout of a log in the folder in which torchrun created its run folders."""
_RUN_FOLDER = re.compile(r"[^/]+_[a-z0-9_]{8}$")
_STREAM_FOLDER = re.compile(r"(?i)/(?:std)?(?:out|err)(?:put|or)?s?(?=/|$)")
"""Some sites keep a job's two streams in separate folders."""
_PROCESS = re.compile(
    r"(?i)(?<![a-z0-9])(?:(?:local|global|node)?[._-]?rank|worker|node|proc(?:ess)?|gpu|device|task|replica)[._-]?\d{1,6}(?![a-z0-9])"
)
_SEPARATOR = "\t"

Placed = tuple[str, PlacedFile]
"""A file, with the name of the group it is read with."""


class Layouts:
    """How paths are read: the layouts in order."""

    def __init__(self, records: Sequence[LayoutRecord]) -> None:
        self._known = [(record, re.compile(record.pattern), fragments(record.pattern) or [""]) for record in records]
        self.backward = frozenset(record.id for record in records if record.parts_run == "backward")
        """Layouts in which a larger part number of a rotated log means an earlier part."""

    def facts(self, path: str) -> tuple[LayoutRecord, dict[str, str], int] | None:
        """Return the layout of a path, the facts it gives, and where in the path it begins; None if none matches."""
        for record, pattern, needs in self._known:
            for needed in needs:
                if needed in path:
                    break
            else:
                continue
            match = pattern.search(path)
            if match is not None:
                return record, {name: value for name, value in match.groupdict().items() if value is not None}, match.start()
        return None

    def place(self, folder: ListedFolder) -> Iterator[Placed]:
        """Yield the files in a folder with what they belong to."""
        beside = any(map(_RUN_FOLDER.match, folder.folders))
        for file in folder.files:
            yield self._place(file, folder.path, beside)

    def _place(self, file: LogFile, folder: str, beside: bool) -> Placed:
        path = file.path.replace(os.sep, "/")
        if path.endswith(ARCHIVES):
            return _key(ARCHIVE, path), PlacedFile(file, ARCHIVE)
        known = self.facts(path)
        if known is None and (whole := unrotated(path)) != path:
            known = self.facts(whole)
        if known is None:
            if beside:
                return _key("torchrun", folder), PlacedFile(file, BESIDE)
            return _key(PLAIN, _PROCESS.sub("*", stem_of(path))), PlacedFile(file, PLAIN)
        record, facts, start = known
        return _key(*_family(record, facts, path, start)), PlacedFile(file, record.id, facts)


def _family(record: LayoutRecord, facts: dict[str, str], path: str, start: int) -> tuple[str, str]:
    """Return a name for the files that are read together with one."""
    if record.together == "job":
        return record.id, f"{facts.get('namespace', '')}/{facts['job']}"
    if record.together == "session":
        return record.id, facts["session"]  # each node has its own folder for it
    if record.together == "run":
        return record.id, path[:start]
    if record.together == "folder":
        return "slurm", f"{_STREAM_FOLDER.sub('', os.path.dirname(path))}/{facts.get('array') or facts['job']}"
    return record.id, path


def _key(*parts: str) -> str:
    return _SEPARATOR.join(parts)
