"""A command that is watched runs as it would alone: status, output, signals, terminal, streams and surroundings are the same.

Every row is run twice, alone and watched, and what can be seen from outside must be equal.
"""

from __future__ import annotations

import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from msgspec.json import decode

from oomdoctor.record.evidence import RunRecord, Sample

pytestmark = pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="macOS and Windows run commands in another way")

ROOT = Path(__file__).parents[2]
LIMIT = 600


@pytest.fixture
def watched(tmp_path: Path) -> list[str]:
    return [sys.executable, "-m", "oomdoctor", "run", "--quiet", "--level", "0", "--out", str(tmp_path / "evidence"), "--"]


@pytest.fixture
def briefly_watched() -> list[str]:
    """Without a folder that somebody names, a command that ends well at once is hardly looked at."""
    return [sys.executable, "-m", "oomdoctor", "run", "--quiet", "--level", "0", "--"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    folder = tmp_path / "place"
    folder.mkdir()
    (folder / "a folder").mkdir()
    (folder / "plain").write_text("no program\n")
    (folder / "headless").write_text("echo headless $1\nexit 4\n")
    (folder / "headless").chmod(0o755)
    return folder


def environment() -> dict[str, str]:
    names = ("PATH", "HOME", "LANG", "TMPDIR")
    return {"PYTHONPATH": str(ROOT), "OWN": "a b  c", "EMPTY": "", **{name: os.environ[name] for name in names if name in os.environ}}


def run_sh(prefix: Sequence[str], line: str, cwd: Path) -> tuple[int, bytes, bytes]:
    """Run a line of a shell in which COMMAND... stands for the command, alone or watched."""
    shell = ["bash", "-c", line.replace("RUN ", f"{shlex.join(prefix)} ")]
    done = subprocess.run(shell, cwd=cwd, env=environment(), input=b"line 1\nline 2\n", capture_output=True, timeout=LIMIT)
    return done.returncode, done.stdout, done.stderr


STATUS_OF_ALL = 'for code in 0 1 2 3; do RUN sh -c "exit $code"; echo $?; done'
FACTS = "import os, sys, signal; print({})"


def python(text: str) -> str:
    return f"RUN {shlex.quote(sys.executable)} -c '{text}'"


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(STATUS_OF_ALL, id="small exit codes"),
        *(pytest.param(f"RUN sh -c 'exit {code}'", id=f"exit code {code}") for code in (77, 124, 125, 126, 127, 128, 130, 137, 143, 255)),
        *(
            pytest.param(f"exec 2>/dev/null; RUN sh -c 'kill -{name} $$; sleep 9'; echo $?", id=f"dies of SIG{name}")
            for name in ("TERM", "KILL", "INT", "HUP", "QUIT", "USR1", "PIPE", "ALRM", "SEGV", "ABRT", "XCPU", "RTMIN")
        ),
        pytest.param("exec 2>/dev/null; RUN sh -c 'kill -9 $$'", id="the wrapper's own status is the signal, as a shell's last command shows"),
        pytest.param("RUN printf '\\000\\001\\377\\r\\n'", id="bytes that are no text"),
        pytest.param("RUN sh -c 'echo out; echo err >&2; echo out'", id="output and errors"),
        pytest.param("RUN sh -c 'echo out; echo err >&2' 2>&1", id="output and errors together"),
        pytest.param("RUN cat", id="input is passed through"),
        pytest.param("RUN head -n 1; cat", id="input that it leaves is left to the next", marks=()),
        pytest.param("RUN cat <&-", id="closed input"),
        pytest.param("RUN sh -c 'echo x; echo $?' >&-", id="closed output"),
        pytest.param("RUN sh -c 'echo x >&2; echo $?' 2>&-", id="closed errors"),
        pytest.param("RUN sh -c 'ls /proc/self/fd | wc -l' <&- 2>&-", id="closed input and errors"),
        pytest.param("RUN true <&- >&- 2>&-; echo $?", id="everything closed"),
        pytest.param("RUN yes | head -n 2; echo ${PIPESTATUS[@]}", id="a reader that goes away"),
        pytest.param("printf 'a\\nb\\n' | RUN sort -r | tr a-z A-Z; echo ${PIPESTATUS[@]}", id="between two pipes"),
        pytest.param("RUN sh -c 'exec >&-; sleep 0.2; exit 3' | cat; echo ${PIPESTATUS[@]}", id="closes its output before it ends"),
        pytest.param("exec 7>&1; RUN sh -c 'echo to seven >&7'", id="an open descriptor is inherited"),
        pytest.param("RUN cat <(echo from a substitution)", id="process substitution"),
        pytest.param("RUN sh -c 'ls -l /proc/self/fd | wc -l'", id="no descriptor of ours leaks"),
        pytest.param("RUN env | grep -v -e ^PYTHONPATH -e ^TF_BFC -e ^_= | sort", id="the environment but for the recorder"),
        pytest.param("unset LANG; RUN sh -c 'env | grep -e ^LC_ -e ^LANG'", id="no locale is invented where there is none"),
        pytest.param("umask 027; RUN sh -c umask", id="umask"),
        pytest.param("cd 'a folder'; RUN pwd", id="working directory"),
        pytest.param("mkdir gone; cd gone; rmdir ../gone; RUN sh -c 'exit 6'", id="a working directory that was deleted"),
        pytest.param("ulimit -n 77; ulimit -v 9000000; RUN sh -c 'ulimit -n; ulimit -v; ulimit -c; ulimit -s'", id="limits"),
        pytest.param("ulimit -Hc 0; RUN sh -c 'ulimit -c; ulimit -Hc'", id="limit of core dumps"),
        pytest.param("RUN nice; nice -n 3 bash -c 'nice'", id="priority"),
        pytest.param("RUN grep -E 'SigBlk|SigIgn|SigPnd' /proc/self/status | grep -o '.......$'", id="signals blocked and ignored"),
        pytest.param("(trap '' HUP INT USR1; RUN grep SigIgn /proc/self/status) | grep -o '.......$'", id="signals that were ignored stay ignored"),
        pytest.param("nohup RUN sh -c 'kill -HUP $$; echo alive' 2>/dev/null", id="nohup"),
        pytest.param("nohup RUN no-such-command 2>/dev/null; echo $?", id="nohup of nothing"),
        pytest.param("timeout 0.4 RUN sleep 9; echo $?", id="timeout"),
        pytest.param("RUN no-such-command 2>/dev/null; echo $?", id="no such command"),
        pytest.param("RUN ./plain 2>/dev/null; echo $?", id="a file that may not be executed"),
        pytest.param("RUN './a folder' 2>/dev/null; echo $?", id="a folder"),
        pytest.param("RUN ./headless word; echo $?", id="a script without a first line"),
        pytest.param("RUN printf '[%s]' '' 'a b' '*' -- --out x --help", id="words are left as they are"),
        pytest.param("RUN printf '%s' $'\\377\\376' | od -c", id="words that are no text"),
        pytest.param("RUN sh -c 'sleep 0.1; echo late' & wait $!; echo $?", id="in the background"),
        pytest.param("x=$(RUN sh -c 'echo inside; exit 9'); echo $? $x", id="command substitution"),
        pytest.param("RUN sh -c 'exit 5' && echo yes || echo no $?", id="conditions of a shell"),
        pytest.param("set -e; RUN sh -c 'exit 5'; echo never", id="errexit"),
        pytest.param("RUN sh -c '(sleep 0.2; echo child) & wait; echo parent'", id="a child of its own"),
        pytest.param(python('import os; print(os.getpgrp() == os.getpgid(os.getppid()), os.getsid(0) == os.getsid(os.getppid()))'), id="group"),
        pytest.param(python('import os; os._exit(11)'), id="os._exit"),
        pytest.param(python('import os, signal; signal.alarm(1); signal.signal(signal.SIGALRM, lambda *_: os._exit(8)); signal.pause()'), id="timer"),
        pytest.param("RUN sh -c 'trap \"\" TERM; kill -TERM $$; exit 12'", id="a signal to itself that it ignores"),
        pytest.param("RUN sh -c 'kill -STOP $$; exit 13' & sleep 0.5; kill -CONT $(pgrep -P $!) $! 2>/dev/null; wait $!; echo $?", id="stop"),
    ],
)  # fmt: skip
def test_status_and_output_are_those_of_the_command(line: str, watched: list[str], briefly_watched: list[str], place: Path) -> None:
    assert run_sh(watched, line, place) == run_sh(briefly_watched, line, place) == run_sh([], line, place)


def started(words: Sequence[str], **options: object) -> subprocess.Popen[bytes]:
    """Start a command that says `ready`, and wait until it did."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment(), start_new_session=True, **options)  # type: ignore[call-overload]
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process  # type: ignore[no-any-return]


def ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes]:
    out, _ = process.communicate(timeout=LIMIT)
    return process.returncode, out


WAITS = "import time; print('ready', flush=True); time.sleep(20)"
COUNTS = """
import signal, sys, time
got = []
for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGQUIT"):
    signal.signal(getattr(signal, name), lambda number, _: got.append(int(number)))
print("ready", flush=True)
until = time.monotonic() + 20
while not got and time.monotonic() < until:
    time.sleep(0.02)
time.sleep(0.3)
print(got)
sys.exit(len(got))
"""
IGNORES = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(0.5); print('unmoved')"
)


@pytest.mark.parametrize(
    "program", [pytest.param(WAITS, id="by default"), pytest.param(COUNTS, id="handled once"), pytest.param(IGNORES, id="ignored")]
)
@pytest.mark.parametrize("send", [pytest.param(os.kill, id="to the wrapper"), pytest.param(os.killpg, id="to the whole group")])
def test_sigterm(send: Callable[[int, int], None], program: str, watched: list[str]) -> None:
    assert ends_of(program, [*watched, sys.executable, "-c"], send, signal.SIGTERM) == ends_of(
        program, [sys.executable, "-c"], send, signal.SIGTERM
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1])
@pytest.mark.parametrize("send", [pytest.param(os.kill, id="to the wrapper"), pytest.param(os.killpg, id="to the whole group")])
def test_a_signal_arrives_once(send: Callable[[int, int], None], number: int, watched: list[str]) -> None:
    assert ends_of(COUNTS, [*watched, sys.executable, "-c"], send, number) == (1, b"[%d]\n" % number)


@pytest.mark.parametrize("number", [signal.SIGALRM, signal.SIGUSR2, signal.SIGVTALRM, signal.SIGXCPU, signal.SIGABRT, signal.SIGRTMIN + 3])
def test_a_signal_that_nobody_expects_ends_the_command(number: int, watched: list[str]) -> None:
    words = ["sh", "-c", "echo ready; exec sleep 20"]
    process = started([*watched, *words])
    process.send_signal(number)
    assert ended(process) == (-number, b"")


def ends_of(program: str, prefix: list[str], send: Callable[[int, int], None], number: int) -> tuple[int, bytes]:
    process = started([*prefix, program])
    send(process.pid, number)
    return ended(process)


HANDLES = """
import os, signal, sys
signal.signal(signal.SIGINT, lambda *_: os.write(1, b"int"))
signal.signal(signal.SIGTSTP, lambda *_: os.write(1, b"tstp"))
print("ready", flush=True)
if sys.stdin.readline().strip() == "end":
    sys.exit(3)
"""


class Terminal:
    """A shell in a terminal of its own, as a person has it."""

    def __init__(self, cwd: Path) -> None:
        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execvpe("bash", ["bash", "--norc", "--noediting", "-i"], {**environment(), "PS1": "[$?]> ", "TERM": "dumb"})  # noqa: S606
        self.shown = ""
        self.wait("]> ")

    def wait(self, text: str) -> None:
        """Wait until a text is shown behind what was waited for before."""
        until = time.monotonic() + LIMIT
        while text not in self.shown:
            assert select.select([self.handle], [], [], max(0.0, until - time.monotonic()))[0], self.shown
            self.shown += os.read(self.handle, 4096).decode(errors="replace")
        self.shown = self.shown.partition(text)[2]

    def type(self, text: str) -> None:
        os.write(self.handle, text.encode())

    def close(self) -> None:
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.handle)
        os.waitpid(self.pid, 0)


@pytest.fixture
def terminal(place: Path) -> Iterator[Terminal]:
    shell = Terminal(place)
    yield shell
    shell.close()


@pytest.fixture(params=["alone", "watched"])
def command(request: pytest.FixtureRequest, watched: list[str], place: Path) -> str:
    """What starts `program.py`, alone and watched."""
    (place / "program.py").write_text(HANDLES)
    prefix = watched if request.param == "watched" else []
    return shlex.join([*prefix, sys.executable])


def test_interrupt_ends_what_does_not_handle_it(terminal: Terminal, command: str) -> None:
    terminal.type(f"{command} -c \"import signal, time; signal.signal(2, signal.SIG_DFL); print('re' + 'ady'); time.sleep(20)\"\n")
    terminal.wait("ready")
    terminal.type("\x03")
    terminal.wait("[130]> ")


def test_quit_ends_it(terminal: Terminal, command: str) -> None:
    terminal.type(f"{command} -c \"import time; print('re' + 'ady'); time.sleep(20)\"\n")
    terminal.wait("ready")
    terminal.type("\x1c")
    terminal.wait("[131]> ")


def test_interrupt_is_handled_each_time_and_once(terminal: Terminal, command: str) -> None:
    terminal.type(f"{command} program.py\n")
    terminal.wait("ready")
    for _ in range(2):
        terminal.type("\x03")
        terminal.wait("int")
        time.sleep(0.15)
    terminal.type("end\n")
    terminal.wait("[3]> ")
    assert "int" not in terminal.shown


def test_what_handles_control_z_is_not_stopped(terminal: Terminal, command: str) -> None:
    terminal.type(f"{command} program.py\n")
    terminal.wait("ready")
    terminal.type("\x1a")
    terminal.wait("tstp")
    terminal.type("end\n")
    terminal.wait("[3]> ")


def test_control_z_and_fg(terminal: Terminal, command: str) -> None:
    terminal.type(f"{command} -c \"print('re' + 'ady'); print('got', input()); raise SystemExit(6)\"\n")
    terminal.wait("ready")
    terminal.type("\x1a")
    terminal.wait("Stopped")
    terminal.wait("[148]> ")
    terminal.type("fg\n")
    time.sleep(0.2)
    terminal.type("word\n")
    terminal.wait("got word")
    terminal.wait("[6]> ")


def test_a_background_read_stops_the_job(terminal: Terminal, command: str) -> None:
    terminal.type(f"{command} -c \"print('got', input())\" &\n")
    terminal.wait("]> ")
    time.sleep(0.1)
    terminal.type("wait %1; jobs\n")
    terminal.wait("Stopped")
    terminal.type("fg\n")
    terminal.type("word\n")
    terminal.wait("got word")


def test_the_terminal_is_the_command_s(terminal: Terminal, command: str) -> None:
    terminal.type(f'stty cols 77; {command} -c "import os; print([os.isatty(n) for n in (0, 1, 2)], os.get_terminal_size()[0])"\n')
    terminal.wait("[True, True, True] 77")


def test_a_window_that_closes(terminal: Terminal, command: str, place: Path) -> None:
    told = "import signal, time; signal.signal(1, lambda *_: open('told', 'a').write('hup')); print('re' + 'ady'); time.sleep(1)"
    terminal.type(f'{command} -c "{told}"\n')
    terminal.wait("ready")
    os.close(terminal.handle)
    terminal.handle = os.open(os.devnull, os.O_RDONLY)
    assert wait_for(place / "told").startswith("hup")  # the kernel says it, and so does bash


def survives_the_wrapper(watched: list[str], place: Path) -> subprocess.Popen[bytes]:
    words = ["sh", "-c", f"echo ready; sleep 0.4; echo done > {shlex.quote(str(place))}/done"]
    return started([*watched, *words])


def test_kill_9_of_the_wrapper_leaves_the_run_alone(watched: list[str], place: Path) -> None:
    process = survives_the_wrapper(watched, place)
    process.kill()
    assert ended(process) == (-9, b"")
    assert wait_for(place / "done") == "done\n"


AGENT = """
import os, subprocess, sys, time
for rank, code in enumerate(sys.argv[1:]):
    subprocess.Popen(["sh", "-c", code], start_new_session=True, env={**os.environ, "RANK": str(rank)})
print("ready", flush=True)
time.sleep(20)
"""


def test_what_a_killed_agent_leaves_is_seen_to_end_or_named(watched: list[str], place: Path) -> None:
    leave = place / "leave"
    told = [place / "waits", place / "stays"]
    here = [f"echo $$ > {shlex.quote(str(path))}.part; mv {shlex.quote(str(path))}.part {shlex.quote(str(path))}" for path in told]
    waits = f"{here[0]}; until [ -e {shlex.quote(str(leave))} ]; do sleep 0.02; done; exit 5"
    process = started([*watched, sys.executable, "-c", AGENT, waits, f"{here[1]}; exec sleep 600"])
    children = [int(wait_for(path)) for path in told]
    wait_until(lambda: Path(f"/proc/{children[1]}/cmdline").read_bytes() == b"sleep\x00600\x00")
    wait_until(lambda: set(children) <= processes_seen(place.parent / "evidence"))
    os.kill(child_of(process.pid), signal.SIGKILL)
    leave.touch()
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait(60) == -9
    record = decode((place.parent / "evidence" / "run.json").read_bytes(), type=RunRecord)
    left = {survivor.pid: survivor.command for survivor in record.survivors}
    (stays,) = [pid for pid, command in left.items() if command == "sleep 600"]
    os.kill(stays, signal.SIGKILL)
    (leaves,) = [seen for seen in record.processes if seen.rank == 0 and "until" in seen.command]
    assert leaves.exit_code == 5 or leaves.pid in left


def test_who_sent_a_signal_is_known(watched: list[str], place: Path) -> None:
    process = started([*watched, "sh", "-c", "echo ready; exec sleep 20"])
    process.terminate()
    assert ended(process)[0] == -signal.SIGTERM
    record = decode((place.parent / "evidence" / "run.json").read_bytes(), type=RunRecord)
    assert [(got.signal, got.sender, got.from_terminal, got.forwarded) for got in record.signals] == [
        (signal.SIGTERM, os.getpid(), False, True)
    ]


def child_of(pid: int) -> int:
    """Return the first child of a wrapper: the command."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def processes_seen(evidence: Path) -> set[int]:
    """Return the processes that the last sample of a run holds."""
    samples = evidence / "samples.jsonl"
    lines = samples.read_bytes().splitlines() if samples.exists() else []
    return set(map(int, decode(lines[-1], type=Sample).processes)) if lines else set()


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait for a state; a busy machine may take its time."""
    until = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def wait_for(path: Path) -> str:
    wait_until(path.exists)
    return path.read_text()
