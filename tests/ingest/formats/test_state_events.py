"""Event streams of flows, by the section Events of the flow-states specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.conversation import (
    ComponentMetric,
    GuardEvaluated,
    Marker,
    SlotFilled,
    StateExited,
    ToolResult,
)
from support.event_lines import T, build, codes, entered, event, exited, told, turn
from support.tool_outcomes import stated


class TestTheTableOfEvents:
    """One line of each type, as the specification writes them."""

    LINE = {
        "conversation_id": "c17",
        "flow": "apartment_viewing",
        "agent": "gemini",
        "seq": 4,
        "timestamp": 1760000000.25,
        "event": "state_exited",
        "state": "collect_details",
        "to_state": "confirm",
        "reason": "slots_filled",
    }

    def test_the_line_of_the_specification(self) -> None:
        built, notes = build(entered(0, "collect_details"), self.LINE)
        left = built.timeline[1]
        assert isinstance(left, StateExited)
        assert (left.state, left.to_state, left.reason) == ("collect_details", "confirm", "slots_filled")
        assert left.time is not None
        assert (left.time.at, left.time.clock) == (1760000000.25, "wall")
        assert left.extras == {}
        assert built.dimensions == {"flow": "apartment_viewing", "agent": "gemini"}
        assert built.agent.name == "gemini"
        assert notes.taken == []

    def test_turn(self) -> None:
        built, notes = build(entered(0, "a"), turn(1, 812, tokens_in=200, tokens_out=20, model="m-1", mood="calm"))
        ran = built.timeline[1]
        assert isinstance(ran, ComponentMetric)
        assert (ran.component, ran.label, ran.state) == ("turn", "turn_complete", "a")
        assert ran.values == {"tokens_in": 200, "tokens_out": 20, "model": "m-1", "latency_ms": 812}
        assert ran.extras == {"mood": "calm"}
        assert built.dimensions == {"model": "m-1"}
        assert codes(notes) == [("unknown", "event.mood")]

    @pytest.mark.parametrize(
        ("given_", "error"),
        [("boom", "boom"), (True, "failed"), ("", ""), (False, ""), (None, ""), ({"message": "no"}, "no"), (7, "7")],
    )
    def test_guard(self, given_: Any, error: str) -> None:
        built, _ = build(entered(0, "a"), event(1, "guard_evaluated", guard="g", result=False, error=given_))
        guard = built.timeline[1]
        assert isinstance(guard, GuardEvaluated)
        assert (guard.guard, guard.result, guard.error, guard.state) == ("g", False, error, "a")

    @pytest.mark.parametrize("value", [0, False, "", "Ada", [1], {"a": 1}])
    def test_whatever_is_no_null_is_a_value(self, value: Any) -> None:
        built, notes = build(entered(0, "a"), event(1, "slot_filled", slot="s", value=value, state="b"))
        slot = built.timeline[1]
        assert isinstance(slot, SlotFilled)
        assert (slot.slot, slot.value, slot.state) == ("s", value, "b")
        assert notes.taken == []

    def test_null_is_not_committed(self) -> None:
        filled = event(2, "slot_filled", slot="s", value=7)
        built, notes = build(entered(0, "a"), event(1, "slot_filled", slot="s", value=None), filled)
        assert told(built) == ["+a", "[slot_not_committed]", "s@a"]
        assert codes(notes) == [("ignored", "slot_not_committed")]

    def test_a_slot_without_a_word_on_its_value_was_committed(self) -> None:
        built, notes = build(entered(0, "a"), event(1, "slot_filled", slot="s"))
        assert told(built) == ["+a", "s@a"]
        assert codes(notes) == [("inferred", "slot_value_not_told")]

    def test_a_slot_is_committed_once(self) -> None:
        slots = [event(at, "slot_filled", slot="s", value=at) for at in (1, 2)]
        built, notes = build(entered(0, "a"), *slots)
        assert told(built) == ["+a", "s@a", "[slot_committed_again]"]
        again = built.timeline[2]
        assert isinstance(again, Marker)
        assert again.value == {"slot": "s", "value": 2}
        assert codes(notes) == [("ignored", "slot_committed_again")]

    def test_tools(self) -> None:
        call = event(1, "tool_called", name="book", arguments={"day": 5}, call_id="t1")
        built, notes = build(
            entered(0, "a"),
            call,
            event(2, "tool_result", name="book", call_id="t1", success=False, error="full"),
            event(3, "tool_called", tool="look", arguments='{"x": 1}'),
            event(4, "tool_result", tool="look", result={"status": "ok"}),
            event(5, "tool_result", tool="look", result=[]),
            event(6, "tool_result", tool="look", success="true"),
        )
        booked, look = built.tool_calls
        assert (booked.arguments, look.arguments) == ({"day": 5}, {"x": 1})
        results = [one for one in built.timeline if isinstance(one, ToolResult)]
        assert [stated(one) for one in results] == [(False, "full"), (True, ""), (None, ""), (True, "")]
        assert built.tool_results[booked.seq].call_id == "t1"
        assert notes.taken == []

    def test_the_end(self) -> None:
        end = event(3, "conversation_ended", completed=True, stop_reason="terminal", final_status="booked")
        built, _ = build(entered(0, "a"), end)
        outcome = built.outcome
        assert (outcome.completed, outcome.finished, outcome.error) == (True, True, "")
        assert (outcome.ended_reason, outcome.final_status) == ("terminal", "booked")
        assert told(built) == ["+a", "[conversation_ended]"]

    @pytest.mark.parametrize(
        ("given_", "completed"), [("true", True), (1, True), ("False", False), (0, False), (None, None), ("so", None)]
    )
    def test_completed_in_other_words(self, given_: Any, completed: bool | None) -> None:
        assert (
            build(entered(0, "a"), event(1, "conversation_ended", completed=given_))[0].outcome.completed is completed
        )

    @pytest.mark.parametrize(
        ("facts", "error"),
        [
            ({"error": "no backend"}, "no backend"),
            ({"errored": True}, "errored"),
            ({"errored": False}, ""),
            ({"final_status": "integration_error"}, "integration_error"),
            ({"stop_reason": "Integration Error"}, "Integration Error"),
            ({"stop_reason": "max_turns"}, ""),
            ({"stop_reason": "guard_error"}, ""),
        ],
    )
    def test_only_a_broken_integration_is_an_error(self, facts: dict[str, Any], error: str) -> None:
        assert build(entered(0, "a"), event(1, "conversation_ended", **facts))[0].outcome.error == error

    @pytest.mark.parametrize(
        ("facts", "error"),
        [({"fatal": True}, "lost"), ({"severity": "FATAL"}, "lost"), ({"recoverable": False}, "lost"), ({}, "")],
    )
    def test_an_error_on_the_way(self, facts: dict[str, Any], error: str) -> None:
        built, _ = build(entered(0, "a"), event(1, "error", message="lost", **facts))
        assert told(built) == ["+a", "[error]"]
        assert built.outcome.error == error

    def test_anything_else_is_a_marker_and_told(self) -> None:
        built, notes = build(entered(0, "a"), event(1, "transfer", queue="desk"), event(2, "transfer", queue="desk"))
        assert told(built) == ["+a", "[transfer]", "[transfer]"]
        marker = built.timeline[1]
        assert isinstance(marker, Marker)
        assert marker.value == {"queue": "desk"}
        assert codes(notes) == [("unknown", "event=transfer")] * 2

    def test_a_state_or_slot_without_a_name_is_kept_as_a_marker(self) -> None:
        built, notes = build(entered(0, "a"), event(1, "state_entered"), event(2, "slot_filled", value=1))
        assert told(built) == ["+a", "[state_entered]", "[slot_filled]"]
        assert codes(notes) == [("set_aside", "state_not_named"), ("set_aside", "slot_not_named")]


class TestDialects:
    @pytest.mark.parametrize("field", ["event", "type", "event_type", "name"])
    @pytest.mark.parametrize(
        "name", ["state_entered", "StateEntered", "state-entered", "STATE_ENTERED", "state entered"]
    )
    def test_names(self, field: str, name: str) -> None:
        built, notes = build({field: name, "ts": T, "state": "a"}, {"event": "TurnCompleted", "time": T + 1})
        assert told(built) == ["+a", "turn@a"]
        assert notes.taken == []

    @pytest.mark.parametrize("nest", ["data", "payload"])
    @pytest.mark.parametrize("field", ["event", "type", "name"])
    def test_nested(self, nest: str, field: str) -> None:
        lines = [
            {field: "state_entered", "timestamp": T, nest: {"state": "a"}},
            {field: "tool_called", "timestamp": T + 1, nest: {"name": "book", "arguments": {}}},
            {field: "tool_called", "timestamp": T + 2, nest: {"name": "look", "arguments": {}}},
            {field: "state_exited", "timestamp": T + 3, nest: {"state": "a", "to_state": "b"}},
        ]
        built, notes = build(*lines)
        assert told(built) == ["+a", "book()", "look()", "-a>b"]
        assert notes.taken == []

    def test_what_is_nested_and_says_otherwise_is_kept(self) -> None:
        built, _ = build({"event": "state_entered", "timestamp": T, "data": {"state": "a", "timestamp": T + 9}})
        assert built.timeline[0].time is not None
        assert built.timeline[0].time.at == T
        assert built.timeline[0].extras == {"data.timestamp": T + 9}

    def test_the_event_may_be_nested_too(self) -> None:
        assert told(build({"timestamp": T, "data": {"event": "state_entered", "state": "a"}})[0]) == ["+a"]

    def test_flat_and_nested_lines_of_one_shape(self) -> None:
        flat = {"event": "state_entered", "state": "b", "data": None}
        nested = {"event": "state_entered", "state": "b", "data": {"state": "c"}}
        assert told(build(flat, nested, flat)[0]) == ["+b", "+c", "+b"]

    def test_a_tool_called_like_an_event(self) -> None:
        built, _ = build(entered(0, "a"), {"event": "tool_called", "timestamp": T + 1, "name": "error"})
        assert told(built) == ["+a", "error()"]

    def test_what_lines_say_of_the_conversation(self) -> None:
        dims = {name: f"{name}-1" for name in ("flow", "agent", "model", "persona", "scenario_id", "dataset", "domain")}
        built, notes = build(entered(0, "a", **dims, trial=2, split="test"), turn(1, 5, **dims, trial=2))
        assert built.dimensions == {**dims, "trial": "2", "split": "test"}
        assert notes.taken == []

    def test_a_line_that_says_otherwise(self) -> None:
        built, notes = build(entered(0, "a", flow="x"), entered(1, "b", flow="y"), entered(2, "c", flow="y"))
        assert built.dimensions == {"flow": "x"}
        assert [one.extras for one in built.timeline] == [{}, {"flow": "y"}, {"flow": "y"}]
        assert codes(notes) == [("set_aside", "differs_from_first_line")]

    def test_an_object_as_a_name(self) -> None:
        built, _ = build(entered(0, "a", agent={"name": "ivy", "version": 3}, persona={"name": "Bo", "mood": "calm"}))
        assert built.dimensions == {"agent": "ivy", "persona": "Bo"}
        assert built.extras == {"agent": {"name": "ivy", "version": 3}}
        assert built.scenario is not None
        assert built.scenario.persona == {"name": "Bo", "mood": "calm"}

    def test_a_latency_as_text_in_seconds_or_none_at_all(self) -> None:
        lines = [entered(0, "a"), turn(1, "812.5"), turn(2, latency_s=0.5), turn(3, "soon"), turn(4, -1), turn(5)]
        built, notes = build(*lines)
        turns = [one.values for one in built.timeline[1:] if isinstance(one, ComponentMetric)]
        assert turns == [{"latency_ms": 812.5}, {"latency_s": 0.5, "latency_ms": 500.0}, {}, {}, {}]
        assert codes(notes) == [("set_aside", "latency_not_a_time")] * 2
        assert built.timeline[3].extras == {"latency_ms": "soon"}


FROM_LATENCY = ("inferred", "turn_state_from_latency")


class TestTheStateOfATurn:
    """A turn belongs to the state that the agent ran in, not to the one that it moved to."""

    def test_before_the_move(self) -> None:
        assert "turn@a" in told(build(entered(0, "a"), turn(2, 900), exited(2, "a", "b"), entered(2, "b"))[0])

    def test_after_the_move_that_it_caused(self) -> None:
        # It began at 1.2, when b was not yet entered.
        built, notes = build(entered(0, "a"), exited(2, "a", "b"), entered(2, "b"), turn(2.1, 900))
        assert told(built)[-1] == "turn@a"
        assert codes(notes) == [FROM_LATENCY]

    def test_at_the_time_of_the_move(self) -> None:
        built, notes = build(entered(0, "a"), exited(2.5, "a", "b"), entered(2.5, "b"), turn(2.5, 900))
        assert told(built)[-1] == "turn@a"
        assert codes(notes) == [FROM_LATENCY]

    def test_between_exit_and_entry(self) -> None:
        built, notes = build(entered(0, "a"), exited(2, "a", "b"), turn(2, 900), entered(2, "b"))
        assert told(built) == ["+a", "-a>b", "turn@a", "+b"]
        assert notes.taken == []

    def test_begun_in_the_new_state(self) -> None:
        built, _ = build(entered(0, "a"), exited(2, "a", "b"), entered(2, "b"), turn(3, 900))
        assert told(built)[-1] == "turn@b"

    def test_begun_with_the_new_state_to_the_millisecond(self) -> None:
        built, _ = build(entered(0, "a"), exited(2, "a", "b"), entered(2, "b"), turn(2.9, 900))
        assert told(built)[-1] == "turn@b"

    def test_through_several_states(self) -> None:
        # b was entered at 2: a latency that leads back behind it says nothing of c, nor of b.
        moves = [entered(0, "a"), exited(2, "a", "b"), entered(2, "b"), exited(2.5, "b", "c"), entered(2.5, "c")]
        assert told(build(*moves, turn(3, 1500))[0])[-1] == "turn@c"
        assert told(build(*moves, turn(3, 800))[0])[-1] == "turn@b"
        assert told(build(*moves, turn(3, 400))[0])[-1] == "turn@c"

    def test_only_one_turn_can_have_caused_a_move(self) -> None:
        moves = [entered(0, "a"), exited(2, "a", "b"), entered(2, "b")]
        built, notes = build(*moves, turn(2.1, 900), turn(3, 1500))
        assert told(built)[-2:] == ["turn@a", "turn@b"]
        assert codes(notes) == [FROM_LATENCY]

    @pytest.mark.parametrize("logged", [2, 3])
    def test_whole_seconds_are_too_coarse_to_compare_a_latency_with(self, logged: float) -> None:
        built, notes = build(entered(0, "a"), exited(2, "a", "b"), entered(2, "b"), turn(logged, 1300), turn(7, 400))
        assert told(built)[-2:] == ["turn@b", "turn@b"]
        assert notes.taken == []

    def test_whole_seconds_as_text_and_in_milliseconds(self) -> None:
        for times in (["2026-10-09T10:00:00Z", "2026-10-09T10:00:03Z"], [1760000000000, 1760000003000]):
            first, then = times
            lines = [entered(None, "a"), exited(None, "a", "b"), entered(None, "b"), turn(None, 1300)]
            at = [first, then, then, then]
            built, _ = build(*({**line, "timestamp": time} for line, time in zip(lines, at, strict=True)))
            assert told(built)[-1] == "turn@b"

    def test_a_latency_that_does_not_fit_the_clock_is_made_up(self) -> None:
        # A simulation that writes in microseconds what would have taken seconds.
        steps = [entered(0.00001, "a"), turn(0.00002, 500), exited(0.00003, "a", "b"), entered(0.00004, "b")]
        built, notes = build(*steps, turn(0.00005, 300))
        assert told(built) == ["+a", "turn@a", "-a>b", "+b", "turn@b"]
        assert notes.taken == []
        without = [line for line in steps if line["event"] != "turn_complete"]
        assert told(build(*without, turn(0.00005, 300))[0])[-1] == "turn@b"

    def test_begun_before_the_end_of_the_turn_before(self) -> None:
        moves = [exited(2.5, "a", "b"), entered(2.5, "b")]
        built, notes = build(entered(0, "a"), turn(2.4, 300), *moves, turn(2.6, 900))
        assert told(built)[-1] == "turn@b"
        assert notes.taken == []

    def test_back_in_the_same_state(self) -> None:
        built, notes = build(entered(0, "a"), exited(2.5, "a", "a"), entered(2.5, "a"), turn(2.6, 900))
        assert told(built)[-1] == "turn@a"
        assert notes.taken == []

    def test_a_name_comes_first(self) -> None:
        built, _ = build(entered(0, "a"), exited(2, "a", "b"), entered(2, "b"), turn(2.1, 900, state="b"))
        assert told(built)[-1] == "turn@b"
        built, _ = build(entered(0, "a"), exited(2, "a", "b"), entered(2, "b"), turn(9, 900, state="a"))
        assert told(built)[-1] == "turn@a"

    @pytest.mark.parametrize("latency", [None, 0, "soon"])
    def test_without_a_latency_it_is_the_state_entered_last(self, latency: Any) -> None:
        built, _ = build(entered(0, "a"), exited(2, "a", "b"), entered(2, "b"), turn(2, latency))
        assert told(built)[-1] == "turn@b"

    def test_without_times(self) -> None:
        built, _ = build(entered(None, "a"), turn(None, 900), exited(None, "a", "b"), entered(None, "b"), turn(None, 1))
        assert told(built) == ["+a", "turn@a", "-a>b", "+b", "turn@b"]

    def test_begun_before_everything(self) -> None:
        assert told(build(entered(0, "a"), turn(0.2, 900))[0])[-1] == "turn@a"

    def test_no_state_at_all(self) -> None:
        assert told(build(turn(0, 900))[0]) == ["turn@"]


class TestVisitsThatNobodyWrote:
    CONCLUDED = ("inferred", "state_entry_concluded")

    def test_an_exit_without_an_entry_at_the_start(self) -> None:
        built, notes = build(turn(0, 5), exited(1, "a", "b"), entered(1, "b"))
        assert told(built) == ["+a", "turn@a", "-a>b", "+b"]
        assert codes(notes) == [self.CONCLUDED]

    def test_only_exits(self) -> None:
        built, notes = build(exited(1, "a", "b"), turn(3, 5), exited(4, "b", "c"), exited(5, "c", "d"), turn(7, 5))
        assert told(built) == ["+a", "-a>b", "+b", "turn@b", "-b>c", "+c", "-c>d", "+d", "turn@d"]
        assert codes(notes) == [self.CONCLUDED] * 4

    def test_what_happened_after_an_exit_happened_where_it_led(self) -> None:
        built, notes = build(entered(0, "a"), exited(1, "a", "b"), turn(3, 5), entered(4, "c"))
        assert told(built) == ["+a", "-a>b", "+b", "turn@b", "+c"]
        assert codes(notes) == [self.CONCLUDED]

    @pytest.mark.parametrize(("moved", "logged", "latency"), [(3, 4, 1300), (0.5, 0.6, 900)])
    def test_a_latency_that_is_not_believed_does_not_keep_a_turn_back(
        self, moved: float, logged: float, latency: int
    ) -> None:
        # Whole seconds; and a turn that would have begun before a was entered.
        built, notes = build(entered(0, "a"), exited(moved, "a", "b"), turn(logged, latency))
        assert told(built) == ["+a", "-a>b", "+b", "turn@b"]
        assert codes(notes) == [self.CONCLUDED]

    def test_a_second_turn_after_an_exit_is_of_the_state_it_led_to(self) -> None:
        built, notes = build(entered(0, "a"), exited(1, "a", "b"), turn(1.1, 900), turn(1.8, 900))
        assert told(built) == ["+a", "-a>b", "+b", "turn@a", "turn@b"]
        assert codes(notes) == [self.CONCLUDED, FROM_LATENCY]

    def test_a_turn_that_tells_its_latency_in_seconds(self) -> None:
        assert "+b" not in told(build(entered(0, "a"), exited(1, "a", "b"), turn(1.1, latency_s=0.9))[0])

    @pytest.mark.parametrize(
        "after",
        [
            [],
            [event(2, "conversation_ended", completed=False)],
            [turn(1.1, 900)],  # the turn that moved on
            [turn(3, 5, state="a")],
            [event(2, "slot_filled", slot="s", value=1, state="a")],
            [event(2, "noise")],
        ],
    )
    def test_a_state_that_nothing_happened_in_was_not_visited(self, after: list[dict[str, Any]]) -> None:
        built, notes = build(entered(0, "a"), exited(1, "a", "b"), *after)
        assert "+b" not in told(built)
        assert self.CONCLUDED not in codes(notes)

    def test_an_exit_of_another_state(self) -> None:
        built, notes = build(entered(0, "a"), exited(1, "x", "y"))
        assert told(built) == ["+a", "+x", "-x>y"]
        assert codes(notes) == [self.CONCLUDED]

    def test_two_entries_in_a_row_are_left_to_the_reader_of_the_timeline(self) -> None:
        built, notes = build(entered(0, "a"), entered(1, "b"))
        assert told(built) == ["+a", "+b"]
        assert notes.taken == []

    def test_an_exit_that_is_written_after_the_entry_it_leads_to(self) -> None:
        lines = [entered(0, "a"), entered(1, "b"), exited(1, "a", "b"), entered(2, "c"), exited(2, "b", "c")]
        built, notes = build(*lines)
        assert told(built) == ["+a", "-a>b", "+b", "-b>c", "+c"]
        assert codes(notes) == [("repaired", "exit_after_entry")]

    def test_an_exit_that_is_told_twice(self) -> None:
        built, notes = build(entered(0, "a"), exited(1, "a", "b"), exited(1.2, "a", "b"), entered(1.3, "b"))
        assert told(built) == ["+a", "-a>b", "[state_exited]", "+b"]
        assert codes(notes) == [("repaired", "state_exited_again")]

    def test_a_state_that_leads_to_itself(self) -> None:
        built, notes = build(entered(0, "a"), exited(1, "a", "a"), entered(1, "a"), exited(2, "a", "b"))
        assert told(built) == ["+a", "-a>a", "+a", "-a>b"]
        assert notes.taken == []

    def test_turns_that_name_states_and_nothing_else(self) -> None:
        built, _ = build(turn(0, 5, state="a"), turn(1, 5, state="a"), turn(2, 5, state="b"), turn(3, 5, state="a"))
        assert told(built) == ["+a", "turn@a", "turn@a", "+b", "turn@b", "+a", "turn@a"]


class TestTimeAndOrder:
    def test_three_ways_to_write_a_time_in_one_file(self) -> None:
        lines = [
            {"event": "state_entered", "state": "c", "timestamp": 1760000002},
            {"event": "state_entered", "state": "a", "timestamp": "2025-10-09T08:53:20Z"},
            {"event": "state_entered", "state": "b", "timestamp": 1760000001000},
        ]
        built, notes = build(*lines)
        assert told(built) == ["+a", "+b", "+c"]
        assert [one.time.at for one in built.timeline if one.time] == [T, T + 1, T + 2]
        assert codes(notes) == [("inferred", "time_in_epoch_ms"), ("repaired", "events_out_of_order")]
        assert notes.taken[1].detail == "2 of 3 events"

    def test_by_time_then_number_then_place(self) -> None:
        lines = [entered(1, "d", seq=9), entered(1, "e", seq=9), entered(1, "c", seq=2), entered(0, "b", seq=50)]
        assert told(build(*lines)[0]) == ["+b", "+c", "+d", "+e"]

    def test_numbers_alone(self) -> None:
        lines = [entered(None, state, seq=seq) for state, seq in (("b", 2), ("c", "10"), ("a", 1))]
        assert told(build(*lines)[0]) == ["+a", "+b", "+c"]

    def test_without_a_time_it_stays_behind_the_line_before(self) -> None:
        lines = [entered(5, "c"), turn(None), entered(1, "a"), turn(None), turn(None, "soon")]
        assert told(build(*lines)[0]) == ["+a", "turn@a", "turn@a", "+c", "turn@c"]

    def test_two_clocks(self) -> None:
        lines = [entered(5, "b"), {"event": "turn_complete", "timestamp": 3.5}, entered(1, "a"), entered(7, "c")]
        built, notes = build(*lines)
        assert told(built) == ["+a", "+b", "turn@b", "+c"]
        assert {clock.id for clock in built.clocks} == {"wall", "relative"}
        assert ("repaired", "mixed_clocks") in codes(notes)

    def test_times_from_the_start(self) -> None:
        built, _ = build({"event": "state_entered", "state": "a", "time": 0}, {"event": "turn_complete", "time": 1.5})
        assert [clock.kind for clock in built.clocks] == ["relative"]

    def test_an_unreadable_time_is_kept(self) -> None:
        built, notes = build(entered(0, "a"), {"event": "state_entered", "state": "b", "timestamp": "soon"})
        assert built.timeline[1].time is None
        assert built.timeline[1].extras == {"timestamp": "soon"}
        assert codes(notes) == [("set_aside", "unreadable_time")]

    def test_the_same_line_twice_is_one(self) -> None:
        line = turn(1, 900, seq=2)
        built, notes = build(entered(0, "a", seq=1), line, dict(line), entered(2, "b", seq=3), dict(line))
        assert told(built) == ["+a", "turn@a", "+b"]
        assert [code for code in codes(notes) if code[1] == "duplicate_event"] == [("repaired", "duplicate_event")] * 2

    def test_a_line_that_differs_in_anything_is_another(self) -> None:
        built, notes = build(entered(0, "a"), turn(1, 900), turn(1, 901), turn(1, 900, seq=5))
        assert told(built) == ["+a", "turn@a", "turn@a", "turn@a"]
        assert notes.taken == []

    def test_without_time_and_number_nothing_is_a_duplicate(self) -> None:
        built, _ = build(entered(None, "a"), turn(None, 900), turn(None, 900))
        assert told(built) == ["+a", "turn@a", "turn@a"]

    def test_many_lines_of_one_moment(self) -> None:
        slots = [event(1, "slot_filled", slot=f"s{number}", value=1) for number in range(40)]
        built, notes = build(*slots, *slots)
        assert len(built.timeline) == 40
        assert len(notes.taken) == 40

    @given(st.permutations(range(8)))
    @settings(deadline=None, max_examples=40)
    def test_the_order_of_lines_does_not_matter_where_times_tell_it(self, order: Sequence[int]) -> None:
        lines = [
            entered(0, "a", seq=1),
            turn(1, 900, seq=2),
            event(1, "slot_filled", seq=3, slot="s", value=0),
            exited(1, "a", "b", seq=4),
            entered(1, "b", seq=5),
            turn(3, 800, seq=6),
            event(4, "guard_evaluated", seq=7, guard="g"),
            event(5, "conversation_ended", seq=8, completed=True),
        ]
        shuffled, straight = build(*(lines[place] for place in order))[0], build(*lines)[0]
        assert (shuffled.timeline, shuffled.outcome) == (straight.timeline, straight.outcome)


class TestTexts:
    ASK = {"role": "user", "content": "A viewing, please.", "timestamp": T + 1}
    REPLY = {"role": "assistant", "content": "Which day?", "timestamp": T + 3}
    EVENTS = [entered(0, "a"), exited(2, "a", "b"), entered(2, "b"), turn(3.1, 900)]

    @pytest.mark.parametrize("field", ["messages", "transcript", "turns"])
    def test_beside_the_events(self, field: str) -> None:
        built, notes = build({"conversation_id": 7, field: [self.ASK, self.REPLY], "events": self.EVENTS})
        assert built.id == "7"
        assert told(built) == ["+a", "user: A viewing, please.", "-a>b", "+b", "assistant: Which day?", "turn@b"]
        assert [one.role for one in built.participants] == ["user", "assistant"]
        assert notes.taken == []

    def test_events_among_the_messages(self) -> None:
        listed = [entered(None, "a"), {"role": "user", "content": "Hi."}, turn(None, 5), exited(None, "a", "b")]
        assert told(build({"id": "x", "messages": listed})[0]) == ["+a", "user: Hi.", "turn@a", "-a>b"]

    def test_events_of_a_message(self) -> None:
        filled = event(None, "slot_filled", slot="s", value=1)
        listed = [
            {"role": "assistant", "content": "Hi.", "events": [entered(None, "a"), turn(None, 5)]},
            {"role": "user", "content": "Ada.", "events": [filled]},
        ]
        assert told(build({"id": "x", "messages": listed})[0]) == [
            "assistant: Hi.",
            "+a",
            "turn@a",
            "user: Ada.",
            "s@a",
        ]

    def test_without_times_in_the_order_of_the_file(self) -> None:
        events = [entered(None, "a"), turn(None, 5)]
        first = build({"id": "x", "messages": [{"role": "user", "content": "Hi."}], "events": events})[0]
        last = build({"id": "x", "events": events, "messages": [{"role": "user", "content": "Hi."}]})[0]
        assert told(first) == ["user: Hi.", "+a", "turn@a"]
        assert told(last) == ["+a", "turn@a", "user: Hi."]

    def test_lines_of_text_between_lines_of_events(self) -> None:
        built, _ = build(entered(0, "a"), {"speaker": "caller", "text": "Hello?", "ts": T + 1}, turn(2, 5))
        assert told(built) == ["+a", "user: Hello?", "turn@a"]

    def test_turns_of_two(self) -> None:
        built, _ = build({"id": "x", "turns": [{"user": "Hi.", "agent": "Hello."}], "events": [entered(None, "a")]})
        assert told(built) == ["user: Hi.", "assistant: Hello.", "+a"]

    def test_the_prompt_and_others_who_speak(self) -> None:
        listed = [
            {"role": "system", "content": "Be kind."},
            {"role": "user", "content": "Hi."},
            {"role": "supervisor", "content": "Let me take over."},
        ]
        built, _ = build({"id": "x", "messages": listed, "events": [entered(None, "a")]})
        assert built.agent.instructions == "Be kind."
        assert told(built) == ["user: Hi.", "supervisor: Let me take over.", "+a"]

    def test_tools_that_messages_tell_again(self) -> None:
        calls = [{"id": "t1", "function": {"name": "book", "arguments": "{}"}}]
        listed = [
            {"role": "assistant", "content": "One moment.", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "t1", "content": "done"},
        ]
        told_by_events = [entered(None, "a"), event(None, "tool_called", name="book", call_id="t1")]
        built, notes = build({"id": "x", "messages": listed, "events": told_by_events})
        assert [one.call_id for one in built.tool_calls] == ["t1"]
        assert built.utterances[0].extras == {"tool_calls_of_message": calls}
        assert ("ignored", "tools_in_messages") in codes(notes)
        alone, _ = build({"id": "x", "messages": listed, "events": [entered(None, "a")]})
        assert [one.call_id for one in alone.tool_calls] == ["t1"]

    def test_what_the_record_says_of_the_whole(self) -> None:
        facts = {"flow": "f", "agent": "g", "persona": "calm", "trial": 2, "metadata": {"model": "m"}, "mood": "good"}
        ends = {"completed": "true", "stop_reason": "max_turns", "final_status": "open", "error": None}
        built, notes = build({"session_id": "s1", **facts, **ends, "events": [entered(0, "a")]})
        assert built.id == "s1"
        assert built.dimensions == {"flow": "f", "agent": "g", "persona": "calm", "trial": "2", "model": "m"}
        assert (built.outcome.completed, built.outcome.finished) == (True, False)
        assert (built.outcome.ended_reason, built.outcome.final_status) == ("max_turns", "open")
        assert built.extras == {"metadata": {"model": "m"}, "mood": "good"}
        assert codes(notes) == [("unknown", "record.mood")]

    def test_an_event_knows_better_than_the_record(self) -> None:
        end = event(1, "conversation_ended", completed=False)
        built, _ = build({"id": "x", "completed": True, "events": [entered(0, "a"), end]})
        assert built.outcome.completed is False
        assert built.extras == {"completed": True}
