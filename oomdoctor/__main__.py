"""What `python -m oomdoctor` runs: the command line, also from a checkout whose dependencies are not installed for this Python."""

import sys

try:
    from oomdoctor.cli.main import main

    main()
except ModuleNotFoundError as missing:
    if missing.name is None or missing.name.partition(".")[0] == "oomdoctor":
        raise
    print(f"oomdoctor: {missing.name} is not installed for this Python; in the checkout: python -m pip install .", file=sys.stderr)
    sys.exit(2)
