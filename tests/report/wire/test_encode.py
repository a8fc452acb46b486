"""What is written is what was meant, whatever it holds."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.report.wire.encode import json_text

_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(st.characters())
_TREES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12)


@given(st.dictionaries(st.text(), _TREES, max_size=4))
def test_a_report_in_json_is_read_as_it_was(report: dict[str, object]) -> None:
    assert json.loads(json_text(report)) == report


def test_a_report_in_json_has_a_line_for_each_value() -> None:
    assert json_text({"显存": [1, {"a": 1.5}], "none": []}) == '{\n "显存": [\n  1,\n  {\n   "a": 1.5\n  }\n ],\n "none": []\n}\n'


def test_bytes_in_a_file_name_that_are_no_text_do_not_stop_a_report() -> None:
    assert json.loads(json_text({"file": "run\udc80.yaml"})) == {"file": "run\udc80.yaml"}


def test_a_report_of_one_line_is_one_line() -> None:
    assert json_text({"a": [1, {"b": "\n"}]}, line=True) == '{"a": [1, {"b": "\\n"}]}\n'
