"""Which facts exist: what messages, settings and tables name, and what the code works out (oomdoctor/case/fact_names.py).

A fact that no rule file and no code can ever give would leave a rule unknown for ever, without a word: such a rule is refused.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import fields

from oomdoctor.case import fact_names as computed
from oomdoctor.case.environment import Gpu, Host, TorchRun
from oomdoctor.case.event import Certainty, Kind
from oomdoctor.case.settings import RunSettings
from oomdoctor.knowledge.records.framework import KeyTable
from oomdoctor.knowledge.records.signature import SignatureRecord
from oomdoctor.knowledge.rule_set import RuleSet

_NUMBERED = re.compile(r"\.gpu\.\d{1,3}\.")
"""One of several cards: `environment.gpu.1.name`."""
_GROUP = re.compile(r"\(\?P<(\w+)>")


class WrittenKeys(Struct, frozen=True):
    """The keys of configs as they are written: `given.FRAMEWORK.KEY`, and `given.FRAMEWORK` where there is a config of it."""

    frameworks: frozenset[str]
    unlisted: frozenset[str]
    """Frameworks of which nobody has listed the keys."""
    keys: frozenset[str]

    def nearest(self, name: str) -> tuple[bool, Collection[str]]:
        """Return whether a fact exists, and the names among which the one that was meant may be."""
        _, framework, key = (*name.split(".", 2), "")[:3]
        if framework not in self.frameworks:
            return False, {f"given.{known}{'.' if key else ''}{key}" for known in self.frameworks}
        block, _, inner = key.rpartition(".")
        exists = not key or framework in self.unlisted or key in self.keys or (block in self.keys and inner in self.keys)
        return exists, () if exists else {f"given.{framework}.{known}" for known in self.keys}


class FactNames(Struct, frozen=True):
    """The facts that each kind of rule may ask for."""

    case: frozenset[str]
    """Problems and fixes: a run or a machine."""
    configs: frozenset[str]
    """Checks: the settings of a run, as they are written and as they mean."""
    compared: frozenset[str]
    """Changes: what two runs or machines share."""
    forms: frozenset[str]
    """Bug forms."""
    open: tuple[str, ...]
    """Beginnings of names of which any end may exist."""
    written: WrittenKeys
    values: Mapping[str, frozenset[str]]
    """The values of facts that have few."""

    def nearest(self, name: str, names: frozenset[str]) -> tuple[bool, Collection[str]]:
        """Return whether a fact exists among `names`, and the names among which the one that was meant may be."""
        if names is self.configs and name.startswith("given."):
            return self.written.nearest(name)
        return _NUMBERED.sub(".gpu.", name) in names or name.startswith(self.open), names


def fact_names(rules: RuleSet) -> FactNames:
    """Return the facts that exist with these rules."""
    events = {name for loaded in rules.signatures if loaded.record.kind != "context" for name in fields_of(loaded.record)}
    logged = {name for loaded in rules.signatures if loaded.record.kind == "context" for name in fields_of(loaded.record)}
    packages, variables = _listed(rules.root, "packages"), _listed(rules.root, "variables")
    plain = {package.replace("-", "_") for package in packages}
    printed = [name.removesuffix("_version").replace("_", "-") for name in logged if name.endswith("_version")]
    versions = {f"{package}_version" for package in (*plain, "driver", "python")}
    settings = set(RunSettings.__struct_fields__)
    log = _under("log", logged | versions | computed.LOG)
    training = _under("training", settings | computed.TRAINING)
    verdict = _under("verdict", computed.VERDICT) | _under("estimate", computed.ESTIMATE)
    case = _under("event", events) | _under("derived", computed.DERIVED) | _under("incident", computed.INCIDENT) | log | training | verdict
    options = {name for _, framework in rules.frameworks for table in framework.options.values() for name in _listed_keys(table)}
    return FactNames(
        case=frozenset(case | _environment(packages, variables)),
        configs=frozenset(
            log | training | _under("key", settings) | _under("config", computed.CONFIG) | _under("card", computed.CHECKED_CARD)
        ),
        compared=frozenset(
            training | computed.COMPARED | _under("version", plain) | _under("alloc", options) | _under("variable", variables)
        ),
        forms=frozenset(computed.ASKED_BY_FORMS | _under("package", (*packages, *printed)) | _under("commit", packages)),
        open=(
            *(f"{group}.{name[:-1]}" for name in variables if name.endswith("*") for group in ("environment.variable", "variable")),
            *(() if packages else ("environment.package.", "version.", "package.", "commit.")),
            *(() if variables else ("environment.variable.", "environment.launcher.", "variable.")),
        ),
        written=_written_keys(rules),
        values={
            "incident.kind": frozenset(kind.value for kind in Kind),
            "verdict.kind": frozenset(kind.value for kind in Kind),
            "incident.certainty": frozenset(certainty.value for certainty in Certainty),
            "incident.signature": frozenset(loaded.record.id for loaded in rules.signatures),
            "incident.program": frozenset(loaded.program for loaded in rules.signatures),
            "incident.phase": computed.PHASES,
            "derived.request_kind": computed.REQUEST_KINDS,
        },
    )


def fields_of(signature: SignatureRecord) -> set[str]:
    """Return the fields of the events of a signature; where a family reads them, those that its examples show."""
    shown = (name for example in signature.examples for name in example.fields)
    return {*_GROUP.findall(signature.pattern or ""), *signature.set, *(shown if signature.family else ())}


def _listed(root: str, table: str) -> list[str]:
    """Return the names in a table of a folder of rules; empty where it has no such table."""
    path = Path(root) / "tables" / f"{table}.csv"
    return [row["name"] for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())] if path.is_file() else []


def _under(prefix: str, names: Iterable[str]) -> set[str]:
    return {f"{prefix}.{name}" for name in names}


def _environment(packages: Iterable[str], variables: Iterable[str]) -> set[str]:
    gpu = {field.name for field in fields(Gpu)} | computed.CARD
    names = {field.name for field in fields(Host)} | {f"torch_{field.name}" for field in fields(TorchRun)}
    names |= computed.HOST | computed.SOFTWARE | computed.COUNTS
    names |= {f"{card}.{name}" for card in computed.CARDS for name in gpu}
    names |= _under("package", (package.replace("-", "_") for package in packages))
    names |= _under("variable", variables) | _under("launcher", variables)
    return _under("environment", names)


def _written_keys(rules: RuleSet) -> WrittenKeys:
    """Return the keys that people can write.

    People write keys of one framework for another, and checks may say so: a key of any framework exists for all.
    """
    records = {record.framework: record for _, record in rules.frameworks}
    listed = {record.framework for record in records.values() if record.keys is not None}
    keys: set[str] = set()
    for record in records.values():
        keys |= {*_listed_keys(record.keys), *record.extra, *record.renamed, *record.blocks}
        keys |= {key if isinstance(key, str) else key.key for written in record.settings.values() for key in written}
        keys |= {f"{block}.{key}" for block, inner in record.blocks.items() for key in inner}
    keys |= {".".join(key.split(".")[:depth]) for key in keys for depth in range(1, key.count(".") + 1)}
    unlisted = {record.framework for record in records.values() if listed.isdisjoint((record.framework, *record.shares))}
    return WrittenKeys(frozenset({*records, "hf"}), frozenset(unlisted), frozenset(keys))


def _listed_keys(table: KeyTable | None) -> set[str]:
    """Return the keys of a table, of all versions."""
    return set() if table is None else {name for span in table.spans for name in span.names.split()}
