"""Every file of fixtures/patches with its changes: only the lines that were meant, once, and read by others as it was meant."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from oomdoctor.configs.edit.change import ConfigChange
from oomdoctor.configs.edit.difference import diff_lines
from oomdoctor.configs.edit.patch import Patched, patch

FOLDER = Path(__file__).parents[3] / "fixtures" / "patches"
GOLDEN = FOLDER / "differences.txt"
CASES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "cases.yaml").read_text(encoding="utf-8"))
Case = dict[str, Any]


def of(*ends: str) -> list[Any]:
    """The cases of files with these endings, each with its sentence."""
    return [pytest.param(case, id=case["says"]) for case in CASES if case["file"].endswith(ends or ("",))]


SAID = of()
CONFIGS = sorted(path.name for path in FOLDER.iterdir() if path.name not in ("cases.yaml", GOLDEN.name))
WRITTEN_BY = {
    "bom": lambda data: b"\xef\xbb\xbf" + data,
    "windows": lambda data: data.replace(b"\n", b"\r\n"),
    "no end of line": lambda data: data.rstrip(b"\n"),
    "utf-16": lambda data: b"\xff\xfe" + data.decode().encode("utf-16-le"),
    "latin-1 in a comment": lambda data: data.replace(b"#!", b"# \xe9\n#!", 1) if b"#!" in data else data + b"\n# \xe9\xff\n",
}


def changes(case: Case) -> list[ConfigChange]:
    return [
        ConfigChange(file=case["file"], key=key, to=to, after=case.get("after"), variable=re.fullmatch("[A-Z_]+", key) is not None)
        for key, to in case["set"].items()
    ]


def patched(case: Case, data: bytes | None = None) -> Patched:
    return patch(case["file"], (FOLDER / case["file"]).read_bytes() if data is None else data, changes(case))


def shown(case: Case) -> str:
    old = (FOLDER / case["file"]).read_bytes()
    lines = [line for line in diff_lines(case["file"], old, patched(case).data) if not line.startswith(("---", "+++", "@@", " "))]
    return "".join(f"{line}\n" for line in lines if line)


def test_there_are_thirty_configs_of_nine_kinds() -> None:
    assert len(CONFIGS) >= 30
    kinds = {name.partition("-")[0] for name in CONFIGS}
    assert {"llamafactory", "glm4", "axolotl", "hf", "deepspeed", "accelerate", "torchtune", "swift", "vllm"} <= kinds
    assert {case["file"] for case in CASES} == set(CONFIGS)


@pytest.mark.parametrize("case", SAID)
def test_only_the_lines_that_were_meant_differ(case: Case, bless: bool) -> None:
    if bless:
        GOLDEN.write_text("".join(f"# {one['says']}\n{shown(one)}\n" for one in CASES), encoding="utf-8")
    kept = dict(re.findall(r"^# (.*)\n((?:[-+\\].*\n)*)", GOLDEN.read_text(encoding="utf-8"), re.M))
    assert shown(case) == kept[case["says"]]
    assert [(change.key, why.why.en) for change, why in patched(case).refusals] == []


@pytest.mark.parametrize("case", SAID)
def test_the_second_time_changes_nothing(case: Case) -> None:
    first = patched(case)
    second = patched(case, first.data)
    assert (second.data, second.made, second.refusals) == (first.data, (), ())
    assert len(second.already) == len(case["set"])


@pytest.mark.parametrize("case", of(".yaml", ".yml", ".json"))
def test_another_reader_finds_exactly_the_wanted_settings(case: Case) -> None:
    wanted = loaded(case["file"], (FOLDER / case["file"]).read_bytes())
    for key, to in case["set"].items():
        document = next((one for one in wanted if key.partition(".")[0] in one), wanted[0])
        put(document, key, to)
    assert loaded(case["file"], patched(case).data) == wanted


@pytest.mark.parametrize(("name", "text", "after"), [
    pytest.param("a.bat", "python a.py --x 1 ^\r\n  --bs 8 ^\r\n  --y 2\r\n", "python a.py --x 1 ^\r\n  --bs 2 ^\r\n  --y 2\r\n", id="a line that goes on"),
    pytest.param("a.cmd", "python a.py --bs=8 --y 2\n", "python a.py --bs=2 --y 2\n", id="behind a sign"),
    pytest.param("a.ps1", "python a.py --x 1 `\n  --bs 8\n", "python a.py --x 1 `\n  --bs 2\n", id="PowerShell"),
])  # fmt: skip
def test_a_plain_value_in_a_script_of_another_shell(name: str, text: str, after: str) -> None:
    found = patch(name, text.encode(), [ConfigChange(file=name, key="--bs", to="2")])
    assert ([why.why.en for _, why in found.refusals], found.data.decode()) == ([], after)


@pytest.mark.parametrize(("name", "text", "after"), [
    pytest.param("a.yaml", "p:\n  - x.Y  # why\n  - z\nq: 1\n", "p:\n  - x.Y  # why\n  - z\n  - a.B\nq: 1\n", id="below the last dash"),
    pytest.param("a.yaml", "p:\n- x.Y\n", "p:\n- x.Y\n- a.B\n", id="without indentation"),
    pytest.param("a.yaml", "p:\n  - x.Y", "p:\n  - x.Y\n  - a.B", id="without a last end of line"),
    pytest.param("a.yaml", "p:\r\n  - x.Y\r\nq: 1\r\n", "p:\r\n  - x.Y\r\n  - a.B\r\nq: 1\r\n", id="with line ends of Windows"),
    pytest.param("a.yaml", "p: [x.Y]\n", "p: [x.Y, a.B]\n", id="in brackets"),
    pytest.param("a.yaml", "p: [x.Y,\n    z]\n", "p: [x.Y,\n    z,\n    a.B]\n", id="in brackets over several lines"),
    pytest.param("a.yaml", "p: []\n", "p: [a.B]\n", id="into empty brackets"),
    pytest.param("a.yaml", "q: 1\n", "q: 1\np: [a.B]\n", id="where there is no list"),
    pytest.param("a.json", '{"p": ["x.Y"]}', '{"p": ["x.Y", "a.B"]}', id="JSON on one line"),
    pytest.param("a.json", '{"p": [\n    "x.Y"\n  ]}', '{"p": [\n    "x.Y",\n    "a.B"\n  ]}', id="JSON with an item a line"),
    pytest.param("a.json", '{"q": 1}', '{"q": 1, "p": ["a.B"]}', id="JSON where there is no list"),
    pytest.param("a.yaml", "p: [a.B, z]\n", None, id="there already"),
])  # fmt: skip
def test_an_item_of_a_list(name: str, text: str, after: str | None) -> None:
    change = ConfigChange(file=name, key="p", to="[a.B]")
    found = patch(name, text.encode(), [change])
    assert (found.data.decode(), found.refusals, bool(found.made)) == (after or text, (), after is not None)
    assert patch(name, found.data, [change]).already == (change,)


@pytest.mark.parametrize("case", of(".sh"))
def test_a_shell_reads_the_same_words_but_for_the_wanted_ones(case: Case) -> None:
    def words(data: bytes) -> list[str]:
        return shlex.split(data.decode(), comments=True)

    old, new = words((FOLDER / case["file"]).read_bytes()), words(patched(case).data)
    come = [word for word in new if word not in old]
    wanted = {piece for key, to in case["set"].items() for piece in (key, f"--{key}", to, f"{key}={to}")} | {"export", "BATCH=1"}
    assert set(come) <= wanted


def otherwise_written() -> list[Any]:
    """Every case in every way to write a file, but for comments in JSON and a folded text, to which the last end of line belongs."""
    return [
        pytest.param(case, how, id=f"{name}: {case['says']}")
        for case in CASES
        for name, how in WRITTEN_BY.items()
        if not (case["file"].endswith(".json") and "comment" in name) and not ("folded" in case["says"] and "end" in name)
    ]


@pytest.mark.parametrize(("case", "written"), otherwise_written())
def test_whoever_wrote_the_file(case: Case, written: Any) -> None:
    """Marks, line ends and broken characters stay, and the change is the same."""
    data = written((FOLDER / case["file"]).read_bytes())
    found = patched(case, data)
    assert [(change.key, why.why.en) for change, why in found.refusals] == []
    assert written(patched(case).data) == found.data


def loaded(name: str, data: bytes) -> list[dict[str, Any]]:
    text = data.decode("utf-8-sig")
    if name.endswith(".json"):
        return [json.loads(re.sub(r"//[^\n\"]*\n|/\*.*?\*/", "\n", text))]
    return [one for one in yaml.safe_load_all(text) if one is not None]


def put(document: dict[str, Any], key: str, to: str) -> None:
    *blocks, last = key.split(".")
    for block in blocks:
        document = document.setdefault(block, {})
    old, new = document.get(last), yaml.safe_load(to)
    if isinstance(old, list) and isinstance(new, list):
        new = old + [one for one in new if one not in old]
    keeps_quotes = isinstance(old, str) and isinstance(yaml.safe_load(old), type(new))
    document[last] = to if keeps_quotes else new
