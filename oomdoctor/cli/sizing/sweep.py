"""`oomdoctor estimate --sweep`: a table in the format that was asked for."""

from __future__ import annotations

from oomdoctor import __version__
from oomdoctor.cli.output import show
from oomdoctor.planning.sizing.sweep import Sweep
from oomdoctor.report.memory.sweep import compose
from oomdoctor.report.wire.encode import json_text
from oomdoctor.report.wire.sizing.sweep import convert_sweep
from oomdoctor.report.wording.wording import Wording


def table_of(sweep: Sweep, format_: str, wording: Wording, *, to_terminal: bool) -> tuple[str, int]:
    """Return the text of a sweep, and the exit status: 1 where a card was named and nothing surely fits."""
    status = int(sweep.budget is not None and not any(cell.fits == "yes" for cell in sweep.cells))
    if format_ in ("json", "jsonl"):
        return json_text(convert_sweep(sweep, wording), line=format_ == "jsonl", only_keys=True), status
    return show(compose(sweep, wording, __version__), format_, to_terminal=to_terminal, only_keys=True), status
