"""The one stylesheet of all reports, and the policy that allows it and nothing else."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from pkgutil import get_data


@cache
def stylesheet() -> str:
    """Return the text of `report.css`: a page puts it between its style tags, a site serves it as a file."""
    text = (get_data("oomdoctor.report.charts", "report.css") or b"").decode()
    # A browser hashes the text with plain ends of lines, whatever a checkout made of them.
    return text.replace("\r\n", "\n")


@cache
def policy() -> str:
    """Return the Content-Security-Policy of a report in one file: its stylesheet, known by its hash, and nothing else."""
    known = b64encode(sha256(stylesheet().encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{known}'; base-uri 'none'; form-action 'none'"
