"""Nothing of the recorder reaches the program: what fails in it is kept as a gap."""

from __future__ import annotations

import functools
import signal
from typing import Any, Callable, Dict, List, TypeVar, cast

_MOST = 20
_Function = TypeVar("_Function", bound=Callable[..., Any])

Figures = Dict[str, Any]
"""What is written down as JSON: the names are those of record/evidence.py."""
GAPS: List[Figures] = []
"""What could not be recorded: `what`, `why`, `how`."""


def note(what: str, why: str, how: str | None = None) -> None:
    """Keep a gap, once."""
    gap = {"what": what, "why": why[:300], "how": how}
    if gap not in GAPS and len(GAPS) < _MOST:
        GAPS.append(gap)


def guarded(what: str) -> Callable[[_Function], _Function]:
    """Make a function return None where it fails, and keep why."""

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def call(*args: Any, **named: Any) -> Any:
            try:
                return function(*args, **named)
            except BaseException as error:
                if is_of_the_program(error):
                    raise
                note(what, "%s: %s" % (type(error).__name__, text_of(error)))
                return None

        return cast(_Function, call)

    return decorate


def text_of(error: BaseException) -> str:
    """Return what an exception says; programs have exceptions that cannot say it."""
    try:
        return str(error)
    except Exception as why:
        return "no text: %s" % type(why).__name__


def is_of_the_program(error: BaseException) -> bool:
    """Return whether an exception only passes through: Ctrl-C, and what a signal handler of the program raised while this ran."""
    if isinstance(error, (KeyboardInterrupt, SystemExit, GeneratorExit)):
        return True
    try:
        handlers = {getattr(signal.getsignal(number), "__code__", None) for number in range(1, signal.NSIG)}
    except (ValueError, OSError):  # a system that has not all of the numbers
        return False
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False
