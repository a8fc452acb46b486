"""What machine this is: system, kernel, C library, board, WSL, container."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import asdict

from oomdoctor.machine.collect.collected import Collected
from oomdoctor.machine.collect.root import Root

_SYSTEMS = {"linux": "linux", "win32": "windows", "cygwin": "windows", "darwin": "macos"}
_FIELD = re.compile(r"^(\w{1,40})=[\"']?([^\"'\n]{0,200})", re.MULTILINE)
_ORIGINS = {
    "system": "the interpreter",
    "kernel": "uname",
    "architecture": "uname",
    "libc": "the C library",
    "model": "the firmware",
    "cpus": "the scheduler",
    "wsl": "uname",
    "container": "files and variables of the container",
}
_MAC_VERSION = re.compile(r"<key>ProductVersion</key>\s{0,20}<string>([\d.]{1,20})")
_IN_CGROUP = (
    ("kubepods", "kubernetes"),
    ("docker", "docker"),
    ("libpod", "podman"),
    ("containerd", "containerd"),
    ("lxc", "lxc"),
)


class HostSystem(Struct, frozen=True, kw_only=True):
    """What the system says of itself, as fields of `Host`."""

    os: str | None = None
    system: str | None = None
    kernel: str | None = None
    architecture: str | None = None
    libc: str | None = None
    model: str | None = None
    cpus: int | None = None
    wsl: int | None = None
    container: str | None = None


class Uname(Struct, frozen=True):
    """The three words of uname that matter here."""

    platform: str
    """As in `sys.platform`."""
    release: str
    machine: str


def read_uname() -> Uname:
    """Return what uname says of this machine."""
    if not hasattr(os, "uname"):
        version = getattr(sys, "getwindowsversion", lambda: None)()
        release = "" if version is None else f"{version.major}.{version.minor}.{version.build}"
        return Uname(sys.platform, release, os.environ.get("PROCESSOR_ARCHITECTURE", ""))
    answer = os.uname()
    return Uname(sys.platform, answer.release, answer.machine)


def collect_host_system(
    root: Root, uname: Uname, environ: Mapping[str, str], libc: str | None = None, cpus: int | None = None
) -> Collected[HostSystem]:
    """Describe the machine below `root`. `libc` is what the C library says of itself, `cpus` how many this process may use."""
    value = HostSystem(
        os=_name(root, uname),
        system=_SYSTEMS.get(uname.platform),
        kernel=uname.release or None,
        architecture=uname.machine or None,
        libc=libc,
        model=_model(root),
        cpus=cpus,
        wsl=_wsl(uname),
        container=_container(root, uname, environ),
    )
    origins = {**_ORIGINS, "os": _os_origin(uname)}
    return Collected(value, {f"host.{name}": origins[name] for name, text in asdict(value).items() if text is not None})


def _name(root: Root, uname: Uname) -> str | None:
    if uname.platform == "win32":
        build = uname.release.rpartition(".")[2]
        # Windows 11 still calls itself 10.0; its builds begin at 22000 (learn.microsoft.com, Windows 11 release information).
        return f"Windows {'11' if build.isdecimal() and int(build) >= 22000 else '10'} ({uname.release})" if uname.release else "Windows"
    if uname.platform == "darwin":
        version = _MAC_VERSION.search(root.read("/System/Library/CoreServices/SystemVersion.plist") or "")
        return f"macOS {version[1]}" if version else "macOS"
    fields = dict(_FIELD.findall(root.read("/etc/os-release") or root.read("/usr/lib/os-release") or ""))
    return fields.get("PRETTY_NAME") or fields.get("NAME")


def _os_origin(uname: Uname) -> str:
    return {"win32": "the interpreter", "darwin": "SystemVersion.plist"}.get(uname.platform, "/etc/os-release")


def _model(root: Root) -> str | None:
    """Return the board, where it matters for memory: Jetson names itself in the device tree, DGX Spark in its firmware."""
    named = root.read("/proc/device-tree/model", 200) or root.read("/sys/class/dmi/id/product_name", 200)
    return (named or "").strip()[:100] or None


def _wsl(uname: Uname) -> int | None:
    """WSL 2 has a kernel of its own called microsoft-standard-WSL2; WSL 1 answers with Windows' version and the word Microsoft."""
    if uname.platform != "linux":
        return None
    release = uname.release
    return 2 if "WSL2" in release or "microsoft-standard" in release else 1 if "Microsoft" in release else 0


def _container(root: Root, uname: Uname, environ: Mapping[str, str]) -> str | None:
    if uname.platform != "linux":
        return None
    if "KUBERNETES_SERVICE_HOST" in environ or root.exists("/var/run/secrets/kubernetes.io"):
        return "kubernetes"
    if root.exists("/.dockerenv"):
        return "docker"
    if root.exists("/run/.containerenv"):
        return "podman"
    if "APPTAINER_CONTAINER" in environ or "SINGULARITY_CONTAINER" in environ or root.exists("/.singularity.d"):
        return "apptainer"
    named = re.search(r"(?:^|\n)container=(\w{1,30})", "\n" + (root.read("/proc/1/environ") or ""))
    if named or environ.get("container"):
        return named[1] if named else environ["container"][:30]
    groups = root.read("/proc/1/cgroup")
    if groups is None:
        return None
    return next((name for word, name in _IN_CGROUP if word in groups), "none")
