"""Complaints about configs as SARIF 2.1.0 (OASIS), which code hosts show beside the lines of a change."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from oomdoctor.case.settings import ConfigIssue
from oomdoctor.report.safety.sanitize import clean, clean_line
from oomdoctor.report.wording.phrases import blank, stop, stopped
from oomdoctor.report.wording.texts import say

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
VERSION = "2.1.0"
_LEVELS = {"error": "error", "warning": "warning", "note": "note"}
_LONG = 2000


def to_sarif(complaints: Sequence[ConfigIssue], lang: str, version: str) -> dict[str, Any]:
    """One run of one tool; each kind of complaint is a rule."""
    rules = list(dict.fromkeys(one.id for one in complaints))
    driver = {
        "name": "oomdoctor",
        "semanticVersion": version,
        "rules": [_rule(next(one for one in complaints if one.id == rule), lang) for rule in rules],
    }
    results = [_result(one, rules.index(one.id), lang) for one in complaints]
    return {
        "$schema": SCHEMA,
        "version": VERSION,
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }


def _rule(one: ConfigIssue, lang: str) -> dict[str, Any]:
    return {
        "id": one.id,
        "shortDescription": {"text": one.id.replace("-", " ")},
        "fullDescription": {"text": _text(stopped(one.why.get(lang), lang))},
        "defaultConfiguration": {"level": _LEVELS[one.severity]},
    }


def _result(one: ConfigIssue, rule: int, lang: str) -> dict[str, Any]:
    said = stopped(one.what.get(lang), lang) + blank(lang) + stopped(one.why.get(lang), lang)
    if one.instead is not None:
        said += f"{blank(lang)}{say('write-instead', lang)}{clean_line(one.instead, 400)}{stop(lang)}"
    return {
        "ruleId": one.id,
        "ruleIndex": rule,
        "level": _LEVELS[one.severity],
        "message": {"text": _text(said)},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(one.file)}, "region": {"startLine": max(1, one.line)}}}],
        "partialFingerprints": {"complaint/v1": clean_line(f"{one.id}:{one.key}", 400)},
    }


def _uri(path: str) -> str:
    """A file as a URI: relative to where the command ran, which is the checkout on a code host."""
    if os.path.isabs(path):
        inside = os.path.relpath(path)
        if inside.startswith(os.pardir):
            from pathlib import Path  # noqa: PLC0415 - most paths are below

            return Path(path).as_uri()
        path = inside
    return quote(os.path.normpath(path).replace(os.sep, "/"))


def _text(text: str) -> str:
    return clean(text.replace("`", ""), _LONG)
