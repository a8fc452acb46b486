"""The request that failed, as JSON."""

from __future__ import annotations

from msgspec import Struct

from oomdoctor.case.request import FailingRequest, KnownBy
from oomdoctor.report.diagnosis.headline import plain
from oomdoctor.report.safety.sanitize import clean, clean_line
from oomdoctor.report.wire.settings_v1 import LineNumber
from oomdoctor.report.wording.wording import Wording


class QuantityGrowthV1(Struct, frozen=True, kw_only=True):
    """A quantity with which a request grows."""

    quantity: str
    title: str
    power: float
    """Below 0 where the request falls as the quantity rises."""


class SettingInForceV1(Struct, frozen=True, kw_only=True):
    """The value of a setting with which the request grows."""

    setting: str
    value: str | int | float | bool | None
    key: str | None
    """As it is written."""
    file: str | None
    """The config or log that says it; null for what a message or a default says."""
    line: LineNumber | None
    known_by: KnownBy


class RequestV1(Struct, frozen=True, kw_only=True):
    """What asked for the memory that was not there."""

    id: str | None
    """Null where nothing shows which operation it was."""
    operation: str | None
    title: str | None
    """What was being allocated."""
    program: str | None
    size_bytes: int | None
    free_bytes: int | None
    total_bytes: int | None
    limit_bytes: int | None
    held_by_others_bytes: int | None
    missing_bytes: int | None
    """What was asked for beyond what was free."""
    grows_with: tuple[QuantityGrowthV1, ...]
    in_force: tuple[SettingInForceV1, ...]
    settled_by: str | None
    """What tells what the log cannot."""
    command: str | None


def convert_request(request: FailingRequest, wording: Wording) -> RequestV1:
    """Convert a request, with its texts in one language."""
    return RequestV1(
        id=request.id,
        operation=request.operation,
        title=plain(request.title, wording),
        program=request.program,
        size_bytes=request.size,
        free_bytes=request.free,
        total_bytes=request.total,
        limit_bytes=request.limit,
        held_by_others_bytes=request.held_by_others,
        missing_bytes=request.missing,
        grows_with=tuple(
            QuantityGrowthV1(quantity=growth.quantity, title=wording.say(growth.title), power=growth.power) for growth in request.grows_with
        ),
        in_force=tuple(
            SettingInForceV1(
                setting=known.setting,
                value=clean_line(known.value, 400) if isinstance(known.value, str) else known.value,
                key=None if known.key is None else clean_line(known.key, 400),
                file=None if known.file is None else clean_line(known.file, 1000),
                line=known.line,
                known_by=known.known_by,
            )
            for known in request.in_force
        ),
        settled_by=plain(request.settled_by, wording),
        command=None if request.command is None else clean(request.command, 400),
    )
