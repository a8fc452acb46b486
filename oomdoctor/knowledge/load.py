"""YAML rule files -> records, strictly: every mistake is reported as file:line:column, what is wrong, what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from os.path import lexists
from pathlib import Path
from typing import Any, TypeVar

from msgspec import to_builtins
from msgspec.structs import replace

from oomdoctor.case.settings import RunSettings
from oomdoctor.errors import RuleError
from oomdoctor.knowledge.conditions import WrittenCondition, fault, parts, plain
from oomdoctor.knowledge.phrases import fault_of_phrase
from oomdoctor.knowledge.records.bug import BugFile
from oomdoctor.knowledge.records.change import ChangeFile
from oomdoctor.knowledge.records.check import CheckFile
from oomdoctor.knowledge.records.condition import ConditionFile, tagged_condition
from oomdoctor.knowledge.records.evidence import ComputationFile, EvidenceFile, HoldingFile
from oomdoctor.knowledge.records.fix import FixRecord
from oomdoctor.knowledge.records.form import FormRecord, SheetRecord
from oomdoctor.knowledge.records.framework import FrameworkRecord, FromKey
from oomdoctor.knowledge.records.layout import LayoutFile
from oomdoctor.knowledge.records.lexicon import ConceptRecord, GrammarFile, LexiconFile, RefusalForm
from oomdoctor.knowledge.records.log_setting import LogSettingRecord
from oomdoctor.knowledge.records.phase import PhaseFile
from oomdoctor.knowledge.records.problem import CauseFile, ProblemRecord
from oomdoctor.knowledge.records.request import OperationFile, RequestFile
from oomdoctor.knowledge.records.server import ServerRecord
from oomdoctor.knowledge.records.signature import SignatureFile, SignatureRecord, TopicFile
from oomdoctor.knowledge.records.source import SourceFile
from oomdoctor.knowledge.records.template import TemplateRecord
from oomdoctor.knowledge.references import wrong_references
from oomdoctor.knowledge.rows.bug_rows import bug_signatures
from oomdoctor.knowledge.rows.framework_rows import with_framework_rows
from oomdoctor.knowledge.rows.log_settings import signature_of
from oomdoctor.knowledge.rows.observations import with_quotes
from oomdoctor.knowledge.rows.program_marks import signature_of_marks
from oomdoctor.knowledge.rule_set import LoadedSignature, RuleSet
from oomdoctor.knowledge.yaml_file import YamlFile, convert, did_you_mean, place_of_word, read_yaml

T = TypeVar("T")
_LOG = "log"
"""The framework whose settings are the fields of messages of context."""
_DATA = ("fields", "environment", "snapshot", "observed")
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


_BY_ID = ("sources", "causes", "computations", "holdings", "evidence", "phases", "layouts", "exports", "operations", "quantities")


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
    paths = [path for folder in ("signatures", "observations") for path in sorted((root / folder).rglob("*.yaml"))]
    reported = root / "reported.yaml"
    files = [*paths, *([reported] if lexists(reported) else [])]
    signatures = [signature for file in files for signature in load_signatures(file)]
    for path, framework in frameworks:
        marks = signature_of_marks(framework)
        own = [*framework.signatures, *([marks] if marks else [])]
        signatures += [LoadedSignature(framework.framework, path, record) for record in own]
    bugs = _records(root / "bugs", BugFile, named)
    signatures += [signature for path, file in bugs for signature in _shown_bugs(path, file)]
    _unique([(signature.path, signature.record.id) for signature in signatures])
    _unique([(path, file.program) for path, file in bugs])
    _unique([(path, bug.id) for path, file in bugs for bug in file.bugs])
    problems = _records(root / "problems", ProblemRecord, named)
    fixes = _records(root / "fixes", FixRecord, named)
    checks = tuple((path, check) for path, file in _records(root / "checks", CheckFile, named) for check in file.checks)
    changes = tuple((path, change) for path, file in _records(root / "changes", ChangeFile, named) for change in file.changes)
    templates = _records(root / "templates", TemplateRecord)
    requests = tuple((path, request) for path, file in _records(root / "requests", RequestFile, named) for request in file.requests)
    allocated = load_file(told, OperationFile) if lexists(told := root / "operations.yaml") else OperationFile(operations=[], quantities=[])
    for kind in (problems, fixes, checks, changes, templates, requests):
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
    lying = load_file(laid, LayoutFile) if lexists(laid := root / "layouts.yaml") else LayoutFile(layouts=[], exports=[])
    return RuleSet(
        signatures=tuple(signatures),
        problems=problems,
        fixes=fixes,
        sources=tuple(load_file(listed, SourceFile).sources) if lexists(listed) else (),
        frameworks=tuple((path, replace(framework, signatures=[])) for path, framework in frameworks),
        servers=servers,
        checks=checks,
        forms=tuple((str(path), load_file(path, FormRecord)) for path in sorted((root / "forms").glob("*.yaml"))),
        sheets=_records(root / "forms" / "sheets", SheetRecord),
        templates=templates,
        changes=changes,
        bugs=bugs,
        requests=requests,
        operations=tuple(allocated.operations),
        quantities=tuple(allocated.quantities),
        causes=tuple(load_file(causes, CauseFile).causes) if lexists(causes := root / "causes.yaml") else (),
        computations=tuple(load_file(told, ComputationFile).computations) if lexists(told := root / "computations.yaml") else (),
        holdings=tuple(load_file(held, HoldingFile).holdings) if lexists(held := root / "holdings.yaml") else (),
        evidence=tuple(_record(read_yaml(weighed), EvidenceFile, named).evidence) if lexists(weighed := root / "evidence.yaml") else (),
        phases=tuple(_record(read_yaml(timed), PhaseFile, named).phases) if lexists(timed := root / "phases.yaml") else (),
        layouts=tuple(lying.layouts),
        exports=tuple(lying.exports),
        topics=load_file(told, TopicFile).topics if lexists(told := root / "topics.yaml") else {},
        concepts=tuple(_concepts(root / "lexicon")),
        grammar=tuple(_grammar(load_file(forms, GrammarFile))) if lexists(forms := root / "grammar.yaml") else (),
        conditions=named,
        root=str(root),
    )


def _frameworks(folder: Path, named: Mapping[str, WrittenCondition]) -> list[tuple[str, FrameworkRecord]]:
    """Return the frameworks of a folder, with each row of a setting in their logs spelt out as a signature."""
    files = [read_yaml(path) for path in sorted(folder.glob("*.yaml"))]
    return [(file.path, convert(file, FrameworkRecord, _with_conditions(file, _without_rows(file), "$", named))) for file in files]


def _shown_bugs(path: str, file: BugFile) -> list[LoadedSignature]:
    """Return the signatures by which logs show the bugs of a program, and its version."""
    return [LoadedSignature(file.program, path, record) for record in bug_signatures(file)]


def _concepts(folder: Path) -> Iterator[tuple[str, ConceptRecord]]:
    """Yield the concepts of the files of a lexicon. Raise RuleError at a phrase that is none."""
    for path in sorted(folder.glob("*.yaml")):
        file = read_yaml(path)
        for number, concept in enumerate(convert(file, LexiconFile, file.value).concepts):
            for language, phrases in concept.words.items():
                for entry, phrase in enumerate(phrases):
                    why = fault_of_phrase(phrase)
                    if why is not None:
                        raise file.error(f"$.concepts[{number}].words.{language}[{entry}]", f"{concept.id}: {why}")
            yield file.path, concept


def _grammar(file: GrammarFile) -> Iterator[RefusalForm]:
    """Yield the forms of refusals with the concepts of their groups."""

    def named(names: list[str]) -> list[str]:
        return [concept for name in names for concept in file.groups.get(name, [name])]

    return (replace(form, sequence=[named(place) for place in form.sequence], beside=named(form.beside)) for form in file.forms)


def _laid_over(rules: RuleSet, over: RuleSet) -> RuleSet:
    """Return two sets of rules as one; of two with the same id the second counts."""

    def merged(name: str, identity: Callable[[Any], str]) -> tuple[Any, ...]:
        return tuple({identity(item): item for item in (*getattr(rules, name), *getattr(over, name))}.values())

    kinds = ("problems", "fixes", "checks", "forms", "sheets", "templates", "changes", "requests")
    return replace(
        rules,
        signatures=merged("signatures", lambda item: str(item.record.id)),
        frameworks=merged("frameworks", lambda item: str(item[1].framework)),
        servers=merged("servers", lambda item: str(item[1].server)),
        bugs=merged("bugs", lambda item: str(item[1].program)),
        **{name: merged(name, lambda item: str(item[1].id)) for name in kinds},
        **{name: merged(name, lambda item: str(item.id)) for name in _BY_ID},
        topics={**rules.topics, **over.topics},
        concepts=(*rules.concepts, *over.concepts),
        grammar=(*rules.grammar, *over.grammar),
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
    if lexists(path):
        file = read_yaml(path)
        for number, record in enumerate(convert(file, ConditionFile, file.value).conditions):
            if record.id in named:
                raise file.error(f"$.conditions[{number}].id", f"the ID '{record.id}' is already used in {path}")
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
    """Return the signatures of one file, of what is printed or of what is seen."""
    file = read_yaml(path)
    loaded = convert(file, SignatureFile, _with_head(_without_rows(file)))
    return [
        LoadedSignature(record.program or loaded.program, file.path, _with_literals(with_quotes(record))) for record in loaded.signatures
    ]


def _with_literals(record: SignatureRecord) -> SignatureRecord:
    """Return a signature with the literals spelt out that it gives in parts."""
    spelt = ["".join(chosen) for chosen in product(*record.literal_parts)] if record.literal_parts else []
    return replace(record, literals=[*record.literals, *spelt], literal_parts=[])


def _without_rows(file: YamlFile) -> Any:
    """Return the content of a file of signatures with each row of a setting spelt out."""
    signatures = file.value.get("signatures") if isinstance(file.value, dict) else None
    if not isinstance(signatures, list):
        return file.value
    whole = [
        _spelt_out(convert(file, LogSettingRecord, item, f"$.signatures[{number}]")) if "setting" in item else item
        for number, item in enumerate(signatures)
        if isinstance(item, dict)
    ]
    return {**file.value, "signatures": whole if len(whole) == len(signatures) else signatures}


def _spelt_out(row: LogSettingRecord) -> dict[str, object]:
    """Return the signature of a row as a file would write it, without what it leaves to the head of the file."""
    return {key: value for key, value in to_builtins(signature_of(row)).items() if value}


def _with_head(value: Any) -> Any:
    """Return the content of a file of signatures with what its head says of all of them written into each."""
    signatures = value.get("signatures") if isinstance(value, dict) else None
    if not isinstance(signatures, list):
        return value
    head = {key: value[key] for key in value if key in SignatureRecord.__struct_fields__}
    return {**value, "signatures": [{**head, **item} if isinstance(item, dict) else item for item in signatures]}


def add_file(rules: RuleSet, path: Path) -> RuleSet:
    """Return the rules with those of one more file, whose kind its keys show. Raises RuleError where it is no rule file."""
    file = read_yaml(path)
    keys = set(file.value) if isinstance(file.value, dict) else set()
    if "checks" in keys:
        return replace(rules, checks=(*rules.checks, *((file.path, check) for check in _record(file, CheckFile, rules.conditions).checks)))
    if "changes" in keys:
        added = _record(file, ChangeFile, rules.conditions).changes
        return replace(rules, changes=(*rules.changes, *((file.path, change) for change in added)))
    if "requests" in keys:
        rows = _record(file, RequestFile, rules.conditions).requests
        return replace(rules, requests=(*rules.requests, *((file.path, request) for request in rows)))
    if "bugs" in keys:
        of_program = _record(file, BugFile, rules.conditions)
        added_signatures = _shown_bugs(file.path, of_program)
        return replace(rules, bugs=(*rules.bugs, (file.path, of_program)), signatures=(*rules.signatures, *added_signatures))
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
            raise RuleError(path, 1, 1, f"no run setting is called '{name}'{did_you_mean(name, known)}")


def _unique(named: list[tuple[str, str]]) -> None:
    first: dict[str, str] = {}
    for path, name in named:
        if name in first:
            raise RuleError(path, 1, 1, f"the ID '{name}' is already used in {first[name]}")
        first[name] = path
