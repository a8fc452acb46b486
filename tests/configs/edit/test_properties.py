"""Whatever the file: a change of one value leaves every other byte, and two readers agree on what came of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from oomdoctor.configs.edit.change import ConfigChange
from oomdoctor.configs.edit.patch import patch

NAMES = st.from_regex(r"[a-z][a-z_]{0,11}", fullmatch=True).filter(lambda name: yaml.safe_load(name) == name)
WORDS = st.one_of(
    st.integers(-(10**9), 10**9),
    st.floats(0.001, 1000).map(lambda value: round(value, 3)),
    st.booleans(),
    st.none(),
    st.text(st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters="\u2028\u2029\ufeff\ufffe\uffff"), max_size=20),
)
CONFIGS = st.recursive(
    st.dictionaries(NAMES, st.one_of(WORDS, st.lists(WORDS, max_size=3)), min_size=1, max_size=5),
    lambda inner: st.dictionaries(NAMES, st.one_of(WORDS, inner, st.lists(inner, max_size=2)), min_size=1, max_size=4),
    max_leaves=8,
)
NEW = st.one_of(
    st.integers(0, 10**6).map(str),
    st.sampled_from(["true", "false", "auto", "null", "0.9", "on", "no", "full_shard auto_wrap", "a: b #c", "ds.json", "'"]),
)


def leaves(config: dict[str, Any], path: str = "") -> list[str]:
    """The dotted keys of plain values that stand in blocks alone."""
    out = []
    for key, value in config.items():
        if isinstance(value, dict):
            out += leaves(value, f"{path}{key}.")
        elif not isinstance(value, list):
            out.append(f"{path}{key}")
    return out


@st.composite
def written_as_yaml(draw: st.DrawFn, config: dict[str, Any]) -> str:
    text = yaml.safe_dump(
        config, default_flow_style=draw(st.sampled_from([True, False, None])), indent=draw(st.sampled_from([2, 3, 4, 8])), allow_unicode=draw(st.booleans()),
        sort_keys=False, width=10**6, explicit_start=draw(st.booleans()),
    )  # fmt: skip
    if draw(st.booleans()):
        text = text.replace("\n", "  # a comment: {x}\n", 1) + "# the end\n"
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


@st.composite
def written_as_json(draw: st.DrawFn, config: dict[str, Any]) -> str:
    separators = draw(st.sampled_from([None, (",", ":"), (", ", ": "), (" , ", " : ")]))
    return json.dumps(
        config, indent=draw(st.sampled_from([None, 0, 1, 2, 4, "\t"])), separators=separators, ensure_ascii=draw(st.booleans())
    )


@st.composite
def files(draw: st.DrawFn, written: Any) -> tuple[dict[str, Any], str]:
    config = draw(CONFIGS)
    return config, draw(written(config))


def middle(old: str, new: str) -> tuple[str, str]:
    """What differs, between what both begin with and what both end with."""
    start = next((at for at, (one, other) in enumerate(zip(old, new, strict=False)) if one != other), min(len(old), len(new)))
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    return old[start : len(old) - end], new[start : len(new) - end]


def check(name: str, config: dict[str, Any], text: str, key: str, to: str, loaded: Any) -> None:
    found = patch(name, text.encode(), [ConfigChange(file=name, key=key, to=to)])
    new = found.data.decode()
    assert [why.why.en for _, why in found.refusals] == []
    gone, come = middle(text, new)
    assert "\n" not in gone + come
    wanted = json.loads(json.dumps(config))
    block = wanted
    *blocks, last = key.split(".")
    for one in blocks:
        block = block[one]
    got = loaded(new)
    for one in blocks:
        got = got[one]
    assert str(got[last]).lower() in (to.lower(), str(yaml.safe_load(to) if to not in ("on", "no", "a: b #c", "'") else to).lower())
    block[last] = got[last]
    assert loaded(new) == wanted
    again = patch(name, found.data, [ConfigChange(file=name, key=key, to=to)])
    assert (again.data, len(again.already)) == (found.data, 1)


@given(files(written_as_yaml), NEW, st.data())
def test_one_value_of_any_yaml(file: tuple[dict[str, Any], str], to: str, data: st.DataObject) -> None:
    config, text = file
    keys = leaves(config)
    if keys and yaml.safe_load(text) == config:
        check("a.yaml", config, text, data.draw(st.sampled_from(keys)), to, yaml.safe_load)


@given(files(written_as_json), NEW, st.data())
def test_one_value_of_any_json(file: tuple[dict[str, Any], str], to: str, data: st.DataObject) -> None:
    config, text = file
    keys = leaves(config)
    if keys:
        check("a.json", config, text, data.draw(st.sampled_from(keys)), to, json.loads)


@pytest.mark.parametrize("name", ["a.yaml", "a.json", "a.sh"])
@given(
    text=st.text(st.sampled_from(list("ab: -{}[]\"'#&*!|>\\\n\r\t$=,1\u663e\ufeff")), max_size=80),
    key=st.sampled_from(["a", "b", "a.b", "--a"]),
)
def test_any_text_is_changed_in_one_place_or_not_at_all(name: str, text: str, key: str) -> None:
    data = text.encode()
    found = patch(name, data, [ConfigChange(file=name, key=key, to="7")])
    assert len(found.made) + len(found.already) + len(found.refusals) == 1
    if not found.made:
        assert found.data == data
        return
    gone, come = middle(text, found.data.decode())
    # A value, or a line of its own.
    assert len(come.strip().splitlines()) <= 2 and "\n" not in gone.strip()


@given(st.binary(max_size=60))
def test_any_bytes_are_left_alone_or_changed(data: bytes) -> None:
    found = patch("a.yaml", data, [ConfigChange(file="a.yaml", key="a", to="7")])
    assert found.made or found.data == data
