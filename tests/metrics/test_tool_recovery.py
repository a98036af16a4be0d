"""tools.unrecovered_errors and tools.repeated_calls: errors that stay, calls that repeat."""

from convoscope.conversation import Conversation, ToolCall, ToolResult
from convoscope.metrics.tools.calls import repeated_calls, unrecovered_errors
from convoscope.scoring.evaluate import observe
from support.chats import UNPLACED, call, chat, result, told


def errors(conversation: Conversation) -> float | str:
    ((_, only),) = told(observe(unrecovered_errors, conversation))
    return only


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
        assert errors(chat(*events)) == 1

    def test_a_call_without_a_result_tells_nothing(self) -> None:
        assert errors(chat(call("book"))) == "unmeasured: no_tool_result"
        assert errors(chat(call("book"), result("book", error="busy"), call("book"))) == 1

    def test_a_result_that_does_not_say_is_no_recovery(self) -> None:
        """30 times `queued` counted as no error."""
        queued = [call("book"), result("book", result="queued")]
        assert errors(chat(*queued)) == "unmeasured: tool_result_says_neither"
        assert errors(chat(call("book"), result("book", result=[]))) == "unmeasured: tool_found_nothing"
        # pay worked, and of book it is not known
        assert errors(chat(call("pay"), result("pay"), *queued)) == "unmeasured: tool_result_says_neither"
        # pay failed: one error is known to stay, whatever came of book
        assert errors(chat(call("pay"), result("pay", error="declined"), *queued)) == 1
        # book said nothing at first, and then worked
        assert errors(chat(*queued, call("book"), result("book"))) == 0


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
