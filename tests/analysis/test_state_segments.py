"""Segments of a flow and archetypes over all flows: the formulas by hand (flow-states, tiers 2 and 4)."""

from __future__ import annotations

from pathlib import Path

import pytest

import convoscope
from convoscope.analysis.flows.segments import SegmentFigures, Segments, Unassigned
from convoscope.conversation import Event
from convoscope.conversation.flow import Flow, FlowSegment, FlowState, TargetSlot
from convoscope.runs.run import Run
from support.flow_conversations import answered, call, called, entered, exited, filled, path, scored, turn

BOOKING = Flow(
    name="booking",
    states=(
        FlowState(name="ask", required_slots=("ignored",)),
        FlowState(name="listen"),
        FlowState(name="check", lifecycle_phase="readback"),
        FlowState(name="book", speech_act="act"),
        FlowState(name="pay", speech_act="act"),
        FlowState(name="bye", terminal="success", lifecycle_phase="close"),
        FlowState(name="odd"),
    ),
    segments=(
        FlowSegment(
            name="intake",
            kind="gather",
            members=("ask", "listen"),
            target_slots=(TargetSlot(name="name"), TargetSlot(name="day"), TargetSlot(name="note", required=False)),
        ),
    ),
)
SHOP = Flow(
    name="shop",
    states=(
        FlowState(name="item", lifecycle_phase="gather", required_slots=("what",)),
        FlowState(name="size", lifecycle_phase="gather", required_slots=("cm",)),
    ),
)


def stay(state: str, to: str = "", *inside: Event, turns: int = 1, reason: str = "") -> list[Event]:
    return [entered(state), *inside, *[turn(100) for _ in range(turns)], *([exited(state, to, reason)] if to else [])]


BOOKED = call(
    *stay("ask", "listen", filled("name")),
    *stay("listen", "check", turns=2),
    *stay("check", "book", filled("day"), reason="confirmed"),
    *stay("book", "pay", called(id="1"), answered(id="1")),
    *stay("pay", "bye", called(id="2"), answered(False, id="2")),
    *stay("bye"),
    flow=BOOKING,
    completed=True,
)
STUCK = call(
    *stay("ask", "listen", filled("name"), filled("note")),
    *stay("listen", "ask", turns=4),
    *stay("ask", "listen"),
    *stay("listen", turns=2),
    flow=BOOKING,
    completed=False,
)
SHOPPED = call(
    *stay("item", "size", filled("what"), turns=0), *stay("size", "x", turns=1), *stay("x"), flow=SHOP, completed=True
)
UNDECLARED = call(*path("a", "b"), flow="undeclared", completed=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return scored([BOOKED, STUCK, SHOPPED, UNDECLARED], tmp_path_factory.mktemp("segments"))


@pytest.fixture(scope="module")
def found(run: Run) -> Segments:
    return convoscope.states(run).segments()


def segment(found: Segments, flow: str, name: str) -> SegmentFigures:
    (one,) = [one for one in found.rows if (one.flow, one.segment) == (flow, name)]
    return one


class TestFormulas:
    def test_by_hand(self, found: Segments) -> None:
        intake = segment(found, "booking", "intake")
        assert (intake.kind, intake.states, intake.n, intake.rows) == ("collect", ("ask", "listen"), 2, 4)
        # Rows (progress, stall, revisit, dwell): ask 1 0 0 1 and 1 0 1 2/2; listen 1 0 0 2 and 0 1 1 6/2.
        assert intake.goal_yield.value == 0.75  # (1 + 1 + 1 + 0) ÷ 4
        assert intake.efficiency == pytest.approx(2 / 3.5)  # ask (1 + 1) ÷ 2 = 1, listen (2 + 3) ÷ 2 = 2.5
        assert intake.transition_coherence == 0.25  # 1 − 2/4 − 1/4
        # 0.75 × (0.35 × 0.571429 + 0.65 × 0.25) = 0.75 × (0.2 + 0.1625) = 0.271875
        assert intake.group_cohesion == pytest.approx(0.271875)
        assert intake.reason == ""

    def test_all_well(self, found: Segments) -> None:
        act = segment(found, "booking", "act")
        # Both led on in one turn: 1 × (0.35 × 1 + 0.65 × 1).
        assert (act.goal_yield.value, act.efficiency, act.transition_coherence) == (1.0, 1.0, 1.0)
        assert act.group_cohesion == pytest.approx(1.0)

    def test_efficiency_is_1_at_most(self, found: Segments) -> None:
        # Two states, 0 + 1 turns: 2 ÷ 1 = 2 → 1.
        assert segment(found, "shop", "gather").efficiency == 1.0

    def test_coherence_is_0_at_least(self, tmp_path: Path) -> None:
        flow = Flow(name="f", states=(FlowState(name="a", segment="g"), FlowState(name="b", segment="g")))
        # a three times, b twice: revisits 2 and 1, a stall: 1 − 1.5 − 0.5 = −1 → 0.
        back_and_forth = call(*path("a", "b", "a", "b", "a"), turn(1), flow=flow, completed=False)
        (one,) = convoscope.states(scored([back_and_forth], tmp_path)).segments().rows
        assert one.transition_coherence == 0.0
        # goal_yield ½ (a led on, b only back), efficiency 2 ÷ (1/3 + 0) = 6 → 1: ½ × (0.35 × 1 + 0.65 × 0).
        assert one.group_cohesion == pytest.approx(0.175)


class TestTypedYield:
    def test_collect_is_required_target_slots_filled_wherever(self, found: Segments) -> None:
        intake = segment(found, "booking", "intake")
        # name and day, note is not required: 2 of 2 (day in check) and 1 of 2 → 3 ÷ 4.
        assert (intake.typed_yield.value, intake.typed_yield.n, intake.typed_by) == (0.75, 4, "slots")

    def test_collect_takes_what_its_states_require_where_no_targets_are_declared(self, found: Segments) -> None:
        assert segment(found, "shop", "gather").typed_yield.value == 0.5  # what, not cm

    def test_confirm_is_accepted_of_asked(self, found: Segments) -> None:
        check = segment(found, "booking", "readback")
        assert (check.kind, check.typed_yield.value, check.typed_yield.n) == ("confirm", 1.0, 1)

    def test_act_is_successful_results_of_calls(self, found: Segments) -> None:
        act = segment(found, "booking", "act")
        assert (act.typed_yield.value, act.typed_yield.n, act.typed_by) == (0.5, 2, "tool calls")

    def test_a_call_that_was_never_answered_is_no_success(self, tmp_path: Path) -> None:
        flow = Flow(name="f", states=(FlowState(name="a", speech_act="act"),))
        some = call(entered("a"), called(id="1"), called(id="2"), answered(id="1"), flow=flow)
        (one,) = convoscope.states(scored([some], tmp_path)).segments().rows
        assert (one.typed_yield.value, one.typed_yield.n) == (0.5, 2)

    def test_null_with_a_reason_where_the_events_do_not_allow_it(self, tmp_path: Path) -> None:
        flow = Flow(
            name="f",
            states=(
                FlowState(name="a", speech_act="act"),
                FlowState(name="b", lifecycle_phase="dispatch"),
                FlowState(name="c", speech_act="confirm"),
                FlowState(name="d", speech_act="ask"),
                FlowState(name="e", lifecycle_phase="handoff"),
            ),
        )
        one = call(*path("a", "b"), called(), exited("b", "c"), *path("c", "d", "e"), flow=flow)
        found = convoscope.states(scored([one], tmp_path)).segments()
        assert {(row.segment, row.typed_yield.value, row.typed_yield.reason) for row in found.rows} == {
            ("act", None, "no_tool_called"),
            ("dispatch", None, "tool_results_not_logged"),
            ("confirm", None, "confirmations_not_logged"),
            ("collect", None, "no_target_slots"),
            ("handoff", None, "kind_without_typed_yield"),
        }


class TestNoCohesion:
    def test_terminal_kinds(self, found: Segments) -> None:
        close = segment(found, "booking", "close")
        assert (close.kind, close.group_cohesion, close.reason) == ("terminal", None, "terminal_kind")

    def test_fewer_than_two_states(self, found: Segments) -> None:
        check = segment(found, "booking", "readback")
        assert (check.group_cohesion, check.reason) == (None, "fewer_than_two_states")

    def test_unknown_outcomes_and_turns(self, tmp_path: Path) -> None:
        def flow(name: str) -> Flow:
            return Flow(name=name, states=(FlowState(name="a", segment="g"), FlowState(name="b", segment="g")))

        # Neither a nor b is the last state of one whose outcome is known to be bad; their stalls are known to be 0.
        silent = call(*path("a", "b", "z"), flow=flow("silent"), completed=True)
        idle = call(*path("a", "b", "z"), turn(1), flow=flow("idle"), completed=True)
        found = convoscope.states(scored([silent, idle], tmp_path)).segments()
        assert {(row.flow, row.reason) for row in found.rows} == {
            ("silent", "no_turns_logged"),
            ("idle", "no_turn_ran"),
        }

    def test_the_least_cohesive_comes_first_and_none_last(self, found: Segments) -> None:
        values = [one.group_cohesion for one in found.rows]
        known = [value for value in values if value is not None]
        assert values == [*sorted(known), *[None] * (len(values) - len(known))]


def test_states_without_a_segment_are_told_with_the_reason(found: Segments) -> None:
    assert found.unassigned == (
        Unassigned(flow="shop", reason="no_segment_declared", states=("x",)),
        Unassigned(flow="undeclared", reason="no_flow_definition", states=("a", "b")),
    )


class TestArchetypes:
    def test_mean_spread_and_flows(self, run: Run) -> None:
        kinds = {one.kind: one for one in convoscope.states(run).archetypes()}
        collect = kinds["collect"]
        # gather of shop: progress 1, 1; efficiency 1; coherence 1 → 1. Intake of booking: 0.271875.
        assert (collect.flows, collect.segments) == (2, 2)
        assert collect.cohesion == pytest.approx(0.6359375)  # (0.271875 + 1) ÷ 2
        assert collect.spread == pytest.approx(0.514862, abs=1e-6)  # 0.728125 ÷ √2
        assert (collect.lowest, collect.highest) == (pytest.approx(0.271875), pytest.approx(1.0))
        assert collect.weakest == "booking / intake"

    def test_one_flow_has_no_spread(self, run: Run) -> None:
        act = next(one for one in convoscope.states(run).archetypes() if one.kind == "act")
        assert (act.flows, act.cohesion, act.spread) == (1, pytest.approx(1.0), None)

    def test_none_is_null_with_a_reason(self, run: Run) -> None:
        kinds = {one.kind: one for one in convoscope.states(run).archetypes()}
        assert (kinds["terminal"].cohesion, kinds["terminal"].reason) == (None, "terminal_kind")
        assert (kinds["confirm"].cohesion, kinds["confirm"].reason) == (None, "fewer_than_two_states")
        assert next(one.kind for one in convoscope.states(run).archetypes()) == "collect"
