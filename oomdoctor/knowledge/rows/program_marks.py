"""What names a program in logs: its packages, scripts, commands and own lines -> the signature that recognises them.

A name alone names nothing: it stands in prose, in paths and in lists of packages. What runs shows itself as a frame, a warning of
a file, a command or a line that only the program prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from oomdoctor.knowledge.records.framework import FrameworkRecord, LogLine
from oomdoctor.knowledge.records.signature import Example, NearMiss, SignatureRecord

RUNS = "runs"
"""The field of an event that says which framework runs."""
_AT = r"(?:[\"']?, line \d|:\d{1,6}\b|\(\d{1,6}\)| in \w)"
"""What follows a file in a frame or a warning: Python's, rich's and IPython's forms."""
_BEGUN = r"(?:\bpython[\d.]{0,6}|\btorchrun|\b(?:launch|deepspeed|srun|uv run))(?=[ '\"])[^\n]{0,200}?"
"""What starts a script, and the options of a launcher."""
_COMMAND = (
    r"(?:^[ \t]{0,8}(?:\S{0,60}[$#>%] |\+ |\d{1,7} )?(?:[A-Z_]{2,40}=\S{0,80} ){0,6}"
    r"|[\\/]bin[\\/]|\bsrun [^\n]{0,80}? |\b[Cc](?:OMMAND|MD|ommand)\b\W{1,4})"
)
"""What stands before a command: the start of a line, a prompt, a trace of the shell, variables."""
_MODULE = "python -m "


class _Marks(Struct, frozen=True):
    """What names one framework, by the form in which logs show it."""

    frames: list[str]
    scripts: list[str]
    modules: list[str]
    commands: list[str]
    lines: list[LogLine]


def signature_of_marks(framework: FrameworkRecord) -> SignatureRecord | None:
    """Return the signature of what names a framework in logs; None where it has no marks of its own."""
    if framework.in_logs is None:
        return None
    marks = _marks(framework)
    patterns = [
        *map(_frame, marks.frames),
        *map(_script, marks.scripts),
        *(rf"-m['\", ]{{1,4}}{re.escape(name)}\b" for name in marks.modules),
        *(_COMMAND + re.escape(name).replace(r"\ ", " ") + r"\b" for name in marks.commands),
        *(line.pattern or re.escape(line.literal) for line in marks.lines),
    ]
    if not patterns:
        return None
    return SignatureRecord(
        id=f"runs-{framework.framework}",
        kind="context",
        literals=list(dict.fromkeys(_literals(marks))),
        pattern="|".join(patterns),
        purpose=framework.in_logs.purpose,
        set={RUNS: framework.framework},
        source=framework.source or framework.writes_source,
        examples=[Example(text=text, fields={RUNS: framework.framework}) for text in _examples(marks)],
        near_misses=[NearMiss(text=text, why=why) for text, why in _near_misses(framework, marks)],
    )


def _marks(framework: FrameworkRecord) -> _Marks:
    """Return the marks that a framework states for logs, and what starts it."""
    stated = framework.in_logs
    if stated is None:
        return _Marks([], [], [], [], [])
    programs = framework.programs if stated.programs else []
    return _Marks(
        frames=stated.frames,
        scripts=[*stated.scripts, *(name for name in programs if name.endswith(".py") and " " not in name)],
        modules=[name.removeprefix(_MODULE) for name in programs if name.startswith(_MODULE)],
        commands=[*stated.commands, *(name for name in programs if " " in name and not name.startswith("python "))],
        lines=stated.lines,
    )


def _frame(folder: str) -> str:
    """Return the pattern of a frame: a folder of one name is a package only where packages are installed or inside itself."""
    path = _path(folder)
    before = r"(?:^|[\\/\"' ])" if "/" in folder else rf"(?:-packages|[\\/]{path})[\\/]"
    return rf"{before}{path}[\\/][\w\\/.-]{{1,160}}\.py{_AT}"


def _script(name: str) -> str:
    """Return the pattern of a script that runs: a frame of it, a command with it, or a launcher's word on it."""
    path = _path(name)
    return rf"(?:^|[\s/\\'\"]){path}(?:{_AT}|['\"]?,? {{0,3}}['\"]?--?\w| {{1,3}}\\$| FAILED)|{_BEGUN}[\s/\\'\"]{path}\b"


def _path(name: str) -> str:
    return r"[\\/]".join(map(re.escape, name.split("/")))


def _literals(marks: _Marks) -> Iterator[str]:
    for folder in marks.frames:
        for parent in ("",) if "/" in folder else ("packages/", f"{folder}/"):
            whole = f"{parent}{folder}/"
            yield from (whole, whole.replace("/", "\\"))
    for script in marks.scripts:
        yield script
        if "/" in script:
            yield script.replace("/", "\\")
    yield from (*marks.modules, *marks.commands, *(line.literal for line in marks.lines))


def _examples(marks: _Marks) -> Iterator[str]:
    for folder in marks.frames:
        yield f'  File "/opt/venv/lib/python3.11/site-packages/{folder}/core.py", line 31, in forward'
    for script in marks.scripts:
        yield f'  File "/srv/runs/{script}", line 77, in <module>'
        yield f"torchrun --nproc_per_node 4 /srv/runs/{script} --seed 5"
    yield from (f"$ python -m {name} --seed 5" for name in marks.modules)
    yield from (f"{name} --seed 5" for name in marks.commands)
    yield from (line.like for line in marks.lines)


def _near_misses(framework: FrameworkRecord, marks: _Marks) -> Iterator[tuple[str, str]]:
    yield f"I would rather use {framework.title} for this, is it faster?", "prose"
    yield f'  File "/home/me/{framework.framework}/own/train.py", line 3, in main', "a folder of a user"
    for name in (*marks.frames, *marks.scripts):
        yield f"see the documents of {name} before you start", "prose"
    for name in marks.commands:
        yield f"I never got {name} to work", "prose"
