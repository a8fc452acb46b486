"""A family: messages that no single pattern can match, read by Python code."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from oomdoctor.parse.signature import Match

Family = Callable[[str], Iterable[Match]]
"""Cleaned text -> the messages of the family in it. The ids it yields have their records in rules/signatures/."""
