"""Recorded /proc, /sys and /etc of machines: what they are, how much memory they have, and what limits it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from oomdoctor.machine.collect.accelerators import collect_accelerators
from oomdoctor.machine.collect.cgroup import collect_cgroup
from oomdoctor.machine.collect.host import Uname, collect_host_system
from oomdoctor.machine.collect.host_memory import collect_folder, collect_host_memory, measure_file_system
from oomdoctor.machine.collect.root import Root

GIB = 1 << 30
LINUX = Uname("linux", "6.8.0-45-generic", "x86_64")
MEMINFO = "MemTotal:       65801236 kB\nMemFree:         1204 kB\nMemAvailable:   41203344 kB\nSwapTotal:       2097148 kB\nSwapFree:        1048576 kB\n"
LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         {}          {}          bytes\n"
)


def tree(folder: Path, files: Mapping[str, str]) -> Root:
    for name, text in files.items():
        path = folder / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Root(str(folder))


@pytest.mark.parametrize(
    ("files", "said", "environ", "wanted"),
    [
        pytest.param({"/etc/os-release": 'NAME="Ubuntu"\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n', "/proc/1/cgroup": "0::/init.scope\n"}, LINUX, {},
                     {"os": "Ubuntu 24.04.1 LTS", "wsl": 0, "container": "none", "system": "linux"}, id="a server"),
        pytest.param({"/.dockerenv": ""}, LINUX, {}, {"container": "docker", "os": None}, id="a bare Docker image without os-release"),
        pytest.param({"/.dockerenv": ""}, LINUX, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, {"container": "kubernetes"}, id="a pod, whatever runs it"),
        pytest.param({"/run/.containerenv": "engine=podman"}, LINUX, {}, {"container": "podman"}, id="Podman"),
        pytest.param({}, LINUX, {"APPTAINER_CONTAINER": "/images/train.sif"}, {"container": "apptainer"}, id="Apptainer"),
        pytest.param({"/proc/1/cgroup": "12:memory:/docker/8d3a\n0::/docker/8d3a\n"}, LINUX, {}, {"container": "docker"}, id="a container that only its control group shows"),
        pytest.param({}, LINUX, {}, {"container": None}, id="without /proc nothing is claimed"),
        pytest.param({}, Uname("linux", "5.15.153.1-microsoft-standard-WSL2", "x86_64"), {}, {"wsl": 2}, id="WSL 2"),
        pytest.param({}, Uname("linux", "4.4.0-19041-Microsoft", "x86_64"), {}, {"wsl": 1}, id="WSL 1"),
        pytest.param({"/proc/device-tree/model": "NVIDIA Jetson Orin NX Engineering Reference Developer Kit\0"}, LINUX, {},
                     {"model": "NVIDIA Jetson Orin NX Engineering Reference Developer Kit"}, id="a Jetson by its device tree"),
        pytest.param({"/sys/class/dmi/id/product_name": "NVIDIA_DGX_Spark\n"}, LINUX, {}, {"model": "NVIDIA_DGX_Spark"}, id="a board by its firmware"),
        pytest.param({}, Uname("win32", "10.0.22631", "AMD64"), {}, {"os": "Windows 11 (10.0.22631)", "system": "windows", "wsl": None, "container": None}, id="Windows 11 calls itself 10.0"),
        pytest.param({}, Uname("win32", "10.0.19045", "AMD64"), {}, {"os": "Windows 10 (10.0.19045)"}, id="Windows 10"),
        pytest.param({"/System/Library/CoreServices/SystemVersion.plist": "<key>ProductVersion</key>\n\t<string>14.6.1</string>"}, Uname("darwin", "23.6.0", "arm64"), {},
                     {"os": "macOS 14.6.1", "system": "macos"}, id="macOS"),
    ],
)  # fmt: skip
def test_machine_is_what_its_files_say(
    files: Mapping[str, str], said: Uname, environ: Mapping[str, str], wanted: Mapping[str, object], tmp_path: Path
) -> None:
    found = collect_host_system(tree(tmp_path, files), said, environ)
    assert {name: getattr(found.value, name) for name in wanted} == dict(wanted)
    assert all(f"host.{name}" in found.origins for name, value in wanted.items() if value is not None)


@pytest.mark.parametrize(
    ("files", "wanted"),
    [
        pytest.param({"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cgroup.controllers": "memory", "/sys/fs/cgroup/memory.max": "34359738368\n",
                      "/sys/fs/cgroup/memory.current": "1073741824\n", "/sys/fs/cgroup/memory.events": "low 0\noom 3\noom_kill 2\n"},
                     (2, 32 * GIB, GIB, 2), id="version 2, the container sees its own group as the root"),
        pytest.param({"/proc/self/cgroup": "0::/kubepods/pod1/c1\n", "/sys/fs/cgroup/cgroup.controllers": "memory", "/sys/fs/cgroup/memory.max": "max\n",
                      "/sys/fs/cgroup/kubepods/pod1/memory.max": "8589934592\n", "/sys/fs/cgroup/kubepods/pod1/memory.current": "4096\n",
                      "/sys/fs/cgroup/kubepods/pod1/c1/memory.max": "max\n", "/sys/fs/cgroup/kubepods/pod1/c1/memory.current": "2048\n"},
                     (2, 8 * GIB, 4096, None), id="version 2, the limit stands above the own group"),
        pytest.param({"/proc/self/cgroup": "0::/job\n", "/sys/fs/cgroup/cgroup.controllers": "memory", "/sys/fs/cgroup/job/memory.max": "max\n",
                      "/sys/fs/cgroup/job/memory.current": "512\n"}, (2, None, 512, None), id="version 2 without a limit"),
        pytest.param({"/proc/self/cgroup": "11:memory:/slurm/job_7\n1:name=systemd:/x\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                      "/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes": "17179869184\n", "/sys/fs/cgroup/memory/slurm/job_7/memory.usage_in_bytes": "77\n",
                      "/sys/fs/cgroup/memory/slurm/job_7/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"},
                     (1, 16 * GIB, 77, 1), id="version 1 in a Slurm job"),
        pytest.param({"/proc/self/cgroup": "4:cpu,cpuacct:/a\n9:memory:/docker/8d3a\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "4294967296\n",
                      "/sys/fs/cgroup/memory/memory.usage_in_bytes": "5\n"}, (1, 4 * GIB, 5, None), id="version 1, a path of the host's that leads nowhere"),
        pytest.param({"/proc/self/cgroup": "9:memory:/\n", "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, (1, None, None, None), id="version 1 without a limit"),
        pytest.param({"/proc/self/cgroup": "0::/../../..\n", "/sys/fs/cgroup/memory.max": "1048576\n"}, (2, 1 << 20, None, None), id="a path that tries to leave the tree"),
    ],
)  # fmt: skip
def test_limit_of_a_container_or_job(
    files: Mapping[str, str], wanted: tuple[int, int | None, int | None, int | None], tmp_path: Path
) -> None:
    found = collect_cgroup(tree(tmp_path, files)).value
    assert found is not None
    assert (found.version, found.limit_bytes, found.used_bytes, found.kills) == wanted


def test_without_control_groups_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert collect_cgroup(Root(str(tmp_path))).value is None


def test_memory_of_the_host_in_bytes(tmp_path: Path) -> None:
    found = collect_host_memory(tree(tmp_path, {"/proc/meminfo": MEMINFO, "/proc/self/limits": LIMITS.format("8388608", "unlimited")}))
    value = found.value
    assert (value.ram_bytes, value.ram_available_bytes) == (65801236 << 10, 41203344 << 10)
    assert (value.swap_bytes, value.swap_free_bytes) == (2097148 << 10, 1048576 << 10)
    assert (value.memlock_bytes, value.memlock_unlimited) == (8388608, False)
    assert found.origins["host.ram_bytes"] == "/proc/meminfo"
    assert found.gaps == ()


def test_unlimited_is_not_unknown(tmp_path: Path) -> None:
    value = collect_host_memory(
        tree(tmp_path, {"/proc/meminfo": MEMINFO, "/proc/self/limits": LIMITS.format("unlimited", "unlimited")})
    ).value
    assert (value.memlock_bytes, value.memlock_unlimited) == (None, True)


def test_a_machine_without_proc_has_a_gap_and_no_numbers(tmp_path: Path) -> None:
    found = collect_host_memory(Root(str(tmp_path)))
    assert found.value.ram_bytes is None
    assert [gap.what for gap in found.gaps] == ["memory of the host"]


def test_a_folder_that_will_be_made_is_measured_where_it_will_lie(tmp_path: Path) -> None:
    assert measure_file_system(str(tmp_path / "runs" / "new")) is not None
    assert collect_folder("/x", "disk", lambda _: None).value is None
    found = collect_folder("/x", "disk", lambda _: (10, 4)).value
    assert found is not None
    assert (found.total_bytes, found.free_bytes) == (10, 4)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=300),
    st.sampled_from(
        ["/proc/meminfo", "/proc/self/limits", "/proc/self/cgroup", "/etc/os-release", "/proc/1/cgroup", "/proc/device-tree/model"]
    ),
)
def test_whatever_a_file_holds_nothing_raises(tmp_path: Path, data: bytes, name: str) -> None:
    path = tmp_path / name.lstrip("/")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    root = Root(str(tmp_path))
    collect_host_system(root, LINUX, {})
    collect_host_memory(root)
    collect_cgroup(root)


@pytest.mark.parametrize(
    ("files", "said", "wanted"),
    [
        pytest.param({"/sys/class/drm/card1/device/vendor": "0x1002\n", "/sys/class/drm/card1/device/mem_info_vram_total": "206141652992\n",
                      "/sys/class/drm/card1/device/mem_info_vram_used": "290385920\n", "/sys/class/kfd/kfd/topology/nodes/1/properties": "simd_count 1216\ngfx_target_version 90402\n"},
                     LINUX, ("amd", 206141652992, "gfx942"), id="an Instinct card"),
        pytest.param({"/sys/class/drm/card0/device/vendor": "0x1002\n", "/sys/class/drm/card0/device/mem_info_vram_total": "25753026560\n",
                      "/sys/class/kfd/kfd/topology/nodes/1/properties": "gfx_target_version 90010\n"}, LINUX, ("amd", 25753026560, "gfx90a"), id="a part above nine is printed in hexadecimal"),
        pytest.param({"/sys/class/drm/card0/device/vendor": "0x8086\n", "/sys/class/drm/card0/device/lmem_total_bytes": "17179869184\n"}, LINUX, ("intel", 16 * GIB, None), id="an Intel card with memory of its own"),
        pytest.param({"/dev/davinci0": "", "/dev/davinci_manager": ""}, LINUX, ("huawei", None, None), id="Ascend"),
        pytest.param({}, Uname("darwin", "23.6.0", "arm64"), ("apple", 64 * GIB, None), id="Apple"),
        pytest.param({"/sys/class/drm/card0/device/vendor": "0x8086\n"}, LINUX, None, id="graphics inside the CPU are no card"),
        pytest.param({"/sys/class/drm/card0-DP-1/device/vendor": "0x1002\n"}, LINUX, None, id="a plug is no card"),
    ],
)  # fmt: skip
def test_cards_of_other_vendors(
    files: Mapping[str, str], said: Uname, wanted: tuple[str, int | None, str | None] | None, tmp_path: Path
) -> None:
    found = collect_accelerators(tree(tmp_path, files), said, 64 * GIB).value
    assert [(gpu.vendor, gpu.total_bytes, gpu.architecture) for gpu in found] == ([] if wanted is None else [wanted])
