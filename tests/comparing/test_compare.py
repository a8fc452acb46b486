"""What is said of two runs or machines beside each other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_process import Done, oomdoctor

from oomdoctor import diagnose
from oomdoctor.case.comparison import Comparison, Point, Series, Side
from oomdoctor.case.environment import Cgroup, Environment, Gpu, GpuProcess, Host, Package
from oomdoctor.case.event import Event, Kind, Outcome, Place
from oomdoctor.comparing.changes import changes, differences, effect_of, most_suspicious_first, one_sided
from oomdoctor.comparing.compare import compare
from oomdoctor.comparing.facts import side_facts
from oomdoctor.comparing.series import same_moments
from oomdoctor.knowledge.pack import load_pack
from oomdoctor.knowledge.records.change import CHANGES

ROOT = Path(__file__).parents[2]
PAIR = ROOT / "fixtures" / "compare"
GIB = 1 << 30
RULES = list(load_pack().records(CHANGES))


def machine(**parts: Any) -> Side:
    return Side(name="machine", environment=Environment(**parts))


def found(before: Side, after: Side) -> Comparison:
    return compare(before, after, load_pack())


def card(size: int, held: int = 0) -> tuple[Gpu, ...]:
    holders = (GpuProcess(pid=4711, name="python", used_bytes=held),) if held else ()
    return (Gpu(index=0, name="NVIDIA L40S", vendor="nvidia", total_bytes=size, processes=holders, processes_known=True),)


@pytest.mark.parametrize(("before", "after", "wanted"), [
    pytest.param({"gpus": card(48 * GIB)}, {"gpus": card(24 * GIB)}, ("size-of-the-card", "tighter"), id="the card is smaller"),
    pytest.param({"gpus": card(24 * GIB)}, {"gpus": card(48 * GIB)}, ("size-of-the-card", "looser"), id="the card is larger"),
    pytest.param({"gpus": card(48 * GIB)}, {"gpus": card(48 * GIB, 9 * GIB)}, ("others-on-the-card", "tighter"), id="somebody came onto the card"),
    pytest.param({"host": Host(cgroup=Cgroup(version=2, limit_bytes=64 * GIB))}, {"host": Host(cgroup=Cgroup(version=2, limit_bytes=32 * GIB))}, ("limit-of-the-container", "tighter"), id="the container may have less"),
    pytest.param({"packages": {"transformers": Package(version="5.0.0")}}, {"packages": {"transformers": Package(version="4.57.1")}}, ("transformers-default-type", "tighter"), id="an older transformers loads float32"),
    pytest.param({"variables": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}}, {"variables": {}, "origins": {"variables": "the environment of this process"}}, ("expandable-segments", "tighter"), id="a variable is no longer set, and that is known"),
])  # fmt: skip
def test_a_change_of_the_machine_is_named(before: dict[str, Any], after: dict[str, Any], wanted: tuple[str, str]) -> None:
    result = found(machine(**before), machine(**after))
    assert wanted in [(change.id, change.effect) for change in result.changes]
    assert result.matters


@pytest.mark.parametrize(("before", "after"), [
    pytest.param({"gpus": card(48 * GIB)}, {"gpus": card(47 * GIB)}, id="a card counted with and without what the driver keeps"),
    pytest.param({"variables": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}}, {"host": Host(os="Linux")}, id="a text that shows no variables"),
    pytest.param({"packages": {"numpy": Package(version="1.26.4")}}, {"packages": {"numpy": Package(version="2.1.0")}}, id="a package that takes no memory"),
])  # fmt: skip
def test_what_is_no_change_or_not_known_is_none(before: dict[str, Any], after: dict[str, Any]) -> None:
    result = found(machine(**before), machine(**after))
    assert result.changes == ()
    assert not result.matters


def test_what_only_one_side_says_is_listed_as_unknown() -> None:
    result = found(machine(variables={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}), machine(host=Host(os="Linux")))
    assert ("expandable segments", "true", None) in [(one.about.en, one.before, one.after) for one in result.one_sided]


def test_what_is_wrong_now_and_was_not_goes_first() -> None:
    before = machine(gpus=card(48 * GIB), variables={"PYTORCH_NO_CUDA_MEMORY_CACHING": "0"})
    after = machine(gpus=card(48 * GIB), variables={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
    assert next(change.id for change in found(before, after).changes) == "allocator-cache-is-off"


def test_what_is_wrong_now_and_may_have_been_before_is_no_change() -> None:
    before = machine(gpus=card(48 * GIB))
    after = machine(gpus=card(48 * GIB), variables={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"})
    result = found(before, after)
    assert result.changes == ()
    assert any("caching" in one.about.en for one in result.one_sided)


def test_what_fills_the_memory_that_ran_out_goes_first() -> None:
    before: dict[str, str | int | float | bool] = {"failed": "shm", "host.shm_bytes": 16 * GIB, "training.micro_batch": 2}
    after: dict[str, str | int | float | bool] = {"failed": "shm", "host.shm_bytes": GIB, "training.micro_batch": 4}
    ordered = most_suspicious_first(changes(RULES, before, after), "shm")
    assert [suspect.change.id for suspect in ordered] == ["size-of-shm", "micro-batch"]
    assert [suspect.change.id for suspect in most_suspicious_first(ordered, "card")] == ["micro-batch", "size-of-shm"]


def line(number: int, size: int, rank: int | None = None, **fields: int) -> Event:
    place = Place(source="x", offset=number)
    return Event(signature="swift-memory", kind=Kind.CONTEXT, certainty=None, outcome=Outcome.PRESSURE, place=place, text="", rank=rank, fields={"peak_reserved_bytes": size, **fields})  # fmt: skip


@pytest.mark.parametrize(("before", "after", "points"), [
    pytest.param([(1, 10), (2, 12), (3, 13)], [(1, 20), (2, 22)], [("#1", 10, 20), ("#2", 12, 22)], id="as far as both came"),
    pytest.param([(1, 10)], [(1, 20)], [], id="one moment is no series"),
    pytest.param([], [(1, 20), (2, 22)], [], id="one log prints nothing"),
])  # fmt: skip
def test_lines_of_one_kind_are_laid_beside_each_other(before: list[Any], after: list[Any], points: list[Any]) -> None:
    series = same_moments([line(*figures) for figures in before], [line(*figures) for figures in after])
    assert [(point.at, point.before, point.after) for figures in series for point in figures.points] == points


def test_steps_that_are_printed_decide_which_lines_belong_together() -> None:
    before = [line(1, 10, step=5), line(2, 12, step=10), line(3, 14, step=20)]
    after = [line(1, 30, step=10), line(2, 34, step=20)]
    (series,) = same_moments(before, after)
    assert [(point.at, point.before, point.after) for point in series.points] == [("10", 12, 30), ("20", 14, 34)]


@pytest.mark.parametrize(("before", "after", "effect"), [
    pytest.param(100, 102, None, id="two per cent are noise"),
    pytest.param(100, 110, "tighter", id="a tenth more"),
    pytest.param(100, 80, "looser", id="a fifth less"),
])  # fmt: skip
def test_the_last_common_moment_says_whether_memory_changed(before: int, after: int, effect: str | None) -> None:
    assert (
        Series(figure="used_bytes", points=(Point(at="#1", before=1, after=9), Point(at="#2", before=before, after=after))).effect == effect
    )


FACTS = st.dictionaries(
    st.sampled_from(sorted({rule.fact for rule in RULES})),
    st.one_of(st.booleans(), st.integers(-(10**15), 10**15), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=20)),
)


@given(FACTS, FACTS)
@settings(max_examples=60, deadline=None)
def test_any_facts_come_to_an_answer_and_swapped_sides_to_its_opposite(before: dict[str, Any], after: dict[str, Any]) -> None:
    turned = {"tighter": "looser", "looser": "tighter", "differs": "differs"}
    for rule in RULES:
        there = effect_of(rule, before, after)
        if there is not None and rule.when is None:
            assert effect_of(rule, after, before) == turned[there]
    assert one_sided(RULES, before, before) == ()
    assert differences(before, before, set()) == ()
    assert changes(RULES, before, before) == []


def test_each_fact_of_a_rule_is_one_that_a_side_can_have() -> None:
    """Names in rules and names in facts.py are one list: a fact that nothing yields would make a rule that never speaks."""
    source = (ROOT / "oomdoctor" / "comparing" / "facts.py").read_text(encoding="utf-8")
    fixed = {rule.fact for rule in RULES if rule.fact.partition(".")[0] in ("card", "host", "model")}
    assert [name for name in sorted(fixed) if name.partition(".")[2] not in source] == []


def test_a_log_and_its_message_say_how_large_the_card_is() -> None:
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.50 GiB of which 1.00 GiB is free."
    facts = side_facts(Side(name="log", diagnosis=diagnose(text)))
    assert (facts["card.total_bytes"], facts["failed"]) == (round(23.5 * GIB), "card")


def run(*arguments: str) -> Done:
    return oomdoctor(["compare", *arguments], here=PAIR)


BESIDE = ("--config", "last-week.yaml", "today.yaml", "--env", "last-week-env.txt", "today-env.txt")


def test_two_runs_with_their_configs_and_machines() -> None:
    done = run("last-week.log", "today.log", *BESIDE, "--format", "json")
    answer = json.loads(done.stdout)
    ids = [entry["id"] for entry in answer["changes"]]
    assert done.returncode == 1
    assert ids[:2] == ["sequence-length", "expandable-segments"]
    assert {"transformers-logits-in-fp32", "lora-rank", "accelerate-retries-in-small-steps"} <= set(ids)
    assert answer["series"][0]["effect"] == "tighter"
    assert [entry["expected_bytes"] for entry in answer["estimates"]] == sorted(entry["expected_bytes"] for entry in answer["estimates"])
    assert (answer["before"]["memory_failure"], answer["after"]["memory_failure"]) == ("no", "yes")


@pytest.mark.parametrize(("arguments", "status"), [
    pytest.param(("last-week.yaml", "last-week.yaml"), 0, id="the same config twice"),
    pytest.param(("last-week.log", "last-week.log"), 0, id="the same log twice"),
    pytest.param(("last-week.yaml", "today.yaml"), 1, id="two configs"),
    pytest.param(("last-week-env.txt", "today-env.txt"), 1, id="two machines"),
    pytest.param(("last-week.yaml", "today.yaml", "--exit-zero"), 0, id="a status that is not wanted"),
    pytest.param(("last-week-env.txt", "last-week.yaml"), 2, id="a machine and a config have nothing in common"),
    pytest.param(("last-week.log", "nowhere.log"), 2, id="a file that is not there"),
    pytest.param(("last-week.log", "today.log", "--config", "nowhere.yaml", "-"), 2, id="a config that is not there"),
    pytest.param(("last-week.log", "today.log", "--env", "README.md", "-"), 2, id="a machine that is not described"),
])  # fmt: skip
def test_the_status_says_whether_anything_that_matters_changed(arguments: tuple[str, ...], status: int) -> None:
    done = run(*arguments)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("format_", ["terminal", "markdown", "html"])
def test_every_format_names_the_most_suspicious_change(format_: str, lang: str) -> None:
    done = run("last-week.log", "today.log", *BESIDE, "--format", format_, "--lang", lang)
    assert "4096 → 6144" in done.stdout
    assert ("less headroom" if lang == "en" else "余量变小") in done.stdout


def test_our_own_json_of_a_machine_can_be_compared(tmp_path: Path) -> None:
    made = oomdoctor(["env", "--from", "last-week-env.txt", "--format", "json"], here=PAIR)
    (tmp_path / "a.json").write_text(made.stdout, encoding="utf-8")
    done = run(str(tmp_path / "a.json"), "today-env.txt")
    assert done.returncode == 1
    assert "expandable segments" in done.stdout
    with_config = run(str(tmp_path / "a.json"), "today.yaml", "--config", "last-week.yaml", "-")
    assert "sequence length 4096 → 6144" in with_config.stdout
