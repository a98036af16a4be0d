"""telephony.drop_off_node@states: how far a conversation came through the stages of its flow (standard-data, 2.5)."""

from typing import Any

import pytest
from hypothesis import given

from convoscope.conversation import Conversation, Event, Item, Outcome, Scenario, StateEntered, StateExited
from convoscope.conversation.flow import Flow, FlowState
from convoscope.metrics.flow.aspects import drop_off_node
from convoscope.scores.observation import Observation
from convoscope.scoring.evaluate import evaluate, observe
from support.chats import UNPLACED, agent, chat, user
from support.strategies import json_values

STAGES = ["greeting", "identify", "order", "payment"]


def entered(*states: str) -> list[Event]:
    return [StateEntered(seq=UNPLACED, state=state) for state in states]


def exited(state: str, to: str = "") -> StateExited:
    return StateExited(seq=UNPLACED, state=state, to_state=to)


def only(*events: Event, stages: Any = STAGES, **facts: Any) -> Observation:
    (one,) = observe(drop_off_node, chat(*events, extras={} if stages is None else {"stages": stages}, **facts))
    return one


class TestStages:
    def test_left_half_way(self) -> None:
        one = only(*entered("greeting", "identify"))
        assert one.value == 0.5  # stage 2 of 4
        assert one.details == {
            "node": "identify",
            "reached": ["greeting", "identify"],
            "stages": 4,
            "deepest": "identify",
            "completed": False,
        }

    def test_the_deepest_counts_and_the_last_is_the_node(self) -> None:
        # Back to identify from order: stage 3 was reached.
        one = only(*entered("greeting", "identify", "order", "identify"))
        assert one.details is not None
        assert (one.value, one.details["node"], one.details["deepest"]) == (0.75, "identify", "order")

    def test_the_last_stage_is_all(self) -> None:
        one = only(*entered("greeting", "payment"))
        assert one.details is not None
        assert (one.value, one.details["completed"]) == (1.0, True)

    def test_leaving_for_a_state_is_entering_it(self) -> None:
        one = only(exited("greeting", "identify"), exited("identify", "order"))
        assert one.details is not None
        assert (one.value, one.details["reached"]) == (0.75, ["greeting", "identify", "order"])
        assert only(exited("greeting")).value == 0.25

    def test_other_states_are_no_stages(self) -> None:
        one = only(*entered("greeting", "small_talk"))
        assert one.details is not None
        assert (one.value, one.details["node"]) == (0.25, "small_talk")

    def test_none_of_the_stages(self) -> None:
        one = only(*entered("intro", "farewell"))
        assert (one.status, one.reason) == ("unmeasured", "not_among_stages")
        assert one.detail == "ended in farewell; stages greeting, identify, order, payment"

    def test_spelling(self) -> None:
        assert only(*entered("collect-payment"), stages=["Greeting", "Collect payment"]).value == 1.0

    def test_points(self) -> None:
        conversation = chat(*entered("greeting", "identify", "order"), extras={"stages": STAGES})
        (evaluated,) = evaluate(conversation, [drop_off_node])
        assert evaluated.scores[0].ten == 7.5  # 10 · 3 ÷ 4


class TestWhereStagesAreGiven:
    @pytest.mark.parametrize(
        "facts",
        [
            {"extras": {"stages": STAGES}},
            {"extras": {"metadata": {"stages": STAGES}}},
            {"scenario": Scenario(extras={"stages": STAGES})},
            {"items": (Item(id="1", extras={"context": {"stages": STAGES}}),)},
            {"items": (Item(id="1", extras={"context": "none here", "metadata": {"stages": STAGES}}),)},
            {"extras": {"stages": [{"name": stage, "prompt": "…"} for stage in STAGES]}},
            {"extras": {"stages": [*STAGES, "greeting", "", None, 7]}},  # the first place of a stage is its place
        ],
    )
    def test_are_found(self, facts: dict[str, Any]) -> None:
        (one,) = observe(drop_off_node, chat(*entered("greeting", "identify"), **facts))
        assert one.value == 0.5

    @pytest.mark.parametrize("stages", [None, [], "greeting, order", [1, 2], {"greeting": 1}])
    def test_unknown(self, stages: Any) -> None:
        one = only(*entered("greeting", "order"), stages=stages)
        assert (one.status, one.reason) == ("unmeasured", "stages_unknown")
        assert one.detail == "ended in order, after greeting, order"


class TestNoOrder:
    """Without one, completed conversations alone were measured, so that the figure could only be 1."""

    @pytest.mark.parametrize("completed", [True, False, None])
    def test_neither_is_measured(self, completed: bool | None) -> None:
        one = only(*entered("greeting"), stages=None, outcome=Outcome(completed=completed))
        assert (one.status, one.reason) == ("unmeasured", "stages_unknown")
        one = only(*entered("intro"), outcome=Outcome(completed=completed))
        assert (one.status, one.reason) == ("unmeasured", "not_among_stages")


class TestOrderOfTheFlow:
    """The flow declares its order: ten of twenty that were completed gave 1.000, the others nothing."""

    FLOW = Flow(
        name="booking",
        states=(
            FlowState(name="greet", rank=0.0),
            FlowState(name="ask", rank=1.0),
            FlowState(name="look_up", rank=1.0),
            FlowState(name="book", rank=2.0),
            FlowState(name="done", rank=3.0, terminal="success"),
            FlowState(name="failed", rank=4.0, terminal="failure"),
            FlowState(name="small_talk"),
        ),
    )

    def test_not_completed_is_how_far_it_came(self) -> None:
        # Places: greet 1, ask and look_up 2, book 3, done 4.
        for states, value in {("greet",): 0.25, ("greet", "look_up"): 0.5, ("greet", "book", "failed"): 0.75}.items():
            one = only(*entered(*states), stages=None, flow=self.FLOW, outcome=Outcome(completed=False))
            assert one.value == value

    def test_ten_of_twenty(self) -> None:
        found = [
            only(*entered("greet", "ask"), stages=None, flow=self.FLOW, outcome=Outcome(completed=number % 2 == 0))
            for number in range(20)
        ]
        assert sum(one.value or 0.0 for one in found) / 20 == 0.75  # ten times 1, ten times 2 ÷ 4

    def test_a_state_that_is_no_stage_is_no_way_at_all(self) -> None:
        one = only(*entered("small_talk"), stages=None, flow=self.FLOW)
        assert one.details is not None
        assert (one.value, one.details["deepest"]) == (0.0, None)

    def test_given_stages_come_first(self) -> None:
        assert only(*entered("greet"), stages=["greet"], flow=self.FLOW).value == 1.0


class TestCompleted:
    @pytest.mark.parametrize(
        "outcome",
        [
            Outcome(completed=True),
            Outcome(finished=True, final_status="success"),
            Outcome(final_status="Goal reached"),
        ],
    )
    def test_by_its_own_account(self, outcome: Outcome) -> None:
        one = only(*entered("greeting"), outcome=outcome)
        assert one.details is not None
        assert (one.value, one.details["completed"]) == (1.0, True)

    @pytest.mark.parametrize(
        "outcome",
        [
            Outcome(completed=False, final_status="success"),
            Outcome(finished=True),  # it came to an end, which says nothing of the goal
            Outcome(final_status="timeout"),
        ],
    )
    def test_not(self, outcome: Outcome) -> None:
        assert only(*entered("greeting"), outcome=outcome).value == 0.25

    def test_by_the_last_item_that_says_how_it_ended(self) -> None:
        ends = (Item(id="1", outcome=Outcome(final_status="error")), Item(id="2", outcome=Outcome(completed=True)))
        assert only(*entered("greeting"), items=(*ends, Item(id="3"))).value == 1.0
        assert only(*entered("greeting"), items=ends[::-1]).value == 0.25


class TestNeeds:
    def test_no_states(self) -> None:
        one = only(user("hi"), agent("yes"), outcome=Outcome(completed=True))
        assert (one.status, one.reason) == ("unmeasured", "no_states")

    def test_states_without_a_name(self) -> None:
        assert only(*entered("", " ")).reason == "no_states"


@given(json_values(max_leaves=10))
def test_never_raises(stages: Any) -> None:
    conversation: Conversation = chat(*entered("greeting"), exited("greeting", "x"), extras={"stages": stages})
    (one,) = observe(drop_off_node, conversation)
    assert one.status != "error", one.detail
