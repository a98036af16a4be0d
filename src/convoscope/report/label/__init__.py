"""The sheet of conversations that a person labels: a table, and one page to click through with the keyboard."""

from convoscope.report.label.sheet import write_sheet

__all__ = ["write_sheet"]
