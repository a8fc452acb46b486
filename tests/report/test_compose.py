"""What the report says, in which order."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from report import samples

from oomdoctor.case.case import Verdict
from oomdoctor.case.diagnosis import Diagnosis
from oomdoctor.case.event import Certainty, Kind
from oomdoctor.knowledge.pack import SIGNATURES, load_pack
from oomdoctor.report.diagnosis.compose import compose
from oomdoctor.report.diagnosis.headline import settle_text, summary
from oomdoctor.report.document import Bar, BriefSteps, Facts, Folded, Heading, Paragraph, Quote, Steps
from oomdoctor.report.wording.texts import FIGURES, SETTLE
from oomdoctor.report.wording.wording import Wording

SUMMARIES = [
    pytest.param(
        samples.device_oom,
        "GPU memory ran out on rank 3 (GPU 3), during the backward pass: 2.00 GiB requested, 419.84 MiB of 23.69 GiB free.",
        id="a device OOM says where, when and how much",
    ),
    pytest.param(
        samples.look_alike, "Not a memory failure: bf16 is not supported on this card.", id="a look-alike says what it is instead"
    ),
    pytest.param(
        samples.host_kill_possible,
        "The host possibly killed it for memory on rank 2, while loading data: "
        "the process ended by SIGKILL "
        "(exit code -9), and the log does not say why.",
        id="a SIGKILL alone stays open",
    ),
    pytest.param(
        samples.survived,
        "No failure: GPU memory ran short 12 times on rank 0 (GPU 0), during the forward pass: "
        "512.00 MiB requested, 100.00 MiB free, and the program handled it and continued.",
        id="a survived OOM is no failure",
    ),
    pytest.param(samples.nothing_found, "No failure found in the input (3 files, 12.00 MiB).", id="nothing found says what was read"),
    pytest.param(samples.nothing_read, "Nothing could be read, so there is nothing to report yet.", id="nothing read is not health"),
    pytest.param(
        samples.kernel_resource,
        "Not a memory failure: one kernel needs more on-chip memory than the card has: 160.00 KiB requested, the limit is 99.00 KiB.",
        id="on-chip memory of a kernel is another matter",
    ),
    pytest.param(samples.shm, "Most likely shared memory (/dev/shm) ran out while loading data.", id="a likely one says so"),
]


@pytest.mark.parametrize(("sample", "sentence"), SUMMARIES)
def test_the_first_sentence(sample: Callable[[], Diagnosis], sentence: str) -> None:
    first = compose(sample(), Wording("en"), "0").blocks[0]
    assert isinstance(first, Paragraph)
    assert first.spans[0].text == sentence == summary(sample(), Wording("en"))


def test_chinese_puts_the_place_first() -> None:
    assert (
        summary(samples.device_oom(), Wording("zh")) == "rank 3（GPU 3）在反向传播时显存不足：申请 2.00 GiB，23.69 GiB 中只剩 419.84 MiB。"
    )


@pytest.mark.parametrize(
    ("free", "total", "limit", "part"),
    [
        pytest.param(None, None, None, "2.00 GiB requested.", id="only the request is known"),
        pytest.param(3 << 30, 24 << 30, None, "refused, although 3.00 GiB was free.", id="enough was free"),
        pytest.param(
            3 << 30, 24 << 30, 8 << 30, "refused with a limit of 8.00 GiB, although 3.00 GiB was free.", id="a set limit refused it"
        ),
        pytest.param(1 << 30, 1 << 30, None, "more than the whole card has (1.00 GiB).", id="no card has that much"),
    ],
)
def test_the_figures_of_the_sentence(free: int | None, total: int | None, limit: int | None, part: str) -> None:
    sizes = {"free_bytes": free, "total_bytes": total, "limit_bytes": limit}
    fields = {"requested_bytes": 2 << 30, **{name: size for name, size in sizes.items() if size is not None}}
    base = samples.device_oom()
    incident = replace(base.case.incidents[0], root=replace(base.case.incidents[0].root, fields=fields))
    assert summary(replace(base, case=replace(base.case, incidents=(incident,))), Wording("en")).endswith(part)


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("sample", samples.ALL.values(), ids=samples.ALL)
def test_no_placeholder_of_a_template_is_left(sample: Callable[[], Diagnosis], lang: str) -> None:
    text = repr(compose(sample(), Wording(lang), "0.1.0"))
    assert "{" not in text.replace("[{", "")
    assert "  ," not in text


def test_the_order_is_verdict_place_cause_steps_run_bar_and_folds_last() -> None:
    document = compose(samples.device_oom(), Wording("en"), "0.1.0")
    kinds = [type(block) for block in document.blocks]
    order = [kinds.index(kind) for kind in (Paragraph, Quote, Heading, BriefSteps, Bar, Folded)]
    assert order == sorted(order)
    assert all(kind is Folded for kind in kinds[kinds.index(Folded) :])
    assert [block.text for block in document.blocks if isinstance(block, Heading)] == ["Do this"]
    assert [block.title for block in document.blocks if isinstance(block, Folded)] == [
        "The message", "The figures", "All findings (2)", "The steps in full (5)", "Sources (2)", "What followed (13)", "What is not known",
        "Also in the log (1)",
    ]  # fmt: skip


def test_repeats_are_counted_not_listed() -> None:
    assert "the same on ranks 0, 1, 2 and 4 more; seen 16 times in all" in repr(compose(samples.device_oom(), Wording("en"), "0"))


def test_consequences_are_folded_and_capped() -> None:
    folded = next(
        block
        for block in compose(samples.device_oom(), Wording("en"), "0").blocks
        if isinstance(block, Folded) and "followed" in block.title
    )
    assert folded.title == "What followed (13)"
    assert isinstance(folded.blocks[0], Facts)
    assert len(folded.blocks[0].rows) == 8
    assert "and 5 more" in repr(folded.blocks[1])


def test_no_number_is_in_the_table_and_in_the_bar() -> None:
    blocks = compose(samples.device_oom(), Wording("en"), "0").blocks
    figures = next(block for block in blocks if isinstance(block, Folded) and block.title == "The figures")
    facts = next(block for block in figures.blocks if isinstance(block, Facts))
    bar = next(block for block in blocks if isinstance(block, Bar))
    assert not {row.value for row in facts.rows} & {part.value for part in bar.slices}
    assert sum(part.share for part in bar.slices) == pytest.approx(1)


def test_a_wrong_source_is_shown_with_its_correction() -> None:
    text = repr(compose(samples.device_oom(), Wording("en"), "0"))
    assert text.index("avoids OOM") < text.index("In fact: ") < text.index("returns only unused memory")


def test_fixes_of_several_findings_come_once_each() -> None:
    base = samples.device_oom()
    twice = compose(replace(base, findings=(*base.findings, *base.findings)), Wording("en"), "0").blocks
    actions = next(block for block in twice if isinstance(block, BriefSteps)).steps
    assert len(actions) == len({action.do for action in actions}) == 3
    folded = next(block for block in twice if isinstance(block, Folded) and block.title == "The steps in full (5)")
    titles = [step.title for block in folded.blocks if isinstance(block, Steps) for step in block.steps]
    assert len(titles) == len(set(titles)) == 5


@pytest.mark.parametrize("place", ["line", "from_end", "offset"])
def test_a_message_is_placed_by_what_is_known(place: str) -> None:
    base = samples.look_alike()
    root = base.case.incidents[0].root
    known = {
        "line": ("train.log:57", 57, None),
        "from_end": ("train.log (2 lines before the end)", None, 2),
        "offset": ("train.log (byte 9)", None, None),
    }
    expected, line, from_end = known[place]
    moved = replace(root, place=replace(root.place, line=line, from_end=from_end, offset=9))
    case = replace(base.case, incidents=(replace(base.case.incidents[0], root=moved),))
    quote = next(block for block in compose(replace(base, case=case), Wording("en"), "0").blocks if isinstance(block, Quote))
    assert quote.where.partition(" · ")[0] == expected


@pytest.mark.parametrize(
    ("sample", "part"),
    [
        pytest.param(samples.host_kill_possible, "dmesg", id="a SIGKILL is settled by the kernel's log"),
        pytest.param(samples.other_ranks_log, "rank 5, which failed first", id="the rank that failed first is named"),
        pytest.param(samples.masked, "much smaller batch", id="a library that did not start is settled by a small run"),
    ],
)
def test_what_would_settle_it(sample: Callable[[], Diagnosis], part: str) -> None:
    assert part in (settle_text(sample().case, Wording("en")) or "")


def test_unknown_keys_fall_back() -> None:
    verdict = Verdict(
        memory_failure="possible", kind=Kind.DEVICE_OOM, certainty=Certainty.POSSIBLE, reason="new-reason", settle="new-check"
    )
    base = samples.masked()
    case = replace(base.case, verdict=verdict)
    assert summary(replace(base, case=case), Wording("en")).startswith("Memory possibly ran out")
    assert settle_text(case, Wording("en")) == SETTLE["generic"].en


def test_every_figure_that_a_message_can_print_has_a_name_in_both_languages() -> None:
    pack = load_pack()
    printed = {
        name
        for record in pack.records(SIGNATURES)
        if record.kind != "context"
        for example in record.examples
        for name, value in example.fields.items()
        if name.endswith("_bytes") and isinstance(value, int)
    }
    assert sorted(printed - set(FIGURES)) == []
