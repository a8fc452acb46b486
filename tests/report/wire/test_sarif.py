"""SARIF 2.1.0 as OASIS defines it: what the standard requires of a log, checked against the parts of its schema that are used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from oomdoctor.api.diagnose import diagnose
from oomdoctor.case.settings import ConfigIssue
from oomdoctor.case.text import Text
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.sarif import convert_config_issues, convert_findings
from oomdoctor.report.wording.wording import Wording

MESSAGE = {
    "type": "object",
    "required": ["text"],
    "additionalProperties": False,
    "properties": {"text": {"type": "string", "minLength": 1}},
}
LEVEL = {"enum": ["none", "note", "warning", "error"]}
RULE = {
    "type": "object", "required": ["id"], "additionalProperties": False,
    "properties": {
        "id": {"type": "string"}, "shortDescription": MESSAGE, "fullDescription": MESSAGE,
        "defaultConfiguration": {"type": "object", "properties": {"level": LEVEL}, "additionalProperties": False},
    },
}  # fmt: skip
LOCATION = {
    "type": "object", "additionalProperties": False,
    "properties": {"physicalLocation": {
        "type": "object", "required": ["artifactLocation"], "additionalProperties": False,
        "properties": {
            "artifactLocation": {"type": "object", "additionalProperties": False, "properties": {"uri": {"type": "string", "format": "uri-reference", "pattern": r"^[^\s\\]+$"}}},
            "region": {"type": "object", "additionalProperties": False, "properties": {"startLine": {"type": "integer", "minimum": 1}}},
        },
    }},
}  # fmt: skip
RESULT = {
    "type": "object", "required": ["message"], "additionalProperties": False,
    "properties": {
        "ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": -1}, "level": LEVEL, "message": MESSAGE,
        "locations": {"type": "array", "items": LOCATION},
        "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
    },
}  # fmt: skip
RUN = {
    "type": "object", "required": ["tool"], "additionalProperties": False,
    "properties": {
        "tool": {"type": "object", "required": ["driver"], "additionalProperties": False, "properties": {"driver": {
            "type": "object", "required": ["name"], "additionalProperties": False,
            "properties": {"name": {"type": "string"}, "semanticVersion": {"type": "string"}, "rules": {"type": "array", "items": RULE, "uniqueItems": True}},
        }}},
        "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
        "results": {"type": "array", "items": RESULT},
    },
}  # fmt: skip
LOG = {
    "type": "object", "required": ["version", "runs"], "additionalProperties": False,
    "properties": {"$schema": {"type": "string", "format": "uri"}, "version": {"enum": ["2.1.0"]}, "runs": {"type": "array", "items": RUN}},
}  # fmt: skip
"""Objects, required properties, enumerations and bounds of sarif-schema-2.1.0.json (OASIS, errata 01), for the properties that are written."""


def issue(**changes: Any) -> ConfigIssue:
    given = {
        "id": "a-check",
        "severity": "error",
        "key": "k",
        "file": "a.yaml",
        "line": 3,
        "what": Text("`k` is wrong", "`k` 有误"),
        "why": Text("It stops.", "会报错。"),
    }
    return ConfigIssue(**{**given, **changes})


COMPLAINTS = (
    issue(replacement="k: 2"),
    issue(line=9),
    issue(id="other", severity="note", file="a folder/配置.yaml", line=0),
    issue(id="third", severity="warning", what=Text("\x1b[31mred\x07", "红")),
)


def sarif(complaints: tuple[ConfigIssue, ...], lang: str = "en") -> Any:
    return json.loads(json_text(convert_config_issues(complaints, Wording(lang), "1.2.3")))


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("complaints", [pytest.param(COMPLAINTS, id="several"), pytest.param((), id="none")])
def test_it_is_sarif(complaints: tuple[ConfigIssue, ...], lang: str) -> None:
    jsonschema.validate(sarif(complaints, lang), LOG)


def test_each_kind_of_complaint_is_one_rule_and_results_point_at_theirs() -> None:
    run = sarif(COMPLAINTS)["runs"][0]
    rules = [entry["id"] for entry in run["tool"]["driver"]["rules"]]
    assert rules == ["a-check", "other", "third"]
    assert all(rules[entry["ruleIndex"]] == entry["ruleId"] for entry in run["results"])
    assert [entry["level"] for entry in run["results"]] == ["error", "error", "note", "warning"]


def test_a_message_says_what_why_and_what_to_write() -> None:
    assert sarif(COMPLAINTS)["runs"][0]["results"][0]["message"]["text"] == "k is wrong. It stops. Write: k: 2."
    assert "\x1b" not in json_text(convert_config_issues(COMPLAINTS, Wording("en"), "1"))


@pytest.mark.parametrize(("file", "uri"), [
    pytest.param("a.yaml", "a.yaml", id="a file here"),
    pytest.param("./runs/../a.yaml", "a.yaml", id="a way that goes back"),
    pytest.param("a folder/配置.yaml", "a%20folder/%E9%85%8D%E7%BD%AE.yaml", id="blanks and Chinese"),
    pytest.param(str(Path.cwd() / "runs" / "a.yaml"), "runs/a.yaml", id="a whole path below this folder"),
    pytest.param("/elsewhere/a.yaml", "file:///elsewhere/a.yaml", id="a file of another place"),
])  # fmt: skip
def test_a_file_is_named_as_a_code_host_knows_it(file: str, uri: str) -> None:
    result = sarif((issue(file=file),))["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.50 GiB of which 1.25 GiB is free."


def of_log(text: str, name: str = "logs/train.log", lang: str = "en") -> Any:
    return json.loads(json_text(convert_findings(diagnose(text.encode(), name=name), Wording(lang), "1.2.3"), redact=True))


@pytest.mark.parametrize(("text", "level"), [
    pytest.param(f"step 1\n{OOM}\n", "error", id="memory ran out"),
    pytest.param("step 1\nRuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED\n", "warning", id="perhaps it did"),
    pytest.param("RuntimeError: CUDA error: device-side assert triggered\n", "note", id="something else failed"),
    pytest.param("step 1\ndone\n", None, id="nothing failed"),
    pytest.param("", None, id="an empty log"),
])  # fmt: skip
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_diagnosis_is_sarif_with_the_verdict_first(text: str, level: str | None, lang: str) -> None:
    log = of_log(text, lang=lang)
    jsonschema.validate(log, LOG)
    results = log["runs"][0]["results"]
    assert [entry["level"] for entry in results[:1]] == ([] if level is None else [level])


def test_a_finding_points_at_its_line_and_says_what_to_do_first() -> None:
    results = of_log(f"step 1\n{OOM}\n")["runs"][0]["results"]
    assert [entry["locations"][0]["physicalLocation"]["region"]["startLine"] for entry in results] == [2] * len(results)
    assert [entry["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for entry in results] == ["logs/train.log"] * len(results)
    assert "2.00 GiB" in results[0]["message"]["text"]
    assert "(possible)" in results[1]["message"]["text"] or "(likely)" in results[1]["message"]["text"]


def test_what_came_from_standard_input_has_no_place() -> None:
    assert of_log(OOM, name="-")["runs"][0]["results"][0]["locations"] == []
