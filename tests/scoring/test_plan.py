"""What a log supports, said from declarations alone before anything runs (design, idea 3)."""

from typing import Any

import pytest

from convoscope.conversation import Agent, Conversation, Expected, Item, Tool
from convoscope.metrics import CONVERSATION, HIGHER, Derived, Metric, Need, derived, metric
from convoscope.metrics.needs import JUDGE
from convoscope.metrics.registry import installed
from convoscope.scoring.profiles import Missing, Plan, Planned, plan
from support.chats import agent, call, chat, user


def never_called(conversation: Conversation) -> None:
    """What does it ask?

    Nothing: a plan measures nothing.
    """
    pytest.fail("a plan must not measure")


def made(name: str, *needs: Need) -> Metric:
    return metric(name, version=1, observes=CONVERSATION, unit="x", better=HIGHER, needs=needs)(never_called)


def figure(name: str, *inputs: str) -> Derived:
    return derived(name, version=1, over="conversation", unit="x", better=HIGHER, inputs=inputs)(never_called)


def need(code: str, *ids: str, **facts: Any) -> Need:
    """Met by the conversations with these ids."""
    return Need(
        code=code,
        field=f"field.{code}",
        unlock=f"give {code}",
        present=lambda conversation: conversation.id in ids,
        **facts,
    )


A, B, C = (chat(user("hi"), id=name) for name in "abc")


def shipped(*conversations: Conversation) -> dict[str, Planned]:
    return {one.metric: one for one in plan(installed().resolve(), conversations).metrics}


class TestCounting:
    def test_a_metric_without_needs_applies_to_all(self) -> None:
        assert plan([made("test.any")], [A, B, C]) == Plan(3, (Planned("test.any", "What does it ask?", 3, 3),))

    def test_what_is_missing_where_and_what_would_unlock_it(self) -> None:
        (one,) = plan([made("test.gold", need("no_gold", "a"))], [A, B, C]).metrics
        assert (one.conversations, one.applies_to) == (3, 1)
        assert one.missing == (Missing("no_gold", "field.no_gold", "give no_gold", 2, "unmeasured"),)

    def test_what_has_no_opportunity_says_so(self) -> None:
        (one,) = plan([made("test.tools", need("no_tools", status_if_missing="not_applicable"))], [A]).metrics
        assert (one.applies_to, one.missing[0].status) == (0, "not_applicable")

    def test_several_needs_keep_it_silent_for_several_reasons(self) -> None:
        both = made("test.both", need("no_clock", "a", "b"), need("no_gold", "a", "c"))
        (one,) = plan([both], [A, B, C]).metrics
        # a has both, b lacks gold, c lacks a clock
        assert one.applies_to == 1
        assert {each.code: each.conversations for each in one.missing} == {"no_clock": 1, "no_gold": 1}

    def test_metrics_that_share_a_need(self) -> None:
        gold = need("no_gold", "a")
        result = plan([made("test.one", gold), made("test.two", gold)], [A, B])
        assert [(one.applies_to, one.missing[0].conversations) for one in result.metrics] == [(1, 1), (1, 1)]

    def test_a_judge_is_brought_by_the_run(self) -> None:
        asks = [made("test.asks", JUDGE)]
        (without,) = plan(asks, [A]).metrics
        assert (without.applies_to, without.missing[0].code) == (0, "no_judge")
        assert without.missing[0].unlock == "a judge, named by the user"
        (with_judge,) = plan(asks, [A], frozenset({JUDGE.resource})).metrics
        assert (with_judge.applies_to, with_judge.missing) == (1, ())

    def test_no_conversation_is_no_plan(self) -> None:
        result = plan([made("test.any")], [])
        assert (result.conversations, result.ready, result.metrics[0].applies_to) == (0, (), 0)

    def test_the_order_is_that_of_the_metrics(self) -> None:
        names = [one.metric for one in plan([made("test.b"), made("test.a")], [A]).metrics]
        assert names == ["test.b", "test.a"]


class TestReadyAndLocked:
    def test_one_conversation_is_enough_to_be_ready(self) -> None:
        result = plan([made("test.some", need("x", "b")), made("test.none", need("y"))], [A, B, C])
        assert [one.metric for one in result.ready] == ["test.some"]
        assert [one.metric for one in result.locked] == ["test.none"]

    def test_a_derived_figure_is_ready_with_its_inputs(self) -> None:
        gold = made("test.gold", need("no_gold", "a", "b"))
        result = plan([gold, made("test.any"), figure("test.sum", "test.gold", "test.any")], [A, B, C])
        assert [(one.metric, one.applies_to) for one in result.metrics] == [
            ("test.gold", 2),
            ("test.any", 3),
            ("test.sum", 2),  # where both apply
        ]

    def test_and_locked_with_one_of_them(self) -> None:
        locked = made("test.locked", need("no_gold"))
        result = plan([locked, made("test.any"), figure("test.sum", "test.locked", "test.any")], [A])
        assert [one.metric for one in result.locked] == ["test.locked", "test.sum"]

    def test_inputs_that_are_met_in_different_conversations_do_not_meet(self) -> None:
        first, second = made("test.first", need("no_first", "a")), made("test.second", need("no_second", "b", "c"))
        result = plan([first, second, figure("test.sum", "test.first", "test.second")], [A, B, C])
        # a has the one, b and c have the other, and nobody has both
        assert [one.applies_to for one in result.metrics] == [1, 2, 0]
        assert [one.metric for one in result.locked] == ["test.sum"]

    def test_a_derived_figure_on_a_derived_figure_is_counted(self) -> None:
        gold = made("test.gold", need("no_gold", "a", "b"))
        times = made("test.times", need("no_clock", "b", "c"))
        first, second = figure("test.y", "test.gold"), figure("test.x", "test.y", "test.times")
        for order in ([gold, times, first, second], [second, first, times, gold]):
            applies = {one.metric: one.applies_to for one in plan(order, [A, B, C]).metrics}
            # gold in a and b, times in b and c: both in b alone
            assert applies == {"test.gold": 2, "test.times": 2, "test.y": 2, "test.x": 1}

    def test_a_circle_applies_nowhere(self) -> None:
        result = plan([figure("test.x", "test.y"), figure("test.y", "test.x"), made("test.any")], [A])
        assert [one.applies_to for one in result.metrics] == [0, 0, 1]


class TestShipped:
    def test_a_plain_transcript(self) -> None:
        found = shipped(chat(user("hi"), agent("hello")))
        assert {name for name, one in found.items() if one.applies_to} >= {
            "agent.repetition",
            "agent.words_per_turn",
            "conversation.turns",
        }
        missing = {name: found[name].missing for name in found if not found[name].applies_to}
        told = {name: [one.code for one in missing[name]] for name in missing}
        expected = {
            "answer.exact_match": ["no_ground_truth"],
            "answer.f1": ["no_ground_truth"],
            "timing.response_latency": ["no_clock"],
            "tools.calls": ["tools_unknown"],
            "tools.success": ["no_tool_calls"],
            "tools.tool_call_validity": ["no_tool_calls"],
            "tools.tool_call_validity.bad_argument_rate": ["no_tool_calls"],
            "tools.tool_call_validity.missing_argument_rate": ["no_tool_calls"],
            "tools.tool_call_validity.rejected_rate": ["no_tool_calls"],
            "tools.tool_call_validity.unknown_tool_rate": ["no_tool_calls"],
            "judged.faithfulness": ["no_judge"],
        }
        assert {name: told[name] for name in expected} == expected
        assert missing["answer.f1"][0].field == "expected.ground_truth"
        assert "ground_truth" in missing["answer.f1"][0].unlock
        assert "timestamp" in missing["timing.response_latency"][0].unlock

    def test_what_each_field_unlocks(self) -> None:
        truth = chat(user("hi"), agent("hello"), expected=Expected(ground_truth="hello"))
        item = chat(
            user("hi"), agent("hello"), items=(Item(id="q", answered=1, expected=Expected(ground_truth="hello")),)
        )
        timed = chat(user("hi", 1.0), agent("hello", 2.0))
        sound = chat(user("hi", sound=[(0, 1)]), agent("hello", sound=[(2, 3)]))
        tools = chat(user("hi"), agent("hello"), agent=Agent(tools=(Tool(name="book"),)))
        called = chat(user("hi"), call("book"), agent("hello"))
        found = shipped(truth, item, timed, sound, tools, called)
        assert found["answer.f1"].applies_to == 2  # truth, item
        assert found["timing.response_latency"].applies_to == 2  # timed, sound
        assert found["tools.calls"].applies_to == 2  # tools, called
        assert found["tools.success"].applies_to == 1  # called
        assert found["conversation.turns"].applies_to == 6
        assert {one.conversations for one in found.values()} == {6}

    def test_every_metric_that_is_silent_says_what_would_unlock_it(self) -> None:
        empty = plan([one for one in installed().resolve() if isinstance(one, Metric)], [chat()])
        for one in empty.locked:
            assert one.missing
            assert all(each.code and each.unlock for each in one.missing), one.metric
