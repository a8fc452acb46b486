"""What stands under integrations/kubernetes and integrations/container: scripts run, manifests read."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from script_programs import AT_LOAD, INTEGRATIONS, ROOT, WELL, run, tool

from oomdoctor.cli.main import cli

KUBERNETES = INTEGRATIONS / "kubernetes"


def command(text: str, status: int) -> list[str]:
    return ["sh", "-c", f"printf '%s' {shlex.quote(text)} >&2; exit {status}"]


def under(tmp_path: Path, *words: str, **environ: str) -> tuple[int, str, bytes | None]:
    tool(tmp_path / "bin")
    message = tmp_path / "termination-log"
    done = run("kubernetes/with-verdict.sh", *words, path=tmp_path / "bin", OOMDOCTOR_TERMINATION_LOG=str(message), **environ)
    return done.returncode, done.stdout, message.read_bytes() if message.exists() else None


def test_a_command_that_ends_well_leaves_no_message(tmp_path: Path) -> None:
    assert under(tmp_path, *command(WELL, 0)) == (0, WELL, None)


def test_a_command_that_fails_leaves_its_verdict_in_a_line(tmp_path: Path) -> None:
    status, output, message = under(tmp_path, *command(AT_LOAD, 1))
    assert message is not None
    assert (status, output, message.count(b"\n")) == (1, AT_LOAD, 0)
    assert message.startswith(b"stop: GPU memory, while loading the model")


def test_a_message_is_no_longer_than_what_is_kept(tmp_path: Path) -> None:
    path = "/".join("显存" * 40 for _ in range(30))
    _, _, message = under(tmp_path, *command(AT_LOAD.replace("/home/me", f"/{path}"), 1))
    assert message is not None
    assert 0 < len(message) <= 2048


CODES = {
    "the same failure would come again": (AT_LOAD, 1, "job", 42),
    "the same, and nobody asked for the code": (AT_LOAD, 1, "plain", 1),
    "something else": ("KeyError: 'loss'\n", 3, "job", 3),
    "all is well": (WELL, 0, "job", 0),
}


@pytest.mark.parametrize(("text", "status", "codes", "ends"), CODES.values(), ids=CODES)
def test_the_status_is_that_of_the_command_or_the_agreed_one(tmp_path: Path, text: str, status: int, codes: str, ends: int) -> None:
    assert under(tmp_path, *command(text, status), OOMDOCTOR_EXIT_CODES=codes)[0] == ends


def test_a_tool_that_is_missing_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "oomdoctor").write_text("#!/bin/sh\nexit 127\n")
    (tmp_path / "bin" / "oomdoctor").chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "OOMDOCTOR_TERMINATION_LOG": str(tmp_path / "message")}
    assert subprocess.run([KUBERNETES / "with-verdict.sh", *command(AT_LOAD, 5)], env=environ, capture_output=True).returncode == 5


def test_an_order_to_stop_reaches_the_command(tmp_path: Path) -> None:
    waits = "import signal, sys, time\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\nprint('ready', flush=True)\ntime.sleep(60)"
    tool(tmp_path / "bin")
    environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "OOMDOCTOR_TERMINATION_LOG": str(tmp_path / "message")}
    with subprocess.Popen([KUBERNETES / "with-verdict.sh", sys.executable, "-c", waits], env=environ, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=600) == 7


PLUGIN = {
    "a node that stands out": ('oomdoctor_node_memory_failures{node="n17"} 31\n', 1, "31 memory failures"),
    "another node stands out": ('oomdoctor_node_memory_failures{node="n170"} 31\n', 0, "no more memory failures"),
    "figures that are none": ('oomdoctor_node_memory_failures{node="n17"} many\n', 2, "cannot parse"),
    "no figures": (None, 2, "no oomdoctor metrics"),
}


@pytest.mark.parametrize(("figures", "status", "says"), PLUGIN.values(), ids=PLUGIN)
def test_the_plugin_of_the_node_problem_detector(tmp_path: Path, figures: str | None, status: int, says: str) -> None:
    path = tmp_path / "oomdoctor.prom"
    if figures is not None:
        path.write_text(figures)
    done = run("kubernetes/node-problem.sh", OOMDOCTOR_METRICS=str(path), NODE_NAME="n17")
    assert (done.returncode, says in done.stdout, done.stderr) == (status, True, "")
    most = json.loads((KUBERNETES / "node-problem.json").read_text())["pluginConfig"]["max_output_length"]
    assert len(done.stdout.strip().encode()) <= most == 80


def test_the_rules_of_the_plugin_name_its_conditions() -> None:
    config = json.loads((KUBERNETES / "node-problem.json").read_text())
    conditions = {condition["type"]: condition for condition in config["conditions"]}
    for rule in config["rules"]:
        assert rule["type"] == "permanent"
        assert rule["reason"] != conditions[rule["condition"]]["reason"]
        assert (KUBERNETES / os.path.basename(rule["path"])).is_file()


def test_the_cronjob_runs_what_there_is(tmp_path: Path) -> None:
    manifest = yaml.safe_load((KUBERNETES / "triage-cronjob.yaml").read_text())
    assert (manifest["apiVersion"], manifest["kind"], manifest["spec"]["concurrencyPolicy"]) == ("batch/v1", "CronJob", "Forbid")
    pod = manifest["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
    assert pod["restartPolicy"] == "Never"
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "sft-771234.out").write_text(AT_LOAD)
    (script,) = container["args"]
    script = script.replace("/logs", str(tmp_path / "logs")).replace("/store", str(tmp_path / "store"))
    tool(tmp_path / "bin")
    environ = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    subprocess.run([*container["command"], script], env=environ, check=True, capture_output=True, timeout=600)
    assert 'oomdoctor_jobs{memory_failure="yes"} 1' in (tmp_path / "store" / "oomdoctor.prom").read_text()


def test_the_image_installs_extras_that_there_are() -> None:
    text = (INTEGRATIONS / "container" / "Containerfile").read_text()
    lines = text.replace("\\\n", " ").splitlines()
    instructions = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    extras = re.findall(r"\[([\w,]+)\]", instructions["RUN"])[0].split(",")
    declared = (ROOT / "setup.cfg").read_text().split("[options.extras_require]")[1]
    assert all(re.search(rf"(?m)^{extra} =", declared) for extra in extras)
    assert instructions["USER"] != "root"
    labels = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]+)"', instructions["LABEL"]))
    settings = (ROOT / "setup.cfg").read_text()
    assert f"description = {labels['description']}\n" in settings and f"license = {labels['licenses']}\n" in settings
    (entry,) = json.loads(instructions["ENTRYPOINT"])
    assert CliRunner().invoke(cli, ["--version"], prog_name=entry).output.startswith("oomdoctor ")
