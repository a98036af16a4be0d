"""Signs that a conversation goes wrong: giving up, pushback, effort, errors that stay, calls that repeat."""

from __future__ import annotations

import pytest

from convoscope.conversation import Conversation, ToolCall, ToolResult
from convoscope.metrics.signs import declined, effort, pushback, repeated_calls, unrecovered_errors
from convoscope.scoring.evaluate import observe
from support.chats import UNPLACED, agent, call, chat, result, told, user

HANDS_OVER = "transfer_to_human_agents"


def value(metric: object, conversation: Conversation) -> float | str:
    ((_, only),) = told(observe(metric, conversation))  # type: ignore[arg-type]
    return only


class TestDeclined:
    def test_hands_over_and_did_nothing(self) -> None:
        conversation = chat(user("cancel it"), call(HANDS_OVER), result(HANDS_OVER), agent("Please hold."))
        assert value(declined, conversation) == 1

    @pytest.mark.parametrize(
        "words",
        [
            "I’m sorry, that is not possible.",
            "Unfortunately, this ticket is final.",
            "I am unable to change it.",
            "We cannot do that.",
            "I will be transferring you to a colleague.",
        ],
    )
    def test_declines_in_the_end(self, words: str) -> None:
        assert value(declined, chat(user("cancel it"), agent(words))) == 1
        assert value(declined, chat(user("cancel it"), agent(words), user("ok"), agent("Goodbye."))) == 1

    def test_what_was_declined_long_ago_is_not_the_end(self) -> None:
        conversation = chat(
            user("cancel it"),
            agent("I cannot do that."),
            user("then move it"),
            agent("To when?"),
            user("May"),
            agent("Done."),
        )
        assert value(declined, conversation) == 0

    def test_who_did_something_did_not_give_up(self) -> None:
        done = [call("cancel_reservation"), result("cancel_reservation")]
        assert value(declined, chat(user("cancel it"), *done, agent("I'm sorry to see you go."))) == 0

    def test_looking_is_not_doing_and_a_failed_action_neither(self) -> None:
        looked = [call("get_reservation"), result("get_reservation")]
        failed = [call("cancel_reservation"), result("cancel_reservation", error="too late")]
        assert value(declined, chat(user("cancel it"), *looked, *failed, agent("I'm sorry."))) == 1
        unknown = [call("cancel_reservation")]  # the log has no result
        assert value(declined, chat(user("cancel it"), *unknown, agent("I'm sorry."))) == 1

    def test_an_ordinary_end(self) -> None:
        assert value(declined, chat(user("when?"), agent("At nine."))) == 0

    def test_the_evidence_is_what_was_said_or_called(self) -> None:
        (observation,) = declined(chat(user("cancel it"), agent("Sorry, but I cannot do that.")))
        assert observation.details == {"sign": "i cannot"}


class TestPushback:
    @pytest.mark.parametrize(
        "words",
        [
            "That's not what I asked.",
            "No, I want the other one.",
            "I already told you my name.",
            "Are you sure?",
            "This is wrong",
            "It doesn’t work.",
        ],
    )
    def test_an_objection(self, words: str) -> None:
        conversation = chat(user("hi"), agent("hello"), user(words), agent("ok"))
        assert told(observe(pushback, conversation)) == [
            ("turn 1", "not_applicable: nothing_to_object_to"),
            ("turn 2", 1.0),
        ]

    @pytest.mark.parametrize(
        "words", ["No, that's all.", "No thanks", "No, I don't.", "Yes, that is right.", "Two, please."]
    )
    def test_an_answer_is_none(self, words: str) -> None:
        assert told(observe(pushback, chat(user("hi"), agent("hello"), user(words)))) == [
            ("turn 1", "not_applicable: nothing_to_object_to"),
            ("turn 2", 0.0),
        ]

    def test_asking_for_the_same_again(self) -> None:
        # 6 words of the second are among the 7 of both together: 6 ÷ 7 is more than 0.6
        conversation = chat(
            user("I want to cancel my flight"), agent("Why?"), user("I just want to cancel my flight"), agent("ok")
        )
        assert [one for _, one in told(observe(pushback, conversation))][1:] == [1.0]

    def test_other_words_are_another_request(self) -> None:
        # of "i want to cancel my flight" and "i want to book a hotel" three of nine words are shared
        conversation = chat(
            user("I want to cancel my flight"), agent("Done."), user("I want to book a hotel"), agent("ok")
        )
        assert [one for _, one in told(observe(pushback, conversation))][1:] == [0.0]


class TestEffort:
    def test_counts_the_words_of_the_user(self) -> None:
        # hi, a table; a sign that is no word does not count
        assert (
            value(effort, chat(agent("hello"), user("hi"), agent("yes?"), user("a table"), agent("ok"), user("…"))) == 3
        )


class TestUnrecoveredErrors:
    def test_a_tool_that_works_later_has_recovered(self) -> None:
        conversation = chat(
            *(call("book"), result("book", error="busy"), call("book"), result("book")),
            *(call("pay"), result("pay", error="declined"), call("ship"), result("ship")),
        )
        # book failed and then worked; pay failed and was never called again; ship worked
        (observation,) = unrecovered_errors(conversation)
        assert (observation.value, observation.details) == (1, {"tools": ["pay"]})

    def test_one_that_fails_after_it_worked_has_not(self) -> None:
        events = [call("book"), result("book"), call("book"), result("book", success=False)]
        assert value(unrecovered_errors, chat(*events)) == 1

    def test_a_call_without_a_result_tells_nothing(self) -> None:
        assert value(unrecovered_errors, chat(call("book"))) == "unmeasured: no_tool_result"
        assert value(unrecovered_errors, chat(call("book"), result("book", error="busy"), call("book"))) == 1


def asked(name: str, answer: object, **arguments: object) -> list[ToolCall | ToolResult]:
    return [
        ToolCall(seq=UNPLACED, name=name, arguments=arguments, call_id=""),
        ToolResult(seq=UNPLACED, name=name, result=answer),
    ]


class TestRepeatedCalls:
    def test_the_same_question_with_the_same_answer(self) -> None:
        conversation = chat(*asked("search", [], day=1), *asked("search", [], day=1), *asked("search", [], day=2))
        assert [one for _, one in told(observe(repeated_calls, conversation))] == [0.0, 1.0, 0.0]

    def test_the_order_of_arguments_does_not_matter(self) -> None:
        conversation = chat(*asked("search", [], day=1, to="x"), *asked("search", [], to="x", day=1))
        assert [one for _, one in told(observe(repeated_calls, conversation))] == [0.0, 1.0]

    def test_asking_until_the_answer_changes_is_no_loop(self) -> None:
        conversation = chat(*asked("status", "waiting"), *asked("status", "done"))
        assert [one for _, one in told(observe(repeated_calls, conversation))] == [0.0, 0.0]
