"""The texts of rules with the facts of the case filled in: `{event.requested_bytes}` becomes `2.00 GiB`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from oomdoctor.case.text import Text
from oomdoctor.findings.conditions import Fact
from oomdoctor.units import format_figure

FIGURE = "‹…›"
_PLACEHOLDER = re.compile(r"\{([a-z_]+\.[A-Za-z_0-9.]+)\}")


def fill_template(text: Text, known: Mapping[str, Fact]) -> Text:
    """Return a rule's text with its placeholders filled in."""
    return Text(
        _PLACEHOLDER.sub(lambda match: _shown(match[1], known.get(match[1]), _unknown(match[1])), text.en),
        _PLACEHOLDER.sub(lambda match: _shown(match[1], known.get(match[1]), "未知"), text.zh),
    )


def general_template(text: Text) -> Text:
    """Return a rule's text for no particular run: `‹…›` marks where a report has a figure from its own log."""
    return Text(_PLACEHOLDER.sub(FIGURE, text.en), _PLACEHOLDER.sub(FIGURE, text.zh))


def _unknown(name: str) -> str:
    return "an unknown number of bytes" if name.endswith("_bytes") else "an unknown share" if name.endswith("_share") else "unknown"


def _shown(name: str, value: Fact, unknown: str) -> str:
    """Return a fact as text: sizes with their unit, shares as percent."""
    return unknown if value is None else format_figure(name, value)
