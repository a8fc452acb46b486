"""An environment: the machine, GPUs, driver and interpreter of a run, as far as known.

Every field is None (or empty) if it is unknown; the reason is a Gap. Sizes are int bytes. Where a field was read is in
`Environment.origins` under its path (`host.ram_bytes`, `gpus.0.name`, `packages.torch`).
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from oomdoctor.case.gap import Gap


class EnvironmentPart(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the parts of an environment: immutable, and unknown fields are left out of JSON."""


class Cgroup(EnvironmentPart, frozen=True, kw_only=True):
    """The memory limit of the container or job that this process runs in."""

    version: int
    """1 or 2."""
    limit_bytes: int | None = None
    """The smallest limit on the way up; None if there is none."""
    used_bytes: int | None = None
    kills: int | None = None
    """How often the kernel killed one of its processes for memory."""


class Folder(EnvironmentPart, frozen=True, kw_only=True):
    """A file system that runs write to."""

    path: str
    total_bytes: int | None = None
    free_bytes: int | None = None
    """What an unprivileged user can still write."""


class Host(EnvironmentPart, frozen=True, kw_only=True):
    """The machine without its GPUs."""

    os: str | None = None
    """`Ubuntu 22.04.4 LTS`, `Windows 11`."""
    system: str | None = None
    """`linux`, `windows` or `macos`."""
    kernel: str | None = None
    architecture: str | None = None
    """`x86_64`, `aarch64`, as uname prints it."""
    libc: str | None = None
    """`glibc 2.35`."""
    model: str | None = None
    """What the board reports itself as (`NVIDIA Jetson AGX Orin`); single-board and unified-memory machines do this."""
    cpus: int | None = None
    """How many this process may use."""
    wsl: int | None = None
    """1 or 2 inside the Windows Subsystem for Linux, 0 outside."""
    container: str | None = None
    """`docker`, `podman`, `kubernetes`, `lxc`, `slurm-pyxis` ..., `none` if there certainly is none."""
    ram_bytes: int | None = None
    ram_available_bytes: int | None = None
    swap_bytes: int | None = None
    swap_free_bytes: int | None = None
    cgroup: Cgroup | None = None
    memlock_bytes: int | None = None
    """How much memory may be pinned (`ulimit -l`); None if unlimited or unknown, `memlock_unlimited` says which."""
    memlock_unlimited: bool | None = None
    shm: Folder | None = None
    """/dev/shm."""
    disk: Folder | None = None
    """Where checkpoints go: the working directory unless another was named."""


class Python(EnvironmentPart, frozen=True, kw_only=True):
    """The interpreter that runs the training."""

    executable: str | None = None
    version: str | None = None
    """`3.11.9`"""
    prefix: str | None = None
    """The root of its environment."""
    kind: str | None = None
    """`venv`, `conda` or `system`."""
    site_packages: tuple[str, ...] = ()


class Package(EnvironmentPart, frozen=True, kw_only=True):
    """One installed distribution."""

    version: str
    location: str | None = None
    """The folder that contains its metadata."""
    editable: bool = False
    commit: str | None = None
    """The git commit that it was installed from."""
    shadowed: tuple[str, ...] = ()
    """Other versions of it further back on the path, which are never imported."""


class TorchBuild(EnvironmentPart, frozen=True, kw_only=True):
    """What the installed torch was built for."""

    version: str | None = None
    """`2.3.1+cu121`"""
    cuda: str | None = None
    """`12.1`; None for builds without CUDA, which `backend` then names."""
    hip: str | None = None
    backend: str | None = None
    """`cuda`, `rocm`, `xpu`, `cpu` ...; None if unknown."""
    arch_list: tuple[str, ...] = ()
    """`sm_80`, `compute_90`, `gfx942`, as reported by `torch.cuda.get_arch_list()`."""
    git: str | None = None


class TorchRun(EnvironmentPart, frozen=True, kw_only=True):
    """What torch itself reported when queried (`--deep`)."""

    imports: bool | None = None
    error: str | None = None
    """Why it could not be imported or queried, in its own words."""
    signal: str | None = None
    """The signal that ended the interpreter, `SIGSEGV`."""
    timed_out: bool = False
    cuda_available: bool | None = None
    device_count: int | None = None
    bf16_works: bool | None = None
    """A small bf16 product was correct; emulation counts."""
    bf16_claimed: bool | None = None
    """`torch.cuda.is_bf16_supported()`, which returns true for emulation from torch 2.3."""
    fp16_works: bool | None = None
    allocator_backend: str | None = None
    """`native` or `cudaMallocAsync`."""
    allocator_settings: str | None = None
    nccl: str | None = None
    cudnn: str | None = None


class Driver(EnvironmentPart, frozen=True, kw_only=True):
    """The GPU driver, and the management library that programs load."""

    version: str | None = None
    """`535.129.03`, as reported by NVML or the tool."""
    cuda: str | None = None
    """The newest CUDA that it supports, `12.2`."""
    kernel_version: str | None = None
    """The version of the loaded kernel module."""
    library: str | None = None
    """The file of the NVML library that was actually loaded."""
    library_version: str | None = None
    """The version in the name of that file, or what the library reports about itself."""
    state: str | None = None
    """`ok`, `no-library`, `no-driver`, `mismatch`, `no-permission`, `no-function`, `error`; None if it was not checked."""
    message: str | None = None
    """The wording of the failure."""


class Symbol(EnvironmentPart, frozen=True, kw_only=True):
    """One function that torch looks up in the NVML library."""

    name: str
    found: bool | None = None
    required: bool = True
    """Whether the installed torch gives up without it."""
    library: str | None = None
    """The file that was checked."""


class GpuProcess(EnvironmentPart, frozen=True, kw_only=True):
    """A process that uses GPU memory."""

    pid: int | None = None
    used_bytes: int | None = None
    user: str | None = None
    name: str | None = None
    """The program's name, never its arguments."""
    own: bool | None = None
    """Whether it belongs to the user who ran the query."""


class MigSlice(EnvironmentPart, frozen=True, kw_only=True):
    """One instance of a GPU that is partitioned."""

    name: str | None = None
    total_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None


class Gpu(EnvironmentPart, frozen=True, kw_only=True):
    """One accelerator. It has no serial number and no UUID here."""

    index: int | None = None
    name: str | None = None
    vendor: str | None = None
    """`nvidia`, `amd`, `intel`, `huawei`, `apple` ..."""
    total_bytes: int | None = None
    used_bytes: int | None = None
    free_bytes: int | None = None
    reserved_bytes: int | None = None
    """What driver and firmware reserve for themselves."""
    processes: tuple[GpuProcess, ...] = ()
    processes_known: bool | None = None
    """False if they could not be listed, so that an empty list is not informative."""
    compute_capability: str | None = None
    """`8.0`"""
    architecture: str | None = None
    """`gfx942`, `Hopper`, as the vendor's tools call it."""
    mig: bool | None = None
    slices: tuple[MigSlice, ...] = ()
    ecc: bool | None = None
    ecc_uncorrected: int | None = None
    """Errors that ECC could not correct since the driver was loaded."""
    retired_pages: int | None = None
    """Pages or rows retired because of errors."""
    repair_pending: bool | None = None
    """Whether a page or row is waiting for a reset to be retired."""
    nvlink: int | None = None
    """Active links."""
    unified: bool | None = None
    """Whether it shares its memory with the CPU."""
    exclusive: bool | None = None
    """Whether only one process may use it (compute mode)."""
    visible: bool | None = None
    """False if CUDA_VISIBLE_DEVICES or a similar variable hides it from the run."""


class Environment(EnvironmentPart, frozen=True, kw_only=True):
    """Everything known about the machine a run uses."""

    host: Host = Host()
    python: Python = Python()
    packages: Mapping[str, Package] = field(default_factory=dict)
    """By normalized name (`flash-attn`)."""
    torch: TorchBuild | None = None
    torch_run: TorchRun | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables that affect memory use; never one that could contain a secret."""
    launcher: Mapping[str, str] = field(default_factory=dict)
    """RANK, WORLD_SIZE and what Slurm, Kubernetes and others report about the job."""
    driver: Driver = Driver()
    gpus: tuple[Gpu, ...] = ()
    gpus_known: bool | None = None
    """True if the GPUs were listed, so that an empty list means there are none."""
    symbols: tuple[Symbol, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    """Path of a field -> where it was read (`NVML`, `/proc/meminfo`, `package metadata`, `nvidia-smi`)."""
    gaps: tuple[Gap, ...] = ()
