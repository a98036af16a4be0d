"""The published fixtures' reading of a call, record by record: given these logs, this is what is told.

Every expectation is derived by hand from the steps of the specification of voice logs; the numbers
in the comments are its sections.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation.events import Logged
from convoscope.views.eva import EvaReading, read_eva
from support.eva_calls import (
    GREETING,
    SOURCES,
    calls,
    caught,
    ends,
    hangs_up,
    hears,
    log,
    means,
    read,
    replies,
    reply,
    says,
    speaks,
    starts,
    trace,
)


class TestTurns:
    def test_greeting_is_turn_0_and_a_user_and_the_reply_share_one(self) -> None:
        told = read(*GREETING, *says("Hi there.", "hi there"), *reply("What is it?"), *says("Bye."), hangs_up())
        assert told.intended_assistant_turns == {0: "Hello.", 1: "What is it?"}
        assert told.transcribed_assistant_turns == {0: "Hello.", 1: "What is it?"}
        assert told.intended_user_turns == {1: "Hi there.", 2: "Bye."}
        assert told.transcribed_user_turns == {1: "hi there", 2: "Bye."}
        assert told.conversation_trace == [
            {"role": "assistant", "content": "Hello.", "type": "intended", "turn_id": 0},
            {"role": "user", "content": "hi there", "type": "transcribed", "turn_id": 1},
            {"role": "assistant", "content": "What is it?", "type": "intended", "turn_id": 1},
            {"role": "user", "content": "Bye.", "type": "transcribed", "turn_id": 2},
        ]
        assert (told.num_assistant_turns, told.num_user_turns) == (2, 2)
        assert told.assistant_interrupted_turns == told.user_interrupted_turns == frozenset()

    def test_an_audit_line_before_its_audio_start_opens_the_turn_alone(self) -> None:
        # 3.8, normal_conversation: the line advances and clears spoke, so audio_start does not advance again.
        told = read(*GREETING, hears("Hi."), starts("user"), means("Hi."), ends("user"))
        assert told.transcribed_user_turns == told.intended_user_turns == {1: "Hi."}

    def test_a_recogniser_in_pieces_stays_in_the_turn(self) -> None:
        told = read(*GREETING, *says("One two."), hears("three."))
        assert told.transcribed_user_turns == {1: "One two. three."}
        assert trace(told)[1] == (1, "user", "One two. three.")

    def test_an_audit_line_while_the_user_is_talking_never_advances(self) -> None:
        # 3.3: user_open makes spoke false although the assistant spoke in this turn
        told = read(*GREETING, starts("user"), means("A b."), speaks("Well,"), hears("A"), ends("user"), hears("b."))
        assert told.transcribed_user_turns == {1: "A b."}

    def test_a_conversation_may_start_with_the_user_in_turn_0(self) -> None:
        # 3.8: nobody spoke yet, so nothing advances; the greeting rule of 3.6(8) asks for turn > 0
        told = read(*says("Hi."), *reply("Hello you."), *says("Bye."))
        assert told.intended_user_turns == {0: "Hi.", 1: "Bye."}
        assert trace(told) == [(0, "user", "Hi."), (0, "assistant", "Hello you."), (1, "user", "Bye.")]

    def test_equal_timestamps_go_audit_framework_simulator(self) -> None:
        # 3.1 step 4, realtime_equal_timestamps: at 5000 the line comes first and opens turn 1, the reply at
        # 6000 is spoken in turn 1, and the line at 7000 comes before the reply's last words and the new sound.
        told = read(
            speaks("Hello.", 1000),
            starts("assistant", ms=1000),
            ends("assistant", ms=5000),
            caught("Hello.", 5000),
            hears("Hi.", 5000),
            starts("user", ms=5000),
            means("Hi.", 5000),
            ends("user", ms=6000),
            replies("What is it?", 6000),
            speaks("What is it?", 6000),
            starts("assistant", ms=6000),
            ends("assistant", ms=7000),
            caught("What is it?", 7000),
            hears("Bye.", 7000),
            starts("user", ms=7000),
            means("Bye.", 7000),
            ends("user", ms=8000),
        )
        assert told.transcribed_user_turns == {1: "Hi.", 2: "Bye."}
        assert told.intended_user_turns == {1: "Hi.", 2: "Bye."}
        assert told.intended_assistant_turns == {0: "Hello.", 1: "What is it?"}
        # caught at 5000 belongs to the turn of the assistant's last audio_start, 0
        assert told.transcribed_assistant_turns == {0: "Hello.", 1: "What is it?"}
        # file order of the simulator: ends(user) at 6000 stands before starts(assistant) at 6000
        assert told.assistant_interrupted_turns == frozenset()

    def test_a_late_caller_transcript_belongs_to_the_old_turn_and_does_not_advance(self) -> None:
        # 3.8, late_arriving_elevenlabs_transcripts: the next user audio has started, turn is 1 already
        told = read(
            speaks("Hello."), starts("assistant"), ends("assistant"), starts("user"), caught("Hello."),
            means("Hi."), ends("user"), hears("Hi."), *reply("What is it?"), *says("Bye."),
        )  # fmt: skip
        assert told.transcribed_assistant_turns == {0: "Hello.", 1: "What is it?"}
        assert told.transcribed_user_turns == {1: "Hi.", 2: "Bye."}
        assert trace(told)[-1] == (2, "user", "Bye.")

    def test_speech_before_any_sound_of_its_role_goes_to_turn_0(self) -> None:
        told = read(caught("Hello."), means("Hi."))
        assert told.transcribed_assistant_turns == {0: "Hello."}
        assert told.intended_user_turns == {0: "Hi."}


class TestSilence:
    @pytest.mark.parametrize("silence", ["", "...", "......", ".", ",", "?", "!"])
    def test_a_sign_of_silence_is_no_speech(self, silence: str) -> None:
        told = read(*GREETING, starts("user"), means(silence), ends("user"), *says("Hi."))
        assert told.intended_user_turns == {1: "Hi."}
        assert told.audio_timestamps_user_turns == {1: [(1.4, 1.6), (1.7, 1.9)]}  # as an empty session

    def test_an_empty_session_opens_no_turn_and_lends_its_interval_to_the_next(self) -> None:
        told = read(*GREETING, *says("Hi."), *reply("Well?"), starts("user"), ends("user"), *says("Bye."))
        assert told.intended_user_turns == {1: "Hi.", 2: "Bye."}
        assert told.audio_timestamps_user_turns == {1: [(1.4, 1.6)], 2: [(2.3, 2.4), (2.5, 2.7)]}

    def test_after_an_empty_session_a_late_line_opens_the_next_turn(self) -> None:
        # pending_advance makes spoke true at the audit line; audio_start finds spoke false again
        told = read(*GREETING, starts("user"), ends("user"), hears("Hi."), starts("user"), means("Hi."), ends("user"))
        assert told.transcribed_user_turns == told.intended_user_turns == {1: "Hi."}

    def test_two_empty_sessions_and_an_interruption_make_one_turn(self) -> None:
        # 3.8, double_empty_user_audio_sessions_with_interruption. The assistant sounds throughout:
        # session 1: label on turn 0, turn 1, pending label, so 1 is user-interrupted; rolled back to 0.
        # session 2: label on turn 0 again, pending_advance: turn 1 again; rolled back to 0.
        # session 3: the assistant's sound has ended: no label, turn 1; the first text gets the prefix.
        told = read(
            speaks("Hello."), starts("assistant"), caught("Hello."),
            starts("user"), ends("user"), starts("user"), ends("user"), ends("assistant"),
            starts("user"), means("Hi."), ends("user"), hears("Hi."),
        )  # fmt: skip
        cut = "Hello. [likely cut off by user] [likely cut off by user]"
        assert told.intended_assistant_turns == told.transcribed_assistant_turns == {0: cut}
        assert told.audio_timestamps_user_turns == {1: [(1.3, 1.4), (1.5, 1.6), (1.8, 2.0)]}
        assert told.user_interrupted_turns == {1}
        assert told.intended_user_turns == told.transcribed_user_turns == {1: "[user interrupts] Hi."}
        assert trace(told) == [(0, "assistant", cut), (1, "user", "[user interrupts] Hi.")]

    def test_a_consumed_roll_back_while_the_assistant_sounds_is_the_same_utterance(self) -> None:
        # 3.5: the line after the empty session opens turn 1 (rollback_consumed); the assistant speaks in it, but
        # the audio_start that follows while it sounds is that same utterance: no advance.
        told = read(
            *GREETING, starts("user"), ends("user"), hears("Hi."), speaks("Yes?"), starts("assistant"),
            starts("user"), means("Hi."), ends("user"),
        )  # fmt: skip
        assert told.intended_user_turns == {1: "[user interrupts] Hi."}
        assert told.user_interrupted_turns == {1}

    def test_an_audit_log_without_a_line_of_the_user_counts_no_user_turn(self) -> None:
        # 3.6, step 5: num_user_turns = keys of transcribed_user_turns; the caller's own words are not among them
        told = read(*GREETING, starts("user"), means("Hi."), ends("user"), *reply("Yes?"), hangs_up())
        assert told.intended_user_turns == {1: "Hi."}
        assert told.num_user_turns == 0

    def test_noise_before_the_greeting_gives_no_negative_turn(self) -> None:
        # 3.9: EVA begins at -1. Here all is as without the noise, whose interval joins the first user turn.
        clean = read(*GREETING, *says("Hi."), *reply("Well?"), hangs_up())
        noisy = read(starts("user"), ends("user"), *GREETING, *says("Hi."), *reply("Well?"), hangs_up())
        assert noisy.conversation_trace == clean.conversation_trace
        assert noisy.intended_user_turns == clean.intended_user_turns
        assert noisy.audio_timestamps_user_turns == {1: [(1.0, 1.1), (1.6, 1.8)]}
        assert noisy.latency_assistant_turns == clean.latency_assistant_turns
        assert min(noisy.turn_of) == 0

    def test_noise_at_the_end_is_no_turn(self) -> None:
        # 3.9: as published the burst would give intended_user_turns the key 2, and the trace an empty last entry
        told = read(*GREETING, *says("Hi."), *reply("Bye."), starts("user"), ends("user"), hangs_up())
        assert told.intended_user_turns == {1: "Hi."}
        assert trace(told)[-1] == (1, "assistant", "Bye. [speaker likely cut itself off]")
        assert told.audio_timestamps_user_turns.keys() == {1}

    def test_words_that_come_before_the_last_sound_are_said_in_it(self) -> None:
        # 3.5: buffered until the sound begins; so the sound is no noise, though no word follows it
        told = read(*GREETING, *says("Hi."), *reply("Well?"), means("Bye."), starts("user"), ends("user"), hangs_up())
        assert told.intended_user_turns == {1: "Hi.", 2: "Bye."}

    def test_a_sound_that_is_answered_is_no_noise(self) -> None:
        # The recogniser heard nothing either, but the agent speaks again
        told = read(*GREETING, *says("Hi."), *reply("Well?"), starts("user"), ends("user"), *reply("Are you there?"))
        assert sum(map(len, filter(None, told.audio_timestamps_user_turns.values()))) == 2


class TestAssistantInterrupts:
    def test_three_texts_are_labelled_and_the_turn_stays(self) -> None:
        told = read(
            *GREETING, starts("user"), means("I want to rebook"), hears("I want to"), starts("assistant"),
            replies("Of course."), speaks("Of course."), ends("user"), ends("assistant"), caught("Of course."),
            *says("Thanks."),
        )  # fmt: skip
        assert told.assistant_interrupted_turns == {1}
        assert told.intended_assistant_turns == {0: "Hello.", 1: "[assistant interrupts] Of course."}
        assert told.transcribed_assistant_turns == {0: "Hello.", 1: "[assistant interrupts] Of course."}
        assert told.transcribed_user_turns == {1: "I want to", 2: "Thanks."}
        assert trace(told) == [
            (0, "assistant", "Hello."),
            (1, "user", "I want to [likely cut off by assistant]"),
            (1, "assistant", "[assistant interrupts] Of course."),
            (2, "user", "Thanks."),
        ]

    def test_a_late_line_stays_in_the_held_turn(self) -> None:
        # 3.8, assistant_interrupts_user_1_2_3: hold keeps the second line in turn 1, and spoke is cleared.
        # The reply that follows is spoken in turn 1 again.
        told = read(
            *GREETING, starts("user"), means("I want to rebook my flight"), hears("I want to"), starts("assistant"),
            replies("Of course I can."), speaks("Of course I can."), ends("assistant"), caught("Of course I can."),
            ends("user"), hears("rebook my flight"), replies("Which flight is it?"), speaks("Which flight is it?"),
            starts("assistant"), ends("assistant"), caught("Which flight is it?"),
            starts("user"), means("The first."), ends("user"), hangs_up(),
        )  # fmt: skip
        assert told.transcribed_user_turns == {
            1: "I want to [assistant interrupts] rebook my flight",
            2: "The first.",  # backfilled
        }
        assert told.num_user_turns == 1  # counted before the backfill
        assert told.intended_assistant_turns == {
            0: "Hello.",
            1: "[assistant interrupts] Of course I can. [speaker likely cut itself off] Which flight is it?",
        }
        assert told.transcribed_assistant_turns[1] == told.intended_assistant_turns[1]
        assert trace(told) == [
            (0, "assistant", "Hello."),
            (1, "user", "I want to [likely cut off by assistant]"),
            (1, "assistant", "[assistant interrupts] Of course I can."),
            (1, "user", "rebook my flight"),
            # 3.4: the last one logged is marked, which is the reply now being spoken
            (1, "assistant", "Which flight is it? [speaker likely cut itself off]"),
            (2, "user", "The first."),
        ]

    def test_new_user_audio_advances_in_spite_of_the_hold(self) -> None:
        told = read(
            *GREETING, starts("user"), means("Hi"), starts("assistant"), speaks("Yes?"), ends("user"),
            ends("assistant"), starts("user"), means("Bye"), ends("user"), hears("Bye"),
        )  # fmt: skip
        assert told.intended_user_turns == {1: "Hi", 2: "Bye"}
        assert told.transcribed_user_turns == {1: "", 2: "Bye"}

    def test_after_a_tool_call_it_is_flagged_but_not_held(self) -> None:
        # 3.8, sample_1_1_4…: tool_seen, so no hold: the next audit line advances
        told = read(
            *GREETING, starts("user"), means("My code is A B."), hears("My code"), calls("find", {}),
            starts("assistant"), speaks("One moment."), ends("user"), ends("assistant"), hears("is A B."),
        )  # fmt: skip
        assert told.assistant_interrupted_turns == {1}
        assert told.transcribed_user_turns == {1: "My code", 2: "is A B."}

    def test_an_interruption_noticed_after_the_audit_line_is_prefixed_at_the_end_alone(self) -> None:
        # 3.3: then neither [likely cut off by assistant] nor a prefix of the intended text; 3.6(4) adds the trace's
        told = read(
            *GREETING, starts("user"), means("Hi"), hears("Hi"), replies("Yes?"), speaks("Yes?"), starts("assistant"),
            ends("user"), ends("assistant"), caught("Yes?"), *says("Bye."),
        )  # fmt: skip
        assert told.intended_assistant_turns[1] == "Yes?"
        assert told.transcribed_assistant_turns[1] == "[assistant interrupts] Yes?"
        assert trace(told)[1:3] == [(1, "user", "Hi"), (1, "assistant", "[assistant interrupts] Yes?")]

    def test_in_audio_llm_the_users_intended_entry_is_marked(self) -> None:
        told = read(
            *GREETING, starts("user"), means("Hi"), starts("assistant"), replies("Yes?"), speaks("Yes?"),
            ends("user"), ends("assistant"), pipeline="audio_llm",
        )  # fmt: skip
        assert trace(told)[1] == (1, "user", "Hi [likely cut off by assistant]")

    def test_in_s2s_no_entry_is_marked_and_the_hold_is_bypassed(self) -> None:
        told = read(
            starts("assistant"), ends("assistant"), caught("Hello."), starts("user"), means("Hi"), hears("Hi"),
            starts("assistant"), ends("user"), ends("assistant"), caught("Yes?"), hears("Bye", 5000),
            starts("user", ms=5000), means("Bye", 5100), ends("user", ms=5200), pipeline="s2s",
        )  # fmt: skip
        # the line at 5000 bypasses the hold and opens turn 2; audio_start clears the hold and finds spoke false
        assert told.transcribed_user_turns == told.intended_user_turns == {1: "Hi", 2: "Bye"}
        assert trace(told)[1:] == [
            (1, "user", "Hi"),
            (1, "assistant", "[assistant interrupts] Yes?"),
            (2, "user", "Bye"),
        ]

    def test_sound_after_the_users_has_ended_is_no_interruption(self) -> None:
        told = read(*GREETING, *says("Hi."), starts("assistant"), ends("assistant"))
        assert told.assistant_interrupted_turns == frozenset()


class TestUserInterrupts:
    def test_the_old_turn_is_cut_off_and_the_new_one_labelled(self) -> None:
        told = read(
            *GREETING, *says("Hi."), replies("You may fly at noon."), speaks("You may fly at noon."),
            starts("assistant"), caught("You may"), starts("user"), means("No, wait."), ends("assistant"),
            ends("user"), hears("no wait"), *reply("Of course."), *says("Bye."),
        )  # fmt: skip
        assert told.user_interrupted_turns == {2}
        assert told.intended_assistant_turns[1] == "You may fly at noon. [likely cut off by user]"
        assert told.transcribed_assistant_turns[1] == "You may [likely cut off by user]"
        assert told.intended_user_turns[2] == "[user interrupts] No, wait."
        assert told.transcribed_user_turns[2] == "[user interrupts] no wait"
        assert trace(told)[2:4] == [
            (1, "assistant", "You may fly at noon. [likely cut off by user]"),
            (2, "user", "[user interrupts] no wait"),
        ]
        assert told.intended_user_turns[3] == told.transcribed_user_turns[3] == "Bye."  # the label was taken

    def test_further_lines_of_an_interrupting_turn_are_prefixed_too(self) -> None:
        # 3.3: text exists already and the turn is user-interrupted
        told = read(
            speaks("Hello."), starts("assistant"), starts("user"), means("No, wait."), ends("assistant"),
            ends("user"), hears("no"), hears("wait"),
        )  # fmt: skip
        assert told.transcribed_user_turns == {1: "[user interrupts] no [user interrupts] wait"}

    def test_assistant_texts_in_an_interrupting_turn_are_parted_by_the_users_labels(self) -> None:
        # 3.4 separator and mark; 3.5 assistant_speech separator
        told = read(
            speaks("Hello."), starts("assistant"), starts("user"), means("No"), ends("assistant"), ends("user"),
            hears("no"), replies("One two."), speaks("One"), starts("assistant"), caught("One"), speaks("two."),
            caught("two."), ends("assistant"), *says("Bye."),
        )  # fmt: skip
        assert told.intended_assistant_turns[1] == "One [likely cut off by user] two."
        assert told.transcribed_assistant_turns[1] == "One [user interrupts] two."
        assert trace(told)[1:3] == [
            (1, "user", "[user interrupts] no"),
            (1, "assistant", "One two. [likely cut off by user]"),
        ]

    def test_in_audio_native_the_label_stands_twice_in_the_trace(self) -> None:
        # 3.5: prefixed for intended, and again for the trace; the second takes the pending label
        told = read(
            speaks("Hello."), starts("assistant"), starts("user"), means("No."), ends("assistant"), ends("user"),
            *reply("Well?"), *says("Bye."), pipeline="audio_llm",
        )  # fmt: skip
        assert told.intended_user_turns == {1: "[user interrupts] No.", 2: "Bye."}
        assert trace(told)[1] == (1, "user", "[user interrupts] [user interrupts] No.")
        assert trace(told)[3] == (2, "user", "Bye.")

    def test_in_audio_native_an_audit_line_between_takes_the_label(self) -> None:
        told = read(
            speaks("Hello."), starts("assistant"), starts("user"), hears("no"), means("No."), ends("assistant"),
            ends("user"), pipeline="audio_llm",
        )  # fmt: skip
        assert told.transcribed_user_turns == {1: "[user interrupts] no"}
        assert told.intended_user_turns == {1: "No."}
        assert trace(told)[-1] == (1, "user", "[user interrupts] No.")  # 3.6(4)

    def test_in_audio_native_a_second_text_of_an_interrupting_turn_is_prefixed_in_the_trace(self) -> None:
        told = read(
            speaks("Hello."), starts("assistant"), starts("user"), means("No."), means("Wait."), ends("assistant"),
            ends("user"), pipeline="audio_llm",
        )  # fmt: skip
        assert told.intended_user_turns == {1: "[user interrupts] No. [speaker likely cut itself off] Wait."}
        assert trace(told)[-1] == (1, "user", "[user interrupts] [user interrupts] No. [user interrupts] Wait.")

    def test_s2s_transcribed_text_is_cut_off_but_not_its_entry(self) -> None:
        # MARK looks for an intended entry; S2S has transcribed ones
        told = read(
            starts("assistant"), caught("Hello."), starts("user"), means("No."), ends("assistant"), ends("user"),
            pipeline="s2s",
        )  # fmt: skip
        assert told.transcribed_assistant_turns == {0: "Hello. [likely cut off by user]"}
        assert trace(told) == [(0, "assistant", "Hello."), (1, "user", "[user interrupts] [user interrupts] No.")]

    def test_cascade_line_at_the_same_ms_as_the_barge_in(self) -> None:
        # 3.5, second result: the line opens turn 1 itself, nothing of turn 0 is cut off, the label leaks to
        # the next line and makes turn 2 a false interruption.
        told = read(
            speaks("Hello.", 1000), starts("assistant", ms=1000), hears("no", 1500), starts("user", ms=1500),
            means("No.", 1600), ends("assistant", ms=1700), ends("user", ms=1800),
            replies("Well?", 2000), speaks("Well?", 2000), starts("assistant", ms=2100), ends("assistant", ms=2200),
            starts("user", ms=3000), means("Bye.", 3100), ends("user", ms=3200), hears("bye", 3300),
        )  # fmt: skip
        assert told.intended_assistant_turns == {0: "Hello.", 1: "Well?"}
        assert told.transcribed_user_turns == {1: "no", 2: "[user interrupts] bye"}
        assert told.intended_user_turns == {1: "[user interrupts] No.", 2: "[user interrupts] Bye."}
        assert told.user_interrupted_turns == {1, 2}
        assert trace(told) == [
            (0, "assistant", "Hello."),
            (1, "user", "[user interrupts] no"),  # 3.6(4)
            (1, "assistant", "Well?"),
            (2, "user", "[user interrupts] bye"),
        ]

    def test_audio_native_line_at_the_same_ms_as_the_barge_in_leaks_nothing(self) -> None:
        told = read(
            starts("assistant", ms=1000), caught("Hello.", 1100), hears("no", 1500), starts("user", ms=1500),
            means("No.", 1600), ends("assistant", ms=1700), ends("user", ms=1800), starts("assistant", ms=2100),
            ends("assistant", ms=2200), starts("user", ms=3000), means("Bye.", 3100), ends("user", ms=3200),
            pipeline="s2s",
        )  # fmt: skip
        assert told.user_interrupted_turns == {1}
        assert told.transcribed_assistant_turns[0] == "Hello."
        assert told.intended_user_turns == {1: "[user interrupts] No.", 2: "Bye."}


class TestBufferedUserSpeech:
    def test_speech_before_its_sound_waits_for_it(self) -> None:
        # 3.8, user_speech_buffered_after_assistant_response
        told = read(
            *GREETING, *says("Hi."), *reply("Well?"), means("Bye."), starts("user"), ends("user"), hears("bye"),
        )  # fmt: skip
        assert told.intended_user_turns == {1: "Hi.", 2: "Bye."}
        assert told.transcribed_user_turns == {1: "Hi.", 2: "bye"}  # the session counts as speech: no roll-back

    def test_its_copy_is_dropped_and_a_third_is_used(self) -> None:
        told = read(
            *GREETING, means("Hi."), starts("user"), means("Hi."), means("Hi."), ends("user"),
        )  # fmt: skip
        assert told.intended_user_turns == {1: "Hi. [speaker likely cut itself off] Hi."}

    def test_without_a_copy_it_swallows_the_next_equal_utterance(self) -> None:
        told = read(
            *GREETING, means("Yes."), starts("user"), ends("user"), *reply("Sure?"),
            starts("user"), means("Yes."), ends("user"), hears("yes"),
        )  # fmt: skip
        # the second is dropped without touching speech_in_session: that session is empty and rolls back to
        # turn 1; the line then opens turn 2 by pending_advance
        assert told.intended_user_turns == {1: "Yes.", 2: ""}
        assert told.transcribed_user_turns == {1: "", 2: "yes"}

    def test_replay_takes_the_label_of_an_interruption(self) -> None:
        told = read(speaks("Hello."), starts("assistant"), means("No."), starts("user"), ends("assistant"))
        assert told.intended_user_turns == {1: "[user interrupts] No."}
        assert told.turn_of[2] == 1  # met in turn 0, given to turn 1

    def test_it_is_lost_if_no_sound_follows(self) -> None:
        assert read(*GREETING, means("Hi.")).intended_user_turns == {}

    def test_late_speech_without_a_reply_between_stays_with_its_sound(self) -> None:
        # 3.8, assistant_interrupts_short_fragment: the second text after audio_end goes to the old turn
        told = read(*GREETING, starts("user"), means("One"), ends("user"), means("two"))
        assert told.intended_user_turns == {1: "One [speaker likely cut itself off] two"}


class TestFrameworkText:
    def test_two_texts_of_a_turn(self) -> None:
        told = read(*GREETING, *says("Hi."), speaks("One."), speaks("Two."), *says("Bye."))
        assert told.intended_assistant_turns[1] == "One. [speaker likely cut itself off] Two."

    def test_a_tool_between_is_a_pause(self) -> None:
        told = read(
            *GREETING, *says("Hi."), replies("One."), speaks("One."), calls("find", {}),
            replies("Two."), speaks("Two."),
        )  # fmt: skip
        assert told.intended_assistant_turns[1] == "One. [pause] Two. [speaker likely cut itself off]"
        assert trace(told)[2:] == [
            (1, "assistant", "One."),
            (1, "tool_call", "find"),
            (1, "assistant", "Two. [speaker likely cut itself off]"),  # the end of the trace alone
        ]

    def test_a_pause_in_an_interrupting_turn_is_still_marked(self) -> None:
        told = read(
            *GREETING, starts("user"), means("Hi"), hears("Hi"), starts("assistant"), replies("One."), speaks("One."),
            ends("user"), ends("assistant"), calls("find", {}), replies("Two."), speaks("Two."), *says("Bye."),
        )  # fmt: skip
        assert told.intended_assistant_turns[1] == "[assistant interrupts] One. [pause] Two."
        assert (1, "assistant", "Two. [speaker likely cut itself off]") in trace(told)

    def test_two_caught_texts_of_a_calm_turn_are_a_likely_interruption(self) -> None:
        told = read(starts("assistant"), caught("One."), caught("Two."))
        assert told.transcribed_assistant_turns == {0: "One. [likely interruption] Two."}

    def test_two_caught_texts_of_an_interrupting_turn(self) -> None:
        told = read(*GREETING, starts("user"), means("Hi"), starts("assistant"), caught("One."), caught("Two."))
        assert told.transcribed_assistant_turns[1] == "[assistant interrupts] One. [speaker likely cut itself off] Two."

    def test_the_apology_for_an_error_enters_the_trace_by_itself(self) -> None:
        sorry = "I'm sorry, I encountered an error processing your request."
        told = read(*GREETING, *says("Hi."), speaks(sorry), starts("assistant"), ends("assistant"), *says("Bye."))
        assert trace(told)[2] == (1, "assistant", sorry)
        # compared after prefixing, so an interrupting one is another text; 3.6(8) appends what no entry has
        barging_in = read(*GREETING, starts("user"), means("Hi"), hears("hi"), starts("assistant"), speaks(sorry))
        assert trace(barging_in)[2:] == [
            (1, "assistant", f"[assistant interrupts] {sorry} [speaker likely cut itself off]")
        ]

    def test_text_of_the_model_counts_as_text_of_the_speech_engine(self) -> None:
        told = read(Logged(source="framework", kind="llm_response", text="Hello."))
        assert told.intended_assistant_turns == {0: "Hello."}

    def test_s2s_does_not_read_the_framework(self) -> None:
        told = read(speaks("Hello."), starts("assistant"), caught("Hello you."), pipeline="s2s")
        assert told.intended_assistant_turns == {0: ""}
        assert told.transcribed_assistant_turns == {0: "Hello you."}
        assert told.num_assistant_turns == 1  # keys of transcribed_assistant_turns


def test_turn_of_tells_the_turn_of_every_record_in_the_logs_order() -> None:
    records = log(
        speaks("Hello."), starts("assistant"), ends("assistant"), starts("user"), caught("Hello."), means("Hi."),
        ends("user"), hears("Hi."), replies("Well?"), speaks("Well?"), starts("assistant"), ends("assistant"),
        means("Bye."), starts("user"), ends("user"), hangs_up(),
    )  # fmt: skip
    told = read_eva(records, "cascade")
    turns = [(record.kind, turn) for record, turn in zip(records, told.turn_of, strict=True)]
    assert turns == [
        ("user", 1),
        ("assistant", 1),
        ("tts_text", 0),
        ("tts_text", 1),
        ("audio_start", 0),
        ("audio_end", 0),
        ("audio_start", 1),
        ("assistant_speech", 0),  # late: of the greeting
        ("user_speech", 1),
        ("audio_end", 1),
        ("audio_start", 1),
        ("audio_end", 1),
        ("user_speech", 2),  # early: waited for its sound
        ("audio_start", 2),
        ("audio_end", 2),
        ("connection_state", 2),
    ]


_KINDS = {
    "audit": ("user", "assistant", "tool_call", "tool_response", "llm_call", "turn_fallback", "odd"),
    "framework": ("turn_start", "turn_end", "tts_text", "llm_response"),
    "simulator": ("audio_start", "audio_end", "user_speech", "assistant_speech", "connection_state", "timeout"),
}
_TEXTS = st.sampled_from(["", "...", "Hi.", "One two three four five six", "[pause] One two", "é – 日本"]) | st.none()
_DICTIONARIES: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "tool": st.none() | st.just("Find"),
        "parameters": st.none() | st.just({}),
        "response": st.none() | st.just(1),
        "state": st.just("session_ended"),
    },
)
_VALUES: st.SearchStrategy[Any] = st.none() | st.text(max_size=3) | st.lists(st.integers(), max_size=1) | _DICTIONARIES


@st.composite
def logs(draw: st.DrawFn) -> list[Logged]:
    def records(source: str) -> st.SearchStrategy[list[Logged]]:
        return st.lists(
            st.builds(
                Logged,
                source=st.just(source),
                kind=st.sampled_from(_KINDS[source]),
                ms=st.none() | st.integers(-5, 60),
                sound=st.none() | st.floats(),
                speaker=st.sampled_from(["user", "assistant", "user", "assistant", ""]),
                text=_TEXTS,
                value=_VALUES,
            ),
            max_size=25,
        )

    return [record for source in SOURCES for record in draw(records(source))]


@given(logs(), st.sampled_from(["cascade", "audio_llm", "s2s", "text", None]))
def test_any_log_can_be_read_and_no_turn_is_negative(records: list[Logged], pipeline: str | None) -> None:
    told = read_eva(records, pipeline, {"framework": -3})
    turns = {*told.turn_of, *told.assistant_interrupted_turns, *told.user_interrupted_turns, *told.fallback_turn_ids}
    turns |= {entry["turn_id"] for entry in told.conversation_trace}
    for field in EvaReading.__struct_fields__:
        if isinstance(by_turn := getattr(told, field), dict):
            turns |= set(by_turn)
    assert all(turn >= 0 for turn in turns)
    assert len(told.turn_of) == len(records)
    assert set(told.intended_user_turns) == set(told.transcribed_user_turns) == set(told.audio_timestamps_user_turns)
    assert told.num_tool_calls == len(told.tool_called) == len(told.tool_params)
