"""What reading did, as a terminal prints it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import msgspec

import convoscope
from convoscope.analysis.answer import make_answer
from convoscope.ingest.report import FileRead, NoteTally, ReadReport
from convoscope.report.page.figures import scale_of
from convoscope.report.run_terminal import print_reading
from convoscope.report.screen import Screen
from convoscope.runs.distributions import Bin, Histogram
from convoscope.statistics.summary import Figure


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


def test_the_answer_names_what_was_set_aside(tmp_path: Path) -> None:
    """One field of one item is no object: the line about reading says which, and where. One record is `was`."""
    first = {"agent_task": "x", "agent_response": "y", "raw_complete_audio": 5}
    items = [first, {"agent_task": "x", "agent_response": "z"}]
    log = tmp_path / "a.jsonl"
    log.write_text("".join(json.dumps(one) + "\n" for one in items))
    run = convoscope.score(log, metrics=["conversation.turns"], out=tmp_path / "run", workers=1)
    assert make_answer(run).reading.endswith("; set aside: not an object 1 (a.jsonl:1 raw_complete_audio)")
    counts = ReadReport(files={"a.csv": FileRead("x", "", 1)}, conversations=1, records_seen=3, records_used=2)
    assert printed(counts)[0].endswith("; 1 of 3 records was not used")


def test_points_are_drawn_on_the_whole_of_their_scale() -> None:
    """10.00 of 10 is at the right end, 2.5 of 5 in the middle, whatever the bins of a histogram reach to."""
    figure = Figure(
        metric="a.b",
        unit="of 10",
        better="higher",
        value=10.0,
        samples_total=1,
        samples_measured=1,
        coverage=1.0,
        n=1,
    )
    bins = Histogram([Bin(10.0, 11.0, 1)], n=1, mean=10.0, p50=10.0, p95=10.0, least=10.0, most=10.0)
    assert scale_of([figure], bins).at(10.0) == 100.0
    assert scale_of([msgspec.structs.replace(figure, unit="of 5", value=2.5)], None).at(2.5) == 50.0
