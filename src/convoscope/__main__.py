"""`python -m convoscope`."""

from convoscope.cli.main import program

program()
