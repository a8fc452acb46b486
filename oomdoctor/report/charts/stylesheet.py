"""The one stylesheet of all reports, and the policy that allows it and nothing else."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files


@cache
def stylesheet() -> str:
    """Return the text of `report.css`: a page puts it between its style tags, a site serves it as a file."""
    return (files("oomdoctor.report.charts") / "report.css").read_text(encoding="utf-8")


@cache
def policy() -> str:
    """Return the Content-Security-Policy of a report in one file: its stylesheet, known by its hash, and nothing else."""
    known = b64encode(sha256(stylesheet().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{known}'; base-uri 'none'; form-action 'none'"
