"""Why a model cannot be traced. Needs no torch."""

from __future__ import annotations

from oomdoctor.errors import OomdoctorError


class Untraceable(OomdoctorError):
    """Why a model cannot be traced."""


class TakesTooLong(Exception):
    """The code that is counted runs on for longer than it may."""
