"""Answer the requests of the page (site/PROTOCOL.md) with the library. Runs in the page's worker, where the inputs lie in a folder."""

from __future__ import annotations

import os

from msgspec import DecodeError, Struct, ValidationError
from msgspec.json import decode, encode

from bridge.answer import Answer, Listener
from bridge.engine import use_page_engine
from bridge.forms import Shown, rendered, shown
from bridge.kinds import KINDS
from bridge.request import Request
from bridge.warm import pieces
from oomdoctor import __version__
from oomdoctor.errors import NothingReadError, OomdoctorError, UsageError
from oomdoctor.report.safety.redact import redact_text
from oomdoctor.report.safety.sanitize import clean_line

__all__ = ["__version__", "answer", "forget", "use_page_engine", "warm"]


class Failed(Struct, frozen=True, kw_only=True, tag_field="type", tag="error"):
    """A request that has no result."""

    code: str
    text: str
    detail: str = ""


_kept: dict[int | str, Answer] = {}
_pieces = pieces()


def answer(text: str, folder: str, listener: Listener) -> str:
    """Answer one request, given as JSON, whose inputs lie in `folder`. Return the fields of `result`, or an `error`, as JSON."""
    try:
        return encode(_answered(decode(text, type=Request), folder, listener)).decode()
    except NothingReadError as error:
        return _failed("unreadable", "\n".join(error.lines))
    except OomdoctorError as error:
        return _failed("usage", str(error))
    except (DecodeError, ValidationError) as error:
        return _failed("usage", f"this is no request: {error}")
    except MemoryError:
        return _failed("out-of-memory", "the memory of this tab did not suffice")
    except Exception as error:  # noqa: BLE001 - a defect is told to the page, which lives on
        return _failed("internal", f"{type(error).__name__}: {error}", _traceback())


def forget(request: int | str) -> None:
    """Keep the result of a request no longer."""
    _kept.pop(request, None)


def warm() -> bool:
    """Load a piece of what the first estimate needs. Return whether something is left."""
    return next(_pieces, False)


def _failed(code: str, text: str, detail: str = "") -> str:
    lines = "\n".join(clean_line(redact_text(line), 600) for line in text.split("\n"))
    return encode(Failed(code=code, text=lines, detail=detail)).decode()


def _traceback() -> str:
    import traceback  # noqa: PLC0415 - only for a defect

    return redact_text(traceback.format_exc())


def _answered(request: Request, folder: str, listener: Listener) -> Shown:
    os.chdir(folder)
    if request.type == "render":
        return rendered(request, None if request.of is None else _kept.get(request.of))
    if request.type not in KINDS:
        raise UsageError(f"no request has the type {request.type}")
    given = KINDS[request.type](request, folder, listener)
    _kept[request.id] = given
    return shown(given, request)
