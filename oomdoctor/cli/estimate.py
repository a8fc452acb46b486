"""`oomdoctor estimate`: what a run takes of a card."""

from __future__ import annotations

import sys

import click


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--spec", type=click.Path(), required=True, help="Read one JSON object a line and answer one a line; - is standard input.")
@click.option("--format", "-f", "format_", type=click.Choice(["jsonl"]), default="jsonl", show_default=True, help="Form of the answers.")
def estimate(spec: str, format_: str) -> None:  # noqa: ARG001 - one form so far
    """Say what a run takes of a card, part by part."""
    from oomdoctor.sizing.answers import answers  # noqa: PLC0415 - only where something is estimated

    with click.open_file(spec, "rb") as lines:
        for answer in answers(lines):
            sys.stdout.write(answer + "\n")
