"""`python -m convoscope`."""

from convoscope.cli.main import main

main()
