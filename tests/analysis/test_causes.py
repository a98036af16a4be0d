"""Why a conversation was lost: the first of some fixed rules that fits, or no single cause."""

from __future__ import annotations

import pytest

from convoscope.analysis.answer.causes import (
    ASKED_AGAIN,
    LOOP,
    MISHEARD,
    NO_REPLY,
    NONE,
    TALKED_OVER,
    TOOL_FAILED,
    TOOL_SLOW,
    cause_of,
)
from convoscope.conversation import Conversation, Event, Outcome, SlotFilled, StateEntered, Time, ToolCall, ToolResult
from support.calls import bot, caller, voice_call
from support.chats import UNPLACED, agent, call, chat, result, user

ASK = "What is your member number?"


def timed_call(name: str, at: float) -> ToolCall:
    return ToolCall(seq=UNPLACED, name=name, call_id=name, time=Time(at, "wall"))


def timed_result(name: str, at: float) -> ToolResult:
    return ToolResult(seq=UNPLACED, name=name, call_id=name, success=True, time=Time(at, "wall"))


def state(name: str) -> StateEntered:
    return StateEntered(seq=UNPLACED, state=name)


class TestTools:
    @pytest.mark.parametrize(("seconds", "rule"), [(5.0, TOOL_SLOW), (4.9, NONE)])
    def test_slow_while_somebody_holds_the_line(self, seconds: float, rule: str) -> None:
        slow = (timed_call("look_up", 10.0), timed_result("look_up", 10.0 + seconds))
        lost = voice_call(caller("Book it.", (0.0, 2.0)), *slow, bot("Hello?", (20.0, 21.0)))
        assert cause_of(lost).rule == rule

    def test_it_says_how_long_and_where(self) -> None:
        lost = voice_call(caller("Book it.", (0.0, 2.0)), timed_call("look_up", 10.0), timed_result("look_up", 22.4))
        symptom = cause_of(lost)
        assert (symptom.subject, symptom.words, symptom.event) == ("look_up", "look_up took 12.4 s", 1)

    def test_a_chat_may_wait_longer(self) -> None:
        slow = (timed_call("look_up", 0.0), timed_result("look_up", 12.0))
        assert cause_of(chat(user("Book it."), *slow, agent("Sorry."))).rule == NONE

    def test_failed_near_the_end(self) -> None:
        lost = chat(user("Book it."), call("book", "1"), result("book", "1", success=False), agent("Sorry."))
        assert cause_of(lost)[:2] == (TOOL_FAILED, "book")

    def test_failed_and_worked_afterwards(self) -> None:
        again = (call("book", "2"), result("book", "2", success=True))
        lost = chat(user("Book it."), call("book", "1"), result("book", "1", success=False), *again, agent("Done."))
        assert cause_of(lost).rule == NONE

    def test_failed_long_before_the_end(self) -> None:
        failed = (call("book", "1"), result("book", "1", success=False), agent("Sorry."))
        later = [event for _ in range(3) for event in (user("Something else."), agent("Fine."))]
        assert cause_of(chat(user("Book it."), *failed, *later)).rule == NONE


class TestAskedAgain:
    def asked(self, *texts: str, between: tuple[Event, ...] = ()) -> Conversation:
        return chat(*(event for text in texts for event in (user("Four."), *between, agent(text))))

    def test_three_times(self) -> None:
        symptom = cause_of(self.asked(ASK, ASK, ASK))
        assert (symptom.rule, symptom.words) == (ASKED_AGAIN, f"asked 3 times: “{ASK}”")
        assert symptom.event == 5  # the third time

    def test_twice_is_not_again_and_again(self) -> None:
        assert cause_of(self.asked(ASK, ASK)).rule == NONE

    def test_give_or_take_a_word(self) -> None:
        # Of six different words, five are shared: 5 ÷ 6 is more than three quarters.
        assert cause_of(
            self.asked(ASK, "Sorry. What is your member number?", "What is your member number now?")
        ).rule == (ASKED_AGAIN)

    def test_what_asks_for_nothing_may_be_said_again(self) -> None:
        assert cause_of(self.asked(*["Your flight leaves at nine today."] * 4)).rule == NONE

    def test_a_tool_that_worked_between_is_progress(self) -> None:
        done = (call("change"), result("change", success=True))
        assert cause_of(self.asked(*["Please confirm with a yes."] * 4, between=done)).rule == NONE

    def test_the_state_it_happens_in(self) -> None:
        lost = chat(state("verify"), *(event for _ in range(3) for event in (user("Four."), agent(ASK))))
        assert cause_of(lost).subject == "verify"

    def test_in_other_words_in_a_state_that_is_not_left(self) -> None:
        """Nothing is filled, no tool works, and the state stays: three requests are one too many."""
        texts = ("How long is your car?", "Your vehicle: what does it measure?", "Please give me a number of metres.")
        turns = [event for text in texts for event in (user("No idea."), agent(text))]
        symptom = cause_of(chat(state("vehicle"), *turns))
        assert symptom[:2] == (ASKED_AGAIN, "vehicle")
        assert symptom.words == "asked 3 times and got nowhere: “How long is your car?”"
        assert cause_of(chat(*turns)).rule == NONE  # without states nobody knows that it is one thing

    def test_a_slot_between_is_progress(self) -> None:
        texts = ("How long is your car?", "And how high is it?", "Please give me your name.")
        slot = SlotFilled(seq=UNPLACED, slot="length", value="4")
        turns = [event for text in texts for event in (user("Four."), slot, agent(text))]
        assert cause_of(chat(state("vehicle"), *turns)).rule == NONE


def test_talked_over_three_times() -> None:
    """The agent begins in the midst and both sound for 3 s, three times."""
    turns = [
        event
        for start in (0.0, 20.0, 40.0)
        for event in (caller("I want to book it.", (start, start + 6)), bot("Sure thing.", (start + 3, start + 9)))
    ]
    assert cause_of(voice_call(*turns)).rule == TALKED_OVER
    assert cause_of(voice_call(*turns[:4])).rule != TALKED_OVER


def test_a_code_is_misheard() -> None:
    lost = voice_call(
        caller("My code is A B C 1 2 3.", (0.0, 4.0), heard="My code is A B C 1 2 8."), bot("I see.", (5.0, 6.0))
    )
    symptom = cause_of(lost)
    assert symptom.rule == MISHEARD
    assert "heard as" in symptom.words


def test_a_code_that_was_put_right_is_no_cause() -> None:
    code = "My code is A B C 1 2 3."
    lost = voice_call(
        caller(code, (0.0, 4.0), heard="My code is A B C 1 2 8."),
        bot("Sorry?", (5.0, 6.0)),
        caller(code, (7.0, 11.0), heard=code),
        bot("I see.", (12.0, 13.0)),
    )
    assert cause_of(lost).rule == NONE


def test_states_gone_round() -> None:
    # ask, check, ask, check, ask: the third time that a state follows the one before last.
    path = [state(name) for name in ("ask", "check", "ask", "check", "ask")]
    assert cause_of(chat(user("Hi."), *path, agent("So."))).rule == LOOP
    assert cause_of(chat(user("Hi."), *path[:4], agent("So."))).rule == NONE


def test_left_without_a_reply() -> None:
    lost = chat(user("Hi."), agent("Hello."), user("Is it booked?"), outcome=Outcome(ended_reason="inactivity_timeout"))
    assert cause_of(lost).rule == NO_REPLY


def test_the_order_is_fixed() -> None:
    """A tool that failed, and the same question three times: the tool comes first."""
    failed = (call("book", "1"), result("book", "1", success=False))
    lost = chat(*(event for _ in range(3) for event in (user("Four."), *failed[:0], agent(ASK))), user("So?"), *failed)
    assert cause_of(lost).rule == TOOL_FAILED


def test_nothing_that_a_rule_knows() -> None:
    assert cause_of(chat(user("Hi."), agent("Hello."))).rule == NONE
    assert cause_of(chat()).rule == NONE
