"""What a triage says of persons: a table by user, what is written to each, and lines that tell groups apart."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from oomdoctor.api.fleet.show import GroupShown
from oomdoctor.case.case import Case, Verdict
from oomdoctor.case.diagnosis import Diagnosis, Finding, Fix
from oomdoctor.case.event import Certainty, Kind
from oomdoctor.case.text import Text
from oomdoctor.report.triage.group_words import told_apart
from oomdoctor.report.triage.user_message import mails_of
from oomdoctor.report.triage.user_table import UserLine, user_lines, user_table
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.groups import summarise
from oomdoctor.triage.nodes import bad_nodes
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.known_groups import KnownGroups

GIB = 1 << 30
FAILED = Verdict(memory_failure="yes", kind=Kind.DEVICE_OOM, certainty=Certainty.CERTAIN)
CASE = Case(sources=(), events=(), incidents=(), verdict=FAILED)
ROW = JobRow(
    job="1", native="771001", layout="slurm", memory_failure="yes", evidence="log", kind="device-oom", certainty="certain", user="ada",
    name="sft-glm", day="2025-06-03", first_file="/logs/a/1.out", requested_bytes=2 * GIB, free_bytes=GIB, total_bytes=80 * GIB,
    phase="backward", text="torch.OutOfMemoryError: CUDA out of memory.", group="g", retry="retry",
)  # fmt: skip
EN = Wording("en")


def row(number: int, **told: object) -> JobRow:
    return replace(ROW, **{"job": str(number), "native": f"{771000 + number}", **told})


def finding(confidence: Certainty) -> Diagnosis:
    fix = Fix(id="f", title=Text("Smaller batch per card", "减小批量"), how=Text("", ""))
    shown = Finding(id="x", cause=None, severity="high", confidence=confidence, title=Text("t", "t"), why=Text("w", "w"), fixes=(fix,))
    return Diagnosis(case=CASE, findings=(shown,))


def shown(rows: list[JobRow], diagnosis: Diagnosis | None = None) -> tuple[GroupShown, ...]:
    fleet = summarise(rows)
    return tuple(
        GroupShown(
            group=group,
            number=number,
            known=KnownGroups(),
            jobs=tuple(row for row in rows if (row.group or row.job) == group.id),
            diagnosis=diagnosis,
        )
        for number, group in enumerate(fleet.largest, 1)
    )


def test_users_are_counted_with_what_they_lost() -> None:
    rows = [
        *(row(number, gpu_seconds_lost=7200) for number in range(3)),
        row(4, memory_failure="no", group=None),
        row(5, user="bob", group="h"),
        row(6, user=None, group="k"),
        row(7, user="cai", memory_failure="no"),
    ]
    lines = user_lines(summarise(rows))
    assert lines == [
        UserLine(user="ada", jobs=4, failed=3, groups=1, gpu_hours_lost=6.0),
        UserLine(user=None, jobs=1, failed=1, groups=1, gpu_hours_lost=0.0),
        UserLine(user="bob", jobs=1, failed=1, groups=1, gpu_hours_lost=0.0),
    ]
    first, second, _ = user_table(lines, EN).rows
    assert [cell.text for cell in first] == ["ada", "3", "4", "75 %", "1", "6.0"]
    assert second[0].text == "unknown"


MAILS = {
    "a certain finding helps": ([ROW], finding(Certainty.CERTAIN), "What helps: Smaller batch per card."),
    "one that is possible may help": ([ROW], finding(Certainty.POSSIBLE), "What may help: Smaller batch per card."),
    "one that is likely may help": ([ROW], finding(Certainty.LIKELY), "What may help: Smaller batch per card."),
    "without a finding the restart is told": ([ROW], None, "A restart may work."),
    "what comes again is no accident": ([row(number) for number in range(3)], None, "a restart alone is not enough."),
    "a job is told by its figures": ([ROW], None, "It requested 2.00 GiB when 1.00 GiB of 80.00 GiB was free."),
    "of several jobs the figures are those of one": ([ROW, row(2)], None, "Job 771001 requested 2.00 GiB"),
    "what ran out, and when": ([ROW], None, "Your job 771001 (sft-glm) ran out of GPU memory during the backward pass."),
    "a likely failure is called so": ([row(1, certainty="likely")], None, "Your job 771001 (sft-glm) most likely ran out of GPU memory"),
    "where nobody knows what to do nothing is promised": ([row(1, retry="unknown")], None, 'CUDA out of memory."'),
}


@pytest.mark.parametrize(("rows", "diagnosis", "told"), MAILS.values(), ids=MAILS)
def test_a_mail_says_what_was_found_and_no_more(rows: list[JobRow], diagnosis: Diagnosis | None, told: str) -> None:
    (mail,) = mails_of(shown(rows, diagnosis), EN)
    assert told in mail.text
    assert mail.text.endswith(told) or diagnosis is not None or "restart" not in told
    assert mail.user == "ada"


def test_a_long_message_ends_with_a_whole_sentence() -> None:
    (mail,) = mails_of(shown([row(1, text="It failed. " + "Of the card nothing was left and so on. " * 12 + "It was P…")]), EN)
    assert '"It failed. ' in mail.text
    assert 'and so on."' in mail.text


def test_each_user_gets_one_mail_of_their_own_jobs_alone() -> None:
    rows = [row(1), row(2, user="bob"), row(3, user="bob"), row(4, user="bob", group="h", kind="host-oom"), row(5, user=None, group="k")]
    bob, ada = mails_of(shown(rows), EN)
    assert (bob.user, bob.subject) == ("bob", "3 of your jobs ran out of memory (on 2025-06-03)")
    assert bob.text.count("\n\n") == 1
    assert "771001" not in bob.text
    assert (ada.user, "771002" in ada.text) == ("ada", False)


def test_who_has_no_job_among_those_at_hand_gets_no_mail() -> None:
    (whole,) = shown([row(1), row(2, user="bob")])
    (mail,) = mails_of((replace(whole, jobs=whole.jobs[:1]),), EN)
    assert (mail.user, mail.jobs) == ("ada", 1)


def test_chinese_mails_are_written_in_chinese() -> None:
    (mail,) = mails_of(shown([ROW]), Wording("zh"))
    assert "你的 1 个作业（sft-glm）失败了：在反向传播时显存不足。" in mail.text


APART = {
    "the node, where that differs": ([row(1, node="n1"), row(2, node="n2")], ["n1", "n2"]),
    "the folder of the log": ([row(1), row(2, first_file="/logs/b/1.out")], ["a/", "b/"]),
    "the job, where nothing else differs": ([row(1), row(2)], ["job 771001", "job 771002"]),
    "nothing, where the users differ": ([row(1), row(2, user="bob")], ["ada · sft-glm", "bob · sft-glm"]),
}


@pytest.mark.parametrize(("rows", "ends"), APART.values(), ids=APART)
def test_lines_that_would_read_alike_tell_what_differs(rows: list[JobRow], ends: list[str]) -> None:
    groups = summarise([replace(row, group=str(number)) for number, row in enumerate(rows)]).largest
    lines = told_apart(groups, EN)
    assert [line.endswith(end) for line, end in zip(lines, ends)] == [True, True]
    assert len(set(lines)) == 2


def test_the_users_of_a_node_are_those_that_are_known() -> None:
    rows = [row(number, node="n1", user=user, name=f"fit{number}") for number, user in enumerate(["ada", "bob", None, None, *["ada"] * 5])]
    rows += [row(number, node=f"n{number}", memory_failure="no", group=None) for number in range(10, 60)]
    (node,) = bad_nodes(summarise(rows))
    assert (node.users, node.names) == (2, 2)


def test_all_users_of_a_group_are_counted() -> None:
    (group,) = summarise([row(number, user=f"u{number}") for number in range(40)]).largest
    assert len(group.users) == 40
