"""`python -m oomdoctor`"""

from oomdoctor.cli.main import main

main()
