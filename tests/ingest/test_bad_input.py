"""Damaged logs: each is put right, or answered with file, line, field and what to do; the rest goes on."""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import pytest

import convoscope
from convoscope.errors import NothingReadable
from convoscope.ingest.io import containers as files
from convoscope.ingest.report import Problem
from support.logs import CHAT, Outcome, as_lines, chat, read, story, write, write_json, write_lines

GOOD = as_lines(chat("good"))
ALSO_GOOD = as_lines(chat("also-good"))


def around(tmp_path: Path, bad: str | bytes) -> Outcome:
    """Read a file in which a bad line stands between two good ones."""
    middle = bad if isinstance(bad, bytes) else bad.encode()
    return read(write(tmp_path / "log.jsonl", GOOD.encode() + middle + b"\n" + ALSO_GOOD.encode()))


def refused(path: Path) -> Problem:
    """Why nothing was read from a file."""
    reading = convoscope.read(path)
    with pytest.raises(NothingReadable) as caught:
        list(reading)
    (problem,) = reading.report.problems
    assert str(problem) in str(caught.value)
    assert reading.report.files[path.name].skipped == problem.message
    return problem


class TestLines:
    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ('{"id": oops}', "not JSON at column 8, near 'oops}'"),
            ('{"id": "x", "messages": [', "JSON is cut off at the end"),
            ('{"id": "x', "JSON is cut off at the end"),
            ('{"id": "x"} {"id": "y"}', 'not JSON at column 13, near \'{"id": "y"}\''),
            ("2026-03-02 09:00 INFO started", "not JSON at column 5, near '-03-02 09:00 INFO st'"),
            ("[" * 100_000, "nested too deeply"),
            ('{"a":' * 100_000, "nested too deeply"),
        ],
    )
    def test_a_broken_line_is_passed_over(self, tmp_path: Path, bad: str, message: str) -> None:
        outcome = around(tmp_path, bad)
        assert outcome.ids == ["good", "also-good"]
        assert outcome.problem == Problem("log.jsonl", 2, message, hint="the record was skipped; write it whole")
        assert (outcome.report.records_seen, outcome.report.records_used) == (3, 2)

    @pytest.mark.parametrize("depth", [600, 100_000])
    def test_a_deep_line_that_needs_a_repair_is_passed_over(self, tmp_path: Path, depth: int) -> None:
        outcome = around(tmp_path, '{"cost": NaN, "deep": ' + "[" * depth + "]" * depth + "}")
        assert outcome.ids == ["good", "also-good"]
        assert outcome.problem.line == 2

    def test_a_line_without_messages(self, tmp_path: Path) -> None:
        outcome = around(tmp_path, '{"event": "started"}')
        assert outcome.ids == ["good", "also-good"]
        assert outcome.problem == Problem(
            "log.jsonl",
            2,
            "no messages here",
            field="messages",
            hint='expected {"messages": [{"role": …, "content": …}]}',
        )

    @pytest.mark.parametrize("bad", ["null", "7", '"text"', "[]", "{}", '{"messages": []}', '{"messages": 5}'])
    def test_json_that_is_no_chat(self, tmp_path: Path, bad: str) -> None:
        outcome = around(tmp_path, bad)
        assert outcome.ids == ["good", "also-good"]
        assert outcome.problem.line == 2

    def test_a_cut_last_line(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "log.jsonl", GOOD + ALSO_GOOD + GOOD[:40]))
        assert outcome.ids == ["good", "also-good"]
        assert (outcome.problem.line, outcome.problem.message) == (3, "JSON is cut off at the end")

    def test_a_missing_last_newline(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "log.jsonl", (GOOD + ALSO_GOOD).rstrip()))
        assert (outcome.ids, outcome.report.problems) == (["good", "also-good"], [])

    def test_blank_lines_are_counted_and_keep_their_numbers(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "log.jsonl", GOOD + "\n  \t\n" + ALSO_GOOD + "{\n"))
        assert outcome.ids == ["good", "also-good"]
        assert outcome.report.ignored == {"blank_line": 2}
        assert outcome.problem.line == 5

    def test_carriage_returns(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "log.jsonl", (GOOD + ALSO_GOOD + "{oops\n").replace("\n", "\r\n")))
        assert outcome.ids == ["good", "also-good"]
        assert outcome.problem.line == 3

    @pytest.mark.parametrize("text", [GOOD + ALSO_GOOD, json.dumps([chat("good"), chat("also-good")])])
    def test_a_byte_order_mark(self, tmp_path: Path, text: str) -> None:
        outcome = read(write(tmp_path / "log.json", codecs.BOM_UTF8 + text.encode()))
        assert (outcome.ids, outcome.report.problems) == (["good", "also-good"], [])

    def test_a_byte_order_mark_before_one_object(self, tmp_path: Path) -> None:
        path = write(tmp_path / "log.json", codecs.BOM_UTF8 + json.dumps(chat("good"), indent=1).encode())
        assert read(path).ids == ["good"]

    def test_a_huge_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "MAX_RECORD_BYTES", 100_000)
        outcome = around(tmp_path, json.dumps(chat("huge", "x" * 13_000_000)))
        assert outcome.ids == ["good", "also-good"]
        assert outcome.problem == Problem("log.jsonl", 2, files.TOO_LONG, hint=files.TOO_LONG_HINT)

    def test_a_huge_last_line(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "MAX_RECORD_BYTES", 100_000)
        huge = json.dumps(chat("huge", "x" * 13_000_000))
        outcome = read(write(tmp_path / "log.jsonl", GOOD + ALSO_GOOD + huge))
        assert outcome.ids == ["good", "also-good"]
        assert outcome.problem == Problem("log.jsonl", 3, files.TOO_LONG, hint=files.TOO_LONG_HINT)

    def test_ids_that_stand_twice_are_both_read(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "log.jsonl", chat("twin", "First?"), chat("twin", "Second?")))
        assert outcome.ids == ["twin", "twin"]
        assert [story(one) for one in outcome.conversations] == [["user: First?"], ["user: Second?"]]
        assert [one.source.record for one in outcome.conversations] == ["log.jsonl:1", "log.jsonl:2"]


class TestRepairs:
    """What is wrong inside a text or a number spoils neither the line nor its neighbours."""

    @pytest.mark.parametrize(
        ("bad", "code", "text"),
        [
            (b'{"messages": [{"role": "user", "content": "caf\xe9?"}]}', "invalid_utf8", "caf\ufffd?"),
            (b'{"messages": [{"role": "user", "content": "hm \\ud83d?"}]}', "lone_surrogate", "hm \ufffd?"),
            (b'{"messages": [{"role": "user", "content": "a\tb\x01"}]}', "control_character", "a\tb\x01"),
        ],
    )
    def test_texts(self, tmp_path: Path, bad: bytes, code: str, text: str) -> None:
        outcome = around(tmp_path, bad)
        assert outcome.ids == ["good", "log.jsonl:2", "also-good"]
        assert story(outcome.conversations[1]) == [f"user: {text}"]
        assert {name: (tally.count, tally.examples) for name, tally in outcome.report.repaired.items()} == {
            code: (1, ["log.jsonl:2"])
        }
        assert outcome.report.problems == []

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
    def test_what_is_no_number_is_null(self, tmp_path: Path, number: str) -> None:
        outcome = around(tmp_path, json.dumps(CHAT)[:-1] + f', "cost": {number}}}')
        assert outcome.conversations[1].extras == {"cost": None}
        assert outcome.report.repaired["not_a_number"].count == 1

    def test_a_whole_pair_of_surrogates_is_a_character(self, tmp_path: Path) -> None:
        outcome = around(tmp_path, '{"messages": [{"role": "user", "content": "\\ud83c\\udf75"}]}')
        assert story(outcome.conversations[1]) == ["user: 🍵"]
        assert outcome.report.repaired == {}

    def test_in_an_array(self, tmp_path: Path) -> None:
        bad = b'{"messages": [{"role": "user", "content": "caf\xe9?"}], "cost": NaN}'
        outcome = read(write(tmp_path / "log.json", b"[" + GOOD.encode() + b"," + bad + b"]"))
        assert story(outcome.conversations[1]) == ["user: caf\ufffd?"]
        assert outcome.conversations[1].extras == {"cost": None}
        assert set(outcome.report.repaired) == {"invalid_utf8", "not_a_number"}

    def test_in_an_array_they_are_counted_by_element(self, tmp_path: Path) -> None:
        bad = json.dumps(CHAT)[:-1] + ', "cost": NaN}'
        outcome = read(write(tmp_path / "log.json", f"[{GOOD},{bad},{bad}]"))
        tally = outcome.report.repaired["not_a_number"]
        assert (tally.count, tally.examples) == (2, ["log.json:2", "log.json:3"])

    def test_in_a_document(self, tmp_path: Path) -> None:
        path = write(tmp_path / "log.json", b'{"messages": [{"role": "user", "content": "caf\xe9?"}]}')
        assert story(read(path).only) == ["user: caf\ufffd?"]


class TestArrays:
    @pytest.mark.parametrize("keep", [1, 2, 3])
    def test_what_stands_before_a_cut_is_read(self, tmp_path: Path, keep: int) -> None:
        records = [json.dumps(chat(f"c{number}")) for number in range(keep + 1)]
        outcome = read(write(tmp_path / "log.json", "[" + ",".join(records)[:-1]))
        assert outcome.ids == [f"c{number}" for number in range(keep)]
        assert outcome.problem == Problem(
            "log.json", keep + 1, "the JSON array is cut off at the end", hint="everything before it was read"
        )

    def test_a_broken_element_ends_the_array(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "log.json", f"[{GOOD},\n{{oops}},{ALSO_GOOD}]"))
        assert outcome.ids == ["good"]
        message = 'not JSON at line 3, near \'oops},{"id": "also-g\''
        assert (outcome.problem.line, outcome.problem.message) == (2, message)

    def test_a_cut_inside_a_text(self, tmp_path: Path) -> None:
        whole = json.dumps([chat("good"), chat("also-good")])
        outcome = read(write(tmp_path / "log.json", whole[: -len('o!"}]}]')]))
        assert outcome.ids == ["good"]
        assert outcome.problem.message == "the JSON array is cut off at the end"

    def test_a_missing_comma_ends_the_array(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "log.json", f"[{json.dumps(CHAT)}, {GOOD} {ALSO_GOOD}]"))
        assert outcome.ids == ["log.json#1", "good"]
        message = 'a comma is missing at line 2, near \'{"id": "also-good", \''
        assert (outcome.problem.line, outcome.problem.message) == (3, message)

    def test_what_stands_after_the_array_is_told(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "log.json", f'[{json.dumps(chat("good"))}] {{"oops'))
        assert outcome.ids == ["good"]
        message = "there is more after the end of the array at line 1, near '{\"oops'"
        assert (outcome.problem.line, outcome.problem.message) == (2, message)

    def test_a_number_of_too_many_digits_ends_the_array(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "log.json", f'[{GOOD}, {{"n": {"1" * 5000}}}]'))
        assert outcome.ids == ["good"]
        assert outcome.problem.line == 2
        assert outcome.problem.message.startswith("cannot be read")

    def test_an_element_that_is_no_chat_does_not(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "log.json", [chat("good"), 7, chat("also-good")]))
        assert outcome.ids == ["good", "also-good"]
        assert (outcome.problem.line, outcome.problem.message) == (2, "no messages here")

    def test_a_huge_element(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "MAX_RECORD_BYTES", 100_000)
        records = [chat("good"), chat("huge", "x" * 3_000_000), chat("also-good")]
        outcome = read(write_json(tmp_path / "log.json", records))
        assert outcome.ids == ["good"]
        assert outcome.problem == Problem("log.json", 2, files.TOO_LONG, hint=files.TOO_LONG_HINT)

    def test_a_long_element_is_read(self, tmp_path: Path) -> None:
        records = [chat("good"), chat("long", "x" * 3_000_000), chat("also-good")]
        assert read(write_json(tmp_path / "log.json", records)).ids == ["good", "long", "also-good"]


class TestRefusedFiles:
    @pytest.mark.parametrize("content", ["", " \n\t\n ", "\ufeff"])
    def test_empty(self, tmp_path: Path, content: str) -> None:
        problem = refused(write(tmp_path / "log.jsonl", content))
        assert (problem.message, problem.hint) == ("is empty", "nothing was written to it, or it was not closed")

    @pytest.mark.parametrize(
        "content",
        [
            b"RIFF\x24\x00\x00\x00AVI LIST",
            b"{\x00\x00\x01",
        ],
    )
    def test_binary(self, tmp_path: Path, content: bytes) -> None:
        problem = refused(write(tmp_path / "log.bin", content))
        assert (problem.message, problem.hint) == ("is a binary file", "`convoscope formats` lists what can be read")

    @pytest.mark.parametrize("content", [b"# Notes\n", b"time,speaker,text\n"])
    def test_not_json(self, tmp_path: Path, content: bytes) -> None:
        problem = refused(write(tmp_path / "log.bin", content))
        assert (problem.message, problem.hint) == ("is not JSON", "`convoscope formats` lists what can be read")

    @pytest.mark.parametrize(
        ("content", "fields"),
        [
            ({"orders": [1], "customer": "x"}, "fields: orders, customer"),
            ({f"k{n}": n for n in range(10)}, "fields: k0, k1, k2, k3, k4, k5, k6, k7 and 2 more"),
            ({}, "an empty object"),
            ([[]], "an empty list"),
            ([1, 2], "a list; its first entry is a number"),
        ],
    )
    def test_json_of_an_unknown_kind_tells_its_fields(self, tmp_path: Path, content: object, fields: str) -> None:
        problem = refused(write_json(tmp_path / "log.json", content))
        assert problem.message == f"unknown JSON format; {fields}"
        assert problem.hint.startswith(
            "`convoscope formats` lists what can be read; `convoscope inspect FILE --suggest-map`"
        )

    @pytest.mark.parametrize(
        ("content", "line", "message"),
        [
            ('{"messages": [', 1, "JSON is cut off at the end"),
            ('{\n "messages": [\n  oops', 3, "not JSON at column 3, near 'oops'"),
            ('{"a":' * 100_000, 1, "nested too deeply"),
            ("[" * 100_000, 1, "nested too deeply"),
        ],
    )
    def test_a_document_that_is_not_whole(self, tmp_path: Path, content: str, line: int, message: str) -> None:
        problem = refused(write(tmp_path / "log.json", content))
        assert (problem.line, problem.message, problem.hint) == (line, message, "the JSON must be complete")

    def test_a_document_that_is_too_large(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "MAX_RECORD_BYTES", 300_000)
        problem = refused(write_json(tmp_path / "log.json", chat("huge", "x" * 400_000)))
        assert (problem.message, problem.hint) == (files.TOO_LONG, files.TOO_LONG_HINT)

    def test_lines_of_which_none_can_be_read(self, tmp_path: Path) -> None:
        path = write(tmp_path / "log.jsonl", '{"messages": []}\n{"messages": [{"role": "user"\n' + GOOD[:30])
        with pytest.raises(NothingReadable):
            list(convoscope.read(path))
