"""What stands under integrations/slurm, run as Slurm and systemd run it."""

from __future__ import annotations

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from script_programs import AT_LOAD, INTEGRATIONS, WELL, recorder, run, tool

SLURM = INTEGRATIONS / "slurm"
JOB = {"SLURM_JOB_ID": "771234", "SLURM_JOB_UID": str(os.getuid())}


def code(script: Path, comment: str) -> str:
    return "\n".join(line for line in script.read_text().splitlines() if not line.lstrip().startswith(comment))


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    folder = tmp_path / "spool"
    folder.mkdir()
    return folder


def test_the_epilog_drops_a_ticket(spool: Path) -> None:
    done = run("slurm/epilog.sh", OOMDOCTOR_SPOOL=str(spool), SLURM_JOB_STDOUT="/logs/a.out", SLURM_JOB_STDERR="/logs/a b.err", **JOB)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert [entry.name for entry in spool.iterdir()] == ["771234.ticket"]
    assert (spool / "771234.ticket").read_text() == f"{os.getuid()}\n/logs/a.out\n/logs/a b.err\n"


EPILOGS_THAT_CANNOT = {
    "no spool folder": {"OOMDOCTOR_SPOOL": "/nonexistent/spool", **JOB},
    "a spool that is a file": {"OOMDOCTOR_SPOOL": "/etc/hostname", **JOB},
    "no job": {"SLURM_JOB_ID": ""},
    "a job with a path in its number": {"SLURM_JOB_ID": "../../x"},
    "a spool in which nothing can be written": {"OOMDOCTOR_SPOOL": "/proc", **JOB},
}


@pytest.mark.parametrize("environ", EPILOGS_THAT_CANNOT.values(), ids=EPILOGS_THAT_CANNOT)
def test_the_epilog_never_drains_a_node(environ: dict[str, str], spool: Path) -> None:
    done = run("slurm/epilog.sh", **{"OOMDOCTOR_SPOOL": str(spool), **environ})
    assert (done.returncode, done.stdout, done.stderr, list(spool.iterdir())) == (0, "", "", [])


def test_the_epilog_calls_no_slurm_command() -> None:
    text = code(SLURM / "epilog.sh", "#")
    assert re.findall(r"\b(?:sacct|sacctmgr|sbatch|scancel|scontrol|sinfo|squeue|srun|sstat)\b", text) == []


class Tickets:
    """Jobs with a log and a ticket each."""

    def __init__(self, folder: Path, spool: Path) -> None:
        self.folder, self.spool, self.bin = folder, spool, folder / "bin"
        tool(self.bin)

    def add(self, job: str, text: str, *, uid: int | None = None, path: str | None = None) -> None:
        log = self.folder / f"sft-{job}.out"
        log.write_text(text)
        owner = os.getuid() if uid is None else uid
        (self.spool / f"{job}.ticket").write_text(f"{owner}\n{path or log}\n{path or log}\n")

    def read(self, **environ: str) -> subprocess.CompletedProcess[str]:
        told = {"OOMDOCTOR_SPOOL": str(self.spool), "OOMDOCTOR_STORE": str(self.folder / "store"), **environ}
        return run("slurm/read-spool.sh", path=self.bin, **told)

    def jobs(self) -> dict[str, str]:
        done = subprocess.run(
            [self.bin / "oomdoctor", "triage", "metrics", "--store", self.folder / "store"], capture_output=True, text=True, check=True
        )
        return dict(re.findall(r'oomdoctor_jobs\{memory_failure="(\w+)"\} (\d+)', done.stdout))


@pytest.fixture
def tickets(tmp_path: Path, spool: Path) -> Tickets:
    return Tickets(tmp_path, spool)


def left(spool: Path) -> list[str]:
    return [entry.name for entry in spool.rglob("*") if entry.is_file()]


def test_the_timer_triages_the_jobs_that_ended(tickets: Tickets, spool: Path) -> None:
    tickets.add("771234", AT_LOAD)
    tickets.add("771235", WELL)
    done = tickets.read()
    assert (done.returncode, left(spool)) == (0, [])
    tickets.add("771240", AT_LOAD)
    assert tickets.read().returncode == 0
    assert tickets.jobs() == {"yes": "2", "possible": "0", "no": "1", "unread": "0"}


def test_nothing_to_do_is_no_failure(tickets: Tickets) -> None:
    assert tickets.read().returncode == 0


def test_no_file_of_another_user_is_read(tickets: Tickets, spool: Path) -> None:
    tickets.add("771234", AT_LOAD, uid=os.getuid() + 1)
    link = tickets.folder / "link.out"
    link.symlink_to("/etc/hostname")
    tickets.add("771235", AT_LOAD, path=str(link))
    tickets.add("771236", AT_LOAD, path="--refresh")
    tickets.add("771237", WELL)
    assert (tickets.read().returncode, left(spool)) == (0, [])
    assert tickets.jobs() == {"yes": "0", "possible": "0", "no": "1", "unread": "0"}


def test_a_store_that_cannot_be_written_loses_no_ticket(tickets: Tickets, spool: Path) -> None:
    tickets.add("771234", AT_LOAD)
    assert tickets.read(OOMDOCTOR_STORE="/proc/none").returncode != 0
    assert left(spool) == ["771234.ticket"]
    assert tickets.read().returncode == 0
    assert tickets.jobs()["yes"] == "1"


def test_a_comment_is_written_for_those_that_died_of_memory(tickets: Tickets) -> None:
    tickets.add("771234", AT_LOAD)
    tickets.add("771235", WELL)
    calls = recorder(tickets.bin, "comment")
    assert tickets.read(OOMDOCTOR_ADMIN_COMMENT=str(tickets.bin / "comment")).returncode == 0
    job, line = calls.read_text().splitlines()
    assert (job, line.startswith("stop: GPU memory, while loading the model")) == ("771234", True)


COMMENTS = {
    "none": ("", "oomdoctor: stop: GPU memory do not"),
    "a person's note": ("asked the user", "asked the user oomdoctor: stop: GPU memory do not"),
    "a line of ours": ("asked oomdoctor: stop: GPU memory", None),
    "data of Jobstats": ("JS1:H4sIAAAA", None),
    "data of another program": ('{"cost": 3}', None),
}


@pytest.mark.parametrize(("there", "written"), COMMENTS.values(), ids=COMMENTS)
def test_what_stands_in_a_comment_is_kept(tmp_path: Path, there: str, written: str | None) -> None:
    recorder(tmp_path, "sacct", there + "\n")
    calls = recorder(tmp_path, "sacctmgr")
    done = run("slurm/admin-comment.sh", "771234", "stop: GPU memory, \"do' not\n", path=tmp_path)
    assert done.returncode == 0
    told = calls.read_text().rstrip().splitlines() if calls.exists() else None
    expected = None if written is None else ["--immediate", "modify", "job", "771234", "set", f"AdminComment={written}"]
    assert (told and [line.rstrip() for line in told]) == expected


def test_a_comment_goes_to_a_job_only(tmp_path: Path) -> None:
    calls = recorder(tmp_path, "sacctmgr")
    assert run("slurm/admin-comment.sh", "1 where user=root", "text", path=tmp_path).returncode == 2
    assert not calls.exists()


def unit(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(SLURM / name)
    return parser


def test_the_units_belong_together() -> None:
    service, timer = unit("oomdoctor-triage.service"), unit("oomdoctor-triage.timer")
    assert (service["Service"]["Type"], timer["Install"]["WantedBy"]) == ("oneshot", "timers.target")
    assert os.path.basename(service["Service"]["ExecStart"]) == "read-spool.sh"
    assert service["Service"]["User"] != "root"
    names = set(re.findall(r"OOMDOCTOR_\w+", service["Service"]["Environment"]))
    assert names <= set(re.findall(r"OOMDOCTOR_\w+", (SLURM / "read-spool.sh").read_text()))


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_understands_the_units(tmp_path: Path) -> None:
    script = recorder(tmp_path, "read-spool").with_suffix("")
    for name in ("oomdoctor-triage.service", "oomdoctor-triage.timer"):
        text = (SLURM / name).read_text()
        (tmp_path / name).write_text(re.sub(r"(?m)^ExecStart=.*$", f"ExecStart={script}", text).replace("User=oomdoctor", "User=daemon"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", tmp_path / "oomdoctor-triage.timer", tmp_path / "oomdoctor-triage.service"],
        capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    complaints = [line for line in (done.stdout + done.stderr).splitlines() if "oomdoctor" in line]
    assert (complaints, done.returncode) == ([], 0)


def test_who_submits_what_died_before_is_warned(tmp_path: Path) -> None:
    (tmp_path / "warnings.tsv").write_text("u7\tsft-glm\t12\tdo not restart as is\n")
    script = (SLURM / "job_submit.lua").read_text().replace("/etc/oomdoctor/warnings.tsv", str(tmp_path / "warnings.tsv"))
    lua = pytest.importorskip("lupa").LuaRuntime()
    lua.execute("said = {}; slurm = {SUCCESS = 0, log_user = function(...) said[#said + 1] = string.format(...) end}")
    lua.execute(script)
    submitted = '{user_name = "u7", name = "sft-glm-31"}', '{user_name = "u8", name = "sft-glm"}', '{user_name = "u7"}', "{}", "nil"
    assert [lua.eval(f"slurm_job_submit({job}, {{}}, 1000)") for job in submitted] == [0] * len(submitted)
    assert list(lua.globals().said.values()) == ["oomdoctor: 12 jobs like sft-glm-31 ran out of memory: do not restart as is"]


def test_a_list_of_warnings_that_is_not_there_holds_up_nobody() -> None:
    lua = pytest.importorskip("lupa").LuaRuntime()
    lua.execute("slurm = {SUCCESS = 0, log_user = error}")
    lua.execute((SLURM / "job_submit.lua").read_text().replace("/etc/oomdoctor", "/nonexistent"))
    assert lua.eval('slurm_job_submit({user_name = "u7", name = "sft"}, {}, 1000)') == 0


def test_the_submit_plugin_asks_nobody() -> None:
    assert re.findall(r"os\.execute|io\.popen|require|socket", code(SLURM / "job_submit.lua", "--")) == []


def test_the_lines_for_the_submit_plugin(tmp_path: Path) -> None:
    logs, store, oomdoctor = tmp_path / "logs", tmp_path / "store", tool(tmp_path / "bin")
    logs.mkdir()
    for number in range(3):
        (logs / f"sft-glm-77123{number}.out").write_text(AT_LOAD)
    (logs / "eval-771300.out").write_text(AT_LOAD)
    records = tmp_path / "sacct.psv"
    records.write_text("JobID|User\n" + "".join(f"77123{number}|u7\n" for number in range(3)) + "771300|u7\n")
    command = [str(part) for part in (oomdoctor, "triage", "logs", logs, "--records", records, "--store", store, "--exit-zero")]
    subprocess.run(command, check=True, capture_output=True)
    done = subprocess.run([oomdoctor, "triage", "warnings", "--store", store], check=True, capture_output=True, text=True)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert lines == [["u7", "sft-glm", "3", "do not restart as is"]]
