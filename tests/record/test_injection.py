"""The recorder gets into every interpreter that its environment reaches, with each version of torch, and shows nowhere."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from fake_torch import VERSIONS, write_fake_torch
from record.recorded import Recorded

from oomdoctor.record.evidence import WatchedProcess
from oomdoctor.record.injection import FILES, NAME, Injection, discard, inject
from oomdoctor.record.read_folder import read_evidence
from oomdoctor.record.unreached import unreached


@pytest.fixture
def recorded(tmp_path: Path) -> Recorded:
    return Recorded(tmp_path)


def hooks(folder: Path) -> list[str]:
    return sorted(rank.hello.hook for rank in read_evidence(str(folder)).ranks if rank.hello is not None)


@pytest.mark.parametrize("version", [pytest.param(version, id=f"torch {version}") for version in VERSIONS])
def test_every_version_of_torch_is_reached(recorded: Recorded, version: str) -> None:
    done = recorded.run("import torch\nprint(torch.__version__)\n", version)
    assert (done.returncode, done.stdout, done.stderr) == (0, version + "\n", "")
    is_new = tuple(int(part) for part in version.split(".")[:2]) >= (2, 5)
    assert hooks(recorded.folder) == ["entry-point" if is_new else "sitecustomize"]
    (rank,) = read_evidence(str(recorded.folder)).ranks
    assert rank.end is not None and rank.hello is not None and rank.hello.torch == version
    assert rank.ring is None  # no device was used


@pytest.mark.parametrize(
    ("option", "variables", "version", "expected"),
    [
        pytest.param("-s", {}, "2.13.0", ["entry-point"], id="without the site folder of the user"),
        pytest.param("-S", {}, "2.13.0", ["entry-point"], id="without site, new torch"),
        pytest.param("-S", {}, "2.4.1", [], id="without site, old torch"),
        pytest.param("-I", {}, "2.13.0", [], id="isolated"),
        pytest.param("-E", {}, "2.13.0", [], id="without the environment"),
        pytest.param("-B", {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}, "2.13.0", ["sitecustomize"], id="backends are not loaded"),
        pytest.param("-B", {"OOMDOCTOR": "0"}, "2.13.0", [], id="switched off"),
    ],
)
def test_what_the_interpreter_is_told(
    recorded: Recorded, option: str, variables: dict[str, str], version: str, expected: list[str]
) -> None:
    done = recorded.run("import torch\n", version, option, variables=variables)
    assert (done.returncode, done.stderr) == (0, "")
    assert hooks(recorded.folder) == expected


def without_frames(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("  ")]


WORKER = "import subprocess\nsubprocess.run([sys.executable, '-c', 'import sys; sys.path.append(%r); import torch' % sys.path[-1]])\n"
POOL = """
import torch, multiprocessing
def work(): torch.cuda.init()
if __name__ == '__main__':
    process = multiprocessing.get_context({kind!r}).Process(target=work)
    process.start(); process.join(); assert process.exitcode == 0
"""


@pytest.mark.parametrize("version", ["2.4.1", "2.13.0"])
@pytest.mark.parametrize(
    ("program", "processes"),
    [
        pytest.param(
            "import torch, os\nif os.fork() == 0:\n    torch.cuda.init(); os._exit(0)\nos.wait()\n", 2, id="forked after the import"
        ),
        pytest.param("import os\nif os.fork() == 0:\n    import torch; os._exit(0)\nos.wait()\n", 1, id="forked before the import"),
        pytest.param(WORKER, 1, id="a worker as torchrun starts it"),
        *(pytest.param(POOL.format(kind=kind), 2, id=kind) for kind in ("fork", "spawn", "forkserver")),
    ],
)
def test_children_are_reached(recorded: Recorded, program: str, processes: int, version: str) -> None:
    done = recorded.run(program, version)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(hooks(recorded.folder)) == processes


@pytest.mark.parametrize(
    ("text", "output"),
    [
        pytest.param("print('mine')\n", "mine\n1\n", id="it runs"),
        pytest.param("import not_there\n", "1\n", id="it imports what is not there"),
        pytest.param("raise ValueError('mine')\n", "1\n", id="it raises"),
        pytest.param("raise SystemExit(3)\n", "", id="it exits"),
        pytest.param("import torch\nprint(torch.__version__[:1])\n", "2\n1\n", id="it imports torch"),
    ],
)
def test_the_users_own_sitecustomize_runs_as_without_us(recorded: Recorded, text: str, output: str) -> None:
    recorded.user.mkdir()
    site = write_fake_torch(recorded.place / "2.4.1" / "site-packages", "2.4.1")
    (recorded.user / "sitecustomize.py").write_text(f"import sys\nsys.path.append({str(site)!r})\n{text}")
    bare, done = (recorded.run("import torch\nprint(1)\n", "2.4.1", watched=watched) for watched in (False, True))
    assert (done.returncode, done.stdout, without_frames(done.stderr)) == (bare.returncode, bare.stdout, without_frames(bare.stderr))
    assert done.stdout == output
    assert hooks(recorded.folder) == (["sitecustomize"] if output else [])


@pytest.mark.parametrize("error", ["ImportError('libcudart.so.12: cannot open')", "ValueError(1)", "KeyboardInterrupt"])
@pytest.mark.parametrize("version", ["2.4.1", "2.13.0"])
def test_an_import_that_fails_looks_as_without_us(recorded: Recorded, error: str, version: str) -> None:
    broken = f"sys.modules['torch._C'] = None\nimport builtins\nbuiltins.__build_class__ = lambda *args: (_ for _ in ()).throw({error})\n"
    bare, done = (recorded.run(f"{broken}import torch\n", version, watched=watched) for watched in (False, True))
    assert (done.returncode, done.stdout, done.stderr) == (bare.returncode, bare.stdout, bare.stderr)
    assert done.returncode and 'torch/__init__.py"' in done.stderr


@pytest.mark.parametrize(
    ("before", "rest"),
    [
        pytest.param(None, "", id="none"),
        pytest.param("", "", id="empty as a whole is none"),
        pytest.param("a", ":a", id="a folder"),
        pytest.param(":a", "::a", id="an empty entry is the working directory"),
        pytest.param("a:", ":a:", id="at the end, too"),
    ],
)
def test_the_path_keeps_its_meaning(before: str | None, rest: str) -> None:
    injection = Injection(path="HERE", folder="F", level=1, is_temporary=False)
    assert injection.environment({} if before is None else {"PYTHONPATH": before})["PYTHONPATH"] == "HERE" + rest


def test_what_other_programs_write_is_asked_for_unless_somebody_did() -> None:
    injection = Injection(path="HERE", folder="F", level=1, is_temporary=False)
    assert injection.environment({"TF_BFC_MEMORY_DUMP": "mine"}) == {
        "TF_BFC_MEMORY_DUMP": "mine", "OOM_SNAPSHOT_ENABLE": "2", "OOM_SNAPSHOT_PATH": os.path.join("F", "ranks"), "PYTHONPATH": "HERE",
    }  # fmt: skip


def test_every_file_of_the_recorder_is_written_and_goes_again(tmp_path: Path) -> None:
    injection = inject(str(tmp_path), 1)
    assert injection is not None and Path(injection.path).name == NAME
    source = Path(__file__).parents[2] / "oomdoctor" / "record" / "injected"
    assert {path.name for path in source.glob("*.py")} == {*FILES, "sitecustomize.py"}
    assert {path.name for path in (Path(injection.path) / "oomdoctor_inside").iterdir()} == {*FILES, "settings"}
    discard(injection)
    assert [path.name for path in tmp_path.iterdir()] == ["ranks"]


def test_a_path_that_is_no_entry_is_left_for_a_temporary_one(tmp_path: Path) -> None:
    folder = tmp_path / f"a{os.pathsep}b"
    injection = inject(str(folder), 1)
    assert injection is not None and injection.is_temporary and os.pathsep not in injection.path
    assert injection.folder == str(folder)
    discard(injection)
    assert not Path(injection.path).exists() and folder.exists()


def test_a_run_without_any_place_is_not_injected(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert inject(str(tmp_path / "file" / "below"), 1) is None
    assert inject(None, 1) is None


NO_WAY = "it did not inherit the environment, or it imports no framework"


@pytest.mark.parametrize(
    ("command", "peak", "rank", "others", "why"),
    [
        pytest.param("/opt/venv/bin/python3.11 -I a.py", 300, None, True, "python -I does not search the recorder's path", id="isolated"),
        pytest.param("python -uE a.py", 300, None, True, "python -uE does not search the recorder's path", id="among other options"),
        pytest.param("python a.py -I", 300, None, False, NO_WAY, id="an option of the program, and nobody was reached"),
        pytest.param("python a.py -I", 300, None, True, None, id="a tool beside ranks that were reached"),
        pytest.param("python a.py", 300, 3, True, NO_WAY, id="a rank that was not"),
        pytest.param("python a.py", 30, None, False, None, id="too small for a framework"),
        pytest.param("bash python.sh", 300, None, False, None, id="no python"),
    ],
)
def test_a_python_without_a_recorder_is_a_gap(
    tmp_path: Path, command: str, peak: int, rank: int | None, others: bool, why: str | None
) -> None:
    (tmp_path / "ranks").mkdir()
    if others:
        (tmp_path / "ranks" / "pid-7.hello.json").write_text("{}")
    pids = ((7, 1), (8, 7), (9, 1)) if others else ((9, 1),)  # 8 was forked by 7
    seen = [WatchedProcess(pid=pid, parent=parent, command=command, peak_rss_bytes=peak << 20, rank=rank) for pid, parent in pids]
    assert [gap.why for gap in unreached(str(tmp_path), seen)] == ([] if why is None else [why])


def test_history_is_asked_for_with_what_the_version_has(recorded: Recorded) -> None:
    log = recorded.place / "calls.jsonl"
    calls: dict[str, list[object]] = {}
    for version in VERSIONS:
        log.write_text("")
        recorded.run("import torch\ntorch.cuda.init()\n", version, variables={"FAKE_LOG": str(log)})
        calls[version] = [
            [call[name] for name in ("enabled", "context", "stacks")] for call in map(json.loads, log.read_text().splitlines())
        ]
    # Before 2.1, recording can deadlock.
    assert calls == {version: [] if version < "2.1" else [["state", "state", "python"]] for version in VERSIONS}
