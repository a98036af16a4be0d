"""outcome.conversation_correctly_finished and outcome.conversation_valid_end (voice logs, 1.4 and 1.5)."""

from typing import Any

import pytest

from convoscope.conversation import Conversation, Outcome, Scenario
from convoscope.metrics.outcome.endings import (
    conversation_correctly_finished,
    conversation_correctly_finished_eva,
    conversation_valid_end,
)
from convoscope.scoring.evaluate import observe
from support.calls import bot, caller, simulated, voice_call
from support.chats import agent, chat, told, user

GOODBYE = simulated("connection_state", {"state": "session_ended", "details": {"reason": "goodbye"}})
BROKE = simulated("connection_state", {"state": "session_ended", "details": {"reason": "error"}})


def ended(reason: str, *, by_user: bool, log: tuple = (), **facts: Any) -> Conversation:
    """The user asks, the agent replies; and the user, if it is the last to speak, asks again."""
    again = [caller("hello?", (4.0, 5.0))] if by_user else []
    said = [caller("hi", (0.0, 1.0)), bot("yes?", (2.0, 3.0)), *again]
    return voice_call(*said, outcome=Outcome(ended_reason=reason), log=log, **facts)


class TestCorrectlyFinished:
    @pytest.mark.parametrize(
        ("reason", "by_user", "value"),
        [
            ("inactivity_timeout", True, 0.0),
            ("Inactivity Timeout", True, 0.0),
            ("inactivity_timeout", False, 1.0),  # the user fell silent
            ("goodbye", True, 1.0),
            ("time_limit_exceeded", True, 1.0),
        ],
    )
    def test_only_an_answer_that_was_owed_is_a_fault(self, reason: str, by_user: bool, value: float) -> None:
        for metric in (conversation_correctly_finished, conversation_correctly_finished_eva):
            (one,) = observe(metric, ended(reason, by_user=by_user))
            assert (one.value, one.details) == (value, {"ended_reason": reason})

    @pytest.mark.parametrize("reason", ["error", "integration_error", "agent crashed"])
    def test_an_integration_that_breaks_does_not_finish_correctly(self, reason: str) -> None:
        """It did, and does by the published rule."""
        greeted = voice_call(bot("Welcome!", (0.0, 1.0)), outcome=Outcome(ended_reason=reason))
        (one,) = observe(conversation_correctly_finished, greeted)
        assert (one.value, one.details) == (0.0, {"ended_reason": reason, "fault": "integration_broke"})
        assert told(observe(conversation_correctly_finished_eva, greeted)) == [("conversation", 1.0)]

    def test_an_agent_that_never_spoke_does_not_finish_correctly(self) -> None:
        """Five such calls gave 100 %, and do by the published rule."""
        silent = voice_call(caller("hi", (0.0, 1.0)), outcome=Outcome(ended_reason="goodbye"))
        (one,) = observe(conversation_correctly_finished, silent)
        assert (one.value, one.details) == (0.0, {"ended_reason": "goodbye", "fault": "agent_never_spoke"})
        assert told(observe(conversation_correctly_finished_eva, silent)) == [("conversation", 1.0)]

    def test_without_a_reason_it_is_unmeasured(self) -> None:
        conversation = ended("", by_user=True)
        assert told(observe(conversation_correctly_finished, conversation)) == [
            ("conversation", "unmeasured: no_ended_reason")
        ]

    def test_without_sound_nobody_knows_who_was_last(self) -> None:
        conversation = voice_call(caller("hi"), bot("yes?"), outcome=Outcome(ended_reason="inactivity_timeout"))
        assert told(observe(conversation_correctly_finished, conversation)) == [
            ("conversation", "unmeasured: no_sound")
        ]
        other = voice_call(caller("hi"), bot("yes?"), outcome=Outcome(ended_reason="goodbye"))
        assert told(observe(conversation_correctly_finished, other)) == [("conversation", 1.0)]

    def test_an_agent_that_never_spoke_owed_an_answer(self) -> None:
        conversation = voice_call(caller("hi", (0.0, 1.0)), outcome=Outcome(ended_reason="inactivity_timeout"))
        assert told(observe(conversation_correctly_finished, conversation)) == [("conversation", 0.0)]


class TestValidEnd:
    @pytest.mark.parametrize(
        ("reason", "by_user", "log", "value", "end"),
        [
            ("goodbye", False, (simulated("user_speech"), GOODBYE), 1.0, "goodbye"),
            ("", False, (GOODBYE,), 1.0, "goodbye"),
            ("goodbye", False, (GOODBYE, simulated("audio_end")), 0.0, "audio_end"),  # the last line decides
            ("error", True, (BROKE,), 0.0, "connection_state"),
            ("inactivity_timeout", True, (BROKE,), 1.0, "agent_timed_out"),
            ("inactivity_timeout", False, (BROKE,), 0.0, "connection_state"),
            ("inactivity_timeout", True, (), 1.0, "agent_timed_out"),
        ],
    )
    def test_a_goodbye_or_an_agent_that_timed_out(
        self, reason: str, by_user: bool, log: tuple, value: float, end: str
    ) -> None:
        (one,) = observe(conversation_valid_end, ended(reason, by_user=by_user, log=log))
        assert (one.value, one.details) == (value, {"end": end})

    @pytest.mark.parametrize("value", [None, "goodbye", {}, {"details": None}, {"details": {"reason": None}}])
    @pytest.mark.parametrize(
        ("reason", "said"), [("goodbye", 1.0), ("error", 0.0), ("", "unmeasured: no_ended_reason")]
    )
    def test_a_log_that_does_not_say_why_it_ended(self, value: Any, reason: str, said: Any) -> None:
        # The reason that the call itself gives stands for it.
        conversation = ended(reason, by_user=False, log=(simulated("connection_state", value),))
        assert told(observe(conversation_valid_end, conversation)) == [("conversation", said)]

    def test_a_log_that_breaks_off_after_a_goodbye_of_the_call(self) -> None:
        conversation = ended("goodbye", by_user=False, log=(simulated("user_speech"), simulated("audio_end")))
        assert told(observe(conversation_valid_end, conversation)) == [("conversation", 1.0)]

    def test_without_the_log_of_the_simulator_it_is_unmeasured(self) -> None:
        conversation = ended("goodbye", by_user=False, scenario=Scenario(goal="Book it."))
        assert told(observe(conversation_valid_end, conversation)) == [("conversation", "unmeasured: no_simulator_log")]

    def test_a_call_of_a_person_is_not_simulated(self) -> None:
        assert told(observe(conversation_valid_end, ended("goodbye", by_user=False))) == [
            ("conversation", "not_applicable: no_simulator")
        ]

    def test_timed_out_and_no_sound(self) -> None:
        conversation = voice_call(
            caller("hi"), bot("yes?"), log=(BROKE,), outcome=Outcome(ended_reason="inactivity_timeout")
        )
        assert told(observe(conversation_valid_end, conversation)) == [("conversation", "unmeasured: no_sound")]

    def test_a_chat_is_no_call(self) -> None:
        assert told(observe(conversation_valid_end, chat(user("hi"), agent("yes")))) == [
            ("conversation", "not_applicable: not_a_call")
        ]
