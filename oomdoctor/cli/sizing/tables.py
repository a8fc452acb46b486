"""The tables of `oomdoctor estimate` (`--sweep`, `--cards`, `--formats`) in the format that was asked for."""

from __future__ import annotations

from oomdoctor import __version__
from oomdoctor.cli.output import show
from oomdoctor.planning.sizing.alternatives import Alternatives
from oomdoctor.planning.sizing.sweep import Sweep
from oomdoctor.report.memory import alternatives as of_alternatives
from oomdoctor.report.memory import sweep as of_sweep
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.sizing.alternatives import convert_alternatives
from oomdoctor.report.wire.sizing.sweep import convert_sweep
from oomdoctor.report.wording.wording import Wording


def sweep_text(sweep: Sweep, format_: str, wording: Wording, *, to_terminal: bool) -> tuple[str, int]:
    """Return the text of a sweep, and the exit status: 1 where a card was named and nothing surely fits."""
    status = int(sweep.budget is not None and not any(cell.fits == "yes" for cell in sweep.cells))
    if format_ in ("json", "jsonl"):
        return json_text(convert_sweep(sweep, wording), line=format_ == "jsonl", only_keys=True), status
    return show(of_sweep.compose(sweep, wording, __version__), format_, to_terminal=to_terminal, only_keys=True), status


def alternatives_text(alternatives: Alternatives, format_: str, wording: Wording, *, to_terminal: bool) -> tuple[str, int]:
    """Return the text of a table, and the exit status: 1 where nothing surely fits, though cards were named."""
    is_judged = any(cell.fits is not None for row in alternatives.rows for cell in row)
    status = int(is_judged and not alternatives.fitting)
    if format_ in ("json", "jsonl"):
        return json_text(convert_alternatives(alternatives, wording), line=format_ == "jsonl", only_keys=True), status
    return show(of_alternatives.compose(alternatives, wording, __version__), format_, to_terminal=to_terminal, only_keys=True), status
