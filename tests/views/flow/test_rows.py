"""The row of a state in a conversation: nine metrics, each with its number or its reason (flow-states, tier 1)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from convoscope.conversation import Conversation, Event, Source, to_json
from convoscope.conversation.flow import Flow, FlowState
from convoscope.metrics.flow.states import recount_visits
from convoscope.runs.make import make_run as score
from convoscope.runs.sql import query
from convoscope.views.flow.state_rows import STATE_METRICS, StateRow, percentile_95, state_rows
from convoscope.views.flow.walk import walk
from support.flow_conversations import (
    NOWHERE,
    answered,
    call,
    called,
    entered,
    exited,
    filled,
    guard,
    path,
    rows,
    says,
    turn,
)

COLLECT = FlowState(name="collect", required_slots=("pet", "day"))
FLOW = Flow(
    name="vet",
    states=(
        FlowState(name="greet"),
        COLLECT,
        FlowState(name="done", terminal="success"),
        FlowState(name="failed", terminal="failure"),
        FlowState(name="closed", terminal="unknown"),
    ),
)


def stalls(*events: Event, **facts: Any) -> dict[str, int | None]:
    return {state: row.stall for state, row in rows(*events, **facts).items()}


class TestStall:
    """1 if it is the last state of a conversation that did not complete."""

    def test_not_completed(self) -> None:
        assert stalls(*path("a", "b"), completed=False) == {"a": 0, "b": 1}

    def test_completed(self) -> None:
        assert stalls(*path("a", "b"), completed=True) == {"a": 0, "b": 0}

    def test_unknown_outcome_is_unknown_for_all_states(self) -> None:
        """The states passed got 0 and the last nothing, so that such conversations could only add zeros."""
        found = rows(*path("a", "b"))
        assert {state: (row.stall, row.reasons["stall"]) for state, row in found.items()} == {
            "a": (None, "outcome_unknown"),
            "b": (None, "outcome_unknown"),
        }

    def test_the_last_state_is_the_last_visited_not_the_last_new(self) -> None:
        assert stalls(*path("a", "b", "a"), completed=False) == {"a": 1, "b": 0}

    def test_left_and_never_arrived(self) -> None:
        # It was left for nowhere: it is still the last.
        assert stalls(entered("a"), exited("a"), completed=False) == {"a": 1}

    def test_an_end_that_was_entered_is_the_last_state(self) -> None:
        assert stalls(*path("a", "failed"), flow=FLOW, completed=False) == {"a": 0, "failed": 1}

    def test_an_end_that_nobody_entered(self) -> None:
        # a was left for an end: the conversation did not get stuck in a, and the end never ran.
        assert stalls(entered("a"), exited("a", "failed"), flow=FLOW, completed=False) == {"a": 0}
        assert stalls(entered("a"), exited("a", "escalated"), completed=False) == {"a": 0}

    def test_the_kind_of_end_tells_the_outcome_where_no_flag_does(self) -> None:
        assert stalls(*path("a", "done"), flow=FLOW) == {"a": 0, "done": 0}
        assert stalls(*path("a", "failed"), flow=FLOW) == {"a": 0, "failed": 1}
        assert stalls(*path("a", "closed"), flow=FLOW) == {"a": None, "closed": None}

    def test_the_flag_weighs_more_than_the_kind_of_end(self) -> None:
        assert stalls(*path("a", "done"), flow=FLOW, completed=False) == {"a": 0, "done": 1}


class TestEscalation:
    def test_any_visit_is_enough(self) -> None:
        row = rows(*path("a", "b", "a", "escalated"), completed=False)["a"]
        assert (row.escalation, row.progress) == (1, 1)

    def test_only_the_state_that_led_to_it(self) -> None:
        found = rows(*path("a", "b", "escalate"))
        assert {state: row.escalation for state, row in found.items()} == {"a": 0, "b": 1, "escalate": 0}


class TestStoppedClock:
    def test_latencies_that_are_all_0_were_not_measured(self) -> None:
        """They gave 0 ms."""
        row = rows(entered("a"), turn(0), turn(0), exited("a", "b"), entered("b"), turn(0))["a"]
        assert (row.latency_p95_ms, row.latencies) == (None, ())
        assert row.reasons["latency_p95_ms"] == "clock_without_resolution"

    def test_beside_a_time_a_0_is_a_time(self) -> None:
        found = rows(entered("a"), turn(0), exited("a", "b"), entered("b"), turn(7))
        assert (found["a"].latency_p95_ms, found["b"].latency_p95_ms) == (0.0, 7.0)


class TestDwell:
    """Agent turns ÷ visits."""

    def test_over_visits(self) -> None:
        events = [entered("a"), turn(), turn(), exited("a", "b"), entered("b"), exited("b", "a"), entered("a"), turn()]
        found = rows(*events)
        assert found["a"].dwell_turns == 1.5  # 3 turns ÷ 2 visits
        assert found["b"].dwell_turns == 0.0  # no turn ÷ 1 visit

    def test_no_turns_logged_at_all(self) -> None:
        row = rows(*path("a", "b"))["a"]
        assert (row.dwell_turns, row.reasons["dwell_turns"]) == (None, "no_turns_logged")
        assert (row.latency_p95_ms, row.reasons["latency_p95_ms"]) == (None, "no_turns_logged")


class TestLatency:
    """95th percentile, linear interpolation: place 0.95 × (n − 1) among the sorted."""

    @pytest.mark.parametrize(
        ("latencies", "expected"),
        [
            ([800], 800.0),
            # place 0.95: 100 + 0.95 × (200 − 100) = 195
            ([200, 100], 195.0),
            # place 3.8: 400 + 0.8 × (1000 − 400) = 880
            ([100, 1000, 200, 300, 400], 880.0),
            # place 19: the 20th of 21, nothing to interpolate
            (list(range(0, 2100, 100)), 1900.0),
            # place 18.05: 1800 + 0.05 × 100 = 1805
            (list(range(0, 2000, 100)), 1805.0),
        ],
    )
    def test_by_hand(self, latencies: list[float], expected: float) -> None:
        assert rows(entered("a"), *map(turn, latencies))["a"].latency_p95_ms == pytest.approx(expected)

    def test_over_all_visits_of_the_state(self) -> None:
        row = rows(
            entered("a"),
            turn(100),
            exited("a", "b"),
            entered("b"),
            turn(9999),
            exited("b", "a"),
            entered("a"),
            turn(200),
        )
        assert row["a"].latency_p95_ms == pytest.approx(195.0)

    def test_null_where_no_turn_ran(self) -> None:
        found = rows(entered("a"), turn(5), exited("a", "b"), entered("b"))
        assert (found["b"].latency_p95_ms, found["b"].reasons["latency_p95_ms"]) == (None, "no_turn_ran")

    def test_null_where_turns_were_not_timed(self) -> None:
        row = rows(entered("a"), turn())["a"]
        assert (row.dwell_turns, row.latency_p95_ms) == (1.0, None)
        assert row.reasons["latency_p95_ms"] == "no_latency_logged"

    def test_a_turn_of_no_time_is_a_turn(self) -> None:
        assert rows(entered("a"), turn(0), turn(0), exited("a", "b"), entered("b"), turn(1))["a"].latency_p95_ms == 0.0

    @given(st.lists(st.integers(0, 10_000), min_size=1, max_size=40))
    def test_against_numpy(self, latencies: list[int]) -> None:
        import numpy as np

        assert percentile_95(latencies) == pytest.approx(float(np.percentile(latencies, 95)))


class TestGuards:
    def test_only_errors_count(self) -> None:
        row = rows(entered("a"), guard(), guard("timeout"), guard("", result=False), guard("KeyError"))["a"]
        assert row.guard_error == 2

    def test_none_evaluated_is_0_in_a_stream_of_events(self) -> None:
        assert rows(entered("a"))["a"].guard_error == 0

    def test_null_where_the_log_is_of_a_kind_that_tells_no_guards(self) -> None:
        source = Source(format="retell")
        row = rows(entered("a"), source=source)["a"]
        assert (row.guard_error, row.reasons["guard_error"]) == (None, "no_guards_logged")
        assert rows(entered("a"), guard("x"), source=source)["a"].guard_error == 1


class TestSlots:
    """Required slots collected in this state before its last exit ÷ required."""

    def test_collected_here(self) -> None:
        events = [*path("greet", "collect"), filled("pet", state="collect"), exited("collect", "done"), entered("done")]
        row = rows(*events, flow=FLOW)["collect"]
        assert (row.slot_fill_rate, row.slot_ready_rate, row.front_loaded) == (0.5, 0.5, 0)  # pet of pet, day
        assert (row.required, row.slots) == (2, ("pet",))

    @pytest.mark.parametrize("value", [0, False, ""])
    def test_0_false_and_the_empty_text_are_values(self, value: object) -> None:
        assert rows(entered("collect"), filled("pet", value, "collect"), flow=FLOW)["collect"].slot_fill_rate == 0.5

    def test_null_is_none(self, tmp_path: Path) -> None:
        log = tmp_path / "events.jsonl"
        log.write_text(
            '{"conversation_id": "c", "flow": "vet", "timestamp": 1, "event": "state_entered", "state": "collect"}\n'
            '{"conversation_id": "c", "timestamp": 2, "event": "slot_filled", "slot": "pet", "value": null}\n'
            '{"conversation_id": "c", "timestamp": 3, "event": "slot_filled", "slot": "day", "value": 0}\n'
        )
        run = score(log, out=tmp_path / "run", metrics=["state"], flows=[FLOW], workers=1)
        answer = query([run], "SELECT state, slot_fill_rate, slots FROM states")
        assert answer.rows == [("collect", 0.5, ["day"])]

    def test_another_slot_is_not_required(self) -> None:
        assert rows(entered("collect"), filled("colour"), flow=FLOW)["collect"].slot_fill_rate == 0.0

    def test_front_loaded_reads_0_here_and_is_ready(self) -> None:
        events = [entered("greet"), filled("pet"), filled("day"), exited("greet", "collect"), entered("collect")]
        row = rows(*events, exited("collect", "done"), flow=FLOW)["collect"]
        assert (row.slot_fill_rate, row.slot_ready_rate, row.front_loaded) == (0.0, 1.0, 2)

    def test_some_here_some_before(self) -> None:
        events = [entered("greet"), filled("pet", state="greet"), exited("greet", "collect"), entered("collect")]
        row = rows(*events, filled("day", state="collect"), flow=FLOW)
        assert (row["collect"].slot_fill_rate, row["collect"].slot_ready_rate) == (0.5, 1.0)
        assert row["collect"].front_loaded == 1

    def test_what_comes_after_the_last_exit_does_not_count(self) -> None:
        events = [entered("collect", 0), exited("collect", "greet", at=1), entered("greet", 1), filled("pet", at=2)]
        row = rows(*events, filled("day", state="collect", at=3), flow=FLOW)["collect"]
        assert (row.slot_fill_rate, row.slot_ready_rate) == (0.0, 0.0)

    def test_the_last_exit_counts_not_the_first(self) -> None:
        events = [*path("collect", "greet", "collect"), filled("pet", state="collect"), exited("collect", "done")]
        assert rows(*events, entered("done"), flow=FLOW)["collect"].slot_fill_rate == 0.5

    def test_filled_elsewhere_between_two_visits_is_ready_and_not_collected(self) -> None:
        events = [
            *path("collect", "greet"),
            filled("pet"),
            exited("greet", "collect"),
            entered("collect"),
            exited("collect", "done"),
        ]
        row = rows(*events, flow=FLOW)["collect"]
        assert (row.slot_fill_rate, row.slot_ready_rate) == (0.0, 0.5)
        assert row.front_loaded == 0  # not before the state was first entered

    def test_committed_in_the_moment_of_leaving(self) -> None:
        # The engine commits the slots of a state together with the move out of it, and tells of them after it.
        events = [
            entered("collect", 0),
            exited("collect", "done", at=7),
            filled("pet", state="collect", at=7),
            entered("done", 7),
        ]
        row = rows(*events, filled("day", state="collect", at=7), flow=FLOW)["collect"]
        assert (row.slot_fill_rate, row.slot_ready_rate) == (1.0, 1.0)

    def test_a_slot_is_committed_once(self) -> None:
        # Collected in greet; told again in collect, which did not collect it.
        events = [
            entered("greet"),
            filled("pet", state="greet"),
            exited("greet", "collect"),
            entered("collect"),
            filled("pet", "other", "collect"),
        ]
        row = rows(*events, flow=FLOW)
        assert (row["greet"].slots, row["collect"].slots) == (("pet",), ())
        assert row["collect"].slot_fill_rate == 0.0

    def test_the_state_that_the_event_carries_has_it(self) -> None:
        found = rows(*path("collect", "greet"), filled("pet", state="collect"), flow=FLOW)
        assert (found["collect"].slots, found["greet"].slots) == (("pet",), ())

    def test_a_slot_whose_state_nobody_tells_belongs_to_none_and_is_filled(self) -> None:
        # An analysis after the call found it: the state that the call ended in did not collect it.
        found = rows(*path("collect", "greet"), filled("pet", state=NOWHERE), entered("collect"), flow=FLOW)
        assert (found["collect"].slots, found["greet"].slots) == ((), ())
        assert (found["collect"].unplaced, found["greet"].unplaced) == (("pet",), ())
        assert (found["collect"].slot_fill_rate, found["collect"].slot_ready_rate) == (0.0, 0.5)

    def test_nothing_required_is_null_with_a_reason(self) -> None:
        row = rows(entered("greet"), flow=FLOW)["greet"]
        assert (row.slot_fill_rate, row.slot_ready_rate, row.front_loaded, row.required) == (None, None, None, None)
        assert row.reasons["slot_fill_rate"] == "nothing_required"

    def test_no_definition_is_null_with_a_reason(self) -> None:
        assert rows(entered("collect"))["collect"].reasons["slot_fill_rate"] == "no_flow_definition"

    def test_a_state_that_is_not_declared_is_null_with_a_reason(self) -> None:
        assert rows(entered("detour"), flow=FLOW)["detour"].reasons["slot_fill_rate"] == "state_not_declared"


class TestConfirmations:
    FLOW = Flow(name="f", states=(FlowState(name="check", speech_act="confirm"), FlowState(name="say")))

    def test_by_the_reason_of_leaving(self) -> None:
        events = [entered("check"), exited("check", "say", "rejected"), entered("say"), exited("say", "check")]
        row = rows(*events, entered("check"), exited("check", "act", "confirmed"), flow=self.FLOW)["check"]
        assert (row.asked, row.accepted) == (2, 1)

    def test_by_a_guard(self) -> None:
        row = rows(entered("check"), guard(name="is_confirmed", result=True), exited("check", "x"), flow=self.FLOW)
        assert (row["check"].asked, row["check"].accepted) == (1, 1)

    def test_nobody_knows(self) -> None:
        found = rows(*path("check", "say"), flow=self.FLOW)
        assert (found["check"].asked, found["check"].accepted) == (None, None)
        assert (found["say"].asked, found["say"].accepted) == (None, None)


def test_a_conversation_that_errored_has_no_rows() -> None:
    assert rows(*path("a", "b"), turn(5), error="backend absent") == {}


def test_rows_come_in_the_order_of_first_entry() -> None:
    assert [(row.state, row.position) for row in state_rows(call(*path("b", "a", "b", "c")))] == [
        ("b", 0),
        ("a", 1),
        ("c", 2),
    ]


# Any sequence of events, however broken.

NAMES = st.sampled_from(["a", "b", "c", "escalated", "done", ""])
ANY_EVENT: SearchStrategy[Event] = st.one_of(
    st.builds(entered, NAMES),
    st.builds(exited, NAMES, NAMES),
    st.builds(turn, st.none() | st.integers(0, 5000), NAMES),
    st.builds(guard, st.sampled_from(["", "boom"]), state=NAMES),
    st.builds(filled, st.sampled_from(["pet", "day"]), st.sampled_from([0, "", "x"]), NAMES),
    st.builds(called, id=st.sampled_from(["", "1"])),
    st.builds(answered, st.sampled_from([True, False, None]), id=st.sampled_from(["", "1"])),
    st.builds(says, who=st.sampled_from(["agent", "user"])),
)
MOVES_ONLY: SearchStrategy[Event] = st.builds(entered, NAMES) | st.builds(exited, NAMES, NAMES)
EVENTS = (
    st.lists(ANY_EVENT, max_size=30)
    | st.lists(MOVES_ONLY, max_size=15)
    | st.lists(st.builds(exited, NAMES, NAMES), max_size=6)
)


@st.composite
def any_call(draw: st.DrawFn) -> Conversation:
    return call(
        *draw(EVENTS),
        flow=draw(st.sampled_from([None, FLOW])),
        completed=draw(st.sampled_from([True, False, None])),
        status=draw(st.sampled_from(["", "completed", "abandoned"])),
    )


class TestAlways:
    @given(any_call())
    def test_the_audit_counts_the_same_visits_from_the_raw_events(self, one: Conversation) -> None:
        assert recount_visits(to_json(one)) == {row.state: row.visits for row in state_rows(one)}

    @given(any_call())
    def test_rows_are_of_the_states_visited_and_their_visits_sum_up(self, one: Conversation) -> None:
        visits = Counter(visit.state for visit in walk(one).visits)
        assert {row.state: row.visits for row in state_rows(one)} == dict(visits)
        assert sum(row.visits for row in state_rows(one)) == visits.total()

    @given(any_call())
    def test_marks_are_0_or_1_and_at_most_one_state_stalls(self, one: Conversation) -> None:
        found = state_rows(one)
        assert all(row.progress in (0, 1) and row.escalation in (0, 1) and row.stall in (0, 1, None) for row in found)
        stalls = [row.stall for row in found]
        assert set(stalls) <= {None} or None not in stalls
        assert stalls.count(1) <= 1

    @given(any_call())
    def test_every_row_adds_up(self, one: Conversation) -> None:
        for row in state_rows(one):
            self.adds_up(row)

    @staticmethod
    def adds_up(row: StateRow) -> None:
        assert row.revisit == row.visits - 1
        assert len(row.to_states) == len(set(row.to_states)) == len(row.to_counts)
        assert sum(row.to_counts) <= row.visits
        assert row.progress + row.escalation <= len(row.to_states)
        assert row.tool_successes + row.tool_unknown <= row.tool_calls
        if row.slot_fill_rate is not None and row.slot_ready_rate is not None:
            assert 0 <= row.slot_fill_rate <= row.slot_ready_rate <= 1
        for name in STATE_METRICS:
            assert (getattr(row, name) is None) == (name in row.reasons), f"{name}: null and its reason go together"

    @given(any_call())
    def test_no_turn_is_in_two_states(self, one: Conversation) -> None:
        told = sum(getattr(event, "label", "") == "turn_complete" for event in one.timeline)
        spoken = sum(getattr(event, "speaker", "") == "agent" for event in one.timeline)
        assert sum(row.turns or 0 for row in state_rows(one)) <= (told or spoken)
