"""How often a finding that calls itself certain or likely names the cause that the thread confirmed.

Needs labelled logs, which are not part of the project: a folder of `NAME.log` with `NAME.json` (`root_cause`, `confirmed`), and a
vocabulary of causes with their aliases; `OOMDOCTOR_LABELLED` names the folders (`:` between them), `OOMDOCTOR_VOCABULARY` the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from oomdoctor.api.pipeline import diagnose_logs
from oomdoctor.case.diagnosis import Finding
from oomdoctor.knowledge.pack import load_pack

FOLDERS = [Path(one) for one in os.environ.get("OOMDOCTOR_LABELLED", "").split(":") if one]
VOCABULARY = os.environ.get("OOMDOCTOR_VOCABULARY", "")
AT_LEAST = {"certain": 0.97, "likely": 0.75}


def labelled() -> Iterator[tuple[str, str, tuple[Finding, ...]]]:
    """(name, confirmed cause, findings) of every log whose cause is confirmed and in the vocabulary."""
    causes = json.loads(Path(VOCABULARY).read_text(encoding="utf-8"))["causes"]
    names = {alias: name for name, aliases in causes.items() for alias in [name, *aliases]}
    pack = load_pack()
    for log in sorted(path for folder in FOLDERS for path in folder.glob("*.log")):
        label = json.loads(log.with_suffix(".json").read_text(encoding="utf-8"))
        cause = names.get(label.get("root_cause") or "")
        if label.get("confirmed") and cause is not None:
            yield log.stem, cause, diagnose_logs([str(log)], pack).findings


@pytest.mark.skipif(not FOLDERS or not VOCABULARY, reason="OOMDOCTOR_LABELLED and OOMDOCTOR_VOCABULARY name no labelled logs")
def test_certain_and_likely_findings_are_right_as_often_as_they_say(capsys: pytest.CaptureFixture[str]) -> None:
    right: dict[str, list[bool]] = {"certain": [], "likely": [], "possible": []}
    wrong = []
    for name, cause, findings in labelled():
        for one in findings:
            if one.cause is not None:
                right[one.confidence.value].append(one.cause == cause)
                if one.cause != cause and one.confidence.value in AT_LEAST:
                    wrong.append(f"{one.confidence.value}: {name}: {one.id} says {one.cause}, confirmed {cause}")
    with capsys.disabled():
        print()
        for confidence, hits in right.items():
            print(f"{confidence:10} {sum(hits):4} of {len(hits):4}" + (f" = {sum(hits) / len(hits):.3f}" if hits else ""))
        print("\n".join(wrong))
    for confidence, least in AT_LEAST.items():
        assert sum(right[confidence]) >= least * len(right[confidence])
