"""The JSON report: its schema, its caps, its texts."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace
from report import samples
from report.published import validate

from oomdoctor.api.diagnose import diagnose
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.report.diagnosis.headline import summary
from oomdoctor.report.wire.diagnosis import convert_diagnosis
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wording.wording import Wording


def _report(diagnosis: Diagnosis, *, redact: bool = False, lang: str = "en") -> Any:
    return json.loads(json_text(convert_diagnosis(diagnosis, Wording(lang), "0.1.0"), redact=redact))


@pytest.mark.parametrize("redact", [False, True])
@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("sample", samples.ALL.values(), ids=samples.ALL)
def test_every_report_fits_the_schema(sample: Callable[[], Diagnosis], lang: str, redact: bool) -> None:
    validate(_report(sample(), redact=redact, lang=lang))


@pytest.mark.parametrize("text", [
    pytest.param("LoRA of Qwen2.5-7B on one RTX 4090 24GB with batch 8 is OOM", id="a run that is told"),
    pytest.param("my training is OOM, please help", id="a run of which nothing is told"),
])  # fmt: skip
def test_a_text_without_a_log_fits_the_schema(text: str) -> None:
    report = _report(diagnose(text))
    validate(report)
    assert (report["told"]["text"], report["verdict"]["reason"]) == (text, "told")


def test_the_contract() -> None:
    report = _report(samples.device_oom())
    root = report["incidents"][0]["root"]
    assert report["schema"] == "oomdoctor/report/v1"
    assert report["verdict"]["summary"] == summary(samples.device_oom(), Wording("en"))
    assert root["fields"]["requested_bytes"] == 2 << 30
    assert root["fields"]["rank"] == root["rank"] == 3
    assert root["fields"]["other_processes"] == [{"pid": 4711, "used_bytes": int(1.25 * (1 << 30))}]
    assert report["findings"][0]["fixes"][0]["settings"][0] == {
        "framework": "llamafactory", "file": "sft.yaml", "line": None,
        "key": "per_device_train_batch_size", "from": "4", "to": "2", "note": None, "direction": None,
    }  # fmt: skip
    assert report["training"] == {"bf16": "true", "batch_size": 4}


def test_a_rank_that_the_message_names_stays() -> None:
    base = samples.device_oom()
    fields = {**base.case.incidents[0].root.fields, "rank": 7}
    assert _report(samples.with_fields(base, fields))["incidents"][0]["root"]["fields"]["rank"] == 7


def test_texts_are_in_the_language() -> None:
    report = _report(samples.device_oom(), lang="zh")
    assert report["findings"][0]["title"] == "模型之外放不下这么大的 batch"
    assert _report(samples.host_kill_possible(), lang="zh")["verdict"]["settle"].startswith("查看当时的内核日志")


def test_long_lists_are_capped_and_counted() -> None:
    base = samples.device_oom()
    incident = base.case.incidents[0]
    many = replace(incident, consequences=incident.consequences[:1] * 60, repeats=incident.repeats[:1] * 70)
    case = replace(base.case, incidents=(many,), events=base.case.events[:1] * 2500)
    report = _report(replace(base, case=case))
    first = report["incidents"][0]
    assert (len(first["consequences"]), first["consequences_more"]) == (50, 10)
    assert (len(first["repeats"]), first["repeats_more"]) == (50, 20)
    assert (len(report["events"]), report["events_more"]) == (1000, 1500)


def test_a_number_that_json_lacks_is_unknown_and_no_escape_gets_in() -> None:
    base = samples.device_oom()
    report = _report(samples.with_fields(base, {"share": float("nan"), "name": "\x1b[31mred\x00"}))
    assert report["incidents"][0]["root"]["fields"] == {"share": None, "name": "red", "rank": 3}
