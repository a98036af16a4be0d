"""Conversations as the page of the format writes them are read by type; the least oddity is looked at more closely."""

from __future__ import annotations

import json
from typing import Any

import pytest

from convoscope.conversation import ComponentMetric, Conversation
from convoscope.ingest.formats.state_events.reader import READER
from convoscope.ingest.reader import Lines

T = 1_760_000_000.0


def line(at: float, event: str, /, **facts: Any) -> dict[str, Any]:
    return {"conversation_id": "c1", "timestamp": T + at, "event": event, **facts}


CALL = [
    line(0.5, "state_entered", state="greet", flow="viewing", agent="gemini"),
    line(1.5, "turn_complete", latency_ms=700, tokens_out=4, model="m1", tokens_in=3),
    line(2.5, "slot_filled", slot="pets", value=0),
    line(3.5, "state_exited", state="greet", to_state="close"),
    line(3.5, "state_entered", state="close", seq=9),
    line(4.5, "conversation_ended", completed=True, stop_reason="terminal"),
]


def built(lines: list[dict[str, Any]]) -> Conversation | None:
    return READER.quick_build(Lines("c1", [json.dumps(one).encode() for one in lines], ("a/log.jsonl",)))


def test_a_conversation_is_built() -> None:
    found = built(CALL)
    assert found is not None
    assert found.dimensions == {"agent": "gemini", "model": "m1", "flow": "viewing"}
    assert found.source.files == ("log.jsonl",)
    assert [event.seq for event in found.timeline] == [0, 1, 2, 3, 4, 5]
    assert (found.outcome.completed, found.outcome.finished) == (True, True)
    turn = found.timeline[1]
    assert isinstance(turn, ComponentMetric)
    # In the order of the line, the latency last; it ran in the state that was entered last.
    assert list(turn.values.items()) == [("tokens_out", 4), ("model", "m1"), ("tokens_in", 3), ("latency_ms", 700)]
    assert turn.state == "greet"


def test_times_may_be_written_with_their_zone() -> None:
    found = built([{**CALL[0], "timestamp": "2026-02-16T11:20:00.5Z"}])
    # 20,500 days after 1970-01-01 is 2026-02-16; 11:20:00.5 is 40,800.5 s.
    assert found is not None
    assert found.timeline[0].time is not None
    assert found.timeline[0].time.at == 20_500 * 86_400 + 40_800.5


ODDITIES = {
    "an unknown field": [*CALL, line(9, "turn_complete", mood=1)],
    "an unknown event": [*CALL, line(9, "heartbeat")],
    "another spelling": [*CALL, line(9, "TurnComplete")],
    "a null": [*CALL, line(9, "state_exited", state="close", to_state="x", reason=None)],
    "a number as text": [*CALL, line(9, "turn_complete", latency_ms="5")],
    "a latency of more than a day": [*CALL, line(9, "turn_complete", latency_ms=86_400_001)],
    "milliseconds": [*CALL, {**line(0, "turn_complete"), "timestamp": 1_760_000_009_000.0}],
    "out of order": [*CALL, line(1, "turn_complete")],
    "a repeated line": [*CALL, CALL[-1]],
    "another flow": [*CALL, line(9, "turn_complete", flow="grooming")],
    "an empty flow": [line(0, "turn_complete", flow="")],
    "a slot that is filled twice": [*CALL, line(9, "slot_filled", slot="pets", value=1)],
    "a slot without a value": [*CALL, line(9, "slot_filled", slot="day", value=None)],
    "a second end": [*CALL, line(9, "conversation_ended", completed=False)],
    "a state that nobody left": [*CALL, line(9, "state_entered", state="greet")],
    "an exit without an entry": [line(0, "state_exited", state="greet", to_state="close")],
    "something after the last exit": [*CALL[:4], line(9, "turn_complete")],
    "a turn in a state that nobody entered": [*CALL, line(9, "turn_complete", state="day")],
    # It began at 3 s: before the move at 3.5 s, after the turn before it, at 1.5 s.
    "a turn that began in the state before": [*CALL, line(5, "turn_complete", latency_ms=2_000)],
    "arguments as text": [*CALL, line(9, "tool_called", name="book", arguments="{}")],
    "nothing but markers": [line(0, "conversation_ended")],
}


@pytest.mark.parametrize("name", ODDITIES)
def test_what_is_odd_is_left_to_the_reader_that_looks_closer(name: str) -> None:
    assert built(ODDITIES[name]) is None
