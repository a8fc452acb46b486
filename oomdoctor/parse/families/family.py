"""A family: messages that one pattern cannot hold, read by Python code."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from oomdoctor.parse.signature import Match

Family = Callable[[str], Iterable[Match]]
"""Cleaned text -> the messages of the family in it. The ids that it gives have their record in rules/signatures/."""
