"""Where the program starts: a command to run is not kept waiting for what reads other command lines."""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib import import_module
from typing import NoReturn

_INTERRUPTED = 130
"""What shells report of a program that SIGINT ended."""
_COLLECT_AFTER = 200_000
"""Objects between two searches for circular garbage, which take 7 % of a diagnosis: it makes 60,000 objects and 500 that are garbage."""


def main() -> NoReturn:
    """Run the command line."""
    # Until something can say that it was interrupted, Ctrl-C ends the program as the system does: without a word.
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_COLLECT_AFTER)
    options = None
    if sys.argv[1:2] == ["run"] and os.name != "nt":  # on Windows click also replaces patterns by the names of files
        options = import_module("oomdoctor.cli.runs.run_options").plain_options(sys.argv[2:])
    if options is None:
        command_line = import_module("oomdoctor.cli.main")
        signal.signal(signal.SIGINT, interrupted)
        command_line.main()
    watched = import_module("oomdoctor.cli.runs.watched")
    signal.signal(signal.SIGINT, interrupted)
    try:
        watched.run_watched(options)
    except KeyboardInterrupt:
        os.write(2, b"oomdoctor: interrupted\n")
    os._exit(_INTERRUPTED)
