"""The read report: what reading did, counted, with the first few places."""

from __future__ import annotations

import pytest

from convoscope.ingest.report import (
    MAX_EXAMPLES,
    MAX_PROBLEMS,
    FileRead,
    Note,
    Notes,
    NoteTally,
    Problem,
    ReadReport,
)


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("a.jsonl", 3, "is broken"), "a.jsonl:3: is broken"),
        (Problem("a.json", 0, "is empty"), "a.json: is empty"),
        (Problem("a.jsonl", 3, "not a text", field="id"), "a.jsonl:3 id: not a text"),
        (Problem("a.json", 0, "is empty", hint="fill it"), "a.json: is empty (fill it)"),
        (Problem("a.jsonl", 3, "not a text", "id", "quote it"), "a.jsonl:3 id: not a text (quote it)"),
    ],
)
def test_a_problem_says_where_what_and_what_to_do(problem: Problem, text: str) -> None:
    assert str(problem) == text


def test_notes_are_counted_by_kind() -> None:
    notes = Notes("a.jsonl", 4)
    notes.repaired("invalid_utf8")
    notes.inferred("time_in_epoch_ms", "1772442000000", seq=2)
    notes.ignored("not_a_message")
    notes.ignored("not_a_message")
    notes.set_aside("bad_json", "tool_calls")
    with notes.at_line("b.jsonl", 9):
        notes.set_aside("bad_json", "trace")
    notes.unknown("message.mood", seq=0)
    report = ReadReport()
    report.add_notes(notes.hand_over())
    assert report.repaired == {"invalid_utf8": NoteTally(1, ["a.jsonl:4"])}
    assert report.inferred == {"time_in_epoch_ms": NoteTally(1, ["a.jsonl:4 1772442000000"])}
    assert report.ignored == {"not_a_message": 2}
    assert report.set_aside == {"bad_json": NoteTally(2, ["a.jsonl:4 tool_calls", "b.jsonl:9 trace"])}
    assert report.unknown == {"message.mood": 1}


def test_notes_are_handed_over_once() -> None:
    notes = Notes("a.jsonl", 4)
    notes.unknown("message.mood", seq=1)
    assert notes.hand_over() == (Note(kind="unknown", code="message.mood", file="a.jsonl", line=4, seq=1),)
    assert notes.hand_over() == ()


def test_only_the_first_places_are_kept_but_all_are_counted() -> None:
    report = ReadReport()
    report.add_notes(Note(kind="repaired", code="invalid_utf8", file="a", line=line) for line in range(1, 10))
    assert report.repaired["invalid_utf8"] == NoteTally(9, ["a:1", "a:2", "a:3", "a:4", "a:5"])
    assert MAX_EXAMPLES == 5


def test_only_the_first_problems_are_kept_but_all_are_counted() -> None:
    report = ReadReport()
    for line in range(3 * MAX_PROBLEMS, 0, -1):
        report.problem(Problem("a", line, "is broken"))
    assert report.problem_count == 3 * MAX_PROBLEMS
    assert [problem.line for problem in report.ordered().problems] == list(range(1, MAX_PROBLEMS + 1))


def test_two_parts_add_up() -> None:
    one = ReadReport(
        files={"a": FileRead("openai-chat", "messages", 2)},
        conversations=2,
        records_seen=3,
        records_used=2,
        ignored={"blank_line": 1},
        repaired={"invalid_utf8": NoteTally(1, ["a:1"])},
        set_aside={"bad_json": NoteTally(1, ["a:3 trace"])},
        unknown={"record.shift": 2},
        problem_count=1,
        problems=[Problem("a", 9, "is broken")],
        warnings=["slow disk"],
    )
    other = ReadReport(
        files={"a": FileRead("openai-chat", "messages", 1), "b": FileRead(skipped="is empty")},
        conversations=1,
        records_seen=2,
        records_used=1,
        ignored={"blank_line": 2, "not_a_message": 1},
        repaired={"invalid_utf8": NoteTally(2, ["a:7", "a:5"]), "not_a_number": NoteTally(1, ["a:8"])},
        set_aside={"bad_json": NoteTally(1, ["a:2 trace"])},
        inferred={"time_in_epoch_s": NoteTally(1, ["a:5 7"])},
        problem_count=1,
        problems=[Problem("a", 6, "is broken")],
        warnings=["slow disk"],
    )
    one.merge(other)
    assert one == ReadReport(
        files={"a": FileRead("openai-chat", "messages", 3), "b": FileRead(skipped="is empty")},
        conversations=3,
        records_seen=5,
        records_used=3,
        ignored={"blank_line": 3, "not_a_message": 1},
        repaired={"invalid_utf8": NoteTally(3, ["a:1", "a:5", "a:7"]), "not_a_number": NoteTally(1, ["a:8"])},
        set_aside={"bad_json": NoteTally(2, ["a:2 trace", "a:3 trace"])},
        inferred={"time_in_epoch_s": NoteTally(1, ["a:5 7"])},
        unknown={"record.shift": 2},
        problem_count=2,
        problems=[Problem("a", 6, "is broken"), Problem("a", 9, "is broken")],
        warnings=["slow disk"],
    )


def test_merging_leaves_the_other_alone() -> None:
    other = ReadReport(repaired={"invalid_utf8": NoteTally(1, ["a:1"])}, files={"a": FileRead("x", "y", 1)})
    whole = ReadReport()
    whole.merge(other)
    whole.merge(other)
    assert other == ReadReport(repaired={"invalid_utf8": NoteTally(1, ["a:1"])}, files={"a": FileRead("x", "y", 1)})
    assert whole.files["a"].conversations == 2


def test_an_ordered_report_does_not_show_in_which_order_things_were_met() -> None:
    one, other = ReadReport(), ReadReport()
    for report, names in ((one, "ab"), (other, "ba")):
        for name in names:
            report.files[name] = FileRead("openai-chat")
            report.ignore(name)
            report.problem(Problem(name, 1, "is broken"))
            report.add_notes(Note(kind=kind, code=name) for kind in ("repaired", "inferred", "set_aside", "unknown"))
    for held in ("files", "ignored", "set_aside", "repaired", "inferred", "unknown"):
        assert list(getattr(other.ordered(), held)) == ["a", "b"]
    assert one.ordered() == other.ordered()
