"""Measures the speed goals against ripgrep, which only looks for the same literals.

    python bench/run.py --python .venv/bin/python

Both sides of a ratio run in turn, ours and theirs, after one round that does not count; the ratio is taken pair by pair
and its median is what counts. A run is a whole process: from its start to the return of wait4, which also says its CPU
seconds and its largest memory.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import pty
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import logs

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- bench/run.py writes from here -->", "<!-- to here -->"
LITERALS = """
import sys
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.parse.recogniser import Recogniser
# ripgrep looks inside lines only: a literal that begins with a line end is looked for without it.
found = sorted({literal.strip(b"\\r\\n") for literal in Recogniser(load_pack()).literals.texts})
open(sys.argv[1], "wb").write(b"\\n".join(found) + b"\\n")
"""
MIB = 1 << 20


@dataclass(frozen=True)
class Command:
    """What is run: its words, what `cat` pipes into it, and which stream of it is a terminal."""

    words: tuple[str, ...]
    piped: tuple[str, ...] = ()
    terminal: str | None = None


@dataclass(frozen=True)
class Run:
    """What one run took."""

    wall: float
    cpu: float
    peak: float
    """MiB"""
    first: float | None
    """Seconds until the first byte on the terminal."""


@dataclass(frozen=True)
class Case:
    """One line of the table: ours in proportion to theirs, or ours alone where the limit is not a ratio."""

    goal: str
    what: str
    limit: float
    ours: Command
    theirs: Command | None
    value: str = "wall"
    """`wall`, `peak` or `first`, of ours; of theirs the same, but `wall` where ours is `first`."""
    verdict: str | None = None
    """What the report (JSON) must say about memory."""


def run(command: Command, cwd: str, output: str = os.devnull) -> Run:
    """Runs a command to its end."""
    feeder = subprocess.Popen(["cat", *command.piped], stdout=subprocess.PIPE) if command.piped else None
    master, slave = pty.openpty() if command.terminal else (-1, -1)
    with open(output, "wb") as out, open(os.devnull, "w+b") as nothing:
        streams: dict[str, int] = {"stdin": nothing.fileno(), "stdout": out.fileno(), "stderr": nothing.fileno()}
        if feeder is not None and feeder.stdout is not None:
            streams["stdin"] = feeder.stdout.fileno()
        if command.terminal:
            streams[command.terminal] = slave
        start = time.perf_counter()
        child = subprocess.Popen(command.words, cwd=cwd, stdin=streams["stdin"], stdout=streams["stdout"], stderr=streams["stderr"])
        first = None
        if command.terminal:
            os.close(slave)
            first = _drained(master, start)
            os.close(master)
        if feeder is not None and feeder.stdout is not None:
            feeder.stdout.close()
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if feeder is not None:
        feeder.wait()
    if child.returncode not in (0, 1):
        raise SystemExit(f"status {child.returncode}: {' '.join(Path(word).name for word in command.words)}")
    return Run(wall, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, first)


def _drained(master: int, start: float) -> float | None:
    """Reads what is written to a terminal; how long the first byte took."""
    first = None
    while True:
        try:
            data = os.read(master, 1 << 16)
        except OSError:  # the other side is closed
            return first
        if not data:
            return first
        first = first or time.perf_counter() - start


class Inputs:
    """Logs of the generator (bench/logs.py) in the work folder, made when they are first asked for."""

    def __init__(self, work: Path, python: str, quick: bool) -> None:
        self.work = work
        self.quick = quick
        self._python = python
        work.mkdir(parents=True, exist_ok=True)

    @property
    def large(self) -> str:
        """What stands for one gibibyte."""
        return "64MiB" if self.quick else "1GiB"

    def log(self, size: str, shape: str = "mixed") -> str:
        """A log of one shape."""
        failures = ["--failures", "none"] if shape in ("clean", "nearmiss") else []
        return self._made(f"{shape}-{size}.log", ["--size", size, "--shape", shape, *failures, "--output"])

    def of_shape(self, shape: str) -> str:
        """A log of a quarter of the large one's size."""
        return self.log("16MiB" if self.quick else "256MiB", shape)

    def folder(self) -> str:
        """Many small logs, a fifth of them with a failure."""
        files = 1000 if self.quick else 10_000
        return self._made(f"many-{files}", ["--files", str(files), "--size", "100KiB", "--failures", "random", "--folder"])

    def literals(self) -> str:
        """The literals of all rules, one a line."""
        path = str(self.work / "literals")
        subprocess.run([self._python, "-c", LITERALS, path], cwd=self.work, check=True)
        return path

    def _made(self, name: str, options: list[str]) -> str:
        path = self.work / name
        if not path.exists():
            print(f"making {name}", file=sys.stderr)
            part = self.work / f"{name}.part"
            logs.main([*options, str(part)])
            part.rename(path)
        return str(path)


def cases(inputs: Inputs, python: str, literals: str) -> dict[str, Callable[[], list[Case]]]:
    """The goals; their inputs are made only for those that are measured."""

    def ours(*paths: str, form: str = "json", jobs: int | None = 1, piped: Sequence[str] = (), terminal: str | None = None) -> Command:
        threads = () if jobs is None else ("--jobs", str(jobs))
        words = (python, "-m", "oomdoctor", "diagnose", *paths, "--format", form, "--env", "none", "--exit-zero", *threads)
        return Command(words, tuple(piped), terminal)

    def rg(*paths: str, how: str = "-c", threads: Sequence[str] = ("-j1",), piped: Sequence[str] = ()) -> Command:
        return Command(("rg", *threads, "-a", how, "-F", "-f", literals, *paths), tuple(piped))

    def p1() -> list[Case]:
        log = inputs.log(inputs.large)
        return [Case("P1", f"{inputs.large} log, one thread / `rg -j1`", 0.40, ours(log), rg(log), verdict="yes")]

    def p2() -> list[Case]:
        log = inputs.log(inputs.large)
        return [Case("P2", "the same, two threads / one thread", 0.60, ours(log, jobs=2), ours(log), verdict="yes")]

    def p4() -> list[Case]:
        made = {shape: inputs.of_shape(shape) for shape in ("clean", "nearmiss")}
        what = {"clean": "no failure", "nearmiss": "message words in every line, no failure"}
        return [Case("P4", f"{what[shape]} / `rg -j1`", 0.55, ours(log), rg(log), verdict="no") for shape, log in made.items()]

    def p5() -> list[Case]:
        log = inputs.of_shape("dense")
        return [Case("P5", "every line a failure / `rg -j1 -o`", 2.5, ours(log), rg(log, how="-o"), verdict="yes")]

    def p6() -> list[Case]:
        shapes = {
            "oneline": inputs.log(inputs.large, "oneline"),
            **{name: inputs.of_shape(name) for name in ("nul", "crlf", "ansi", "binary")},
        }
        names = {"oneline": f"{inputs.large} in one line", "nul": "NUL holes", "crlf": "CR LF", "ansi": "colors", "binary": "random"}
        out = [
            Case("P6", f"{names[shape]} / `rg -j1`", 0.60, ours(log), rg(log), verdict="no" if shape == "binary" else "yes")
            for shape, log in shapes.items()
        ]
        # With -c ripgrep leaves a line at its first hit, so of a log in one line it looks for little more than the end.
        whole = Case("P6", "the same line / `rg -j1 -o`", 0.60, ours(shapes["oneline"]), rg(shapes["oneline"], how="-o"), verdict="yes")
        wide, plain = inputs.of_shape("utf16"), inputs.of_shape("mixed")
        return [*out, whole, Case("P6", "UTF-16 / the same text in UTF-8", 3.0, ours(wide), ours(plain), verdict="yes")]

    def p7() -> list[Case]:
        log, imports = inputs.log("100KiB"), Command((python, "-c", "import click, rich.console"))
        return [
            Case("P7", "100 KiB log, JSON / `import click, rich.console`", 0.75, ours(log), imports, verdict="yes"),
            Case("P7", "100 KiB log, report to a pipe / the same", 0.75, ours(log, form="terminal"), imports),
        ]

    def p8() -> list[Case]:
        log, imports = inputs.log("100KiB"), Command((python, "-c", "import click, rich.console"))
        return [Case("P8", "100 KiB log, report on a terminal / the same", 1.5, ours(log, form="terminal", terminal="stdout"), imports)]

    def p12() -> list[Case]:
        log, small, line = inputs.log(inputs.large), inputs.log("64MiB"), inputs.log(inputs.large, "oneline")
        ten, shown = ours("-", piped=[log] * 10), ours(log, form="terminal", terminal="stdout")
        return [
            Case("P12", f"peak memory, {inputs.large} log, JSON (MiB)", 32, ours(log), None, "peak"),
            Case("P12", "peak memory, the same, report on a terminal (MiB)", 48, shown, None, "peak"),
            Case("P12", f"memory, pipe with ten times {inputs.large} / 64 MiB log", 1.1, ten, ours(small), "peak"),
            Case("P12", f"memory, {inputs.large} in one line / 64 MiB log", 1.1, ours(line), ours(small), "peak"),
        ]

    def p13() -> list[Case]:
        log = inputs.log(inputs.large)
        return [Case("P13", f"pipe with ten times {inputs.large} / `rg -j1`", 0.55, ours("-", piped=[log] * 10), rg("-", piped=[log] * 10))]

    def p15() -> list[Case]:
        folder = inputs.folder()
        theirs = rg(folder, threads=("--no-ignore",))
        return [Case("P15", "folder of small logs, default threads / `rg`", 0.55, ours(folder, jobs=None), theirs)]

    def p17() -> list[Case]:
        large, small = inputs.log(inputs.large), inputs.log("100KiB")
        shown = ours(large, form="terminal", terminal="stderr")
        return [Case("P17", f"first output, {inputs.large} log / full report on 100 KiB", 1.2, shown, ours(small), "first")]

    return {"P1": p1, "P2": p2, "P4": p4, "P5": p5, "P6": p6, "P7": p7, "P8": p8, "P12": p12, "P13": p13, "P15": p15, "P17": p17}


def measure(case: Case, pairs: int, work: Path) -> str:
    """One line of the table."""
    report = str(work / "report.json")
    run(case.ours, str(work), report if case.verdict else os.devnull)
    if case.verdict:
        said = json.loads(Path(report).read_bytes())["verdict"]["memory_failure"]
        if said != case.verdict:
            raise SystemExit(f"{case.goal}, {case.what}: the report says {said}, not {case.verdict}")
    if case.theirs is not None:
        run(case.theirs, str(work))
    done = []
    for _ in range(pairs):
        one = run(case.ours, str(work))
        other = run(case.theirs, str(work)) if case.theirs is not None else None
        done.append((one, other))
    mine = [_value(one, case.value) for one, _ in done]
    others = [_value(other, "peak" if case.value == "peak" else "wall") for _, other in done if other is not None]
    ratios = sorted(one / other for one, other in zip(mine, others)) if others else sorted(mine)
    digits = 2 if others else 1
    shown = median(ratios)
    unit = "MiB" if case.value == "peak" else "s"
    cells = [
        case.goal,
        case.what,
        f"{median(mine):.{1 if unit == 'MiB' else 3}f} {unit}",
        f"{median(others):.{1 if unit == 'MiB' else 3}f} {unit}" if others else "",
        f"**{shown:.{digits}f}** ({ratios[0]:.{digits}f}-{ratios[-1]:.{digits}f})",
        f"{case.limit:g}",
        "yes" if shown <= case.limit else "no",
        f"{median(one.cpu for one, _ in done):.3f} s",
        f"{median(one.peak for one, _ in done):.0f} MiB",
    ]
    return f"| {' | '.join(cells)} |"


def _value(done: Run, name: str) -> float:
    if name == "peak":
        return done.peak
    if name == "first":
        if done.first is None:
            raise SystemExit("nothing was written to the terminal")
        return done.first
    return done.wall


def machine(python: str, literals: str) -> str:
    """The machine in neutral words."""
    version = subprocess.run([python, "-c", "import platform as p; print(p.python_version())"], capture_output=True, text=True, check=True)
    ripgrep = subprocess.run(["rg", "--version"], capture_output=True, text=True, check=True).stdout.split("\n")[0]
    count = Path(literals).read_bytes().count(b"\n")
    return (
        f"{os.cpu_count()} cores, {_processor()}, {platform.system()}; Python {version.stdout.strip()}, {ripgrep}, {count} literals; "
        f"load before: {os.getloadavg()[0]:.1f}"
    )


def _processor() -> str:
    """The family of the processor, without its model number."""
    try:
        found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    words = re.sub(r"\([RTM]+\)", "", found[1]).split()[:2] if found else []
    return " ".join([*words, platform.machine()])


def write(text: str) -> None:
    """The text between the markers of the report."""
    before, after = "# Performance\n\nRatios are what to quote; seconds depend on the machine.\n\n", "\n"
    if REPORT.exists():
        known = REPORT.read_text(encoding="utf-8")
        start, end = known.find(BEGIN), known.find(END)
        before, after = (known[:start], known[end + len(END) :]) if 0 <= start < end else (known.rstrip() + "\n\n", "\n")
    REPORT.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Measures, prints the table and, after a whole run, writes it down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", default=os.path.join(tempfile.gettempdir(), "oomdoctor-bench"), help="where logs are kept between runs")
    parser.add_argument("--python", default=sys.executable, help="the Python that has oomdoctor; default: this one")
    parser.add_argument("--pairs", type=int, default=5, help="rounds that count")
    parser.add_argument("--only", help="goals, separated by commas: P1,P7; the report is left as it is")
    parser.add_argument("--quick", action="store_true", help="small inputs; the report is left as it is")
    options = parser.parse_args()
    # A relative name of a Python would be looked for in the work folder; its links stay, as they make a virtual environment.
    python = os.path.abspath(options.python) if os.sep in options.python else options.python
    inputs = Inputs(Path(options.work).resolve(), python, options.quick)
    literals = inputs.literals()
    goals = cases(inputs, python, literals)
    chosen = options.only.split(",") if options.only else list(goals)
    unknown = [name for name in chosen if name not in goals]
    if unknown:
        parser.error(f"no such goal: {', '.join(unknown)} ({', '.join(goals)})")
    named = "".join([f" --only {options.only}" if options.only else "", " --quick" if options.quick else ""])
    head = [
        f"`python bench/run.py --python PYTHON --pairs {options.pairs}{named}`",
        "",
        f"{machine(python, literals)}. Medians of {options.pairs} pairs; minimum and maximum ratio in parentheses.",
        "",
        "| goal | workload / baseline | oomdoctor | baseline | ratio | limit | met | CPU time | memory |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(head), flush=True)
    lines = []
    for name in chosen:
        for case in goals[name]():
            lines.append(measure(case, options.pairs, inputs.work))
            print(lines[-1], flush=True)
    if not options.only and not options.quick:
        write("\n".join([*head, *lines]))


if __name__ == "__main__":
    main()
