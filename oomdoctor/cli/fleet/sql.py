"""`oomdoctor triage sql`: a question over the rows of a triage."""

from __future__ import annotations

import csv
import io

import click
from msgspec.json import encode

from oomdoctor.api.fleet.query import SECONDS, query
from oomdoctor.api.fleet.stores import last_store
from oomdoctor.cli.options import STORE, format_option, output_option
from oomdoctor.cli.output import complain, show, write
from oomdoctor.report.document import Cell, Document, Table
from oomdoctor.report.safety.sanitize import clean_line
from oomdoctor.triage.store.sql import Answer

_LONGEST = 4000


@click.command()
@click.argument("question", metavar="SELECT")
@click.option("--rows", metavar="FILE", type=click.Path(dir_okay=False), help="Query the rows in this file (.parquet, .jsonl, .sqlite).")
@STORE
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=click.FloatRange(min=0, min_open=True),
    default=SECONDS,
    show_default=True,
    help="Stop the query after this long.",
)
@format_option(("terminal", "markdown", "json", "csv"), "answer")
@output_option("answer")
def sql(question: str, rows: str | None, store: str | None, timeout: float, format_: str, output: str | None) -> None:
    """Run one SELECT on the table `jobs`, which has a row for each job in the last triage.

    Nothing else is accessible: no files, no network, no other statements. docs/triage.md has ten example queries.

    \b
    Examples:
      oomdoctor triage sql "SELECT node, count(*) AS n FROM jobs WHERE memory_failure = 'yes' GROUP BY node ORDER BY n DESC"
    """
    answer = query(question, store=None if rows is not None else last_store(store), rows=rows, seconds=timeout)
    complain(answer.problems)
    forms = {"json": _json, "csv": _csv}
    write(forms[format_](answer) if format_ in forms else _table(answer, format_, is_shown=output is None), output)


def _table(answer: Answer, format_: str, *, is_shown: bool) -> str:
    columns = tuple(map(Cell, answer.columns))
    table = Table("", columns, tuple(tuple(Cell(_cell(value)) for value in row) for row in answer.rows))
    return show(Document("", (table,)), format_, to_terminal=is_shown).strip("\n") + "\n"


def _json(answer: Answer) -> str:
    """Return the rows as JSON, an object a line."""
    return "".join(encode(dict(zip(answer.columns, row, strict=True))).decode() + "\n" for row in answer.rows)


def _csv(answer: Answer) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(answer.columns)
    writer.writerows([clean_line(_cell(value), _LONGEST) for value in row] for row in answer.rows)
    return text.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else value if isinstance(value, str) else encode(value).decode()
