"""Rule files as they lie on a disk: what is no plain file is named in one line, and each reader of YAML reads the same."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import yaml

from oomdoctor.errors import RuleError
from oomdoctor.knowledge.load import load_rules, rule_files
from oomdoctor.knowledge.pack import builtin_rules, load_pack

WRONG = {
    "a link to a device": "a device, not a file",
    "a pipe": "a pipe, not a file",
    "a link to nothing": "No such file or directory",
    "a link to itself": "Too many levels of symbolic links",
    "a folder": "a folder",
    "larger than memory": "is too large for a rule file",
}


@pytest.mark.skipif(sys.platform != "linux", reason="kinds of files of Linux")
@pytest.mark.parametrize("name", ["signatures/z.yaml", "problems/device/z.yaml", "sources.yaml", "conditions.yaml"])
@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_no_rule_file_is_named_in_one_line(wrong: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "rules" / name
    file.parent.mkdir(parents=True)
    if wrong == "a pipe":
        os.mkfifo(file)
    elif wrong == "a folder":
        file.mkdir()
    elif wrong == "larger than memory":
        file.touch()
        os.truncate(file, 1 << 36)
    else:
        file.symlink_to({"a link to a device": "/dev/zero", "a link to nothing": "nothing"}.get(wrong, file.name))
    with pytest.raises(RuleError, match=WRONG[wrong]) as told:
        load_rules(tmp_path / "rules")
    assert "\n" not in str(told.value)


@pytest.mark.skipif(sys.platform != "linux", reason="kinds of files of Linux")
def test_rules_over_the_others_are_told_from_what_was_compiled_without_waiting(tmp_path: Path) -> None:
    (tmp_path / "rules" / "signatures").mkdir(parents=True)
    os.mkfifo(tmp_path / "rules" / "signatures" / "z.yaml")
    with pytest.raises(RuleError, match="a pipe, not a file"):
        load_pack(over=str(tmp_path / "rules"), cache=str(tmp_path / "cache"))


def test_every_rule_file_reads_the_same_without_libyaml() -> None:
    """Its scanner is stricter: a `?` in a plain text, say. What it takes is the same, as its events are."""
    if not yaml.__with_libyaml__:
        pytest.skip("there is no libyaml to compare with")
    for path in rule_files(Path(builtin_rules())):
        text = path.read_text(encoding="utf-8")
        try:
            plain = [_said(event) for event in yaml.parse(text, Loader=yaml.SafeLoader)]
        except yaml.YAMLError as why:
            pytest.fail(f"{path}: {why}")
        assert plain == [_said(event) for event in yaml.parse(text, Loader=yaml.CSafeLoader)], path


def _said(event: yaml.Event) -> tuple[object, ...]:
    """Return what an event says, without where it stands."""
    return (type(event), getattr(event, "value", None), getattr(event, "anchor", None), getattr(event, "tag", None))
