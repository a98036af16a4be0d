"""What reading did, as a terminal prints it."""

from __future__ import annotations

import io

from convoscope.ingest.report import FileRead, NoteTally, ReadReport
from convoscope.report.run_terminal import print_reading
from convoscope.report.screen import Screen


def printed(report: ReadReport) -> list[str]:
    said = io.StringIO()
    print_reading(Screen(said), report)
    return said.getvalue().splitlines()


def test_what_was_set_aside_is_told_with_its_places() -> None:
    report = ReadReport(
        files={"a.csv": FileRead("standard-data", "", 1), "b.csv": FileRead("standard-data", "", 1)},
        conversations=1,
        records_seen=2,
        records_used=2,
        ignored={"empty_text": 1},
        set_aside={
            "bad_json": NoteTally(1, ["a.csv:3 tool_calls"]),
            "not_a_number": NoteTally(
                7, ["a.csv:3 x", "a.csv:4 x", "b.csv:2 evil\n\x1b[31m", "b.csv:3 x", "b.csv:4 x"]
            ),
        },
        repaired={"twins_differ": NoteTally(2, ["a.csv:3 input_text"])},
    )
    first, lost, *rest = printed(report)
    assert first == "read 1 conversation from 2 files (standard-data)"
    assert lost.startswith(
        "set aside: bad json 1 (a.csv:3 tool_calls), not a number 7 (a.csv:3 x; a.csv:4 x; b.csv:2 evil"
    )
    assert lost.endswith("; …)")
    assert "\x1b" not in lost
    assert rest == ["repaired: twins differ 2", "ignored: empty_text 1"]
