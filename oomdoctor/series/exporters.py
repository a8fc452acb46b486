"""Text of exporters: DCGM's gauges, one scrape after another, and MLflow's files of one metric.

NVIDIA/dcgm-exporter, etc/default-counters.csv: FB_USED, FB_FREE and FB_RESERVED in MiB. mlflow/store/tracking/file_store.py: a line is
`TIME VALUE STEP`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from oomdoctor.case.recorded.series import Clock
from oomdoctor.series.builder import SeriesBuilder
from oomdoctor.series.comma_tables import NO_MEMORY
from oomdoctor.series.names import read_name
from oomdoctor.series.values import counted_time, read_bytes, read_number

_LONGEST_LINE = 4096
_GAUGE = re.compile(
    r"(?P<name>DCGM_FI_DEV_FB_(?:USED|FREE|RESERVED|TOTAL))\{(?P<labels>[^}]{0,3000})\}\s+(?P<value>\S{1,40})(?:\s+(?P<time>\d{9,19}))?\s*$"
)
_HOST = re.compile(r'Hostname="([^"]{1,300})"')
_LABEL = re.compile(r'(?P<name>\w{1,60})="(?P<value>[^"]{0,300})"')
_POINT = re.compile(r"(?P<time>\d{9,19}) (?P<value>-?[\d.]{1,30}(?:[eE][+-]?\d{1,3})?)(?: (?P<step>\d{1,12}))?\s*$")

_Sizes = dict[str, "int | None"]


def is_exporter_text(lines: Sequence[str]) -> bool:
    """Return whether a text holds gauges of DCGM."""
    return any("DCGM_FI_" in line for line in lines[:400])


def read_exporter_text(lines: Sequence[str], builder: SeriesBuilder) -> str | None:
    """Read scrapes; return None, or why they say nothing."""
    scrape: dict[str, tuple[_Sizes, tuple[float, Clock] | None]] = {}
    seen = False
    several_hosts = len({host[1] for line in lines if (host := _HOST.search(line[:_LONGEST_LINE]))}) > 1
    for line in lines:
        gauge = _GAUGE.match(line) if len(line) <= _LONGEST_LINE else None
        if gauge is None:
            continue
        labels = {label["name"]: label["value"] for label in _LABEL.finditer(gauge["labels"])}
        card = labels.get("gpu") or labels.get("UUID") or "0"
        if labels.get("GPU_I_ID"):
            card += f" MIG {labels['GPU_I_ID']}"
        if several_hosts:
            card += f" of {labels.get('Hostname')}"
        figure = gauge["name"].rpartition("_")[2].lower()
        if card in scrape and figure in scrape[card][0]:
            # What was told already is told again: the next scrape.
            _add_scrape(scrape, builder)
            scrape = {}
        sizes, _ = scrape.setdefault(card, ({}, None))
        number = read_number(gauge["value"])
        sizes[figure] = None if number is None else read_bytes(str(number))
        scrape[card] = (sizes, counted_time(float(gauge["time"])) if gauge["time"] else None)
        seen = seen or figure == "used"
    _add_scrape(scrape, builder)
    return None if seen else NO_MEMORY


def _add_scrape(scrape: dict[str, tuple[_Sizes, tuple[float, Clock] | None]], builder: SeriesBuilder) -> None:
    for card, (sizes, time) in scrape.items():
        used, free = sizes.get("used"), sizes.get("free")
        total = sizes.get("total")
        if total is None and used is not None and free is not None:
            total = used + free + (sizes.get("reserved") or 0)
        builder.add(used, time, card=card, total=total)


def is_metric_file(lines: Sequence[str]) -> bool:
    """Return whether a text is MLflow's of one metric."""
    return bool(lines) and all(_POINT.match(line) for line in lines[:20] if line.strip())


def read_metric_file(lines: Sequence[str], builder: SeriesBuilder, name: str) -> str | None:
    """Read a file that is called like its metric; return None, or why it says nothing."""
    metric = read_name(name)
    if metric is None:
        return NO_MEMORY
    for line in lines:
        point = _POINT.match(line)
        if point is not None and (number := read_number(point["value"])) is not None and number >= 0:
            builder.add(
                round(number * metric.scale), counted_time(float(point["time"])), of=metric.of, card=metric.card, name=name,
                total=100_000 if metric.is_share else None, is_share=metric.is_share,
                step=int(point["step"]) if point["step"] else None,
            )  # fmt: skip
    return None
