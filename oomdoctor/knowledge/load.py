"""YAML rule files -> records, strictly: every mistake is reported as file:line:column, what is wrong, what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from msgspec import to_builtins
from msgspec.structs import replace

from oomdoctor.case.settings import RunSettings
from oomdoctor.errors import RuleError
from oomdoctor.knowledge.conditions import WrittenCondition, fault, parts, plain
from oomdoctor.knowledge.records.change import ChangeFile
from oomdoctor.knowledge.records.check import CheckFile
from oomdoctor.knowledge.records.condition import ConditionFile, tagged_condition
from oomdoctor.knowledge.records.evidence import ComputationFile, EvidenceFile, HoldingFile
from oomdoctor.knowledge.records.fix import FixRecord
from oomdoctor.knowledge.records.form import FormRecord, SheetRecord
from oomdoctor.knowledge.records.framework import FrameworkRecord, FromKey
from oomdoctor.knowledge.records.layout import LayoutFile
from oomdoctor.knowledge.records.log_setting import LogSettingRecord
from oomdoctor.knowledge.records.problem import CauseFile, ProblemRecord
from oomdoctor.knowledge.records.server import ServerRecord
from oomdoctor.knowledge.records.signature import SignatureFile
from oomdoctor.knowledge.records.source import SourceFile
from oomdoctor.knowledge.records.template import TemplateRecord
from oomdoctor.knowledge.references import wrong_references
from oomdoctor.knowledge.rows.framework_rows import with_framework_rows
from oomdoctor.knowledge.rows.log_settings import signature_of
from oomdoctor.knowledge.rows.program_marks import signature_of_marks
from oomdoctor.knowledge.rule_set import LoadedSignature, RuleSet
from oomdoctor.knowledge.yaml_file import YamlFile, convert, did_you_mean, place_of_word, read_yaml

T = TypeVar("T")
_LOG = "log"
"""The framework whose settings are the fields of messages of context."""
_DATA = ("fields", "environment", "snapshot")
"""Keys that hold examples of data, whose keys are no words of rules."""


def rule_files(root: Path) -> list[Path]:
    """Return the rule files below `root`, in a fixed order."""
    return sorted(path for path in root.rglob("*.yaml") if path.is_file())


def load_rules(root: Path, over: Path | None = None) -> RuleSet:
    """Return every rule below `root`, with those below `over` laid over them: a rule of the same id takes the other's place.

    Raise RuleError at the first file that is not right, or names what does not exist.
    """
    rules = load_records(root, over)
    wrong = next(wrong_references(rules), None)
    if wrong is not None:
        raise RuleError(wrong.path, *place_of_word(wrong.path, wrong.id, wrong.word), f"{wrong.id}: {wrong.why}")
    return rules


_BY_ID = ("sources", "causes", "computations", "holdings", "evidence", "layouts", "exports")


def load_records(root: Path, over: Path | None = None) -> RuleSet:
    """Return the rules of `load_rules`, whatever they name. Raise RuleError at the first file that is not right by itself."""
    rules = _read_folder(root, {})
    if over is not None:
        rules = _laid_over(rules, _read_folder(over, rules.conditions))
    frameworks = _with_log_settings(rules.frameworks)
    fixes = tuple((path, with_framework_rows(fix, [framework for _, framework in frameworks])) for path, fix in rules.fixes)
    return replace(rules, frameworks=frameworks, fixes=fixes)


def _read_folder(root: Path, known: Mapping[str, WrittenCondition]) -> RuleSet:
    """Return the rules of one folder as its files have them; `known` are named conditions of another one."""
    named = {**known, **load_conditions(root / "conditions.yaml")}
    frameworks = _frameworks(root / "frameworks", named)
    signatures = [signature for path in sorted((root / "signatures").rglob("*.yaml")) for signature in load_signatures(path)]
    for path, framework in frameworks:
        marks = signature_of_marks(framework)
        own = [*framework.signatures, *([marks] if marks else [])]
        signatures += [LoadedSignature(framework.framework, path, record) for record in own]
    _unique([(signature.path, signature.record.id) for signature in signatures])
    problems = _records(root / "problems", ProblemRecord, named)
    fixes = _records(root / "fixes", FixRecord, named)
    checks = tuple((path, check) for path, file in _records(root / "checks", CheckFile, named) for check in file.checks)
    changes = tuple((path, change) for path, file in _records(root / "changes", ChangeFile, named) for change in file.changes)
    templates = _records(root / "templates", TemplateRecord)
    for kind in (problems, fixes, checks, changes, templates):
        _unique([(path, record.id) for path, record in kind])
    _unique([(path, framework.framework) for path, framework in frameworks])
    for where, framework in frameworks:
        check_setting_names(where, [*framework.settings, *framework.writes, *framework.log_settings])
    for where, fix in fixes:
        check_setting_names(where, [change.setting for change in fix.sets])
    for where, check in checks:
        check_setting_names(where, check.sets)
    servers = _records(root / "servers", ServerRecord)
    _unique([(path, server.server) for path, server in servers])
    listed = root / "sources.yaml"
    lying = load_file(laid, LayoutFile) if (laid := root / "layouts.yaml").is_file() else LayoutFile(layouts=[], exports=[])
    return RuleSet(
        signatures=tuple(signatures),
        problems=problems,
        fixes=fixes,
        sources=tuple(load_file(listed, SourceFile).sources) if listed.is_file() else (),
        frameworks=tuple((path, replace(framework, signatures=[])) for path, framework in frameworks),
        servers=servers,
        checks=checks,
        forms=tuple((str(path), load_file(path, FormRecord)) for path in sorted((root / "forms").glob("*.yaml"))),
        sheets=_records(root / "forms" / "sheets", SheetRecord),
        templates=templates,
        changes=changes,
        causes=tuple(load_file(causes, CauseFile).causes) if (causes := root / "causes.yaml").is_file() else (),
        computations=tuple(load_file(told, ComputationFile).computations) if (told := root / "computations.yaml").is_file() else (),
        holdings=tuple(load_file(held, HoldingFile).holdings) if (held := root / "holdings.yaml").is_file() else (),
        evidence=tuple(_record(read_yaml(weighed), EvidenceFile, named).evidence) if (weighed := root / "evidence.yaml").is_file() else (),
        layouts=tuple(lying.layouts),
        exports=tuple(lying.exports),
        conditions=named,
        root=str(root),
    )


def _frameworks(folder: Path, named: Mapping[str, WrittenCondition]) -> list[tuple[str, FrameworkRecord]]:
    """Return the frameworks of a folder, with each row of a setting in their logs spelt out as a signature."""
    files = [read_yaml(path) for path in sorted(folder.glob("*.yaml"))]
    return [(file.path, convert(file, FrameworkRecord, _with_conditions(file, _without_rows(file), "$", named))) for file in files]


def _laid_over(rules: RuleSet, over: RuleSet) -> RuleSet:
    """Return two sets of rules as one; of two with the same id the second counts."""

    def merged(name: str, identity: Callable[[Any], str]) -> tuple[Any, ...]:
        return tuple({identity(item): item for item in (*getattr(rules, name), *getattr(over, name))}.values())

    kinds = ("problems", "fixes", "checks", "forms", "sheets", "templates", "changes")
    return replace(
        rules,
        signatures=merged("signatures", lambda item: str(item.record.id)),
        frameworks=merged("frameworks", lambda item: str(item[1].framework)),
        servers=merged("servers", lambda item: str(item[1].server)),
        **{name: merged(name, lambda item: str(item[1].id)) for name in kinds},
        **{name: merged(name, lambda item: str(item.id)) for name in _BY_ID},
        conditions=over.conditions,
    )


def _with_log_settings(frameworks: tuple[tuple[str, FrameworkRecord], ...]) -> tuple[tuple[str, FrameworkRecord], ...]:
    """Return the frameworks with what each says of settings in its logs among those of all logs."""
    settings: dict[str, list[str | FromKey]] = {}
    for _, framework in frameworks:
        for name, keys in framework.log_settings.items():
            settings.setdefault(name, []).extend(keys)

    def of_logs(framework: FrameworkRecord) -> FrameworkRecord:
        known = framework.settings
        return replace(framework, settings={**known, **{name: [*known.get(name, []), *keys] for name, keys in settings.items()}})

    return tuple((path, of_logs(framework) if framework.framework == _LOG else framework) for path, framework in frameworks)


def load_conditions(path: Path) -> Mapping[str, WrittenCondition]:
    """Return the named conditions of a folder of rules, as plain ones; a condition may use those above it."""
    named: dict[str, WrittenCondition] = {}
    if path.is_file():
        file = read_yaml(path)
        for number, record in enumerate(convert(file, ConditionFile, file.value).conditions):
            if record.id in named:
                raise file.error(f"$.conditions[{number}].id", f"the id '{record.id}' is already used in {path}")
            named[record.id] = plain_condition(file, record.when, f"$.conditions[{number}].when", named)
    return named


def plain_condition(file: YamlFile, when: Any, at: str, named: Mapping[str, WrittenCondition]) -> WrittenCondition:
    """Return the plain condition behind one that a file writes at `at`. Raises RuleError where it is malformed or names no other."""
    wrong = fault(when, at)
    if wrong is not None:
        raise file.error(wrong[0], f"when: {wrong[1]}")
    for where, part in parts(when, at):
        if "condition" in part and part["condition"] not in named:
            name = part["condition"]
            raise file.error(f"{where}.condition", f"unknown condition '{name}'{did_you_mean(name, named)}")
    return plain(when, named)


def _records(folder: Path, shape: type[T], named: Mapping[str, WrittenCondition] | None = None) -> tuple[tuple[str, T], ...]:
    """Return each file below a folder as a record, with the path of the file."""
    return tuple((str(path), _record(read_yaml(path), shape, named or {})) for path in sorted(folder.rglob("*.yaml")))


def _record(file: YamlFile, shape: type[T], named: Mapping[str, WrittenCondition]) -> T:
    """Return a file as a record, with plain conditions."""
    return convert(file, shape, _with_conditions(file, file.value, "$", named))


def _with_conditions(file: YamlFile, value: Any, at: str, named: Mapping[str, WrittenCondition]) -> Any:
    """Return the content of a file with each `when` spelt out, as records have it."""
    if isinstance(value, list):
        return [_with_conditions(file, inner, f"{at}[{number}]", named) for number, inner in enumerate(value)]
    if isinstance(value, dict):
        return {
            key: tagged_condition(plain_condition(file, inner, f"{at}.{key}", named))
            if key == "when"
            else inner
            if key in _DATA
            else _with_conditions(file, inner, f"{at}.{key}", named)
            for key, inner in value.items()
        }
    return value


def load_signatures(path: Path) -> list[LoadedSignature]:
    """Return the signatures of one file."""
    file = read_yaml(path)
    loaded = convert(file, SignatureFile, _without_rows(file))
    records = [replace(record, purpose=record.purpose or loaded.purpose) for record in loaded.signatures]
    return [LoadedSignature(loaded.program, file.path, record) for record in records]


def _without_rows(file: YamlFile) -> Any:
    """Return the content of a file of signatures with each row of a setting spelt out."""
    signatures = file.value.get("signatures") if isinstance(file.value, dict) else None
    if not isinstance(signatures, list):
        return file.value
    whole = [
        to_builtins(signature_of(convert(file, LogSettingRecord, item, f"$.signatures[{number}]"))) if "setting" in item else item
        for number, item in enumerate(signatures)
        if isinstance(item, dict)
    ]
    return {**file.value, "signatures": whole if len(whole) == len(signatures) else signatures}


def add_file(rules: RuleSet, path: Path) -> RuleSet:
    """Return the rules with those of one more file, whose kind its keys show. Raises RuleError where it is no rule file."""
    file = read_yaml(path)
    keys = set(file.value) if isinstance(file.value, dict) else set()
    if "checks" in keys:
        return replace(rules, checks=(*rules.checks, *((file.path, check) for check in _record(file, CheckFile, rules.conditions).checks)))
    if "changes" in keys:
        added = _record(file, ChangeFile, rules.conditions).changes
        return replace(rules, changes=(*rules.changes, *((file.path, change) for change in added)))
    if "harm" in keys:
        fix = with_framework_rows(_record(file, FixRecord, rules.conditions), [framework for _, framework in rules.frameworks])
        return replace(rules, fixes=(*rules.fixes, (file.path, fix)))
    if "when" in keys:
        return replace(rules, problems=(*rules.problems, (file.path, _record(file, ProblemRecord, rules.conditions))))
    if "server" in keys:
        return replace(rules, servers=(*rules.servers, (file.path, _record(file, ServerRecord, {}))))
    if "framework" in keys:
        return replace(rules, frameworks=(*rules.frameworks, (file.path, _record(file, FrameworkRecord, rules.conditions))))
    return replace(rules, signatures=(*rules.signatures, *load_signatures(path)))


def load_file(path: Path, shape: type[T]) -> T:
    """Return one YAML file as `shape`. Raises RuleError at the line where it is not."""
    return _record(read_yaml(path), shape, {})


def check_setting_names(path: str, names: Iterable[str]) -> None:
    """Raise RuleError for the first of these names that is no setting of a run, with the one that was probably meant."""
    known = RunSettings.__struct_fields__
    for name in names:
        if name not in known:
            raise RuleError(path, 1, 1, f"no setting of a run is called '{name}'{did_you_mean(name, known)}")


def _unique(named: list[tuple[str, str]]) -> None:
    first: dict[str, str] = {}
    for path, name in named:
        if name in first:
            raise RuleError(path, 1, 1, f"the id '{name}' is already used in {first[name]}")
        first[name] = path
