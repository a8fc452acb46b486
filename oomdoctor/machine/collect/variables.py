"""Variables that change what memory is used, and those in which launchers say how a run was started; no others are ever read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

from oomdoctor.machine.collect.collected import Collected

_SECRET = re.compile(r"TOKEN|SECRET|PASS|(?<!HASH)_KEY|CREDENTIAL|AUTH|COOKIE|API_?KEY", re.IGNORECASE)
_LONGEST = 400


def sounds_secret(name: str) -> bool:
    """Return whether the name of a variable sounds like that of a secret."""
    return _SECRET.search(name) is not None


class Variables(Struct, frozen=True):
    """The two groups, by name."""

    variables: Mapping[str, str]
    launcher: Mapping[str, str]


def collect_variables(environ: Mapping[str, str], table: Iterable[Mapping[str, str]]) -> Collected[Variables]:
    """Keep the variables that the table (`name`, which may end in `*`, and `group`) lists. None that sounds like a secret passes."""
    groups: dict[str, dict[str, str]] = {"memory": {}, "launcher": {}}
    rows = list(table)
    exact = {row["name"]: row["group"] for row in rows if not row["name"].endswith("*")}
    prefixes = [(row["name"][:-1], row["group"]) for row in rows if row["name"].endswith("*")]
    for name in sorted(environ):
        group = exact.get(name) or next((group for prefix, group in prefixes if name.startswith(prefix)), None)
        if group is not None and not sounds_secret(name):
            groups[group][name] = environ[name][:_LONGEST]
    return Collected(
        Variables(groups["memory"], groups["launcher"]),
        {"variables": "the environment of this process", "launcher": "the environment of this process"},
    )
