"""The diagnosis: what it names, what it does not, and whether its evidence is evidence."""

from __future__ import annotations

from pathlib import Path

import convoscope
from convoscope.analysis.flows.diagnosis import Analysis
from convoscope.conversation import Conversation, Event
from convoscope.conversation.flow import Flow, FlowState
from convoscope.views.flow.state_rows import state_rows
from support.flow_conversations import NOWHERE, call, entered, exited, filled, guard, path, scored, turn

PAYMENT = Flow(
    name="pay",
    states=(
        FlowState(name="ask"),
        FlowState(name="charge"),
        FlowState(name="done", terminal="success"),
        FlowState(name="failed", terminal="failure"),
    ),
)


def analysed(folder: Path, *conversations: Conversation) -> Analysis:
    return convoscope.states(scored(conversations, folder)).analyze()


def named(found: Analysis) -> list[tuple[str, tuple[str, ...]]]:
    return [(cause.state, cause.faults) for cause in found.causes]


def times(count: int, *events: Event, **facts: object) -> list[Conversation]:
    return [call(*events, id=f"{facts.get('stop', 'c')}-{at:02d}", **facts) for at in range(count)]  # type: ignore[arg-type]


class TestEndsWithoutSuccess:
    def test_those_that_leave_for_a_failure_are_told_with_the_state_that_sends_them(self, tmp_path: Path) -> None:
        lost = times(8, *path("ask", "charge"), exited("charge", "failed"), flow=PAYMENT, completed=False)
        kept = times(2, *path("ask", "charge", "done"), flow=PAYMENT, completed=True, stop="terminal")
        found = analysed(tmp_path, *lost, *kept)
        # To leave for a state is to go on, so that neither stall nor progress tells: 8 of 10 are lost all the same.
        assert named(found) == [("charge", ("failure",))]
        (cause,) = found.causes
        assert (cause.lost, cause.conversations) == (8.0, ("c-00", "c-01", "c-02"))
        # Both that went on came to done; so would the 8.
        assert [(one.state, one.reached, one.missed) for one in cause.starves] == [("done", 2, 8.0)]
        (end,) = found.ends
        assert (end.state, end.terminal, end.n, end.came_from) == ("failed", "failure", 8, ("charge (8 of 10)",))

    def test_a_few_failures_are_told_and_blamed_on_nobody(self, tmp_path: Path) -> None:
        lost = times(2, *path("ask", "charge"), exited("charge", "failed"), flow=PAYMENT, completed=False)
        kept = times(8, *path("ask", "charge", "done"), flow=PAYMENT, completed=True, stop="terminal")
        # 2 of 10 is below 0.3
        found = analysed(tmp_path, *lost, *kept)
        assert (named(found), [end.n for end in found.ends]) == ([], [2])

    def test_one_that_is_entered_is_counted_once(self, tmp_path: Path) -> None:
        found = analysed(tmp_path, *times(4, *path("ask", "failed"), flow=PAYMENT, completed=False))
        assert [(end.state, end.n, end.came_from) for end in found.ends] == [("failed", 4, ("ask (4 of 4)",))]

    def test_an_escalation_that_nobody_declares(self, tmp_path: Path) -> None:
        found = analysed(tmp_path, *times(4, entered("ask"), exited("ask", "escalated"), completed=False))
        assert [(end.state, end.n) for end in found.ends] == [("escalated", 4)]


class TestUnknownOutcomes:
    def test_they_are_in_no_stall_and_told(self, tmp_path: Path) -> None:
        unknown = times(6, *path("greet", "ask"))
        known = times(6, *path("greet", "ask", "done"), completed=True, stop="terminal")
        found = analysed(tmp_path, *unknown, *known)
        assert [(one.state, one.n) for one in found.unknown] == [("ask", 6), ("greet", 6)]
        row = next(row for row in convoscope.states(tmp_path / "run").matrix().rows if row.state == "ask")
        # 12 were in it; of 6 nobody knows how they ended.
        assert (row.n, row.stall.n, row.stall.value, row.unknown) == (12, 6, 0.0, 6)


class TestFinalStates:
    def test_a_last_state_is_not_blamed_where_no_outcome_is_told(self, tmp_path: Path) -> None:
        assert named(analysed(tmp_path, *times(12, *path("greet", "done")))) == []

    def test_nor_where_one_of_many_hangs_up_in_it(self, tmp_path: Path) -> None:
        well = times(19, *path("greet", "done"), completed=True, stop="terminal")
        hung = times(1, *path("greet", "done"), completed=False, stop="hangup")
        assert named(analysed(tmp_path, *well, *hung)) == []

    def test_but_one_in_which_many_get_stuck_is(self, tmp_path: Path) -> None:
        well = times(6, *path("greet", "ask", "done"), completed=True, stop="terminal")
        stuck = times(4, *path("greet", "ask"), completed=False, stop="hangup")
        # 4 of 10
        assert named(analysed(tmp_path, *well, *stuck)) == [("ask", ("stall",))]


class TestEvidence:
    def test_a_guard_that_failed_once_affects_one(self, tmp_path: Path) -> None:
        sound = times(11, *path("ask", "done"), completed=True, stop="terminal")
        broken = call(
            entered("ask"),
            guard("boom"),
            exited("ask", "done"),
            entered("done"),
            id="bad",
            completed=True,
            stop="terminal",
        )
        (cause,) = analysed(tmp_path, *sound, broken).causes
        assert (cause.state, cause.faults, cause.conversations) == ("ask", ("guard_error",), ("bad",))
        assert cause.cost == "no conversation is known to be lost here; 1 of 12 that came are affected"

    def test_only_those_that_got_stuck_are_offered(self, tmp_path: Path) -> None:
        well = times(3, *path("ask", "done"), completed=True, stop="terminal")
        stuck = [call(entered("ask"), turn(900), id=id, completed=False) for id in ("x", "y")]
        (cause,) = analysed(tmp_path, *well, *stuck).causes
        assert sorted(cause.conversations) == ["x", "y"]

    def test_what_would_change_looks_at_those_that_went_on(self, tmp_path: Path) -> None:
        # Six left ask for a state of which nothing more is told: they are stuck in ask. All four others finished.
        stuck = times(6, *path("greet", "ask"), exited("ask", "limbo"), completed=False)
        well = times(4, *path("greet", "ask", "done"), completed=True, stop="terminal")
        (cause,) = analysed(tmp_path, *stuck, *well).causes
        assert cause.state == "ask"
        # 4 of 4 went on to done, so the 6 that stay are missing there, all of them
        assert [(one.state, one.reached, one.missed) for one in cause.starves] == [("done", 4, 6.0)]
        assert cause.if_median[0].endswith("100 % of those that go on get stuck nowhere, so about 6 more would finish")


class TestSlots:
    FLOW = Flow(
        name="f",
        states=(
            FlowState(name="greet"),
            FlowState(name="listen", required_slots=("name",)),
            FlowState(name="done", terminal="success"),
        ),
    )

    def test_a_caller_who_tells_everything_at_once_is_healthy(self, tmp_path: Path) -> None:
        events = [
            entered("greet"),
            filled("name"),
            exited("greet", "listen"),
            entered("listen"),
            exited("listen", "done"),
            entered("done"),
        ]
        found = analysed(tmp_path, *times(12, *events, flow=self.FLOW, completed=True, stop="terminal"))
        assert named(found) == []
        assert [(one.state, one.slot_fill_rate, one.front_loaded) for one in found.front_loaded] == [
            ("listen", 0.0, 12)
        ]

    def test_one_that_stays_and_collects_nothing_is_not(self, tmp_path: Path) -> None:
        stuck = times(5, *path("greet", "listen"), flow=self.FLOW, completed=False)
        well = times(5, *path("greet", "listen", "done"), flow=self.FLOW, completed=True, stop="terminal")
        # stall 0.5; fill 0.0 with progress 0.5, below 0.7
        assert named(analysed(tmp_path, *stuck, *well)) == [("listen", ("stall", "slots"))]


class TestSeveralFlows:
    def test_a_failure_of_one_flow_is_not_one_of_another(self, tmp_path: Path) -> None:
        bad = Flow(name="a", states=(FlowState(name="ask"), FlowState(name="closed", terminal="failure")))
        good = Flow(name="b", states=(FlowState(name="ask"), FlowState(name="closed", terminal="success")))
        found = analysed(
            tmp_path,
            *times(5, *path("ask", "closed"), flow=bad, completed=False),
            *times(5, *path("ask", "closed"), flow=good, completed=True, stop="terminal"),
            *times(5, entered("ask"), flow=good, completed=False, stop="hangup"),
        )
        of_b = next(cause for cause in found.causes if cause.flow == "b")
        # 5 stay, and all 5 that went on came to closed, which is the success of this flow.
        assert [(one.state, one.missed) for one in of_b.starves] == [("closed", 5.0)]
        assert [(end.flow, end.n) for end in found.ends] == [("a", 5)]

    def test_to_fail_again_and_again_is_to_be_lost_once(self, tmp_path: Path) -> None:
        again = call(
            *path("ask", "failed", "ask", "failed", "ask", "failed"), id="again", flow=PAYMENT, completed=False
        )
        well = times(9, *path("ask", "done"), flow=PAYMENT, completed=True, stop="terminal")
        found = analysed(tmp_path, again, *well)
        assert [(end.n, end.came_from) for end in found.ends] == [(1, ("ask (1 of 10)",))]
        assert "failure" not in [fault for _, faults in named(found) for fault in faults]


def test_a_slot_told_first_without_a_state_is_not_lost(tmp_path: Path) -> None:
    events = [
        entered("listen"),
        filled("name", state=NOWHERE),
        filled("name"),
        exited("listen", "done"),
        entered("done"),
    ]
    (row, _) = state_rows(call(*events, flow=TestSlots.FLOW, completed=True))
    assert (row.slots, row.unplaced, row.slot_ready_rate) == ((), ("name",), 1.0)


def test_how_often_a_state_is_entered_again_is_said_in_words(tmp_path: Path) -> None:
    again = path("ask", "charge", "ask", "charge", "done")
    found = analysed(tmp_path, *times(4, *again, flow=PAYMENT, completed=True, stop="terminal"))
    # Each of the four comes to both states twice: once more than it had to.
    words = [evidence.text for cause in found.causes for evidence in cause.evidence if evidence.fault == "revisit"]
    assert words == ["conversations enter it again once on average"] * 2
