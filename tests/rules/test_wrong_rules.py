"""A rule file with one mistake is refused where the mistake stands, and the word that was meant is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from oomdoctor.api.rules import try_rules
from oomdoctor.errors import RuleError
from oomdoctor.knowledge.load import load_rules
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.yaml_file import read_yaml

FILES = {
    "signatures/farm.yaml": """\
program: farm
signatures:
  - id: farm-card-full
    kind: device-oom
    certainty: certain
    literals: ['farm: card is full']
    pattern: 'farm: card is full: (?P<requested_bytes>{size}) wanted, (?P<queue>{word})'
    unit: {requested_bytes: GiB}
    since: '1.2'
    source: farm alloc.c
    examples:
      - text: 'farm: card is full: 2.00 wanted, night'
        fields: {requested_bytes: 2147483648}
    near_misses:
      - text: 'farm: card is full is printed without sizes'
        why: no size
    tells: [farm-quota]
  - {setting: [farm_batch], value: int, like: 4, source: farm}
""",
    "observations/farm.yaml": """\
program: farm recorder
signatures:
  - id: farm-was-full
    kind: device-oom
    certainty: certain
    says: {en: 'The farm was full[ at {farm_bytes}].', zh: '农场已满[：{farm_bytes}]。'}
    examples: [{fields: {farm_bytes: 2147483648}}]
    source: farm recorder
""",
    "problems/farm/farm-quota.yaml": """\
id: farm-quota
cause: quota-used-up
severity: error
confidence: likely
title: {en: 'The quota of {event.queue} is used up', zh: 队列的配额用完了}
when:
  all:
    - {condition: farm-failed}
    - {fact: event.requested_bytes, gt: 1 GiB}
    - {fact: incident.kind, is: device-oom}
    - {fact: training.micro_batch, known: false}
    - {program: farm, kind: device-oom, tells: farm-quota, resource: device, outcome: failure}
    - {event: farm-card-full, where: {queue: {is: night}}}
    - not: {fact: log.farm_batch, gt: 8, open: true}
why: {en: 'The queue had no room for {event.requested_bytes}.', zh: 队列没有空间了。}
fixes: [farm-raise-quota]
silences: [farm-other]
cites: [{source: farm-docs, claim: '1'}]
examples:
  - {name: the message, log: 'farm: card is full: 2.00 wanted, night', expect: unknown}
near_misses:
  - {name: another queue, log: 'farm: card is full: 2.00 wanted, noon', expect: none}
  - {name: it was seen, observed: {farm-was-full: {farm_bytes: 5}}, expect: none}
""",
    "problems/farm/farm-other.yaml": """\
id: farm-other
confidence: possible
rank: 80
title: {en: The farm ran out, zh: 农场没有资源了}
when: {event: farm-card-full}
why: {en: It ran out., zh: 资源用完了。}
examples: [{name: noon, log: 'farm: card is full: 2.00 wanted, noon'}]
near_misses: [{name: prose, log: fine, expect: none}]
""",
    "fixes/farm-raise-quota.yaml": """\
id: farm-raise-quota
title: {en: Raise the quota, zh: 调高配额}
how: {en: Ask for more., zh: 申请更多。}
settings:
  - {framework: farm, key: quota.memory, to: '1', sets: micro_batch, since: '1.2', source: farm docs}
harm: slower
not_this:
  - advice: {en: Wait., zh: 等待。}
    why: {en: Nothing changes., zh: 没有变化。}
    problems: [farm-quota]
    cites: [farm-docs]
cites: [farm-docs]
""",
    "sources.yaml": """\
sources:
  - id: farm-docs
    title: The farm
    claims: [{id: '1', says: {en: It ends., zh: 会用完。}, verdict: right}]
""",
    "causes.yaml": "causes: [{id: quota-used-up, says: {en: The quota is used up., zh: 配额用完了。}}]\n",
    "conditions.yaml": "conditions:\n  - {id: farm-failed, says: It failed., when: {fact: incident.survived, is: false}}\n",
    "changes/farm.yaml": """\
changes:
  - id: farm-version
    fact: version.torch
    about: {en: torch, zh: torch}
    newer: tighter
    since: '2.0'
    when: {not: {fact: framework, is: farm}}
    why: {en: '{after} takes more than {before}.', zh: '{after} 比 {before} 占用更多。'}
    source: farm docs
    examples: [{name: newer, before: {version.torch: '1.0'}, after: {version.torch: '2.0'}, effect: tighter}]
    near_misses: [{name: same, before: {version.torch: '2.0'}, after: {version.torch: '2.0'}, effect: none}]
""",
    "frameworks/farm.yaml": "framework: farm\ntitle: Farm\n",
    "servers/farm.yaml": """\
server: farm
title: Farm
engine: vllm
fraction_option: farm_share
messages: {request: 'farm: {length} tokens do not fit'}
defaults:
  max_batched_tokens: [{value: 4096, card_gb: 60, source: docs}, {value: 2048, source: docs}]
  max_num_seqs: [{value: 64, since: '1.2', source: docs}]
""",
    "forms/farm.yaml": """\
id: farm
project: Farm
repository: farm/farm
source: form.yml
languages: [en]
fields:
  - {id: system, heading: System, sheet: farm-sheet}
  - {id: python, heading: Python, fact: python}
""",
    "forms/sheets/farm-sheet.yaml": "id: farm-sheet\nsource: farm\nlines:\n  - [Driver, driver]\n",
    "topics.yaml": "topics:\n  farm-quota: The quota of a queue is used up.\n",
    "healthy.txt": "farm: all cards are free\n",
    "tables/variables.csv": "name,group,source\nFARM_*,memory,docs\n",
    "tables/packages.csv": "name,why,source\ntorch,runs it,PyPI\n",
    "tables/cuda_minimum.csv": "cuda,driver,source\n12.1,530.30,notes\n",
}  # fmt: skip
OBSERVATION = "observations/farm.yaml"
SIGNATURE, PROBLEM, FIX = "signatures/farm.yaml", "problems/farm/farm-quota.yaml", "fixes/farm-raise-quota.yaml"
CHANGE, FORM, SHEET = "changes/farm.yaml", "forms/farm.yaml", "forms/sheets/farm-sheet.yaml"
SERVER = "servers/farm.yaml"


def write(root: Path, file: str = "", old: str = "", new: str = "") -> Path:
    """Write the rules into a folder, with one mistake."""
    for name, text in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        assert name != file or text.count(old) >= 1, old
        path.write_text(text.replace(old, new, 1) if name == file else text, encoding="utf-8")
    return root


def complaints(root: Path) -> list[tuple[str, int, str]]:
    """Return file, line and reason of what is wrong, as `rules test` finds it."""
    try:
        return [(issue.path, issue.line, issue.why) for issue in try_rules(root).issues]
    except RuleError as error:
        return [(error.path, error.line, error.why)]


def test_without_a_mistake_there_is_no_complaint(tmp_path: Path) -> None:
    assert complaints(write(tmp_path)) == []
    load_rules(tmp_path)


NAMES = [
    pytest.param(PROBLEM, "event.requested_bytes, gt", "event.requsted_bytes, gt", 9, "event.requested_bytes", id="a fact of a message"),
    pytest.param(PROBLEM, "fact: log.farm_batch", "fact: log.farm_bach", 14, "log.farm_batch", id="a fact of the log"),
    pytest.param(PROBLEM, "training.micro_batch", "training.mico_batch", 11, "training.micro_batch", id="a fact of the settings"),
    pytest.param(PROBLEM, "training.micro_batch", "derived.unalocated_share", 11, "derived.unallocated_share", id="a figure that follows"),
    pytest.param(PROBLEM, "training.micro_batch", "environment.driver_verison", 11, "environment.driver_version", id="a fact of a machine"),
    pytest.param(PROBLEM, "training.micro_batch", "incident.surived", 11, "incident.survived", id="a fact of the failure"),
    pytest.param(PROBLEM, "is: device-oom", "is: devise-oom", 10, "device-oom", id="the value of a fact that has few"),
    pytest.param(PROBLEM, "condition: farm-failed", "condition: farm-faild", 8, "farm-failed", id="a named condition"),
    pytest.param(PROBLEM, "program: farm", "program: fram", 12, "farm", id="a program"),
    pytest.param(PROBLEM, "kind: device-oom", "kind: device-oon", 12, "device-oom", id="a kind of event"),
    pytest.param(PROBLEM, "tells: farm-quota", "tells: farm-qouta", 12, "farm-quota", id="a topic that a rule asks for"),
    pytest.param(PROBLEM, "tells: farm-quota", "tells: allocation-refusd", 12, "allocation-refused", id="a statement"),
    pytest.param(PROBLEM, "resource: device", "resource: devise", 12, "device", id="whose memory"),
    pytest.param(PROBLEM, "outcome: failure", "outcome: failur", 12, "failure", id="an outcome"),
    pytest.param(SIGNATURE, "tells: [farm-quota]", "tells: [farm-qota]", 17, "farm-quota", id="a topic that a message tells"),
    pytest.param(PROBLEM, "event: farm-card-full", "event: farm-card-ful", 13, "farm-card-full", id="an event"),
    pytest.param(PROBLEM, "where: {queue", "where: {que", 13, "queue", id="a field of an event"),
    pytest.param(PROBLEM, "fixes: [farm-raise-quota]", "fixes: [farm-rise-quota]", 16, "farm-raise-quota", id="a fix"),
    pytest.param(PROBLEM, "silences: [farm-other]", "silences: [farm-othr]", 17, "farm-other", id="a silenced problem"),
    pytest.param(PROBLEM, "source: farm-docs", "source: farm-doc", 18, "farm-docs", id="a source"),
    pytest.param(PROBLEM, "cause: quota-used-up", "cause: quota-usd-up", 2, "quota-used-up", id="a cause"),
    pytest.param(PROBLEM, "{event.requested_bytes}.", "{event.requested_byte}.", 15, "event.requested_bytes", id="a placeholder"),
    pytest.param(PROBLEM, "severity: error", "severity: eror", 3, "error", id="a severity"),
    pytest.param(PROBLEM, "confidence: likely", "confidence: likly", 4, "likely", id="a confidence"),
    pytest.param(PROBLEM, "fixes: [", "fixs: [", 16, "fixes", id="an unknown key"),
    pytest.param(SIGNATURE, "kind: device-oom", "kind: devce-oom", 4, "device-oom", id="the kind of a message"),
    pytest.param(SIGNATURE, "unit: {requested_bytes: GiB}", "unit: {requested_bytes: GB}", 8, "GiB", id="a unit"),
    pytest.param(SIGNATURE, "unit: {requested_bytes", "unit: {requested_byte", 8, "requested_bytes", id="the field of a unit"),
    pytest.param(SIGNATURE, "like: 4", "lik: 4", 18, "like", id="a key in the row of a setting"),
    pytest.param(OBSERVATION, "at {farm_bytes}", "at {farm_byte}", 6, "farm_bytes", id="a field in a quote"),
    pytest.param(PROBLEM, "{farm-was-full:", "{farm-was-ful:", 23, "farm-was-full", id="what an example observes"),
    pytest.param(PROBLEM, "{farm_bytes: 5}", "{farm_byts: 5}", 23, "farm_bytes", id="a field of what an example observes"),
    pytest.param(FIX, "framework: farm", "framework: fram", 5, "farm", id="a framework"),
    pytest.param(FIX, "sets: micro_batch", "sets: mico_batch", 5, "micro_batch", id="a setting that a fix sets"),
    pytest.param(FIX, "problems: [farm-quota]", "problems: [farm-quotas]", 10, "farm-quota", id="a problem for which advice is wrong"),
    pytest.param(FIX, "cites: [farm-docs]\n", "cites: [farm-dogs]\n", 11, "farm-docs", id="a source of wrong advice"),
    pytest.param(FIX, "harm: slower", "harm: slow", 6, "slower", id="a harm"),
    pytest.param(CHANGE, "fact: version.torch", "fact: version.troch", 3, "version.torch", id="a fact that two sides share"),
    pytest.param(CHANGE, "{not: {fact: framework", "{not: {fact: framwork", 7, "framework", id="a fact in the condition of a change"),
    pytest.param(CHANGE, "{after} takes", "{aftr} takes", 8, "after", id="a placeholder of a change"),
    pytest.param(SERVER, "server: farm", "server: fram", 1, "farm", id="the framework of a server"),
    pytest.param(SERVER, "engine: vllm", "engine: vlm", 3, "vllm", id="the engine of a server"),
    pytest.param(SERVER, "{request:", "{reqest:", 5, "request", id="a check at the start of a server"),
    pytest.param(SERVER, "{length}", "{lenght}", 5, "length", id="a placeholder in a message of a server"),
    pytest.param(SERVER, "max_num_seqs", "max_num_seq", 8, "max_num_seqs", id="a default of a server"),
    pytest.param(FORM, "sheet: farm-sheet", "sheet: farm-sheets", 7, "farm-sheet", id="a sheet"),
    pytest.param(FORM, "fact: python", "fact: pyhton", 8, "python", id="a fact of a form"),
    pytest.param(SHEET, "[Driver, driver]", "[Driver, drver]", 4, "driver", id="a fact of a sheet"),
    pytest.param("tables/cuda_minimum.csv", "cuda,driver,source", "cuda,diver,source", 1, "driver", id="a column of a table"),
]  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "line", "meant"), NAMES)
def test_a_misspelt_name_is_refused_with_the_name_that_was_meant(
    file: str, old: str, new: str, line: int, meant: str, tmp_path: Path
) -> None:
    refused = complaints(write(tmp_path, file, old, new))
    assert [(path, at) for path, at, _ in refused[:1]] == [(str(tmp_path / file), line)], refused
    assert f"did you mean '{meant}'?" in refused[0][2]


@pytest.mark.parametrize(("file", "old", "new", "line", "says"), [
    pytest.param(OBSERVATION, "    source: farm", "    literals: [farm was full]\n    source: farm", 3, "is not printed", id="a literal of what is seen"),
    pytest.param(PROBLEM, "claim: '1'", "claim: '7'", 18, "unknown claim of farm-docs '7'", id="a claim that its source does not make"),
    pytest.param(PROBLEM, "cause: quota-used-up", "cause: quota-used-up\ncause: x", 3, "'cause' appears twice", id="a key twice"),
    pytest.param(PROBLEM, ", zh: 队列没有空间了。", "", 15, "missing required field `zh`", id="a language that is missing"),
    pytest.param(PROBLEM, "gt: 1 GiB}", "above: 1 GiB}", 9, "unknown operator 'above'", id="an operator"),
    pytest.param(PROBLEM, "wanted, night', expect: unknown", "wanted, night'", 20, "expected match, got unknown", id="an example that is not explained"),
    pytest.param(PROBLEM, "wanted, noon'", "wanted, night'", 22, "expected none, got unknown", id="a near miss that is explained"),
    pytest.param(SIGNATURE, "literals: ['farm: card is full']", "literals: ['farm:']", 6, "too short", id="a short literal"),
    pytest.param(SIGNATURE, "literals: ['farm: card is full']", "literals: ['farm: card is full', 'cards are free']", 6, "healthy line", id="a literal of healthy runs"),
    pytest.param(SIGNATURE, "(?P<queue>{word})'", "(?P<queue>[^,]+)'", 7, "unbounded repetition", id="a slow pattern"),
    pytest.param(SIGNATURE, "(?P<queue>{word})'", "(?P<queue>{word}'", 7, "not a regular expression", id="a bracket that is not closed"),
    pytest.param(SIGNATURE, "is full: 2.00 wanted", "is full: two wanted", 12, "does not recognize its example", id="an example that is not recognised"),
    pytest.param(SIGNATURE, "requested_bytes: 2147483648", "requested_bytes: 2", 13, "expected 2, found [2147483648]", id="a figure that is not found"),
    pytest.param(SIGNATURE, "is full is printed without sizes", "is full: 3.00 wanted, noon", 15, "matches a near miss", id="a near miss that is recognised"),
    pytest.param(SIGNATURE, "since: '1.2'", "since: soon", 9, "'soon' is not a version", id="the version of a message"),
    pytest.param(SIGNATURE, "value: int", "value: itn", 18, "does not recognize its example", id="the values of a setting"),
    pytest.param(FIX, "since: '1.2'", "since: '1.x'", 5, "'1.x' is not a version", id="the version of a key"),
    pytest.param(SERVER, "since: '1.2'", "since: soon", 8, "'soon' is not a version", id="the version of a default"),
    pytest.param(SERVER, ", {value: 2048, source: docs}]", "]", 7, "apply to every card", id="defaults that leave cards out"),
    pytest.param(CHANGE, "since: '2.0'", "since: two", 6, "'two' is not a version", id="the version of a change"),
    pytest.param(CHANGE, "effect: tighter}", "effect: looser}", 10, "expected looser, got tighter", id="a change that comes to something else"),
    pytest.param("conditions.yaml", "fact: incident.survived, is", "fact: incident.survived, ist", 2, "unknown operator 'ist'", id="an operator in a named condition"),
    pytest.param("tables/cuda_minimum.csv", "530.30", "new", 2, "driver: 'new' is not a version", id="a version in a table"),
    pytest.param("tables/cuda_minimum.csv", ",notes", "", 2, "2 cells in a table of 3 columns", id="a cell that is missing"),
])  # fmt: skip
def test_a_mistake_is_refused_where_it_stands(file: str, old: str, new: str, line: int, says: str, tmp_path: Path) -> None:
    refused = complaints(write(tmp_path, file, old, new))
    assert [(path, at) for path, at, _ in refused[:1]] == [(str(tmp_path / file), line)], refused
    assert says in refused[0][2]


@pytest.mark.parametrize(("file", "old", "new", "line", "meant"), NAMES[:37])
def test_such_rules_do_not_load(file: str, old: str, new: str, line: int, meant: str, tmp_path: Path) -> None:
    with pytest.raises(RuleError) as raised:
        load_rules(write(tmp_path, file, old, new))
    assert (raised.value.path, raised.value.line) == (str(tmp_path / file), line)
    assert f"did you mean '{meant}'?" in raised.value.why


PATTERN = "farm: card is full: (?P<requested_bytes>{size}) wanted, (?P<queue>{word})"
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n" for before, name in zip("abcdefghijkl", "bcdefghijklm")
)


@pytest.mark.parametrize(("text", "says"), [
    pytest.param(FILES[SIGNATURE].replace(PATTERN, PATTERN + "("), "not a regular expression", id="a group without an end"),
    pytest.param(FILES[SIGNATURE].replace(PATTERN, PATTERN + "(" * 50_000 + ")" * 50_000), "longer than", id="a pattern of 50,000 groups"),
    pytest.param(FILES[SIGNATURE].replace(PATTERN, PATTERN + "(?:x|xx){1,60}!"), "ways at one position", id="a pattern that hangs"),
])  # fmt: skip
def test_a_pack_of_ones_own_that_means_harm_is_refused(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "pack" / "signatures" / "farm.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    (tmp_path / "pack" / "topics.yaml").write_text(FILES["topics.yaml"], encoding="utf-8")
    with pytest.raises(RuleError) as raised:
        load_pack(str(tmp_path / "pack"), str(tmp_path / "cache"))
    assert raised.value.path == str(file) and says in raised.value.why and "\n" not in raised.value.why


@pytest.mark.parametrize(("text", "says"), [
    pytest.param("a: " + "[" * 50_000 + "]" * 50_000, "nested too deeply", id="lists 50,000 deep"),
    pytest.param("- " * 50_000 + "a\n", "nested too deeply", id="dashes 50,000 deep"),
    pytest.param("".join(" " * depth + "a:\n" for depth in range(500)), "nested too deeply", id="keys 500 deep"),
    pytest.param(BOMB, "expands through aliases", id="a bomb of aliases"),
    pytest.param("a: &a [*a]\n", "nested too deeply", id="an alias of itself"),
    pytest.param("\x00\x01", "not allowed", id="bytes that are no text"),
    pytest.param("signatures: [\n", "did not find", id="a list without an end"),
])  # fmt: skip
def test_a_file_that_means_harm_is_one_line(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "farm.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(RuleError) as raised:
        read_yaml(tmp_path / "farm.yaml")
    assert says in raised.value.why and "\n" not in raised.value.why


def test_text_conditions_of_such_a_pack_are_looked_at_too(tmp_path: Path) -> None:
    """And what is laid over other rules is looked at as a pack by itself is."""
    file = tmp_path / "pack" / "problems" / "farm-other.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(
        FILES["problems/farm/farm-other.yaml"].replace("{event: farm-card-full}", "{text: 'x(?:a|aa){1,60}!'}"), encoding="utf-8"
    )
    with pytest.raises(RuleError, match="ways at one position"):
        load_pack(cache=str(tmp_path / "cache"), over=str(tmp_path / "pack"))
