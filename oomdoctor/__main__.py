"""What `python -m oomdoctor` runs."""

from oomdoctor.cli.main import main

main()
