"""`oomdoctor compare`: two runs or machines, and what changed between them that matters for memory."""

from __future__ import annotations

import os
import sys

import click

from oomdoctor import __version__
from oomdoctor.api.compare import compare as compare_runs
from oomdoctor.api.runs.compare_snapshots import SnapshotComparison, compare_snapshots, is_snapshot
from oomdoctor.case.comparison import Comparison
from oomdoctor.cli.options import NO_REDACT, RULES, format_option, language_option, output_option
from oomdoctor.cli.output import locale_language, show, write
from oomdoctor.report.comparison.compare import compose
from oomdoctor.report.runs.compared_snapshots import compose as compose_snapshots
from oomdoctor.report.wire.comparison import convert_comparison
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.runs.compared_snapshots import convert_snapshot_comparison
from oomdoctor.report.wording.wording import Wording

FORMATS = ("terminal", "markdown", "json", "html")
_NONE = "-"


@click.command()
@click.argument("before", metavar="A", type=click.Path(exists=True))
@click.argument("after", metavar="B", type=click.Path(exists=True))
@click.option("--config", "-c", nargs=2, multiple=True, metavar="A B", help="A config file for each run (- for none; repeatable).")
@click.option("--env", nargs=2, default=(_NONE, _NONE), metavar="A B", help="A text that describes each run's machine (- for none).")
@format_option(FORMATS, "answer")
@output_option("answer")
@language_option()
@RULES
@click.option("--exit-zero", is_flag=True, help="Exit with status 0 even if something that matters changed.")
@NO_REDACT
def compare(
    before: str,
    after: str,
    config: tuple[tuple[str, str], ...],
    env: tuple[str, str],
    format_: str,
    output: str | None,
    lang: str | None,
    rules: str | None,
    exit_zero: bool,
    no_redact: bool,
) -> None:
    """Show what changed from A to B that affects memory, most suspicious first ("it fit last week").

    A and B are logs or folders of logs, configs (.yaml, .json, .sh), or machines: the JSON of `oomdoctor env`, or the output of
    collect_env, transformers env, nvidia-smi, pip freeze and similar tools. A log may include a description of its machine. Two
    memory snapshots are compared by the memory that each line of code holds.

    \b
    Examples:
      oomdoctor compare monday.log today.log
      oomdoctor compare monday.log today.log --config old.yaml new.yaml --env old.json new.json
      oomdoctor compare old.yaml new.yaml
      oomdoctor env --format json > now.json && oomdoctor compare last-week.json now.json

    Exit status: 0 no change known to matter, 1 such a change was found, 2 could not run.
    """
    wording = Wording(lang or locale_language(os.environ))
    if is_snapshot(before) and is_snapshot(after):
        compared = compare_snapshots(before, after, rules=rules)
        write(render_snapshots(compared, format_, wording, redact=not no_redact, to_terminal=output is None), output)
        if compared.change.matters and not exit_zero:
            sys.exit(1)
        return
    old, new = ([pair[at] for pair in config if pair[at] != _NONE] for at in (0, 1))
    machines = (None if env[0] == _NONE else env[0], None if env[1] == _NONE else env[1])
    comparison = compare_runs(before, after, config=(old, new), environment=machines, rules=rules)
    write(render(comparison, format_, wording, redact=not no_redact, to_terminal=output is None), output)
    if comparison.matters and not exit_zero:
        sys.exit(1)


def render(comparison: Comparison, format_: str, wording: Wording, *, redact: bool, to_terminal: bool) -> str:
    """Return the answer as text."""
    if format_ == "json":
        return json_text(convert_comparison(comparison, wording, __version__), redact=redact)
    return show(compose(comparison, wording, __version__), format_, to_terminal=to_terminal, redact=redact)


def render_snapshots(comparison: SnapshotComparison, format_: str, wording: Wording, *, redact: bool, to_terminal: bool) -> str:
    """Return the answer about two memory snapshots as text."""
    if format_ == "json":
        return json_text(convert_snapshot_comparison(comparison, __version__), redact=redact)
    return show(compose_snapshots(comparison, wording, __version__), format_, to_terminal=to_terminal, redact=redact)
