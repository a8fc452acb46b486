"""From the logs of one run to its diagnosis."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.structs import replace

from oomdoctor.api.inputs import Machine, Path, Paths, machine_source, path_list, path_text
from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.ingest.sources import expand_sources
from oomdoctor.knowledge.pack import Pack, load_pack
from oomdoctor.machine.match_log import MachineSource
from oomdoctor.parse.reading import Early, Progress
from oomdoctor.record.recognise import evidence_of


def diagnose(
    log: str | bytes | os.PathLike[str] | Sequence[Path] = (),
    *,
    config: Paths = (),
    series: Paths = (),
    snapshot: Paths = (),
    environment: Machine = None,
    rules: Path | None = None,
    include: Sequence[str] = (),
    exclude: Sequence[str] = (),
    jobs: int = 1,
    name: str = "<text>",
    progress: Progress | None = None,
    early: Early | None = None,
) -> Diagnosis:
    """Diagnose a run: whether memory ran out, which memory, what failed first, why, and what to change.

    A `PathLike`, a string that names an existing file or folder, and every item of a list are paths and are read (`-` in a list is
    standard input); any other string, and bytes, are the text of a log, which the report calls `name`.

    `config` are the run's config files; neighboring files that they name are read too. `environment` is its machine: an
    `Environment`, a file that describes one, `"auto"` (this machine if it matches the log) or `"here"` (this machine).
    `series` are monitor files that recorded memory over time (nvidia-smi, DCGM, trackers); alone they never show that a run failed.
    `snapshot` are memory snapshots of the run, one file per rank; nothing in them is executed.
    `rules` is a folder of rules that are added on top of the built-in ones. In folders, `include` and `exclude` are globs over names.
    `jobs` threads read; `progress` is called with the number of bytes read, `early` with what the end of a large log shows.

    Anything in a log that cannot be read is a gap of the case and never an exception. Raise RuleError if a rule file is invalid, and
    UsageError if the file of `environment` cannot be read.

    >>> import oomdoctor
    >>> diagnosis = oomdoctor.diagnose("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    >>> diagnosis.case.verdict.memory_failure
    'yes'
    """
    text, logs = _text_or_paths(log)
    pack = load_pack(over=path_text(rules))
    if len(logs) == 1 and os.path.isdir(logs[0]) and (folder := evidence_of(logs[0])) is not None:
        named = machine_source(None if environment == "auto" else environment)
        return diagnose_folder(folder, pack, path_list(config), named, jobs, path_list(series), path_list(snapshot))
    beside = None
    if series or snapshot:
        from oomdoctor.api.runs.beside import RecordedBeside  # noqa: PLC0415 - most logs come without one

        beside = RecordedBeside(path_list(series), path_list(snapshot), pack)
    sources = [name] if text is not None else list(expand_sources(logs, include, exclude))
    if beside is None and not path_list(config) and any(map(os.path.isdir, logs)):
        from oomdoctor.api.fleet.folder import diagnose_jobs  # noqa: PLC0415 - most inputs are files

        of_jobs = diagnose_jobs(logs, sources, pack, jobs=jobs, machine=machine_source(environment))
        if of_jobs is not None:
            return of_jobs
    diagnosis = diagnose_logs(
        sources,
        pack,
        jobs=jobs,
        progress=progress,
        early=early,
        text=text,
        config=path_list(config),
        machine=machine_source(environment),
        measured=None if beside is None else beside.facts,
        stated=None if beside is None else beside.stated,
    )
    diagnosis = diagnosis if beside is None else beside.added_to(diagnosis)
    if not path_list(config) or text is not None:
        return diagnosis
    from oomdoctor.api.config_run import written_fixes  # noqa: PLC0415 - the writers are for those who give files

    return replace(diagnosis, written=written_fixes(diagnosis, path_list(config), pack))


def diagnose_folder(
    path: str,
    pack: Pack,
    config: Sequence[str],
    machine: MachineSource | None,
    jobs: int,
    series: Sequence[str] = (),
    snapshots: Sequence[str] = (),
) -> Diagnosis:
    """Diagnose an evidence folder."""
    from oomdoctor.api.runs.evidence import diagnose_evidence  # noqa: PLC0415 - a sixth of the start, and most inputs are logs

    return diagnose_evidence(path, pack, config=config, machine=machine, jobs=jobs, series=series, snapshots=snapshots)


def _text_or_paths(log: str | bytes | os.PathLike[str] | Sequence[Path]) -> tuple[bytes | None, list[str]]:
    """Return the text of a log, or the paths of logs."""
    if isinstance(log, bytes):
        return log, []
    if isinstance(log, str) and not _exists(log):
        return log.encode("utf-8", "surrogatepass"), []
    return None, path_list(log)


def _exists(text: str) -> bool:
    try:
        return "\n" not in text and len(text) < 4096 and os.path.exists(text)
    except ValueError:
        return False
