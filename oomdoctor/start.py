"""Where the program starts: a command to run does not wait for the parser of other command lines to load."""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib import import_module
from typing import NoReturn

_INTERRUPTED = 130
"""What shells report for a program ended by SIGINT."""
_COLLECT_AFTER = 200_000
"""Objects between two garbage collections, which take 7 % of a diagnosis: it creates 60,000 objects, 500 of which are garbage."""


def main() -> NoReturn:
    """Run the command line."""
    # Until something can report an interruption, Ctrl-C ends the program as the system does: silently.
    interrupted = signal.getsignal(signal.SIGINT)
    if interrupted is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.set_threshold(_COLLECT_AFTER)
    options = None
    if sys.argv[1:2] == ["run"] and os.name != "nt":  # on Windows click also expands patterns to file names
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
