"""Any text -> the environment that it describes: one report or several, alone or inside a pasted issue."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from oomdoctor.case.environment import Environment
from oomdoctor.case.gap import Gap
from oomdoctor.knowledge.tables.csv_table import table
from oomdoctor.machine.collect.variables import collect_variables
from oomdoctor.machine.reports import key_values as keyed
from oomdoctor.machine.reports import nvidia_smi_query, packages
from oomdoctor.machine.reports import nvidia_smi_table as nvidia_smi
from oomdoctor.machine.reports.environment_json import read_environment_json
from oomdoctor.machine.reports.merge_facts import Fact, ReportedFact, merge_facts
from oomdoctor.machine.reports.pasted import clean_lines, decode_text

_VARIABLE = re.compile(r"^\s{0,8}(?:export\s{1,4}|set\s{1,4}|-e\s{1,4})?(?P<name>[A-Z][A-Z0-9_]{2,60})=(?P<value>[^=].{0,400}|)$")
_HEADING = re.compile(r"^#{1,6}\s")
_AUTHOR = "the author"
_KNOWN = "collect_env, transformers env, accelerate env, llamafactory-cli env, ds_report, nvidia-smi, pip freeze, conda list, oomdoctor env"


class _Table(Struct, frozen=True):
    """A report of several lines that belong together."""

    tool: str
    begins: re.Pattern[str]
    continues: re.Pattern[str]
    facts: Callable[[Sequence[str]], Iterator[Fact]]


_TABLES = (
    _Table("nvidia-smi", nvidia_smi.BEGINS, nvidia_smi.CONTINUES, nvidia_smi.read_table),
    _Table("nvidia-smi -q", nvidia_smi_query.BEGINS, nvidia_smi_query.CONTINUES, nvidia_smi_query.read_query),
    _Table("nvidia-smi --query-gpu", nvidia_smi_query.CSV, nvidia_smi_query.CSV_ROW, nvidia_smi_query.read_csv),
    _Table("pip list", packages.PIP_LIST, packages.ROW, packages.read_pip_list),
    _Table("conda list", packages.CONDA_LIST, packages.ROW, packages.read_conda_list),
)


def read_report(data: bytes, name: str) -> Environment:
    """Return the environment in the text `data` that is called `name`.

    Never raises: what is not understood is left out, and where nothing is a Gap says so. Only the first 4 MiB are read.
    """
    saved = read_environment_json(data)
    if saved is not None:
        return saved
    environment = read_lines(list(clean_lines(decode_text(data))))
    if environment == Environment():
        return Environment(gaps=(Gap(what=name, why="nothing in it describes a machine", how=f"the output of {_KNOWN}"),))
    return environment


def describes_nothing(known: Environment) -> bool:
    """Return whether an environment was read from a text that says nothing about a machine."""
    return replace(known, gaps=()) == Environment()


def read_lines(text: Sequence[str]) -> Environment:
    """Return the environment that cleaned lines describe. What a tool printed goes before what a person wrote."""
    printed: list[ReportedFact] = []
    handwritten: list[ReportedFact] = []
    assigned: dict[str, str] = {}
    tool = "the text"
    for part in _parts(text):
        if isinstance(part, list):
            printed += part
            continue
        tool = "the text" if _HEADING.match(part) else keyed.find_tool(part) or tool
        listing = tool if part.lstrip().startswith("[") else "pip freeze"
        printed += [ReportedFact(path, value, listing) for path, value in packages.read_line(part)]
        printed += [ReportedFact(path, value, tool) for path, value in keyed.read_line(part)]
        handwritten += [ReportedFact(path, value, _AUTHOR) for path, value in keyed.read_handwritten_line(part)]
        if variable := _VARIABLE.match(part):
            assigned[variable["name"]] = variable["value"].strip().strip("'\"")
    allowed = collect_variables(assigned, table("variables")).value
    printed += [ReportedFact(("variables", name), value, tool) for name, value in allowed.variables.items() if value]
    printed += [ReportedFact(("launcher", name), value, tool) for name, value in allowed.launcher.items() if value]
    paths = {fact.path for fact in printed}
    return merge_facts(_listed_packages([*printed, *(fact for fact in handwritten if fact.path not in paths)]))


def _listed_packages(facts: Iterable[ReportedFact]) -> Iterator[ReportedFact]:
    """All facts but those of packages that the table does not name."""
    names = [row["name"] for row in table("packages")]
    exact = {name for name in names if not name.endswith("*")}
    prefixes = tuple(name[:-1] for name in names if name.endswith("*"))
    for fact in facts:
        if fact.path[0] != "packages" or fact.path[1] in exact or fact.path[1].startswith(prefixes):
            yield fact


def _parts(text: Sequence[str]) -> Iterator[str | list[ReportedFact]]:
    """Single lines, and tables as what they say."""
    open_: _Table | None = None
    held: list[str] = []
    for line in (*text, "\0"):
        if (
            open_ is not None
            and open_.continues.match(line)
            and not (open_.begins.match(line) and len(held) > 1 and open_.tool == "nvidia-smi")
        ):
            held.append(line)
            continue
        if open_ is not None:
            yield [ReportedFact(path, value, open_.tool) for path, value in open_.facts(held)]
        open_ = next((candidate for candidate in _TABLES if candidate.begins.match(line)), None)
        held = [line]
        if open_ is None and line != "\0":
            yield line
