"""What rules can ask of an environment."""

from __future__ import annotations

import pytest

from oomdoctor.case.environment import Cgroup, Driver, Environment, Folder, Gpu, GpuProcess, Host, Package, Symbol, TorchBuild, TorchRun
from oomdoctor.machine.facts import environment_facts

GIB = 1 << 30
SMALL = Gpu(index=1, name="NVIDIA A10", compute_capability="8.6", total_bytes=24 * GIB, used_bytes=GIB, visible=True)
LARGE = Gpu(index=0, name="NVIDIA A100-SXM4-80GB", compute_capability="8.0", total_bytes=80 * GIB, used_bytes=60 * GIB, visible=True)
HIDDEN = Gpu(
    index=2, name="Tesla T4", compute_capability="7.5", total_bytes=15 * GIB, used_bytes=14 * GIB, ecc_uncorrected=3, visible=False
)


def test_nothing_known_is_nothing_said() -> None:
    assert environment_facts(Environment()) == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("gpu.name", "NVIDIA A10"),
        ("fullest.name", "NVIDIA A100-SXM4-80GB"),
        ("gpu.0.name", "NVIDIA A100-SXM4-80GB"),
        ("gpu.2.name", "Tesla T4"),
        ("gpu_count", 3),
        ("visible_gpu_count", 2),
        ("emulating.count", 0),
        ("gpu.2.bf16_native", False),
        ("gpu.bf16_native", True),
        ("fullest.used_share", 0.75),
    ],
)
def test_cards_that_the_run_does_not_see_are_described_and_not_judged(name: str, value: object) -> None:
    assert environment_facts(Environment(gpus=(LARGE, SMALL, HIDDEN)))[f"environment.{name}"] == value


@pytest.mark.parametrize(
    ("environment", "name", "value"),
    [
        pytest.param(Environment(gpus=(Gpu(compute_capability="13.0"),)), "gpu.bf16_native", True, id="a card newer than the table has bf16"),
        pytest.param(Environment(gpus=(Gpu(compute_capability="5.0"),)), "gpu.bf16_native", False, id="an old one that is not in the table has not"),
        pytest.param(Environment(gpus=(Gpu(name="Tesla P40"),)), "gpu.fp16_rate", "1/64", id="a card of which only the name is known"),
        pytest.param(Environment(gpus=(Gpu(total_bytes=10 * GIB, processes=(GpuProcess(pid=5, name="a", used_bytes=GIB), GpuProcess(pid=6, used_bytes=GIB))),)), "gpu.held_share", 0.2, id="what processes hold is added up"),
        pytest.param(Environment(gpus=(Gpu(processes=(GpuProcess(pid=5, name="a"), GpuProcess(pid=6))),)), "gpu.holders", "a 5, pid 6", id="holders by program and number"),
        pytest.param(Environment(gpus=(Gpu(total_bytes=24 * GIB, used_bytes=20 * GIB),)), "gpu.free_bytes", 4 * GIB, id="what is free where only what is used was printed"),
        pytest.param(Environment(gpus=(Gpu(ecc_uncorrected=0), Gpu(ecc_uncorrected=2, index=5))), "damaged.count", 1, id="one of two cards has errors"),
        pytest.param(Environment(gpus=(Gpu(ecc_uncorrected=0), Gpu(ecc_uncorrected=2, index=5))), "damaged.index", 5, id="and it is named"),
        pytest.param(Environment(driver=Driver(version="535.104.05")), "driver_cuda", "12.2", id="CUDA by the branch of the driver"),
        pytest.param(Environment(driver=Driver(version="470.10.1", cuda="12.4")), "driver_cuda", "12.4", id="unless the driver says another"),
        pytest.param(Environment(driver=Driver(library_version="535.104.05", kernel_version="535.104.12")), "nvml_differs_from_kernel", True, id="two versions of the driver"),
        pytest.param(Environment(symbols=(Symbol(name="a", found=False), Symbol(name="b", found=False, required=False), Symbol(name="c", found=True))), "nvml_missing", "a", id="an optional function is not missed"),
        pytest.param(Environment(host=Host(ram_bytes=100 * GIB, cgroup=Cgroup(version=2, limit_bytes=25 * GIB))), "cgroup_share", 0.25, id="the limit as a part of the machine"),
        pytest.param(Environment(host=Host(container="none")), "in_container", False, id="certainly no container"),
        pytest.param(Environment(host=Host(shm=Folder(path="/dev/shm", total_bytes=64))), "shm_bytes", 64, id="shared memory"),
        pytest.param(Environment(packages={"flash-attn": Package(version="2.7.3")}), "package.flash_attn", "2.7.3", id="a package by its name with underscores"),
        pytest.param(Environment(packages={"torch": Package(version="2.6.0")}), "torch_version", "2.6.0", id="torch by its metadata alone"),
        pytest.param(Environment(packages={"a": Package(version="1", shadowed=("2",)), "torch": Package(version="3", shadowed=("4",))}), "twice.name", "torch", id="torch first of what is there twice"),
        pytest.param(Environment(torch=TorchBuild(cuda="13.0")), "driver_minimum", "580", id="the driver that a build needs"),
        pytest.param(Environment(torch_run=TorchRun(signal="SIGSEGV")), "torch_runs", False, id="a torch that crashed does not run"),
        pytest.param(Environment(variables={"NCCL_P2P_DISABLE": "1"}), "variable.NCCL_P2P_DISABLE", "1", id="a variable"),
        pytest.param(Environment(launcher={"WORLD_SIZE": "8"}), "launcher.WORLD_SIZE", "8", id="what the launcher said"),
    ],
)  # fmt: skip
def test_one_fact(environment: Environment, name: str, value: object) -> None:
    assert environment_facts(environment)[f"environment.{name}"] == value


@pytest.mark.parametrize(
    ("environment", "name"),
    [
        pytest.param(Environment(gpus=(Gpu(name="Some Card"),)), "gpu.bf16_native", id="bf16 of an unknown card"),
        pytest.param(Environment(gpus=(Gpu(vendor="amd", compute_capability="9.0"),)), "gpu.bf16_native", id="a number of AMD's is no compute capability"),
        pytest.param(Environment(gpus=(Gpu(compute_capability="6.2"),)), "gpu.fp16_rate", id="a rate that is not in the table"),
        pytest.param(Environment(gpus=(Gpu(name="Some Card"),)), "damaged.count", id="errors that nobody counted"),
        pytest.param(Environment(gpus=(Gpu(processes_known=False),)), "busy.count", id="processes that could not be listed"),
        pytest.param(Environment(driver=Driver(version="535.104.05")), "driver_covers_torch", id="a driver without a torch"),
        pytest.param(Environment(symbols=(Symbol(name="a"),)), "nvml_missing_count", id="functions that nobody looked up"),
        pytest.param(Environment(gpus=(Gpu(vendor="amd", compute_capability="9.4"),), torch=TorchBuild(arch_list=("sm_90",))), "gpu.in_torch_build", id="code for cards of another vendor"),
    ],
)  # fmt: skip
def test_what_is_unknown_has_no_fact(environment: Environment, name: str) -> None:
    assert f"environment.{name}" not in environment_facts(environment)
