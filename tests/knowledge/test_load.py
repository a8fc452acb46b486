"""The loader is strict, and says where and what is wrong, and what is allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoctor.errors import RuleError
from oomdoctor.knowledge.load import load_file, load_rules, load_signatures, rule_files
from oomdoctor.knowledge.records.fix import FixRecord
from oomdoctor.knowledge.records.problem import ProblemRecord
from oomdoctor.knowledge.records.signature import SignatureFile

GOOD = """\
program: prog
signatures:
  - id: prog-no-room
    kind: host-oom
    certainty: certain
    literals: ['no room at all']
    pattern: 'no room at all \\((?P<requested_bytes>{size})\\)'
    source: 'prog source'
    examples:
      - text: 'prog: no room at all (3 MiB)'
        fields: {requested_bytes: 3145728}
    near_misses:
      - text: 'prog: no room'
        why: 'another message'
"""
FIX = "id: less-of-it\ntitle: {en: Less, zh: 少}\nhow: {en: Take less of it., zh: 少用一点。}\nharm: none\n"
PROBLEM = """\
id: too-much
confidence: certain
title: {en: Too much, zh: 太多}
when: {event: prog-no-room}
why: {en: It was too much., zh: 太多了。}
fixes: [less-of-it]
examples: [{name: one, log: 'prog: no room at all (3 MiB)'}]
near_misses: [{name: other, log: 'fine', expect: none}]
"""


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def rules(root: Path) -> Path:
    write(root / "signatures" / "prog.yaml", GOOD)
    write(root / "fixes" / "less-of-it.yaml", FIX)
    write(root / "problems" / "area" / "too-much.yaml", PROBLEM)
    return root


def test_good_rules_load(tmp_path: Path) -> None:
    loaded = load_rules(rules(tmp_path))
    assert [(one.program, one.record.id, one.path) for one in loaded.signatures] == [
        ("prog", "prog-no-room", str(tmp_path / "signatures" / "prog.yaml"))
    ]
    assert [one.id for _, one in loaded.problems] == ["too-much"] and [one.id for _, one in loaded.fixes] == ["less-of-it"]
    assert [path.name for path in rule_files(tmp_path)] == ["less-of-it.yaml", "too-much.yaml", "prog.yaml"]


def test_the_head_of_a_file_counts_where_a_message_says_nothing(tmp_path: Path) -> None:
    head = "program: prog\nkind: host-oom\ncertainty: certain\npurpose: training\ntells: [small-room]\nsignatures:\n"
    first = "  - {id: one, literals: ['no room at all'], source: x}\n"
    second = "  - {id: two, literals: ['no room here'], source: x, kind: device-oom, program: other, tells: []}\n"
    row = "  - {setting: [prog_batch], value: int, like: 4, source: x}\n"
    path = write(tmp_path / "prog.yaml", head + first + second + row)
    said = [(one.program, one.record.kind, one.record.certainty, one.record.purpose, one.record.tells) for one in load_signatures(path)]
    assert said[0] == ("prog", "host-oom", "certain", "training", ["small-room"])
    assert said[1] == ("other", "device-oom", "certain", "training", [])
    assert said[2] == ("prog", "context", "certain", "training", ["small-room"])


def test_an_empty_folder_has_no_rules(tmp_path: Path) -> None:
    loaded = load_rules(tmp_path)
    assert (loaded.signatures, loaded.problems, loaded.fixes, loaded.sources) == ((), (), (), ())


@pytest.mark.parametrize(("old", "new", "line", "column", "says"), [
    pytest.param("    certainty: certain", "    certanty: certain", 5, 5, "unknown key 'certanty'; allowed: id, kind, certainty", id="a key with a slip"),
    pytest.param("program: prog", "program: prog\nversion: 3", 2, 1, "unknown key 'version'; allowed: program, kind, certainty, purpose, tells, signatures", id="a key at the top"),
    pytest.param("        why: 'another", "        because: 'x'\n        why: 'another", 14, 9, "unknown key 'because'; allowed: text, why", id="a key deep inside"),
    pytest.param("kind: host-oom", "kind: ram-oom", 4, 11, "ram-oom", id="a kind that does not exist"),
    pytest.param("id: prog-no-room", "id: Prog No Room", 3, 9, "matching regex", id="an id with blanks"),
    pytest.param("literals: ['no room at all']", "literals: []", 6, 15, "length >= 1", id="no literal"),
    pytest.param("literals: ['no room at all']", "literals: no room at all", 6, 15, "array", id="a text where a list belongs"),
    pytest.param("literals: ['no room at all']", "literals: [no room, 12]", 6, 25, "str", id="a number in a list of texts"),
    pytest.param("    source: 'prog source'\n", "", 3, 5, "source", id="a key that is missing"),
    pytest.param("signatures:\n", "signatures: 3\nx:\n", 2, 13, "array", id="a number where records belong"),
    pytest.param("    kind: host-oom", "    kind: [host-oom", 5, 14, "", id="a bracket that is not closed"),
    pytest.param("    kind: host-oom", "\tkind: host-oom", 4, 1, "", id="a tab"),
    pytest.param("'prog source'", "!!python/object/apply:os.system ['true']", 8, 13, "could not determine a constructor", id="a tag that would run code"),
    pytest.param("'prog source'", "*nothing", 8, 13, "undefined alias", id="an alias of nothing"),
    pytest.param("program: prog", "--- {}\n---\nprogram: prog", 2, 1, "another document", id="two documents"),
    pytest.param("    kind: host-oom\n", "    kind: host-oom\n    kind: shm-oom\n", 5, 5, "kind", id="a key twice"),
])  # fmt: skip
def test_a_mistake_is_reported_with_its_place(old: str, new: str, line: int, column: int, says: str, tmp_path: Path) -> None:
    assert GOOD.count(old) >= 1
    path = write(tmp_path / "signatures" / "prog.yaml", GOOD.replace(old, new, 1))
    with pytest.raises(RuleError) as raised:
        load_signatures(path)
    assert says in raised.value.why
    assert (raised.value.line, raised.value.column) == (line, column)
    assert str(raised.value).startswith(f"{path}:{line}:{column}: ")


@pytest.mark.parametrize(("data", "says"), [
    pytest.param(b"", "object", id="nothing"),
    pytest.param(b"just words", "object", id="prose"),
    pytest.param(b"\xff\xfe\x00", "cannot be read", id="no UTF-8"),
    pytest.param(b"a: \x00", "", id="a NUL byte"),
    pytest.param(b"# " + b"x" * (5 << 20), "too large", id="five megabytes"),
    pytest.param(b"[" * 20_000, "", id="brackets without end"),
    pytest.param(b"{a: " * 20_000 + b"}" * 20_000, "", id="maps in maps"),
])  # fmt: skip
def test_a_file_that_is_no_rule_file(data: bytes, says: str, tmp_path: Path) -> None:
    path = write(tmp_path / "signatures" / "x.yaml", data)
    with pytest.raises(RuleError) as raised:
        load_file(path, SignatureFile)
    assert says in raised.value.why


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match="cannot be read"):
        load_file(tmp_path / "none.yaml", SignatureFile)


@pytest.mark.parametrize(("name", "text", "id_"), [
    pytest.param("signatures/other.yaml", GOOD, "prog-no-room", id="a signature"),
    pytest.param("fixes/other.yaml", FIX, "less-of-it", id="a fix"),
    pytest.param("problems/other/other.yaml", PROBLEM, "too-much", id="a problem"),
])  # fmt: skip
def test_an_id_is_used_once(name: str, text: str, id_: str, tmp_path: Path) -> None:
    write(rules(tmp_path) / name, text)
    with pytest.raises(RuleError, match=f"the ID '{id_}' is already used in ") as raised:
        load_rules(tmp_path)
    assert tmp_path.name in str(raised.value)


def test_an_id_twice_in_one_file(tmp_path: Path) -> None:
    path = write(tmp_path / "signatures" / "prog.yaml", GOOD + GOOD.partition("signatures:\n")[2])
    with pytest.raises(RuleError, match="already used"):
        load_rules(path.parents[1])


@pytest.mark.parametrize(("old", "new", "says"), [
    pytest.param("zh: 太多}", "zh: ''}", "length", id="a text without its Chinese"),
    pytest.param("confidence: certain", "confidence: sure", "sure", id="a confidence that does not exist"),
    pytest.param("fixes: [less-of-it]", "fixes: [less-of-it]\nfix: x", "unknown key 'fix'; allowed: id, cause", id="a key with a slip"),
    pytest.param("en: Too much,", "en: Too much, de: Zu viel,", "unknown key 'de'; allowed: en, zh", id="a third language"),
])  # fmt: skip
def test_problems_are_as_strict(old: str, new: str, says: str, tmp_path: Path) -> None:
    assert old in PROBLEM
    with pytest.raises(RuleError, match=says):
        load_file(write(tmp_path / "x.yaml", PROBLEM.replace(old, new, 1)), ProblemRecord)


def test_fixes_are_as_strict(tmp_path: Path) -> None:
    with pytest.raises(RuleError, match=r"safety|unsafe"):
        load_file(write(tmp_path / "x.yaml", FIX + "safety: unsafe\n"), FixRecord)


def test_a_condition_that_holds_itself_is_a_mistake_and_no_crash(tmp_path: Path) -> None:
    root = rules(tmp_path)
    write(root / "problems" / "area" / "too-much.yaml", PROBLEM.replace("when: {event: prog-no-room}", "when: &a {any: [*a]}"))
    with pytest.raises(RuleError):
        load_rules(root)


GRAMMAR = """\
groups: {place: [lacks]}
forms:
  - {id: lack, says: no room, sequence: [[place]], beside: [%s]}
"""
WORDS = "concepts:\n  - {id: lacks, says: It lacks., words: {en: [no room]}}\n"


def test_a_form_names_concepts_and_groups_of_them(tmp_path: Path) -> None:
    write(tmp_path / "lexicon" / "words.yaml", WORDS)
    write(tmp_path / "grammar.yaml", GRAMMAR % "place")
    assert [(form.sequence, form.beside) for form in load_rules(tmp_path).grammar] == [([["lacks"]], ["lacks"])]


def test_a_form_that_names_no_concept_is_reported(tmp_path: Path) -> None:
    write(tmp_path / "lexicon" / "words.yaml", WORDS)
    path = write(tmp_path / "grammar.yaml", GRAMMAR % "lakcs")
    with pytest.raises(RuleError, match="lakcs") as raised:
        load_rules(tmp_path)
    assert str(raised.value).startswith(str(path))
