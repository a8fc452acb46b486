"""What cannot be changed safely is said, with the line to type, and the file stays as it is."""

from __future__ import annotations

import pytest

from oomdoctor.configs.edit.change import ConfigChange
from oomdoctor.configs.edit.patch import patch

LLAMAFACTORY = "finetuning_type: lora\ncutoff_len: 2048\n"


@pytest.mark.parametrize(("file", "text", "key", "to", "why"), [
    pytest.param("a.yaml", "x: &b 4\ny: *b\n", "x", "2", "an anchor", id="a value that an anchor shares"),
    pytest.param("a.yaml", "x: &b 4\ny: *b\n", "y", "2", "an anchor", id="a value that is an alias"),
    pytest.param("a.yaml", "x: !!str 4\n", "x", "2", "a tag", id="a value with a tag"),
    pytest.param("a.yaml", "a: &b {c: 1}\nd: *b\n", "a.c", "2", "an anchor", id="a value in a block that is used twice"),
    pytest.param("a.yaml", "a:\n  b: 1\n", "a", "2", "a block or a list", id="a block where a value is wanted"),
    pytest.param("a.yaml", "a: [1, 2]\n", "a", "2", "a block or a list", id="a list where a value is wanted"),
    pytest.param("a.yaml", "a: [1, 2]\n", "a", "[]", "there is a list here", id="nothing where a list stands"),
    pytest.param("a.yaml", "a: [1, 2]\n", "a", "[3", "not valid YAML", id="items without their last bracket"),
    pytest.param("a.yaml", "a: [1, 2]\n", "a", "[3, {b: 4}]", "list of words", id="a block among the items"),
    pytest.param("a.yaml", "a:\n  - b: 1\n", "a", "[c]", "more than plain words", id="an item for a list of blocks"),
    pytest.param("a.yaml", "a:\n  - |\n    b\n", "a", "[c]", "not on one line", id="an item below a text of several lines"),
    pytest.param("a.yaml", "a:\n  - one\n    two\n", "a", "[c]", "not on one line", id="an item below a word that goes on"),
    pytest.param("a.yaml", "a:\n  - &x b\n", "a", "[c]", "more than plain words", id="an item below an anchor"),
    pytest.param("a.yaml", "a: |\n  one\n  two\n", "a", "2", "several lines", id="a text of several lines"),
    pytest.param("a.yaml", "a: one\n  two\n", "a", "2", "several lines", id="a bare word that goes on in the next line"),
    pytest.param("a.yaml", "a: 4\n", "a.b", "2", "not a block", id="a key below a value"),
    pytest.param("a.yaml", "a:\n  - b: 4\n", "a.c", "2", "not a block", id="a key below a list"),
    pytest.param("a.yaml", "a: 1\n---\nb: 2\n", "c", "2", "which document", id="a new key in one of two documents"),
    pytest.param("a.yaml", "a: 1\n b: 2\n", "a", "2", "not valid YAML", id="YAML that is broken"),
    pytest.param("a.yaml", "a: 'x\n", "a", "2", "not valid YAML", id="a quote that is not closed"),
    pytest.param("a.yaml", "[" * 200, "a", "2", "too deeply nested", id="YAML that is nested too deeply"),
    pytest.param("a.yaml", LLAMAFACTORY, "a b", "2", "not a key", id="a key with a blank"),
    pytest.param("a.yaml", LLAMAFACTORY, "cutoff_len", "1\nevil: 2", "one plain line", id="a value of two lines"),
    pytest.param("a.yaml", LLAMAFACTORY, "cutoff_len", "\x1b[31m", "one plain line", id="a value with an escape"),
    pytest.param("a.json", '{"a": {"b": 1}', "a.b", "2", "brackets", id="JSON without its last bracket"),
    pytest.param("a.json", '{"a": 1}}', "a", "2", "brackets", id="JSON with a bracket too many"),
    pytest.param("a.json", '{"a": 1} {"a": 2}', "a", "2", "not valid JSON", id="two JSON values"),
    pytest.param("a.json", "{" * 300, "a", "2", "too deeply nested", id="JSON that is nested too deeply"),
    pytest.param("a.json", '{"a": [1]}', "a.b", "2", "not a block", id="a key below a JSON list"),
    pytest.param("a.sh", "python t.py --bs $(nproc)\n", "--bs", "2", "by the shell", id="a value that a command gives"),
    pytest.param("a.sh", "python t.py --bs $BS\n", "--bs", "2", "is not set exactly once", id="a variable from outside"),
    pytest.param("a.sh", "BS=1\nBS=2\npython t.py --bs $BS\n", "--bs", "4", "is not set exactly once", id="a variable that is set twice"),
    pytest.param("a.sh", "BS=8\npython t.py --bs $BS --eval_bs $BS\n", "--bs", "2", "more than this setting", id="a variable for two options"),
    pytest.param("a.sh", "python a.py --bs 8\npython b.py --bs 8\n", "--bs", "2", "several commands", id="an option of two commands"),
    pytest.param("a.sh", "python a.py --x 8\npython b.py --x 8\n", "--bs", "2", "which command", id="a new option for one of two commands"),
    pytest.param("a.sh", 'python a.py --x 8 "$@"\n', "--bs", "2", "outside the script", id="a command that takes more from outside"),
    pytest.param("a.sh", "python a.py --bs 8 16\n", "--bs", "2", "several values", id="an option with two values"),
    pytest.param("a.bat", "python a.py --x 8\n", "--bs", "2", "another shell", id="a new option in a script for Windows"),
    pytest.param("a.bat", "python a.py --bs %BS%\n", "--bs", "2", "another shell", id="a variable of a script for Windows"),
    pytest.param("a.cmd", 'python a.py --bs "8"\n', "--bs", "2", "another shell", id="a value in quotes of a script for Windows"),
    pytest.param("a.ps1", "python a.py --bs 8\n", "--bs", "a&b", "another shell", id="a value that means more to another shell"),
    pytest.param("a.sh", "python a.py --x 1 \\\n  # --y 2\n  --bs 8\n", "--bs", "2", "ends the command", id="an option behind a comment that ends the command"),
    pytest.param("a.sh", "python a.py --bs 8\n", "--bs", "$(rm -rf x)'", "quoting", id="a value that would end its quotes"),
])  # fmt: skip
def test_it_is_refused(file: str, text: str, key: str, to: str, why: str) -> None:
    found = patch(file, text.encode(), [ConfigChange(file=file, key=key, to=to)])
    assert found.data == text.encode()
    assert [reason.why.en for _, reason in found.refusals] and why in found.refusals[0][1].why.en
    assert found.refusals[0][1].why.zh and key in found.refusals[0][1].by_hand


def test_a_variable_has_no_place_in_yaml() -> None:
    change = ConfigChange(file="a.yaml", key="PYTORCH_CUDA_ALLOC_CONF", to="expandable_segments:True", variable=True)
    found = patch("a.yaml", LLAMAFACTORY.encode(), [change])
    assert found.data == LLAMAFACTORY.encode()
    assert found.refusals[0][1].by_hand == "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


@pytest.mark.parametrize("data", [
    pytest.param(b"\x00\x01\x02", id="a binary file"),
    pytest.param(b"\xff\xfea\x00\x00", id="half a UTF-16 character"),
    pytest.param(b"", id="an empty file"),
    pytest.param(b"a: 1\n" * 300_000, id="a file of more than a megabyte"),
])  # fmt: skip
def test_what_is_no_config_stays_as_it_is(data: bytes) -> None:
    found = patch("a.yaml", data, [ConfigChange(file="a.yaml", key="b", to="2")])
    assert found.data == data and len(found.refusals) == 1


@pytest.mark.parametrize(("file", "text", "key", "new", "after"), [
    pytest.param("a.yaml", "finetuning_type: lora\n'cutoff_length': 9  # x\n", "cutoff_length", "cutoff_len", "finetuning_type: lora\n'cutoff_len': 9  # x\n", id="a key in quotes"),
    pytest.param("a.yaml", "t:\n  old: 9\n", "t.old", "new", "t:\n  new: 9\n", id="a key in a block"),
    pytest.param("a.json", '{"a": {"old": 1}}', "a.old", "new", '{"a": {"new": 1}}', id="a key of JSON"),
    pytest.param("a.sh", "python t.py --old=1 --x 2\n", "--old", "--new", "python t.py --new=1 --x 2\n", id="an option"),
])  # fmt: skip
def test_a_key_gets_its_right_name(file: str, text: str, key: str, new: str, after: str) -> None:
    change = ConfigChange(file=file, key=key, to=new, action="rename")
    assert patch(file, text.encode(), [change]).data.decode() == after
    assert patch(file, after.encode(), [change]).already == (change,)


def test_a_right_name_that_is_taken_is_not_given_twice() -> None:
    text = b"cutoff_length: 9\ncutoff_len: 8\n"
    found = patch("a.yaml", text, [ConfigChange(file="a.yaml", key="cutoff_length", to="cutoff_len", action="rename")])
    assert (found.data, len(found.refusals)) == (text, 1)


def test_of_a_key_that_stands_twice_the_one_in_the_named_line_changes() -> None:
    text = b"a: 1\nb: 2\n---\na: 3\n"
    found = patch("a.yaml", text, [ConfigChange(file="a.yaml", key="a", to="9", line=1)])
    assert found.data == b"a: 9\nb: 2\n---\na: 3\n"
