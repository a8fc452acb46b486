"""A setting that stands in the wrong block goes to the right one, and nothing else of the file changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from configs.edit.test_properties import NAMES, WORDS, written_as_json, written_as_yaml
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.configs.edit.change import ConfigChange
from oomdoctor.configs.edit.patch import Patched, patch

GLM4 = "training_args:\n  output_dir: o\n  generation_config:\n    max_new_tokens: 5\n    bf16: true  # A100\npeft_config:\n  r: 8\n"


def moved(file: str, text: str, key: str, to: str) -> Patched:
    change = ConfigChange(file=file, key=key, to=to, action="move")
    found = patch(file, text.encode(), [change])
    if found.made:
        again = patch(file, found.data, [change])
        assert (again.data, again.already) == (found.data, (change,))
    return found


@pytest.mark.parametrize(("file", "text", "key", "to", "after"), [
    pytest.param("a.yaml", GLM4, "training_args.generation_config.bf16", "training_args", GLM4.replace("    bf16", "  bf16"), id="one level up, with its comment"),
    pytest.param("a.yaml", GLM4, "training_args.generation_config.bf16", "peft_config", GLM4.replace("    bf16: true  # A100\n", "") + "  bf16: true  # A100\n", id="into a block below"),
    pytest.param("a.yaml", "z: 'on'\nt:\n    a: 1\nb: 2\n", "z", "t", "t:\n    a: 1\n    z: 'on'\nb: 2\n", id="from the top, in its quotes, as deep as the others"),
    pytest.param("a.yaml", "t:\n  a: 1\nz: 2", "z", "t", "t:\n  a: 1\n  z: 2", id="a file without a last end of line"),
    pytest.param("a.yaml", "z: 2\nt:\n  a: 1", "z", "t", "t:\n  a: 1\n  z: 2", id="to the end of such a file"),
    pytest.param("a.yaml", "z: 2\r\nt:\r\n  a: 1\r\n", "z", "t", "t:\r\n  a: 1\r\n  z: 2\r\n", id="line ends of Windows"),
    pytest.param("a.yaml", "z: 2\nt:\n  - 1\nu:\n  a: 1\n\nb: 3\n", "z", "u", "t:\n  - 1\nu:\n  a: 1\n  z: 2\n\nb: 3\n", id="a blank line stays below"),
    pytest.param("a.json", '{"stage": 2, "z": {"x": 1}}', "stage", "z", '{"z": {"x": 1, "stage": 2}}', id="JSON on one line"),
    pytest.param("a.json", '{"z": {"x": 1}, "stage": "2"}', "stage", "z", '{"z": {"x": 1, "stage": "2"}}', id="the last key of JSON"),
    pytest.param("a.json", '{\n  "stage": 2,\n  "z": {\n    "x": 1\n  }\n}\n', "stage", "z", '{\n  "z": {\n    "x": 1,\n    "stage": 2\n  }\n}\n', id="JSON with a key a line"),
    pytest.param("a.json", '{"stage": 2, "z": {}}', "stage", "z", '{"z": {"stage": 2}}', id="into empty brackets"),
    pytest.param("a.json", '{"z": {"x": {"stage": 2, "a": 1}}}', "z.x.stage", "z", '{"z": {"x": {"a": 1}, "stage": 2}}', id="JSON, one level up"),
])  # fmt: skip
def test_it_goes_where_it_belongs(file: str, text: str, key: str, to: str, after: str) -> None:
    found = moved(file, text, key, to)
    assert (found.data.decode(), found.refusals) == (after, ())


@pytest.mark.parametrize(("file", "text", "key", "to", "why"), [
    pytest.param("a.yaml", "z: {a: 1}\nt:\n  a: 1\n", "z", "t", "one plain value", id="a block"),
    pytest.param("a.yaml", "z: &x 1\ny: *x\nt:\n  a: 1\n", "z", "t", "one plain value", id="a value that an anchor shares"),
    pytest.param("a.yaml", "z: 1\nt: &x\n  a: 1\nu:\n  <<: *x\n", "z", "t", "one plain value", id="into a block that is merged elsewhere"),
    pytest.param("a.yaml", "q:\n  z: 1\nt:\n  a: 1\n", "q.z", "t", "nothing would be left", id="the only key of its block"),
    pytest.param("a.yaml", "z: 1\nb: 2\n", "z", "t", "no block t", id="a block that is not there"),
    pytest.param("a.yaml", "z: 1\nb: 2\n---\nt:\n  a: 1\n", "z", "t", "no block t", id="a block of another document"),
    pytest.param("a.yaml", "z: 1\nt: 2\n", "z", "t", "no block t", id="a value where the block should be"),
    pytest.param("a.yaml", "z: 1\nt: {a: 1}\n", "z", "t", "not written line by line", id="into brackets of YAML"),
    pytest.param("a.yaml", "q: {z: 1, b: 2}\nt:\n  a: 1\n", "q.z", "t", "not alone on its line", id="out of brackets of YAML"),
    pytest.param("a.yaml", "z: |\n  x\nt:\n  a: 1\n", "z", "t", "not alone on its line", id="a text of several lines"),
    pytest.param("a.yaml", "z: one\n  two\nt:\n  a: 1\n", "z", "t", "not alone on its line", id="a word that goes on in the next line"),
    pytest.param("a.yaml", "t:\n  a: 1\n", "z", "t", "no longer at its location", id="a key that is gone"),
    pytest.param("a.json", '{\n  "stage": 2, // sharded\n  "z": {"x": 1}\n}\n', "stage", "z", "a comment", id="a comment beside it"),
    pytest.param("a.sh", "python t.py --z 1\n", "--z", "t", "not in a block", id="an option"),
])  # fmt: skip
def test_it_stays_where_moving_is_not_safe(file: str, text: str, key: str, to: str, why: str) -> None:
    found = moved(file, text, key, to)
    assert found.data == text.encode() and found.made == ()
    assert (
        why in found.refusals[0][1].why.en
        and found.refusals[0][1].why.zh
        and key.lstrip("-").rpartition(".")[2] in found.refusals[0][1].by_hand
    )


@st.composite
def misplaced(draw: st.DrawFn) -> dict[str, Any]:
    """A config with blocks, and a key that stands in one of them or at the top."""
    config = draw(st.dictionaries(NAMES, st.one_of(WORDS, st.dictionaries(NAMES, WORDS, min_size=1, max_size=3)), min_size=1, max_size=4))
    config["block"] = draw(st.dictionaries(NAMES, WORDS, min_size=1, max_size=3))
    config["other"] = {"misplaced": draw(WORDS), **draw(st.dictionaries(NAMES, WORDS, max_size=2))}
    return dict(draw(st.permutations(list(config.items()))))


def check(file: str, config: dict[str, Any], text: str, loaded: Any) -> None:
    found = moved(file, text, "other.misplaced", "block")
    assert len(found.made) + len(found.refusals) == 1
    if not found.made:
        assert found.data == text.encode()
        return
    wanted = json.loads(json.dumps(config))
    wanted["block"]["misplaced"] = wanted["other"].pop("misplaced")
    assert loaded(found.data.decode()) == wanted


@given(misplaced(), st.data())
def test_a_key_of_any_yaml(config: dict[str, Any], data: st.DataObject) -> None:
    text = data.draw(written_as_yaml(config))
    if yaml.safe_load(text) == config:
        check("a.yaml", config, text, yaml.safe_load)


@given(misplaced(), st.data())
def test_a_key_of_any_json(config: dict[str, Any], data: st.DataObject) -> None:
    check("a.json", config, data.draw(written_as_json(config)), json.loads)


@given(misplaced())
def test_in_tidy_files_it_is_moved(config: dict[str, Any]) -> None:
    found = moved("a.json", json.dumps(config, indent=2), "other.misplaced", "block")
    assert len(config["other"]) == 1 or found.made
