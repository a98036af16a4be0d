"""timing.*: how long things take."""

import pytest

from convoscope.conversation import Clock, Outcome
from convoscope.metrics.latency.response import response_latency
from convoscope.scoring.evaluate import observe
from support.chats import AUDIO, WALL, agent, chat, told, user


class TestResponseLatency:
    def test_from_the_message_of_the_user_to_the_reply(self) -> None:
        conversation = chat(user("hi", 10.0), agent("hello", 11.5), user("bye", 20.0), agent("bye", 20.25))
        # 11.5 − 10, 20.25 − 20
        assert told(observe(response_latency, conversation)) == [("turn 1", 1.5), ("turn 2", 0.25)]

    def test_a_message_that_lasts_ends_when_it_ends(self) -> None:
        conversation = chat(user("hi", 10.0, until=12.0), agent("hello", 12.5, until=15.0))
        assert told(observe(response_latency, conversation)) == [("turn 1", 0.5)]  # 12.5 − 12

    def test_last_words_of_the_user_to_first_words_of_the_agent(self) -> None:
        conversation = chat(user("hi", 1.0), user("still there?", 5.0), agent("yes", 7.0), agent("I am", 9.0))
        assert told(observe(response_latency, conversation)) == [("turn 1", 2.0)]  # 7 − 5

    def test_the_sound_counts_where_there_is_sound(self) -> None:
        conversation = chat(
            user("hi, I need help", 100.0, sound=[(0.0, 1.0), (1.4, 2.0)]),
            agent("sure, what is it?", 200.0, sound=[(2.7, 3.0), (3.5, 4.0)]),
        )
        # From the end of the last segment to the start of the first: 2.7 − 2.0, not 200 − 100.
        assert told(observe(response_latency, conversation)) == [("turn 1", pytest.approx(0.7))]

    def test_segments_need_not_come_in_order(self) -> None:
        conversation = chat(user("hi", sound=[(1.5, 2.0), (0.0, 1.0)]), agent("yes", sound=[(4.0, 5.0), (2.5, 3.0)]))
        assert told(observe(response_latency, conversation)) == [("turn 1", 0.5)]  # 2.5 − 2.0

    def test_no_wait_at_all_is_a_real_zero_beside_others(self) -> None:
        conversation = chat(user("hi", 2.0), agent("yes", 2.0), user("so", 3.0), agent("no", 4.0))
        assert told(observe(response_latency, conversation)) == [("turn 1", 0.0), ("turn 2", 1.0)]
        sounded = chat(user("hi", sound=[(0.0, 2.0)]), agent("yes", sound=[(2.0, 3.0)]))
        assert told(observe(response_latency, sounded)) == [("turn 1", "unmeasured: clock_without_resolution")]

    def test_messages_that_all_have_the_time_of_their_reply_tell_no_wait(self) -> None:
        """They gave 0.00 s with a coverage of 100 %."""
        for later in (2.0, 9.0):
            conversation = chat(user("hi", 2.0), agent("yes", 2.0), user("so", later), agent("no", later))
            reason = "unmeasured: clock_without_resolution"
            assert told(observe(response_latency, conversation)) == [("turn 1", reason), ("turn 2", reason)]


class TestClocks:
    def test_sound_of_one_and_message_time_of_the_other_do_not_relate(self) -> None:
        conversation = chat(user("hi", sound=[(0.0, 1.0)]), agent("hello", 1000.0))
        (one,) = observe(response_latency, conversation)
        assert (one.status, one.value, one.reason) == ("unmeasured", None, "clocks_unrelated")
        assert one.detail == "audio and wall"

    def test_unless_both_clocks_say_how(self) -> None:
        # Sound second 0 was wall second 998: the user ended at 998 + 1 = 999, the reply came at 1000.
        clocks = (Clock(id="wall", kind="wall", offset=0.0), Clock(id="audio", kind="audio", offset=998.0))
        conversation = chat(user("hi", sound=[(0.0, 1.0)]), agent("hello", 1000.0), clocks=clocks)
        assert told(observe(response_latency, conversation)) == [("turn 1", 1.0)]

    def test_one_offset_alone_is_not_enough(self) -> None:
        clocks = (WALL, Clock(id="audio", kind="audio", offset=998.0))
        conversation = chat(user("hi", sound=[(0.0, 1.0)]), agent("hello", 1000.0), clocks=clocks)
        assert told(observe(response_latency, conversation)) == [("turn 1", "unmeasured: clocks_unrelated")]

    def test_two_services_with_clocks_of_their_own(self) -> None:
        clocks = (WALL, AUDIO, Clock(id="client", kind="wall"))
        conversation = chat(user("hi", 3.0, clock="client"), agent("hello", 4.0), clocks=clocks)
        assert told(observe(response_latency, conversation)) == [("turn 1", "unmeasured: clocks_unrelated")]


class TestFalseStarts:
    """Speech detection opens an utterance, and nobody speaks."""

    @pytest.mark.parametrize("nothing", ["", "  ", "\n"])
    def test_one_of_the_user_after_the_reply_changes_nothing(self, nothing: str) -> None:
        once = [user("hi", 1.0), agent("yes", 3.0)]
        for conversation in (chat(*once), chat(*once, user(nothing, 9.0))):
            assert told(observe(response_latency, conversation)) == [("turn 1", 2.0)]  # 3 − 1

    def test_nor_between_two_replies(self) -> None:
        conversation = chat(user("hi", 1.0), agent("yes", 3.0), user("", 4.0), agent("and?", 5.0))
        assert told(observe(response_latency, conversation)) == [("turn 1", 2.0)]  # 3 − 1, not 5 − 4

    def test_nor_between_question_and_reply(self) -> None:
        conversation = chat(user("hi", 1.0), user("", 2.5), agent("yes", 3.0))
        assert told(observe(response_latency, conversation)) == [("turn 1", 2.0)]  # 3 − 1, not 3 − 2.5

    def test_one_of_the_agent_is_not_its_first_words(self) -> None:
        conversation = chat(user("hi", 1.0), agent("", 1.5), agent("yes", 4.0))
        assert told(observe(response_latency, conversation)) == [("turn 1", 3.0)]  # 4 − 1, not 1.5 − 1

    def test_alone_it_is_no_reply(self) -> None:
        conversation = chat(user("hi", 1.0), agent("", 1.5))
        assert told(observe(response_latency, conversation)) == [("turn 1", "unmeasured: no_reply")]


class TestEmptyCases:
    def test_turns_without_a_user_or_of_a_user_who_left_are_not_applicable(self) -> None:
        said = (agent("welcome", 0.0), user("hi", 1.0), agent("yes", 2.0), user("bye", 3.0))
        conversation = chat(*said, outcome=Outcome(ended_reason="goodbye"))
        assert told(observe(response_latency, conversation)) == [
            ("turn 0", "not_applicable: no_user_speech"),
            ("turn 1", 1.0),
            ("turn 2", "not_applicable: user_left"),
        ]

    def test_a_reply_that_begins_before_the_user_has_ended_is_not_applicable(self) -> None:
        conversation = chat(user("I would like", sound=[(0.0, 3.0)]), agent("Yes?", sound=[(2.0, 4.0)]))
        assert told(observe(response_latency, conversation)) == [("turn 1", "not_applicable: agent_interrupted")]

    def test_a_reply_dated_before_the_question_is_a_fault_of_the_log(self) -> None:
        (one,) = observe(response_latency, chat(user("hi", 5.0), agent("hello", 3.5)))
        # Nobody can reply to a message that is not written yet: 3.5 − 5 = −1.5.
        assert (one.status, one.value, one.reason) == ("unmeasured", None, "time_runs_backwards")
        assert "1.5 s" in one.detail

    def test_so_is_one_that_begins_before_the_message_ends(self) -> None:
        conversation = chat(user("I would like", 2.0, until=5.0), agent("Yes?", 4.0))
        assert told(observe(response_latency, conversation)) == [("turn 1", "not_applicable: agent_interrupted")]

    def test_turns_without_times_are_unmeasured(self) -> None:
        conversation = chat(
            user("hi"), agent("yes", 2.0), user("more", 3.0), agent("sure"), user("bye", 5.0), agent("bye", 6.0)
        )
        assert told(observe(response_latency, conversation)) == [
            ("turn 1", "unmeasured: no_clock"),
            ("turn 2", "unmeasured: no_clock"),
            ("turn 3", 1.0),
        ]

    def test_a_log_without_any_clock(self) -> None:
        conversation = chat(user("hi"), agent("yes"))
        assert told(observe(response_latency, conversation)) == [("conversation", "unmeasured: no_clock")]

    def test_a_log_without_a_user(self) -> None:
        conversation = chat(agent("welcome", 1.0))
        assert told(observe(response_latency, conversation)) == [("conversation", "not_applicable: no_user_speech")]
