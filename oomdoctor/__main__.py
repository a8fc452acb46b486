"""What `python -m oomdoctor` runs: the command line, also from a checkout whose dependencies are not installed for this Python."""

import os
import sys
from importlib.util import find_spec

_OWN = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), ".venv", "bin", "python")
"""The environment that README.md makes in a checkout."""

try:
    if find_spec("msgspec") is None:  # a watched command runs before it is loaded
        raise ModuleNotFoundError(name="msgspec")
    from oomdoctor.start import main

    main()
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.partition(".")[0] == "oomdoctor":
        raise
    if os.access(_OWN, os.X_OK) and not os.path.samefile(sys.prefix, os.path.dirname(os.path.dirname(_OWN))):
        os.execv(_OWN, [_OWN, "-m", "oomdoctor", *sys.argv[1:]])
    print(f"oomdoctor: {missing.name} is not installed for this Python; in the checkout: python -m pip install .", file=sys.stderr)
    sys.exit(2)
