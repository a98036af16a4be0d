"""The help of the command that has many options."""

from __future__ import annotations

import re

from support.command_line import convoscope


def test_each_option_of_score_is_under_a_heading() -> None:
    sections = re.split(r"\n\n(?=\S.*:\n)", convoscope("score", "--help").out)
    headings = {section.splitlines()[0]: re.findall(r"^  .*?(--[a-z-]+)", section, re.M) for section in sections[1:]}
    groups = ["What comes out:", "How logs are read:", "What is measured:", "Judges:"]
    assert list(headings) == ["Arguments:", *groups, "Options:"]
    assert headings["What comes out:"][:2] == ["--out", "--label"]
    # a new option must find its group
    assert headings["Options:"] == ["--help"]
