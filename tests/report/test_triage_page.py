"""The page of a triage: what it shows, that it stays small, and that nothing in it acts, looked at by a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from oomdoctor.api.fleet.show import FleetShown, GroupShown
from oomdoctor.report.render.html import render
from oomdoctor.report.triage.fleet_page import compose
from oomdoctor.report.wording.wording import Wording
from oomdoctor.triage.groups import summarise
from oomdoctor.triage.row import JobRow
from oomdoctor.triage.store.known_groups import KnownGroups

CHROMIUM = shutil.which("chromium")
HOSTILE = "<script>document.title='run'</script><img src=x onerror=\"document.title='run'\">\x1b[31m"
MESSAGE = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total capacity of 39.39 GiB. " * 2


def failed(number: int, group: int, text: str = MESSAGE, **told: str) -> JobRow:
    return JobRow(
        job=str(number), native=f"{771000 + number}", layout="slurm", memory_failure="yes", evidence="log", kind=told.get("kind", "device-oom"),
        certainty="certain", user=told.get("user", f"u{group % 7}"), name=told.get("name", "sft-glm"), node=told.get("node", f"n{number % 9}"),
        day=f"2025-06-{1 + number % 30:02d}", first_file=f"logs/{number}.out", first_line=31, text=text[:300], group=f"g{group}",
        requested_bytes=3 << 30, total_bytes=40 << 30, retry="stop",
    )  # fmt: skip


def page(rows: list[JobRow], lang: str = "en") -> str:
    fleet = summarise(rows)
    known = KnownGroups()
    groups = (
        GroupShown(group=group, number=number, known=known, jobs=tuple(row for row in rows if row.group == group.id), diagnosis=None)
        for number, group in enumerate(fleet.largest[:200], 1)
    )
    return render(compose(FleetShown(fleet=fleet, known=known, groups=tuple(groups)), Wording(lang), "0"))


@pytest.mark.parametrize(("lang", "told"), [("en", ["To the user", "by day", "Its jobs"]), ("zh", ["给用户的消息", "按天", "包含的作业"])])
def test_it_shows_days_nodes_and_each_group(lang: str, told: list[str]) -> None:
    shown = page([failed(number, number % 3) for number in range(12)], lang)
    assert [text for text in told if text not in shown] == []
    assert (shown.count('role="img"'), shown.count("<summary>1 · ")) == (2, 1)
    assert all(f"logs/{number}.out:31" in shown for number in range(12))


def test_one_kind_of_failure_can_be_shown_alone() -> None:
    rows = [*(failed(number, number) for number in range(3)), failed(3, 3, kind="host-oom")]
    shown = page(rows)
    assert re.findall(r'value="(k\d)"( checked)?> ([^<]+)', shown) == [
        ("k0", " checked", "all"),
        ("k1", "", "GPU memory (3)"),
        ("k2", "", "host memory (1)"),
    ]
    assert (shown.count('class="kind k1"'), shown.count('class="kind k2"')) == (3, 1)
    assert "<input" not in page(rows[:3]), "where all are of one kind there is nothing to choose"


def test_a_message_is_for_one_user_or_for_all_of_them() -> None:
    shown = page([*(failed(number, 1) for number in range(3)), *(failed(number, 2, user=f"u{number}") for number in range(7, 9))])
    assert re.findall("3 of your jobs|2 jobs of 2 users", shown) == ["3 of your jobs", "2 jobs of 2 users"]


def test_two_hundred_groups_take_less_than_300_kb() -> None:
    """Rows aside: what names a job is not counted."""
    shown = page([failed(number, number) for number in range(200)])
    rows = "".join(re.findall(r"<tr><th>771\d{3}</th>.*?</tr>", shown))
    assert shown.count("<summary>") - shown.count('class="figures"') == 400
    assert len(shown.encode()) - len(rows) < 300_000


def test_a_fleet_without_failures_has_no_drawings() -> None:
    assert "<svg" not in page([JobRow(job="1", native="1", layout="plain")])


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_hostile_names_never_become_markup(tmp_path: Path) -> None:
    rows = [failed(number, 1, text=HOSTILE, user=HOSTILE, name=HOSTILE, node=HOSTILE, kind=HOSTILE) for number in range(4)]
    (tmp_path / "page.html").write_text(page(rows), encoding="utf-8")
    dom = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/profile", "--dump-dom",
         f"file://{tmp_path}/page.html"],
        capture_output=True, text=True, timeout=600, check=True,
    ).stdout  # fmt: skip
    assert "<title>oomdoctor 0 · triage</title>" in dom
    assert dom.count('role="img"') == 2
    assert re.findall(r"<script|<img|\x1b", dom) == []
    assert dom.count("&lt;script&gt;") > 4
