"""Assign files that are read together to jobs: which job, attempt and process each file belongs to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.ingest.runs import stem_of
from oomdoctor.triage.job import Attempt, Job, JobFile
from oomdoctor.triage.log_file import PlacedFile
from oomdoctor.triage.placing import BESIDE
from oomdoctor.triage.wandb_metadata import FILE as METADATA
from oomdoctor.triage.wandb_metadata import WandbMetadata, read_metadata

_DRIVER_PID = re.compile(rb"\(\w[^()\n]{0,80}?\bpid=(\d{1,8})")
_NUMBER = re.compile(r"(?<!\d)\d{4,12}(?:_\d{1,6})?(?!\d)")
_RANK = re.compile(r"(?i)(?<![a-z])(?P<local>local[._-]?)?(?:rank|worker|proc(?:ess)?|task)[._-]?(?P<rank>\d{1,6})(?![a-z0-9])")
_NODE = re.compile(r"(?:^|/)(?P<node>(?:node|host|gpu|dgx|hgx|cn|gn|compute)[a-z]*[-_]?\d{1,6})(?=/)")
_SLURM = frozenset({"slurm", "slurm-task", "slurm-array", "slurm-node"})
_OWN_RANK = re.compile(rb"(?i)\brank[ =:]?(\d{1,5})\b")
_UNNAMED = frozenset({"none", "default", ""})
"""Run IDs that torchrun uses if none is given."""
_ATTEMPT_0 = "0"
_TOGETHER = 15 * 60 * 10**9
"""The logs of a job's nodes end within this many nanoseconds of each other."""

ReadStart = Callable[[str], bytes]
"""The first bytes of a file, decompressed."""


class Owned(Struct, frozen=True):
    """A file with the job, attempt and stream it belongs to."""

    job: tuple[str, str]
    """The job's own name, and the name of its campaign."""
    attempt: str
    stream: str
    order: tuple[int, str]
    file: JobFile


def assemble(family: str, files: Sequence[PlacedFile], read_start: ReadStart, backward: frozenset[str]) -> list[Job]:
    """Return the jobs of files that are read together, in a fixed order."""
    files = sorted(files, key=lambda placed: placed.path)
    layouts = {placed.layout for placed in files}
    if layouts & _SLURM:
        owned = _slurm(files, read_start)
    elif "torchrun" in layouts or BESIDE in layouts:
        owned = _torchrun(files)
    elif "ray-session" in layouts:
        owned = _ray(files, read_start)
    elif "wandb" in layouts:
        return _wandb(files, read_start, family)
    else:
        owned = [_plain(placed, backward) for placed in files if "record" not in placed.facts]
    layout = next((placed.layout for placed in files if placed.layout != BESIDE), BESIDE)
    return _jobs(owned, family, layout)


def _slurm(files: Sequence[PlacedFile], read_start: ReadStart) -> list[Owned]:
    """Return the files of a Slurm job or array.

    Numbers behind the id are tasks of one job where a file of the whole job lies beside, where the path names a node or says that it
    is a rank, and where the files speak of themselves as of that rank.
    """
    whole = any(placed.layout == "slurm" or "node" in placed.facts for placed in files)
    named = any(_RANK.search(os.path.basename(placed.path)) for placed in files)
    tasks = whole or named or _say_their_rank(files, read_start)
    out = []
    for placed in files:
        facts = placed.facts
        number = facts.get("number")
        name = facts.get("name")
        if "array" in facts:
            native, rank = f"{facts['array']}_{facts['task']}", None
        elif number is None or tasks:
            native, rank = facts["job"], None if number is None else int(number)
        else:
            native, rank = f"{facts['job']}_{number}", None
        file = JobFile(file=placed.file, rank=rank, node=facts.get("node"))
        out.append(Owned((native, "" if name in (None, "slurm") else str(name)), _ATTEMPT_0, placed.path, (0, placed.path), file))
    return out


def _say_their_rank(files: Sequence[PlacedFile], read_start: ReadStart) -> bool:
    """Return whether some files give the number in their names as their rank and none gives a different one."""
    agreeing = 0
    for placed in files if len(files) > 1 else ():
        number = placed.facts.get("number")
        ranks = set(_OWN_RANK.findall(read_start(placed.path))) if number is not None and number.strip("0") else set()
        if ranks and ranks != {number.encode() if number is not None else b""}:
            return False
        agreeing += bool(ranks)
    return agreeing > 0


def _torchrun(files: Sequence[PlacedFile]) -> list[Owned]:
    """Return the files of the runs below a folder: one job if it is the job's own folder, otherwise one per ID."""
    runs = {placed.facts["run"] for placed in files if "run" in placed.facts}
    top = os.path.basename(_top(files))
    numbered = _NUMBER.search(top)
    beside = [placed for placed in files if placed.layout == BESIDE]
    folders = {} if numbered or beside or runs - _UNNAMED else _started_together(files)
    own = (len(runs) == 1 and len(set(folders.values())) <= 1) or numbered is not None or len(beside) in (1, 2)
    native = numbered[0] if numbered else next((run for run in sorted(runs) if run not in _UNNAMED), top)
    name = _NUMBER.sub("", top).strip("-_.")
    out = []
    for placed in files:
        facts = placed.facts
        if placed.layout == BESIDE:
            path = placed.path
            job = (
                native
                if own
                else next((run for run in runs if run not in _UNNAMED and run in os.path.basename(path)), stem_of(os.path.basename(path)))
            )
            out.append(Owned((job, name), _ATTEMPT_0, path, (0, path), JobFile(file=placed.file, is_copy=True)))
            continue
        folder = placed.path.split("/attempt_")[0]
        job = native if own else facts["run"] if facts["run"] not in _UNNAMED else os.path.basename(folders.get(folder, folder))
        file = JobFile(file=placed.file, local_rank=int(facts["local_rank"]), is_copy="stream" not in facts)
        out.append(Owned((job, name), facts["attempt"], placed.path, (0, placed.path), file))
    return out


def _started_together(files: Sequence[PlacedFile]) -> dict[str, str]:
    """For each run folder without a name, return the first folder that ended at about the same time, as the nodes of one job do."""
    ends: dict[str, int] = {}
    for placed in files:
        folder = placed.path.split("/attempt_")[0]
        ends[folder] = max(ends.get(folder, 0), placed.file.modified)
    out: dict[str, str] = {}
    first, before = "", 0
    for folder, end in sorted(ends.items(), key=lambda pair: (pair[1], pair[0])):
        first = first if first and end - before <= _TOGETHER else folder
        out[folder], before = first, end
    return out


def _top(files: Sequence[PlacedFile]) -> str:
    """Return the folder that contains the folders of the runs."""
    for placed in files:
        if "run" in placed.facts:
            return os.path.dirname(placed.path.split("/attempt_")[0])
    return os.path.dirname(files[0].path)


def _ray(files: Sequence[PlacedFile], read_start: ReadStart) -> list[Owned]:
    """Return the files of a session's jobs: a driver's log shows the processes of its workers."""
    workers = [placed for placed in files if "ray_job" in placed.facts]
    of_process = {placed.facts["pid"]: placed.facts["ray_job"] for placed in workers}
    submitted: dict[str, str] = {}
    drivers = [placed for placed in files if "submission" in placed.facts]
    for driver in drivers:
        shown = {pid.decode() for pid in _DRIVER_PID.findall(read_start(driver.path))}
        for ray_job in {of_process[pid] for pid in shown if pid in of_process}:
            submitted[ray_job] = driver.facts["submission"]
    alone = sorted({placed.facts["ray_job"] for placed in workers} - submitted.keys())
    silent = sorted({driver.facts["submission"] for driver in drivers} - set(submitted.values()))
    if len(alone) == len(silent) == 1:
        submitted[alone[0]] = silent[0]
    folders = {placed.facts["name"] for placed in files if "name" in placed.facts}
    name = folders.pop() if len(folders) == 1 else ""
    out = []
    for placed in (*workers, *drivers):
        native = placed.facts.get("submission") or submitted.get(placed.facts["ray_job"], placed.facts["ray_job"])
        file = JobFile(file=placed.file, is_copy="submission" in placed.facts, node=None if name else placed.facts.get("name"))
        out.append(Owned((native, name), _ATTEMPT_0, placed.path, (0, placed.path), file))
    return out


def _wandb(files: Sequence[PlacedFile], read_start: ReadStart, family: str) -> list[Job]:
    """Return the run with an ID, whatever its folders are called: each start has its own, and a copied folder is the same start."""
    told = next((read_metadata(read_start(placed.path)) for placed in files if placed.facts.get("record") == METADATA), WandbMetadata())
    starts = sorted({placed.facts["started"] for placed in files})
    met: set[str] = set()
    owned = []
    for placed in files:
        if "stream" not in placed.facts:
            continue
        start = placed.facts["started"]
        file = JobFile(file=placed.file, node=told.host, is_copy=start in met)
        met.add(start)
        owned.append(Owned((placed.facts["job"], told.name or ""), str(starts.index(start)), placed.path, (0, placed.path), file))
    part_of = (told.slurm_job,) if told.slurm_job is not None else ()
    return [replace(job, user=told.username, part_of=part_of) for job in _jobs(owned, family, "wandb")]


def _plain(placed: PlacedFile, backward: frozenset[str]) -> Owned:
    """Return a file that is assigned by its own path."""
    facts = placed.facts
    path = placed.path
    worker, rank = facts.get("worker"), facts.get("rank")
    told = _RANK.search(path.removeprefix(os.path.dirname(os.path.dirname(path)))) if not facts else None
    index = (
        int(worker) + 1 if worker is not None else int(facts["host"]) - 1 if "host" in facts else int(rank) if rank is not None else None
    )
    if index is None and facts.get("pod") not in (None, facts.get("job")):
        index = 0
    number = int(told["rank"]) if told is not None and not told["local"] else int(facts["process"]) if "process" in facts else None
    node = facts.get("node") or ((match := _NODE.search(path)) and match["node"]) or None
    local = int(told["rank"]) if told is not None and told["local"] else None
    file = JobFile(file=placed.file, rank=number, index=index, local_rank=local, node=node)
    native = facts.get("job") or os.path.basename(stem_of(path))
    part = facts.get("part")
    stream = f"{os.path.dirname(path)}/{facts.get('attempt', '')}" if facts.get("job") else path
    order = (1, "") if part is None else (-int(part), "") if placed.layout in backward else (0, part)
    return Owned(
        (native, re.sub(r"-[a-z0-9]{5}$", "", native) if facts.get("namespace") else ""),
        facts.get("attempt", _ATTEMPT_0),
        stream,
        order,
        file,
    )


def _jobs(owned: Iterable[Owned], family: str, layout: str) -> list[Job]:
    """Return files by job, attempt and stream."""
    jobs: dict[tuple[str, str], dict[int, dict[str, list[Owned]]]] = {}
    for owned_file in owned:
        jobs.setdefault(owned_file.job, {}).setdefault(int(owned_file.attempt), {}).setdefault(owned_file.stream, []).append(owned_file)
    merged: dict[str, tuple[str, dict[int, dict[str, list[Owned]]]]] = {}
    for (native, name), attempts in jobs.items():
        known = merged.setdefault(native, (name, {}))
        for number, streams in attempts.items():
            known[1].setdefault(number, {}).update(streams)
        if name and not known[0]:
            merged[native] = (name, known[1])
    return [_job(family, layout, native, name, attempts) for native, (name, attempts) in merged.items()]


def _job(family: str, layout: str, native: str, name: str, attempts: dict[int, dict[str, list[Owned]]]) -> Job:
    made = []
    for number, streams in sorted(attempts.items()):
        ordered = (sorted(pieces, key=lambda owned_file: owned_file.order) for pieces in streams.values())
        made.append(Attempt(number=number, streams=tuple(tuple(owned_file.file for owned_file in pieces) for pieces in ordered)))
    paths = [piece.path for attempt in made for stream in attempt.streams for piece in stream]
    folder = os.path.dirname(paths[0]) if len(paths) == 1 else os.path.commonpath(list(map(os.path.dirname, paths))) if paths else ""
    return Job(family=family, layout=layout, native=native, folder=folder, name=name or None, attempts=tuple(made))
