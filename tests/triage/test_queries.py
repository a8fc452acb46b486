"""Questions in SQL over rows: those of docs/triage.md are answered alike by both engines, and a query reaches nothing but rows."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
from msgspec.json import encode

from oomdoctor.api.fleet.query import query
from oomdoctor.errors import UsageError
from oomdoctor.triage.row import JobRow, UnreadFile
from oomdoctor.triage.store.export import write_table

DOCS = (Path(__file__).parents[2] / "docs" / "triage.md").read_text(encoding="utf-8")
QUESTIONS = dict(re.findall(r"^\*(.+?)\*\n\n```sql\n(.*?)\n```", DOCS, re.M | re.S))
FORMS = ("sqlite", "jsonl", "parquet") if find_spec("duckdb") and find_spec("pyarrow") else ("sqlite", "jsonl")
ROWS = [
    *(
        JobRow(
            job=f"a{number}", native=f"7712{number}", layout="slurm", memory_failure="yes", kind="device-oom", user=f"u{number % 2}", name="sft",
            node="n1", day=f"2025-06-0{1 + number}", ended=number, evidence="sacct" if number == 3 else "log", group="g1", retry="stop",
            gpu_seconds_lost=7200, requested_bytes=3 << 30, total_bytes=40 << 30, versions={"torch": "2.13.0"}, nodes=("n1", "n2"), text="out",
        )
        for number in range(5)
    ),
    JobRow(job="b", native="b", layout="docker", memory_failure="unread", user="u1", unreadable=(UnreadFile(path="x", why="empty"),)),
]  # fmt: skip


@pytest.fixture(params=FORMS)
def rows(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    path = str(tmp_path / f"rows.{request.param}")
    write_table(map(encode, ROWS), path)
    return path


ANSWERS: dict[str, tuple[object, ...]] = {
    "Which jobs ran out of memory on the last day?": ("77124", "u0", "sft", "device-oom", None, "n1"),
    "Whom should I notify?": ("u0", 3, 6),
    "Which failures are the same, since when, and are they still happening?": ("g1", "device-oom", 5, 2, "2025-06-01", "2025-06-05", "out"),
    "Which node is bad: many failures, from several users?": ("n1", 5, 2, 0),
    "Did an image make it worse: failures by torch version and day?": ("2.13.0", "2025-06-05", 1),
    "Which jobs must not be restarted unchanged?": ("u0", "sft", 3, 3 << 30, 40 << 30),
    "What is the trend: failures by day and kind?": ("2025-06-01", "device-oom", 1),
    "What share of each user's jobs runs out of memory?": (),
    "What is open, and what settles it?": ("unread", None, "docker", 1),
    "Which failures does only the scheduler show?": ("77123", "u1", "sft", "sacct", None, "2025-06-04"),
}


def test_a_query_that_takes_too_long_is_stopped(rows: str) -> None:
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(UsageError, match=r"stopped after 0\.2 s; raise the limit with --timeout"):
        query(endless, rows=rows, seconds=0.2)


def test_the_document_asks_ten_questions() -> None:
    assert list(QUESTIONS) == list(ANSWERS)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_of_the_document_is_answered(question: str, rows: str) -> None:
    answer = query(QUESTIONS[question], rows=rows)
    assert (answer.rows[0] if answer.rows else ()) == ANSWERS[question]
    assert all(len(row) == len(answer.columns) for row in answer.rows)


HOSTILE = {
    "another file as text": "SELECT * FROM read_text('{secret}')",
    "another file as a table": "SELECT * FROM '{secret}'",
    "another table of rows": "SELECT * FROM read_json('{secret}')",
    "files by a pattern": "SELECT * FROM glob('/*')",
    "a file written": "COPY (SELECT 1) TO '{made}'",
    "the rows written over": "COPY (SELECT 1) TO '{rows}'",
    "another base": "ATTACH '{made}' AS other",
    "an extension": "INSTALL httpfs",
    "an extension of SQLite": "SELECT load_extension('{secret}')",
    "a setting": "SET enable_external_access = true",
    "a pragma": "PRAGMA database_list",
    "a second statement": "SELECT 1; SELECT 2",
    "a table that is made": "CREATE TABLE more AS SELECT 1",
    "rows that are removed": "DELETE FROM jobs",
    "a variable of Python": "SELECT * FROM ROWS",
    "nothing": "",
    "no SQL": "which jobs died?",
}


@pytest.mark.parametrize("sql", HOSTILE.values(), ids=HOSTILE)
def test_a_query_reaches_nothing_but_rows(sql: str, rows: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("token\n12345\n")
    made = tmp_path / "made"
    before = Path(rows).read_bytes()
    with pytest.raises(UsageError, match=r"a single SELECT|query failed: (?!not authorized)"):
        query(sql.format(secret=secret, made=made, rows=rows), rows=rows)
    assert not made.exists()
    assert Path(rows).read_bytes() == before


BROKEN = {
    "no JSON": b"job,native\n",
    "a list": b"[1]\n",
    "bytes that are no text": b'{"job": "\xff"}\n',
    "a number that no column holds": b'{"job": "a", "attempt": 99999999999999999999}\n',
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_file_of_other_lines_is_refused(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(encode(ROWS[0]) + b"\n" + data)
    with pytest.raises(UsageError, match=r"rows|query"):
        query("SELECT job, attempt FROM jobs", rows=str(path))
