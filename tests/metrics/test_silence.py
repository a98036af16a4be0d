"""agent.unanswered_turns, agent.ignored_questions, agent.talks_over_user: agents that stay silent, or never stop."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation import Conversation, Outcome, Time, Utterance
from convoscope.metrics.agent import ignored_questions, talks_over_user, unanswered_turns
from convoscope.metrics.declaration import Metric
from convoscope.scoring.evaluate import evaluate, observe
from support.calls import bot, caller, voice_call
from support.chats import agent, call, chat, result, told, user

LEFT = Outcome(ended_reason="goodbye")


def value(metric: Metric, conversation: Conversation) -> float | None:
    (evaluated,) = evaluate(conversation, [metric])
    return evaluated.scores[0].value


class TestUnanswered:
    def test_every_turn_has_a_reply(self) -> None:
        assert value(unanswered_turns, chat(user("hi"), agent("hello"), user("bye"), agent("bye"))) == 0.0

    def test_one_answer_and_nine_ignored_questions(self) -> None:
        """`voice.turn_taking` was 1.000. Nine of ten, and the call ended in silence."""
        again = [caller("Hello?", (10.0 * number, 10.0 * number + 1)) for number in range(1, 10)]
        outcome = Outcome(ended_reason="inactivity_timeout")
        ignored = voice_call(caller("Book it?", (0.0, 4.0)), bot("Done.", (5.0, 6.0)), *again, outcome=outcome)
        assert value(unanswered_turns, ignored) == pytest.approx(0.9)
        assert value(ignored_questions, ignored) == pytest.approx(0.9)

    def test_an_agent_that_never_speaks_answers_nothing_however_it_ended(self) -> None:
        for outcome in (LEFT, Outcome(), Outcome(ended_reason="inactivity_timeout")):
            silent = voice_call(caller("hi", (0.0, 1.0)), caller("bye", (9.0, 10.0)), outcome=outcome)
            assert value(unanswered_turns, silent) == 1.0

    def test_a_tool_call_is_no_reply_but_speech_after_it_is(self) -> None:
        assert value(unanswered_turns, chat(user("hi"), call("find"), agent("found"))) == 0.0
        (first, second) = observe(unanswered_turns, chat(user("hi"), call("find"), user("well?"), agent("found")))
        assert (first.value, first.details) == (1.0, {"text": "hi", "used_tool": True})
        assert second.value == 0.0

    def test_who_is_put_through_to_a_person_is_answered(self) -> None:
        before = (user("hi"), agent("hello"), user("A human?"))
        assert value(unanswered_turns, chat(*before, call("transfer_to_human_agents"))) == 0.0
        assert (
            value(
                ignored_questions,
                chat(*before, call("transfer_to_human_agents", "1"), result(call_id="1", success=False)),
            )
            == 1.0
        )
        assert value(ignored_questions, chat(*before, call("transfer_money"))) == 1.0

    def test_who_goes_on_at_once_is_in_the_same_turn(self) -> None:
        # 3 s between the sounds: one turn. 4 s: two.
        for start, found in ((4.0, [0.0]), (5.0, [1.0, 0.0])):
            said = (caller("I want", (0.0, 1.0)), caller("to book", (start, start + 1)), bot("Done.", (8.0, 9.0)))
            assert [one.value for one in observe(unanswered_turns, voice_call(*said))] == found

    def test_without_times_each_message_is_a_turn(self) -> None:
        assert [one.value for one in observe(unanswered_turns, chat(user("hi"), user("you?"), agent("yes")))] == [1, 0]

    @pytest.mark.parametrize("manner", ["backchannel", "vocal_tic", "non_directed"])
    def test_what_is_not_for_the_agent_is_no_turn(self, manner: str) -> None:
        conversation = chat(user("hi"), agent("hello"), caller("mhm", manner=manner), agent("so"))
        assert told(observe(unanswered_turns, conversation)) == [("utterance 0", 0.0)]
        only = chat(agent("hello"), caller("mhm", manner=manner))
        assert told(observe(unanswered_turns, only)) == [("conversation", "not_applicable: no_user_speech")]

    @pytest.mark.parametrize(
        ("text", "outcome", "last"),
        [
            ("Thanks.", LEFT, 0.0),
            ("Thanks.", Outcome(), "unmeasured: end_unknown"),
            ("Is it booked?", Outcome(), 1.0),
            ("Is it booked?", LEFT, 0.0),
            ("Thanks.", Outcome(ended_reason="inactivity_timeout"), 1.0),
            ("Thanks.", Outcome(ended_reason="goodbye", error="no backend"), 1.0),
        ],
    )
    def test_the_last_turn_is_owed_a_reply_or_not(self, text: str, outcome: Outcome, last: Any) -> None:
        conversation = chat(user("hi"), agent("hello"), user(text), outcome=outcome)
        assert told(observe(unanswered_turns, conversation)) == [("utterance 0", 0.0), ("utterance 2", last)]

    def test_nobody_spoke(self) -> None:
        assert told(observe(unanswered_turns, chat(agent("hello")))) == [
            ("conversation", "not_applicable: no_user_speech")
        ]

    @given(st.lists(st.booleans(), min_size=1, max_size=30))
    def test_as_many_as_have_no_reply(self, replied: list[bool]) -> None:
        events = [event for yes in replied for event in ([user("a"), agent("b")] if yes else [user("a")])]
        conversation = chat(agent("welcome"), *events, user("z"), agent("end"))
        assert value(unanswered_turns, conversation) == pytest.approx(replied.count(False) / (len(replied) + 1))


class TestIgnoredQuestions:
    @pytest.mark.parametrize("text", ["When?", "いつですか？", "متى؟", 'Did you say "when?"', "When? "])
    def test_marks(self, text: str) -> None:
        assert value(ignored_questions, chat(user(text), user("so"), agent("Monday"))) == 1.0

    def test_what_asks_nothing_is_left_out(self) -> None:
        assert value(ignored_questions, chat(user("Book it."), user("When?"), agent("Monday"))) == 0.0
        nothing = chat(user("Book it."), agent("Done."))
        assert told(observe(ignored_questions, nothing)) == [("conversation", "not_applicable: no_question")]


class TestTalksOver:
    def over(self, user_sound: tuple[float, float], *agent_sounds: tuple[float, float], text: str = "Stop.") -> Any:
        spoken: list[Utterance] = [bot("So.", sound) for sound in agent_sounds]
        (found,) = told(observe(talks_over_user, voice_call(*spoken, caller(text, user_sound))))
        return found[1]

    def test_for_95_seconds_over_a_stop(self) -> None:
        """`user_interruption.rate` was 0 and `voice.turn_taking` 1.0."""
        assert self.over((10.0, 11.0), (5.0, 100.0)) == 1.0

    @pytest.mark.parametrize(
        ("sounds", "found"),
        [
            ([(5.0, 12.0)], 0.0),  # 2 s after the user began: just tolerated
            ([(5.0, 12.1)], 1.0),
            ([(11.0, 14.0)], 1.0),  # began in the midst, 3 s of both
            ([(11.0, 12.0), (13.0, 14.0)], 0.0),  # 1 + 1 s
            ([(16.0, 30.0)], 0.0),  # after the user
            ([(1.0, 9.0)], 0.0),
            ([], 0.0),
        ],
    )
    def test_how_long(self, sounds: list[tuple[float, float]], found: float) -> None:
        assert self.over((10.0, 15.0), *sounds) == found

    def test_who_says_okay_wants_no_turn(self) -> None:
        assert self.over((10.0, 11.0), (5.0, 100.0), text="Mhm, okay.") == "not_applicable: backchannel"

    def test_without_sound(self) -> None:
        assert told(observe(talks_over_user, chat(user("hi"), agent("yes")))) == [
            ("conversation", "unmeasured: no_sound")
        ]
        some = voice_call(caller("hi", (0.0, 1.0)), bot("yes", (2.0, 3.0)), caller("and then"))
        assert told(observe(talks_over_user, some))[-1] == ("utterance 2", "unmeasured: no_sound")


def test_times_of_messages_part_turns_too() -> None:
    """A chat with a clock: two messages within 4 s are one turn."""
    said = [caller("hi", time=Time(0.0, "wall")), caller("you?", time=Time(3.0, "wall")), bot("yes")]
    assert [one.value for one in observe(unanswered_turns, chat(*said))] == [0.0]
