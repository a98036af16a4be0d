"""The walk: which visits there are, where each led, and what happened in each (flow-states, Events and tier 1)."""

from __future__ import annotations

from convoscope.conversation.flow import Flow, FlowState
from convoscope.views.flow.walk import Visit, walk
from support.flow_conversations import (
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
    states,
    turn,
)

RANKED = Flow(
    name="ranked",
    states=(FlowState(name="a", rank=1), FlowState(name="b", rank=2), FlowState(name="c", rank=3), FlowState(name="d")),
)


def led(*visits: Visit) -> list[tuple[str, str, bool]]:
    return [(one.state, one.to_state, one.forward) for one in visits]


class TestForward:
    """Not itself, not an escalation, not visited before, unless the order says it is ahead."""

    def test_a_new_state_is_forward(self) -> None:
        assert rows(*path("a", "b"))["a"].progress == 1

    def test_itself_is_not(self) -> None:
        assert rows(entered("a"), exited("a", "a"), entered("a"))["a"].progress == 0

    def test_an_escalation_is_not_by_its_name(self) -> None:
        for name in ("escalated", "escalate"):
            row = rows(*path("a", name))["a"]
            assert (row.progress, row.escalation) == (0, 1)

    def test_an_escalation_is_not_where_the_flow_declares_it(self) -> None:
        flow = Flow(name="f", states=(FlowState(name="front_desk", terminal="escalation"),))
        declared = rows(*path("a", "front_desk"), flow=flow)["a"]
        assert (declared.progress, declared.escalation) == (0, 1)
        # Without the declaration it is a state like any other.
        undeclared = rows(*path("a", "front_desk"))["a"]
        assert (undeclared.progress, undeclared.escalation) == (1, 0)

    def test_a_state_visited_before_is_not(self) -> None:
        found = rows(*path("a", "b", "a"))
        assert found["a"].progress == 1  # a → b was new
        assert found["b"].progress == 0  # b → a goes back

    def test_a_state_visited_before_is_where_the_order_says_ahead(self) -> None:
        # c, then back to a, then to c again: rank 3 > 1, so the second a → c is ahead although c was visited.
        visits = walk(call(*path("c", "a", "c"), flow=RANKED)).visits
        assert led(*visits) == [("c", "a", True), ("a", "c", True), ("c", "", False)]
        # b → a with a visited: rank 1 < 2 is behind.
        assert rows(*path("a", "b", "a"), flow=RANKED)["b"].progress == 0
        # d has no rank: the order does not say that it is ahead.
        assert rows(*path("d", "a", "d"), flow=RANKED)["a"].progress == 0

    def test_one_advance_of_several_visits_is_enough(self) -> None:
        # a → a (itself), a → b (new): 1 if any visit's exit advanced.
        row = rows(entered("a"), exited("a", "a"), entered("a"), exited("a", "b"), entered("b"))["a"]
        assert (row.progress, row.visits) == (1, 2)

    def test_an_end_of_the_flow_is_forward_unless_it_is_an_escalation(self) -> None:
        flow = Flow(
            name="f", states=(FlowState(name="done", terminal="success"), FlowState(name="x", terminal="failure"))
        )
        assert rows(*path("a", "done"), flow=flow)["a"].progress == 1
        assert rows(*path("a", "x"), flow=flow)["a"].progress == 1

    def test_it_stays_where_it_is_never_left(self) -> None:
        assert rows(entered("a"))["a"].progress == 0


class TestVisits:
    def test_each_entry_is_a_visit_and_revisits_are_entries_less_one(self) -> None:
        found = rows(*path("a", "b", "a", "b", "a"))
        assert (found["a"].visits, found["a"].revisit) == (3, 2)
        assert (found["b"].visits, found["b"].revisit) == (2, 1)

    def test_an_exit_that_nobody_logged_is_concluded_from_the_next_entry(self) -> None:
        row = rows(entered("a"), entered("b"), completed=True)["a"]
        assert (row.visits, row.progress, row.to_states) == (1, 1, ("b",))

    def test_an_exit_that_does_not_say_where_led_to_what_was_entered_next(self) -> None:
        row = rows(entered("a"), exited("a"), entered("b"))["a"]
        assert (row.progress, row.to_states) == (1, ("b",))

    def test_an_entry_that_nobody_logged_is_a_visit_too(self) -> None:
        found = rows(entered("a"), exited("a", "b"), exited("b", "c"), entered("c"))
        assert {name: row.visits for name, row in found.items()} == {"a": 1, "b": 1, "c": 1}
        assert (found["b"].progress, found["b"].to_states) == (1, ("c",))

    def test_what_names_a_state_whose_entry_is_missing_is_in_it(self) -> None:
        flow = Flow(name="f", states=(FlowState(name="b", required_slots=("day",)),))
        found = rows(
            *(entered("a"), turn(100), exited("a", "b")),
            *(turn(700, state="b"), filled("day", state="b"), exited("b", "c")),
            entered("c"),
            flow=flow,
        )
        assert (found["a"].latencies, found["b"].latencies) == ((100.0,), (700.0,))
        # Collected in b, not before b.
        assert (found["b"].slot_fill_rate, found["b"].front_loaded) == (1.0, 0)

    def test_a_log_without_any_entry_enters_a_state_by_leaving_for_it(self) -> None:
        found = rows(turn(100), exited("a", "b"), turn(200), exited("b", "c"), turn(300), completed=False)
        assert {name: row.visits for name, row in found.items()} == {"a": 1, "b": 1, "c": 1}
        assert {name: row.latencies for name, row in found.items()} == {"a": (100.0,), "b": (200.0,), "c": (300.0,)}
        assert {name: row.stall for name, row in found.items()} == {"a": 0, "b": 0, "c": 1}

    def test_a_state_that_was_only_left_for_never_ran(self) -> None:
        # b is named by an exit, and nothing says that it was entered: no row, no verdict on it.
        found = rows(entered("a"), exited("a", "b"), completed=False)
        assert list(found) == ["a"]
        assert (found["a"].progress, found["a"].stall) == (1, 1)

    def test_entered_before_the_last_was_left_at_one_moment(self) -> None:
        events = (entered("a", at=0), entered("b", at=5), exited("a", "b", reason="ready", at=5), entered("c", at=9))
        visits = walk(call(*events)).visits
        assert led(*visits) == [("a", "b", True), ("b", "c", True), ("c", "", False)]
        assert visits[0].reason == "ready"

    def test_entered_before_left_and_the_exit_does_not_say_where(self) -> None:
        found = walk(call(entered("a"), entered("b"), exited("a")))
        assert led(*found.visits) == [("a", "b", True), ("b", "", False)]
        assert found.last == "b"

    def test_itself_again_entered_before_left(self) -> None:
        row = rows(entered("a"), entered("a"), exited("a", "a"), entered("b"), exited("a", "b"))["a"]
        assert (row.visits, row.progress, row.to_states, row.to_counts) == (2, 1, ("b", "a"), (1, 1))

    def test_where_it_led_is_counted(self) -> None:
        row = rows(*path("a", "b", "a", "b", "a", "c"))["a"]
        assert (row.to_states, row.to_counts) == (("b", "c"), (2, 1))

    def test_a_state_without_a_name_is_none(self) -> None:
        assert list(rows(entered(""), exited("", "a"), entered("a"))) == ["a"]

    def test_nothing_is_told_of_states(self) -> None:
        assert rows(turn(5)) == {}


class TestWhereThingsHappen:
    def test_a_turn_belongs_to_the_state_that_it_names(self) -> None:
        # The turn ran in a, and was told after the move that it caused.
        found = rows(entered("a"), exited("a", "b"), entered("b"), turn(900, state="a"), turn(100))
        assert (found["a"].turns, found["a"].latencies) == (1, (900.0,))
        assert (found["b"].turns, found["b"].latencies) == (1, (100.0,))

    def test_a_turn_on_the_way_out_belongs_to_the_state_that_is_left(self) -> None:
        found = rows(entered("a"), exited("a", "b"), turn(900), entered("b"))
        assert (found["a"].turns, found["b"].turns) == (1, 0)

    def test_of_several_visits_the_latest_has_it(self) -> None:
        visits = walk(call(*path("a", "b", "a", "b"), turn(50, state="a"))).visits
        assert [one.turns for one in visits] == [0, 0, 1, 0]

    def test_agent_words_are_turns_where_nothing_else_is_told(self) -> None:
        found = rows(
            *(entered("a"), says(), says(), says(who="user"), says(), exited("a", "b")),
            *(entered("b"), says()),
        )
        # Two in a: words that follow words are one turn. The state changes, so the last are a turn in b.
        assert (found["a"].turns, found["b"].turns) == (2, 1)

    def test_a_guard_belongs_to_the_state_that_it_names(self) -> None:
        found = rows(*path("a", "b"), guard("boom", state="a"), guard("boom"))
        assert (found["a"].guard_error, found["b"].guard_error) == (1, 1)

    def test_a_tool_result_belongs_to_the_state_that_called(self) -> None:
        for id in ("t1", ""):
            found = rows(entered("a"), called(id=id), exited("a", "b"), entered("b"), answered(id=id))
            assert (found["a"].tool_calls, found["a"].tool_successes) == (1, 1)
            assert (found["b"].tool_calls, found["b"].tool_successes) == (0, 0)

    def test_a_result_that_is_told_twice_counts_once(self) -> None:
        row = rows(entered("a"), called(id="t1"), answered(id="t1"), answered(False, id="t1"))["a"]
        assert (row.tool_calls, row.tool_successes) == (1, 1)

    def test_a_call_without_a_result_did_not_work_where_the_log_tells_results(self) -> None:
        # Three calls: one worked, one says nothing of success, one was never answered.
        row = rows(
            entered("a"), called(id="1"), called(id="2"), called(id="3"), answered(id="1"), answered(None, id="2")
        )
        assert (row["a"].tool_calls, row["a"].tool_successes, row["a"].tool_unknown) == (3, 1, 1)
        # Without any result in the log nobody knows of any of them.
        silent = rows(entered("a"), called(), called())["a"]
        assert (silent.tool_calls, silent.tool_successes, silent.tool_unknown) == (2, 0, 2)

    def test_an_error_without_a_flag_is_a_failure(self) -> None:
        row = rows(entered("a"), called(), answered(None, error="down"))["a"]
        assert (row.tool_calls, row.tool_successes, row.tool_unknown) == (1, 0, 0)


def test_a_flow_need_not_declare_the_states_that_run() -> None:
    flow = Flow(name="f", states=states("a"))
    assert list(rows(*path("a", "b"), flow=flow)) == ["a", "b"]
