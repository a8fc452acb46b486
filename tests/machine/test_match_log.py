"""Facts of a machine are used for a log only where nothing in the log speaks against it, or where the user says so."""

from __future__ import annotations

import pytest

from oomdoctor.case.environment import Driver, Environment, Gpu, GpuProcess, Package, TorchBuild
from oomdoctor.machine.match_log import LogTraces, MachineSource, lasting_facts, match_log, missing_log_facts

GIB = 1 << 30
MACHINE = Environment(
    gpus=(
        Gpu(index=0, name="NVIDIA L20", total_bytes=46068 << 20, used_bytes=40 * GIB, processes=(GpuProcess(pid=4),), processes_known=True),
    ),
    gpus_known=True,
    torch=TorchBuild(version="2.4.0+cu121"),
    packages={
        "torch": Package(version="2.4.0+cu121"),
        "flash-attn": Package(version="2.6.3"),
        "nvidia-nccl-cu12": Package(version="2.20.5"),
    },
    driver=Driver(version="550.54.15", state="ok"),
)
WITHOUT_CARD = Environment(driver=Driver(state="no-library"))
SCRIPT = "/data/run/train.py"


def asked(always: bool = False, name: str | None = None, machine: Environment = MACHINE) -> MachineSource:
    return MachineSource(lambda: machine, name=name, always=always)


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        pytest.param(
            LogTraces(totals=(44 * GIB + GIB // 2,)), "the card (44.50 GiB)", id="torch sees a little less of the card than nvidia-smi"
        ),
        pytest.param(LogTraces(paths=(SCRIPT,)), SCRIPT, id="the script lies here"),
        pytest.param(LogTraces(totals=(44 * GIB,), versions={"torch": "2.4.0"}), "torch 2.4.0", id="the version of torch is printed too"),
    ],
)
def test_this_machine_is_used_where_it_agrees(shown: LogTraces, said: str) -> None:
    found = match_log(asked(), shown, exists=lambda path: path == SCRIPT)
    assert found.environment == MACHINE
    assert said in found.note.en
    assert said.replace("the card (", "显卡（").replace(" GiB)", " GiB）") in found.note.zh


@pytest.mark.parametrize(
    ("shown", "machine", "said"),
    [
        pytest.param(LogTraces(totals=(24 * GIB,)), MACHINE, "a 24.00 GiB card, the machine has 44.99 GiB", id="another card"),
        pytest.param(LogTraces(totals=(24 * GIB,)), WITHOUT_CARD, "the machine has none", id="a card, and here is none"),
        pytest.param(LogTraces(totals=(45 * GIB,), versions={"torch": "2.1.2"}), MACHINE, "torch is 2.1.2 in the log", id="another torch"),
        pytest.param(
            LogTraces(totals=(45 * GIB,), versions={"driver": "535.54"}), MACHINE, "driver is 535.54 in the log", id="another driver"
        ),
        pytest.param(
            LogTraces(totals=(45 * GIB,), paths=("/else/train.py",)),
            MACHINE,
            "/else/train.py does not exist here",
            id="a script that is not here",
        ),
        pytest.param(LogTraces(versions={"torch": "2.4.0"}), MACHINE, "neither a card nor a path", id="a version alone proves nothing"),
        pytest.param(LogTraces(), MACHINE, "neither a card nor a path", id="a log that shows nothing"),
        pytest.param(LogTraces(totals=(45 * GIB,)), Environment(), "neither a card nor a path", id="a machine of which nothing is known"),
    ],
)
def test_this_machine_is_not_used_where_anything_differs(shown: LogTraces, machine: Environment, said: str) -> None:
    found = match_log(asked(machine=machine), shown, exists=lambda path: path == SCRIPT)
    assert found.environment is None
    assert said in found.note.en


def test_nothing_is_collected_where_a_path_says_no() -> None:
    def never() -> Environment:
        raise AssertionError("collected")

    assert match_log(MachineSource(never), LogTraces(paths=("/else/train.py",)), exists=lambda _: False).environment is None


def test_nothing_is_collected_where_the_log_has_a_card_and_no_driver_is_here() -> None:
    def never() -> Environment:
        raise AssertionError("collected")

    found = match_log(MachineSource(never), LogTraces(totals=(24 * GIB,)), exists=lambda path: path == "/proc/self")
    assert "the machine has none" in found.note.en


@pytest.mark.parametrize("name", [pytest.param(None, id="here"), pytest.param("env.txt", id="a file")])
def test_a_machine_that_the_user_names_is_used_and_what_differs_is_said(name: str | None) -> None:
    found = match_log(asked(always=True, name=name), LogTraces(totals=(24 * GIB,)))
    assert found.environment == MACHINE
    assert "although the log shows a 24.00 GiB card" in found.note.en
    assert "但日志里的显卡是 24.00 GiB" in found.note.zh


def test_paths_say_nothing_about_a_machine_in_a_file() -> None:
    found = match_log(asked(always=True, name="env.txt"), LogTraces(paths=("/else/train.py",)), exists=lambda _: False)
    assert found.note.en == "Facts about the machine come from env.txt; nothing in the log confirms or contradicts them."


def test_what_the_machine_says_has_the_names_that_a_log_would_use() -> None:
    assert missing_log_facts(MACHINE) == {
        "log.torch_version": "2.4.0+cu121",
        "log.flash_attn_version": "2.6.3",
        "log.driver_version": "550.54.15",
        "log.gpu_name": "NVIDIA L20",
    }


def test_how_full_the_card_is_now_is_no_fact_of_the_run() -> None:
    named = lasting_facts(MACHINE)
    assert named["environment.gpu.name"] == "NVIDIA L20"
    assert not [name for name in named if "used" in name or "held" in name or name.endswith(".processes")]
