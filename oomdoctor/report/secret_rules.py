"""What a secret looks like: keys, names of people and machines, addresses.

Each rule is a bounded pattern whose named group (`token`, `user`, `host`, `ip`, `mac`, `email`) is the secret. No rule may match
a placeholder (`<host-1>`), or redacting twice would not be the same as once.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

_NAME = r"[A-Za-z0-9_][\w.-]{0,62}"
_NODES = r"[A-Za-z0-9_][\w.-]{0,62}(?:\[[\d,-]{1,60}\])?"
_IS = r"[\"']?\s{0,2}[=:]\s{0,2}[\"']?"
_NO_USERS = frozenset({"root", "shared", "public", "user", "users", "default", "git", "all users"})
_NO_HOSTS = frozenset(
    {"localhost", "none", "null", "nil", "true", "false", "unknown", "memory", "device", "cpu", "gpu", "cuda", "auto", "host", "node"}
)


class Rule(Struct, frozen=True):
    """A pattern that is tried where one of `needs` (in lower case) stands in the text; `holds` looks at what it found."""

    needs: tuple[str, ...]
    pattern: str
    holds: Callable[[str], bool]

    def compiled(self) -> re.Pattern[str]:
        """The pattern, compiled when a text first needs it."""
        return re.compile(self.pattern)


def has_digit(secret: str) -> bool:
    """Whether a name has a digit in it, as few words have."""
    return any(char.isdigit() for char in secret)


def is_user(secret: str) -> bool:
    """Whether a user's name tells anything of a person."""
    return secret.lower() not in _NO_USERS


def is_host(secret: str) -> bool:
    """Whether a word is the name of one machine."""
    return secret.lower() not in _NO_HOSTS and not secret.replace(".", "").replace(",", "").isdigit()


def _is_key(secret: str) -> bool:
    """`hunter22` and `9f8e...`, but not a count (`token: 4096`) or a word (`token: required`)."""
    return not secret.isdigit() and len(secret) >= 6 and has_digit(secret)


def _is_address(secret: str) -> bool:
    """An IPv4 address of a machine, not of every machine, and not a version (`12.04.1.1`)."""
    octets = secret.split(".")
    return all(int(octet) <= 255 and octet == str(int(octet)) for octet in octets) and octets[0] not in ("0", "127", "255")


def _is_long_address(secret: str) -> bool:
    """An IPv6 address other than `::1`, not a time (`12:30:45`)."""
    groups = secret.split(":")
    if not has_digit(secret) or any(len(group) > 4 for group in groups) or ":::" in secret:
        return False
    if "::" not in secret:
        return len(groups) == 8 and all(groups)
    return secret.count("::") == 1 and len(groups) <= 8 and len(secret) > 4


def _always(_: str) -> bool:
    return True


def _rule(needs: str, *pattern: str, holds: Callable[[str], bool] = _always) -> Rule:
    return Rule(tuple(needs.split("|")), "".join(pattern), holds)


_KEYS = (
    _rule(
        "hf_|sk-|gh|glpat-|akia|asia|xox|aiza|eyj|pypi-|ltai",
        r"(?<![A-Za-z0-9])(?P<token>hf_[A-Za-z0-9]{16,}|sk-[\w-]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}",
        r"|glpat-[\w-]{16,}|(?:AKIA|ASIA)[A-Z0-9]{16}|LTAI[A-Za-z0-9]{12,}|xox[abeprs]-[A-Za-z0-9-]{10,}|AIza[\w-]{30,}",
        r"|pypi-[\w-]{16,}|eyJ[\w-]{10,}(?:\.[\w-]{4,}){1,2})",
    ),
    _rule(
        "authorization|bearer",
        rf"(?i)(?:Authorization{_IS}(?:Bearer|Basic|Token)|\bBearer)\s",
        r"(?P<token>[^\s\"'<>,;]{6,})",
    ),
    _rule("://", r"://(?P<user>[^\s/:@<>]{1,64}):(?P<token>[^\s/@<>]{1,200})@"),
    _rule("://", r"://(?P<token>[^\s/:@<>]{8,200})@", holds=_is_key),
    _rule(
        "passw|secret|api|access|private|credential|pwd",
        r"(?i)(?:passw(?:or)?d|secret|api[_-]?key|access[_-]?key|private[_-]?key|credentials?|\bpwd)[\w-]{0,24}",
        rf"{_IS}(?P<token>[^\s\"',;&<>(){{}}\[\]/]{{4,}})",
    ),
    _rule(
        "token",
        r"(?i)(?<!pad_)(?<!eos_)(?<!bos_)(?<!unk_)(?<!sep_)(?<!cls_)(?<!new_)(?<!num_)(?<!per_)token",
        rf"{_IS}(?P<token>[\w.+/=-]{{8,}})",
        holds=_is_key,
    ),
    _rule("login|key|wandb", r"(?i)(?:login|key|wandb[^\n]{0,40}?)[\s:=\"']{1,4}(?P<token>[0-9a-f]{40})(?![0-9a-f])"),
)
_PEOPLE = (
    _rule(
        "@",
        r"(?<![\w.+/-])(?P<email>[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,6}\.[A-Za-z]{2,24})(?![\w@-])",
    ),
    _rule("/home/|/users/", r"(?i)/(?:home|users)/(?P<user>[^/\\\s:;,\"'<>()\[\]{}|*?]{1,64})", holds=is_user),
    _rule(
        "\\users\\",
        r"(?i)[A-Z]:\\{1,2}Users\\{1,2}",
        r"(?P<user>[^\\/:;,\"'<>|*?\n]{1,64}(?=\\)|[^\\/\s:;,\"'<>|*?]{1,64})",
        holds=is_user,
    ),
    _rule("logged in as", rf"(?i)logged in as:?\s(?P<user>{_NAME})", holds=is_user),
    _rule("user|logname", rf"(?<![A-Za-z])(?:USER|LOGNAME|USERNAME|user(?:name)?)=[\"']?(?P<user>{_NAME})", holds=is_user),
    _rule("@", r"(?<![\w./+@-])(?:root|(?P<user>[a-z_][\w-]{0,31}))@(?P<host>[A-Za-z][\w-]{0,62})(?=[:\s\]]|$)", holds=is_host),
)
_MACHINES = (
    _rule("host", rf"(?im)^[\s\[\]]{{0,12}}host\s{{1,10}}:\s(?P<host>{_NODES})", holds=is_host),
    _rule(
        "host|node|addr|endpoint",
        r"(?i)\b(?:MASTER_ADDR|HOSTNAME|NODENAME|SLURMD_NODENAME|SLURM_(?:JOB_)?NODELIST|node_?list|rdzv[_-]endpoint)",
        rf"{_IS}(?P<host>{_NODES})",
        holds=is_host,
    ),
    _rule("[|nccl", r"(?<![\w.-])(?P<host>[A-Za-z][\w.-]{0,62}):\d{1,8}:\d{1,8} (?:\[|NCCL)", holds=is_host),
    _rule("slurmstepd-", rf"slurmstepd-(?P<host>{_NAME}):", holds=is_host),
    _rule("srun: error: ", rf"srun: error: (?P<host>{_NODES}): ", holds=is_host),
    _rule(" on ", rf"(?:\*\*\* (?:STEP|JOB) [\d.+_]{{1,40}} ON|[Kk]illed on node|running on node) (?P<host>{_NODES})", holds=is_host),
    _rule(" kernel: ", rf"\d\d:\d\d:\d\d(?:\.\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)? (?P<host>{_NAME}) kernel: ", holds=is_host),
    _rule("tcp://|nccl://", r"(?:tcp|nccl)://(?P<host>[A-Za-z][\w.-]{0,62})", holds=is_host),
    _rule("ip-", r"(?<![\w-])(?P<host>ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?:\.[\w.-]{1,60})?)"),
)
_ADDRESSES = (
    _rule(":", r"(?<![\w:-])(?P<mac>[0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){5})(?![\w:])"),
    _rule(":", r"(?<![\w:.])(?P<ip>[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{2,40}[0-9A-Fa-f])(?![\w:])", holds=_is_long_address),
    _rule(
        ".",
        # Four numbers after the name of a library are its version.
        r"(?i)(?:(?:version|driver|cuda|cudnn|cublas|nccl|nvidia|torch|release|rev)[\"']?[\s:=v]{0,4}|==|>=|<=|\.so\.)\d{1,3}(?:\.\d{1,3}){3}",
        r"|(?<![\w.-])(?P<ip>\d{1,3}(?:\.\d{1,3}){3})(?!\w|\.\d|[-+]\w)",
        holds=_is_address,
    ),
)
RULES = (*_KEYS, *_PEOPLE, *_MACHINES, *_ADDRESSES)
