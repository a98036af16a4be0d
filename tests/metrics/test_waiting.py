"""Metrics that wait for something: a coroutine or an asynchronous generator, run to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

import convoscope.views
from convoscope.conversation import Conversation
from convoscope.metrics import (
    CONVERSATION,
    HIGHER,
    TURN,
    Metric,
    Observation,
    derived,
    measured,
    metric,
)
from convoscope.metrics.items import awaited
from convoscope.scoring.batch import Batch
from convoscope.scoring.evaluate import observe
from convoscope.scoring.session import Session
from convoscope.views import MetricContext
from convoscope.views.standard_data import StandardData
from support.chats import agent, chat, told, user

TWO_TURNS = chat(user("hi"), agent("hello"), user("thanks"), agent("bye"))


def declared(function: Any, **facts: Any) -> Metric:
    return metric("test.waits", **{"version": 1, "observes": CONVERSATION, "unit": "x", "better": HIGHER} | facts)(
        function
    )


async def one(conversation: Conversation) -> Observation:
    """How many turns are there, by and by?"""
    await asyncio.sleep(0)
    return measured(conversation, len(conversation.turns))


async def several(conversation: Conversation) -> AsyncIterator[Observation]:
    """How long is each turn, by and by?"""
    for turn in conversation.turns:
        await asyncio.sleep(0)
        yield measured(turn, len(turn.user_text))


async def listed(conversation: Conversation) -> list[Observation]:
    """How long is each turn, all at once?"""
    return [measured(turn, len(turn.user_text)) for turn in conversation.turns]


async def breaks(conversation: Conversation) -> Observation:
    """What goes wrong on the way?"""
    await asyncio.sleep(0)
    raise RuntimeError("the line is down")


class TestAMetric:
    def test_may_be_a_coroutine(self) -> None:
        assert told(declared(one)(TWO_TURNS)) == [("conversation", 2.0)]

    @pytest.mark.parametrize("function", [several, listed])
    def test_may_give_several_observations(self, function: Any) -> None:
        found = declared(function, observes=TURN)(TWO_TURNS)
        assert told(found) == [("turn 1", 2.0), ("turn 2", 6.0)]  # hi, thanks

    def test_that_breaks_while_it_waits_has_an_error_for_a_score(self) -> None:
        (found,) = observe(declared(breaks), TWO_TURNS)
        assert (found.status, found.reason, found.detail) == (
            "error",
            "metric_raised",
            "RuntimeError: the line is down",
        )

    @pytest.mark.parametrize("function", [one, several, listed])
    def test_can_be_called_inside_a_running_loop_as_in_a_notebook(self, function: Any) -> None:
        async def notebook() -> tuple[Observation, ...]:
            return declared(function, observes=TURN)(TWO_TURNS)

        assert asyncio.run(notebook()) == declared(function, observes=TURN)(TWO_TURNS)

    def test_that_breaks_inside_a_running_loop_raises_the_same(self) -> None:
        async def notebook() -> tuple[Observation, ...]:
            return declared(breaks)(TWO_TURNS)

        with pytest.raises(RuntimeError, match="the line is down"):
            asyncio.run(notebook())


@pytest.mark.parametrize("value", [None, 3, [1, 2], "text", iter([])])
def test_what_need_not_be_waited_for_is_given_as_it_is(value: Any) -> None:
    assert awaited(value) is value


# A metric that takes a `MetricContext` says so by the annotation of its first parameter. In this
# module annotations are text, as they are wherever they are evaluated late.


def by_text(context: MetricContext) -> Observation:
    """How many turns has the context?"""
    return measured(context, context.num_turns)


async def by_text_waiting(context: MetricContext) -> Observation:
    """How many turns has the context, by and by?"""
    await asyncio.sleep(0)
    return by_text(context)


async def by_text_each(context: MetricContext) -> AsyncIterator[Observation]:
    """How many turns has the context, one by one?"""
    yield by_text(context)


def by_whole_name(context: convoscope.views.MetricContext) -> Observation:
    """How many turns has the context, called by its whole name?"""
    return by_text(context)


def by_class(context: Any) -> Observation:
    """How many turns has the context, asked for with the class itself?"""
    return by_text(context)


by_class.__annotations__["context"] = MetricContext


class TestAMetricOfAContext:
    @pytest.mark.parametrize("function", [by_text, by_text_waiting, by_text_each, by_whole_name, by_class])
    def test_gets_one(self, function: Any) -> None:
        asks = declared(function)
        assert asks.view.type.endswith(".MetricContext")
        assert [one.value for one in asks(TWO_TURNS)] == [2.0]
        assert [one.value for one in observe(asks, TWO_TURNS)] == [2.0]

    @pytest.mark.parametrize("function", [one, lambda conversation: [], lambda: None])
    def test_others_do_not(self, function: Any) -> None:
        function.__doc__ = "What?"
        assert declared(function).view.type.endswith(".Conversation")

    def test_the_context_is_made_once_for_a_conversation(self) -> None:
        seen: list[MetricContext] = []

        def keeps(context: MetricContext) -> Observation:
            """Which context is it?"""
            seen.append(context)
            return by_text(context)

        talk = chat(user("hi"))
        declared(keeps)(talk)
        declared(keeps)(talk)
        assert seen[0] is seen[1]


class TestManyConversations:
    """Answers come in any order; what is made of them does not depend on it."""

    def test_the_columns_are_in_the_order_of_the_rows(self) -> None:
        async def late(conversation: Conversation) -> Observation:
            """What is the number in its id? The first ones wait longest."""
            await asyncio.sleep(0.02 / (1 + int(conversation.id)))
            if conversation.id == "3":
                raise RuntimeError("three is too much")
            return measured(conversation, int(conversation.id))

        @derived("test.twice", version=1, over="conversation", unit="x", better=HIGHER, inputs=("test.waits",))
        def twice(value: float) -> float:
            """Twice of it."""
            return 2 * value

        session = Session(max_concurrency=3)
        batch = Batch([declared(late), twice], session)
        for number in range(7):
            batch.add(msgspec.structs.replace(TWO_TURNS, id=str(number)))
        waited, doubled = batch.columns()
        session.close()
        assert waited.observed.row.tolist() == list(range(7))
        values = [
            value for value, status in zip(waited.reduced.value, waited.reduced.status, strict=True) if not status
        ]
        assert values == [0, 1, 2, 4, 5, 6]
        assert waited.observed.detail[3] == "RuntimeError: three is too much"
        # 2 · 6; of the third nothing was measured
        assert (doubled.reduced.value.tolist()[-1], doubled.reduced.reason[3]) == (12.0, "input_metric_raised")

    def test_a_metric_of_items_is_asked_item_by_item(self) -> None:
        async def length(item: StandardData) -> float:
            """How long is the answer, by and by?"""
            await asyncio.sleep(0)
            return len(item.agent_response or "")

        session = Session()
        batch = Batch([declared(length, observes="item")], session)
        batch.add(TWO_TURNS)
        (found,) = batch.columns()
        session.close()
        assert found.reduced.value.tolist() == [3.0]  # bye

    def test_one_that_is_cancelled_from_within_has_an_error(self) -> None:
        async def gives_up(conversation: Conversation) -> Observation:
            """Who cancels?"""
            raise asyncio.CancelledError("the client gave up")

        session = Session()
        batch = Batch([declared(gives_up)], session)
        batch.add(TWO_TURNS)
        (found,) = batch.columns()
        session.close()
        assert found.observed.detail[0] == "CancelledError: the client gave up"
