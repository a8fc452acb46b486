"""The recorder inside: what runs in the user's interpreter, any from Python 3.7 on, with nothing but its standard library.

`record/injection.py` copies these files into a folder of the run, where this package is called `oomdoctor_inside`. Nothing is imported
here, as this is imported with torch. Nothing in here may reach the program: see `guard.py`.
"""


def from_entry_point():  # type: () -> None
    """Start the recorder; torch calls this at the end of its import (entry points of `torch.backends`, since torch 2.5)."""
    start("entry-point", "torch")


def start(hook, imported):  # type: (str, str) -> None
    """Start the recorder after a library was imported, or do nothing."""
    try:
        from . import recorder

        recorder.start(hook, imported)
    except Exception:
        return
