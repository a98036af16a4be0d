"""Event streams in whatever file they come: shapes, detection, keys, and damage."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.conversation import from_json, to_json
from convoscope.errors import InputError
from convoscope.ingest.formats.state_events.reader import READER
from convoscope.ingest.io.json import BadJson
from convoscope.ingest.reader import Sample
from support.event_lines import T, build, build_all, entered, event, exited, told, turn
from support.logs import EXAMPLES, as_lines, counts, read, write, write_json, write_lines


class TestShapes:
    """By `convoscope.read`: whatever the file looks like, the conversations are the same."""

    LINES = {
        "c1": [entered(0, "a", seq=1), turn(1, 900, seq=2), exited(1, "a", "b", seq=3), entered(1, "b", seq=4)],
        "c2": [entered(0.5, "x", seq=1), turn(1.5, 300, seq=2)],
    }

    def interleaved(self, field: str = "conversation_id") -> list[dict[str, Any]]:
        lines = [(line["timestamp"], {field: id, **line}) for id, mine in self.LINES.items() for line in mine]
        return [line for _, line in sorted(lines, key=lambda pair: pair[0])]

    def wanted(self) -> dict[str, list[str]]:
        return {"c1": ["+a", "turn@a", "-a>b", "+b"], "c2": ["+x", "turn@x"]}

    def got(self, *paths: Path) -> dict[str, list[str]]:
        outcome = read(*paths)
        assert outcome.report.problems == []
        return {one.id: told(one) for one in outcome.conversations}

    @pytest.mark.parametrize("field", ["conversation_id", "session_id", "call_id"])
    def test_one_file_of_many(self, tmp_path: Path, field: str) -> None:
        assert self.got(write_lines(tmp_path / "log.jsonl", *self.interleaved(field))) == self.wanted()
        assert self.got(write_json(tmp_path / "log.json", self.interleaved(field))) == self.wanted()

    def test_many_over_several_files(self, tmp_path: Path) -> None:
        lines = self.interleaved()
        write_lines(tmp_path / "logs" / "1.jsonl", *lines[:3])
        write_lines(tmp_path / "logs" / "2.jsonl", *lines[3:])
        assert self.got(tmp_path / "logs") == self.wanted()

    def test_a_file_each(self, tmp_path: Path) -> None:
        for id, lines in self.LINES.items():
            write_lines(tmp_path / "logs" / f"{id}.jsonl", *lines)
        assert self.got(tmp_path / "logs") == self.wanted()

    def test_a_file_each_where_only_the_first_line_has_the_id(self, tmp_path: Path) -> None:
        first, *rest = self.LINES["c1"]
        got = self.got(write_lines(tmp_path / "log.jsonl", {"conversation_id": "c1", **first}, *rest))
        assert got == {"c1": self.wanted()["c1"]}

    def test_ids_that_come_late_part_a_file(self, tmp_path: Path) -> None:
        early = [entered(0, "a")] + [turn(at, 5) for at in range(1, 6)]
        late = [{"conversation_id": id, **entered(9, "z")} for id in ("c1", "c2")]
        got = self.got(write_lines(tmp_path / "log.jsonl", *early, *late))
        assert got == {"log": ["+a"] + ["turn@a"] * 5, "c1": ["+z"], "c2": ["+z"]}

    def test_records_with_lists(self, tmp_path: Path) -> None:
        records = [{"conversation_id": id, "events": lines} for id, lines in self.LINES.items()]
        assert self.got(write_lines(tmp_path / "log.jsonl", *records)) == self.wanted()
        assert self.got(write_json(tmp_path / "log.json", records)) == self.wanted()
        single = self.got(write_json(tmp_path / "single.json", records[0]))
        assert single == {"c1": self.wanted()["c1"]}

    def test_a_list_for_each_conversation(self, tmp_path: Path) -> None:
        got = self.got(write_lines(tmp_path / "log.jsonl", *self.LINES.values()))
        assert list(got.values()) == list(self.wanted().values())

    def test_a_record_among_lines(self, tmp_path: Path) -> None:
        record = {"conversation_id": "c2", "flow": "f", "events": self.LINES["c2"][1:]}
        lines = [line for line in self.interleaved() if line["conversation_id"] == "c1" or line["seq"] == 1]
        outcome = read(write_lines(tmp_path / "log.jsonl", *lines, record))
        assert {one.id: told(one) for one in outcome.conversations} == self.wanted()
        assert outcome.conversations[1].dimensions == {"flow": "f"}

    def test_lists_inside_of_lists_are_no_events(self) -> None:
        built, _ = build({"id": "x", "events": [entered(0, "a"), {"events": [entered(1, "b")]}, [entered(2, "c")]]})
        assert told(built) == ["+a", "[not_an_event]", "[not_an_event]"]

    def test_ids_that_are_numbers(self, tmp_path: Path) -> None:
        lines = [{"conversation_id": id, **entered(0, "a")} for id in (7, "8", 9.5)]
        assert list(self.got(write_lines(tmp_path / "log.jsonl", *lines))) == ["7", "8", "9.5"]

    @pytest.mark.parametrize("id", ["a\tb", 'a"b', "a\nb", "Zoë", "\\", "日本", " "])
    def test_ids_of_any_letters(self, tmp_path: Path, id: str) -> None:
        lines = [{"conversation_id": id, **line} for line in self.LINES["c1"]]
        assert self.got(write_lines(tmp_path / "log.jsonl", *lines)) == {id: self.wanted()["c1"]}

    def test_an_array_over_many_lines(self, tmp_path: Path) -> None:
        text = json.dumps(self.interleaved(), indent=2).replace('"x"', '"x\n\ty"').replace("300", '300, "cost": NaN')
        outcome = read(write(tmp_path / "log.json", text))
        assert {one.id: told(one) for one in outcome.conversations} == {
            **self.wanted(),
            "c2": ["+x\n\ty", "turn@x\n\ty"],
        }
        assert counts(outcome.report.repaired) == {"control_character": 1, "not_a_number": 1}

    def test_a_call_of_a_tool_is_no_conversation(self, tmp_path: Path) -> None:
        calls = [event(at, "tool_called", name="book", call_id=f"t{at}") for at in (1, 2)]
        got = self.got(write_lines(tmp_path / "log.jsonl", entered(0, "a"), *calls))
        assert got == {"log": ["+a", "book()", "book()"]}

    def test_lines_without_an_id_among_many_with_one(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "log.jsonl", *self.interleaved(), entered(9, "z")))
        assert {one.id: told(one) for one in outcome.conversations} == self.wanted()
        assert (outcome.problem.line, outcome.problem.hint) == (7, "add a conversation_id")

    def test_a_line_that_is_broken_costs_itself(self, tmp_path: Path) -> None:
        good = [json.dumps(line) for line in self.interleaved()]
        text = "\n".join([*good[:2], '{"conversation_id": "c1", "event": "turn_comp', *good[2:], "{oops}", ""])
        outcome = read(write(tmp_path / "log.jsonl", text))
        assert {one.id: told(one) for one in outcome.conversations} == self.wanted()
        assert [(one.file, one.line, one.message) for one in sorted(outcome.report.problems)] == [
            ("log.jsonl", 3, "JSON is cut off at the end"),
            ("log.jsonl", 8, "not JSON at column 2, near 'oops}'"),
        ]
        assert (outcome.report.records_seen, outcome.report.records_used) == (8, 6)

    def test_a_line_that_has_to_be_repaired(self, tmp_path: Path) -> None:
        lines = self.interleaved()
        text = as_lines(*lines).replace('"latency_ms": 900', '"latency_ms": 900, "cost": NaN')
        outcome = read(write(tmp_path / "log.jsonl", text))
        assert {one.id: told(one) for one in outcome.conversations} == self.wanted()
        assert counts(outcome.report.repaired) == {"not_a_number": 1}

    def test_the_examples(self) -> None:
        outcome = read(EXAMPLES / "state-events")
        assert outcome.report.problems == []
        assert set(outcome.ids) == {"v-101", "v-102", "g-7", "g-8", "call-2041", "web-55"}
        assert {one.dimensions.get("flow") for one in outcome.conversations} >= {"apartment_viewing", "dog_grooming"}
        by_id = {one.id: one for one in outcome.conversations}
        # The turn that moved on was logged 0.1 s after the move and took 1.3 s.
        assert told(by_id["g-7"])[5:8] == ["-listen_owner>pick_time", "+pick_time", "turn@listen_owner"]
        assert by_id["g-8"].outcome.error == "the backend did not answer"
        assert told(by_id["web-55"])[6:8] == ["-greet>confirm", "+confirm"]


class TestDetection:
    def claim(self, *values: Any) -> tuple[float, str]:
        found = READER.detect(Sample(Path("x.jsonl"), "lines", values))
        return (found.confidence, found.grouping) if found else (0.0, "")

    def test_lines(self) -> None:
        assert self.claim(entered(0, "a")) == (0.95, "file")
        assert self.claim(entered(0, "a", session_id=1)) == (0.95, "key")
        assert self.claim({"type": "started"}, {"type": "StateEntered", "data": {"call_id": "c"}}) == (0.95, "file")
        assert self.claim(entered(0, "a", call_id="c1"), turn(1, 5, call_id="c2")) == (0.95, "key")

    def test_records(self) -> None:
        assert self.claim({"id": 1, "events": [entered(0, "a")]}) == (0.97, "record")
        assert self.claim({"messages": [{"role": "user", "content": "Hi."}, entered(0, "a")]}) == (0.97, "record")
        assert self.claim({"messages": [{"role": "user", "events": [entered(0, "a")]}]}) == (0.97, "record")

    def test_a_stream_whose_first_lines_nobody_knows(self) -> None:
        assert self.claim({"event": "session_started", "ts": T, "session_id": "s"}) == (0.3, "key")

    @pytest.mark.parametrize(
        "value",
        [
            {"messages": [{"role": "user", "content": "Hi."}]},
            {"type": "message", "role": "user", "content": "Hi."},
            {"type": "function_call", "name": "book", "call_id": "t1", "arguments": "{}"},
            {"event": "call_ended", "call": {"call_id": "c"}},
            {"events": [{"type": "agent_state_changed"}], "room": "r"},
            {"id": 1, "events": []},
            {},
            [],
            "state_entered",
        ],
    )
    def test_what_is_not(self, value: Any) -> None:
        assert self.claim(value)[0] < 0.7


class TestQuickKey:
    """The key of a line of text is the key of its record."""

    @pytest.mark.parametrize(
        "text",
        [
            '{"conversation_id": "c1", "event": "x"}',
            '{"event":"x","conversation_id":17}',
            '{"conversation_id": -3}',
            '{"conversation_id": 17.5, "session_id": "s"}',
            '{"conversation_id": 12345678901234567890123}',
            '{"conversation_id": "", "session_id": "s"}',
            '{"conversation_id": null, "call_id": "s"}',
            '{"session_id": "s", "conversation_id": "c"}',
            '{"session_id": "s", "conversation_id": "\\u00e9"}',
            '{"conversation_id": "\\u00e9", "session_id": "s"}',
            '{"conversation_id": "a\\"b"}',
            '{"conversation_id": "é"}',
            '{"conversation_id": "a", "conversation_id": "b"}',
            '{"data": {"conversation_id": "inner"}, "conversation_id": "outer"}',
            '{"conversation_id": "outer", "data": {"conversation_id": "inner"}}',
            '{"data": {"conversation_id": "inner"}, "event": "x"}',
            '{"value": "{\\"conversation_id\\": \\"quoted\\"}", "session_id": "s"}',
            '{"value": ", \\"session_id\\": \\"quoted\\""}',
            '{"x": [{"session_id": "deep"}]}',
            '[{"conversation_id": "listed"}]',
            '{"conversation_id": true}',
            '{"conversation_id": {"id": 1}}',
            '"conversation_id"',
        ],
    )
    def test_it_is_the_same(self, text: str) -> None:
        assert READER.quick_key(text.encode()) == READER.key(json.loads(text))

    @given(
        st.dictionaries(
            st.sampled_from(["conversation_id", "session_id", "call_id", "data", "payload", "event", "state"]),
            st.recursive(
                st.none()
                | st.booleans()
                | st.integers()
                | st.floats(allow_nan=False, allow_infinity=False)
                | st.text(max_size=8),
                lambda inner: st.dictionaries(
                    st.sampled_from(["conversation_id", "session_id", "x"]), inner, max_size=2
                ),
                max_leaves=4,
            ),
            max_size=5,
        ),
        st.booleans(),
    )
    @settings(deadline=None, max_examples=50)
    def test_of_anything(self, value: dict[str, Any], ascii_: bool) -> None:
        text = json.dumps(value, ensure_ascii=ascii_).encode("utf-8", "replace")
        assert READER.quick_key(text) == READER.key(json.loads(text))

    def test_of_what_is_not_json(self) -> None:
        with pytest.raises(BadJson):
            READER.quick_key(b"{oops}")


SAMPLES: list[Any] = [
    [json.loads(line) for line in (EXAMPLES / "state-events" / "nightly.jsonl").read_text().splitlines()[:12]],
    [json.loads(line) for line in (EXAMPLES / "state-events" / "call-2041.jsonl").read_text().splitlines()],
    [json.loads((EXAMPLES / "state-events" / "with-transcript.json").read_text())],
]
JUNK = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        10**30,
        "",
        "x",
        "true",
        [],
        {},
        [1],
        {"a": 1},
        "2026-01-01",
        [[[]]],
        {"name": {"name": 1}},
    ]
)
NAMES = st.sampled_from(
    [
        *("event", "type", "name", "timestamp", "seq", "state", "to_state", "data", "events", "messages", "role"),
        *("content", "slot", "value", "latency_ms", "flow", "agent", "persona", "error", "completed", "id", "call_id"),
    ]
)


@st.composite
def mutated(draw: st.DrawFn, value: Any) -> Any:
    """The sample with something put in, left out or replaced, at any depth."""
    if draw(st.integers(0, 30)) == 0:
        return draw(JUNK)
    if isinstance(value, list):
        kept = [draw(mutated(one)) for one in value]
        return [*kept, draw(JUNK)] if draw(st.integers(0, 15)) == 0 else kept
    if isinstance(value, dict):
        kept_too = {name: draw(mutated(one)) for name, one in value.items() if draw(st.integers(0, 25))}
        if draw(st.integers(0, 8)) == 0:
            kept_too[draw(NAMES)] = draw(JUNK)
        return kept_too
    return value


@pytest.mark.parametrize("sample", SAMPLES, ids=["lines", "nested", "record"])
@given(data=st.data())
def test_nothing_breaks_it(sample: list[Any], data: st.DataObject) -> None:
    lines = data.draw(mutated(sample))
    with suppress(InputError):
        for one in build_all(*(lines if isinstance(lines, list) else [lines]))[0]:
            assert from_json(to_json(one)) == one


def test_nothing_of_a_flow() -> None:
    with pytest.raises(InputError, match="no event of a flow"):
        build({"event": "vad"}, {"x": 1}, 7)


def test_many_states_in_one_conversation(tmp_path: Path) -> None:
    """Turns that name a state other than the current one: four times the states take far less than 16 times as long."""

    def seconds(states: int) -> float:
        events: list[dict[str, Any]] = []
        for number in range(states):
            for kind in ("state_entered", "turn_complete", "state_exited"):
                at = 1760000000.25 + len(events)
                state = f"s{max(0, number - 1) if kind == 'turn_complete' else number}"
                events.append({"conversation_id": "a", "timestamp": at, "event": kind, "state": state})
                if kind == "state_exited":
                    events[-1]["to_state"] = f"s{number + 1}"
        path = tmp_path / f"{states}.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in events))
        began = process_time()
        assert len(read(path).only.timeline) == 3 * states
        return process_time() - began

    assert min(seconds(4000) for _ in range(2)) < 9 * max(0.01, min(seconds(1000) for _ in range(3)))
