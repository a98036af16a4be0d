"""Folders of voice calls: given these logs, this is what happened.

All reads `examples/voice-logs`, where each call shows one situation; its numbers were written down
when the call was made up.
"""

from __future__ import annotations

import json

import pytest

import convoscope
from convoscope.conversation import Conversation, Marker
from convoscope.views import MetricContext, PipelineType, metric_context
from support.logs import EXAMPLES
from support.voice_facts import Told, told

RUN = EXAMPLES / "voice-logs"
GREETING = "Tarnholm Animal Clinic, night desk. How can I help?"


@pytest.fixture(scope="module")
def calls() -> dict[str, Conversation]:
    return {one.id: one for one in convoscope.read(RUN)}


@pytest.fixture(scope="module")
def notes() -> dict[str, list[str]]:
    """The codes of what reading did, by call."""
    return {one.conversation.id: [note.code for note in one.notes] for one in convoscope.read(RUN).with_notes()}


class TestSituations:
    def test_a_normal_call(self, calls: dict[str, Conversation], notes: dict[str, list[str]]) -> None:
        assert told(calls["normal"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user: Hello, my cat is due for her shots, are you open this Saturday?",
                "1 assistant: Yes, on Saturday we see animals from eight until noon. Shall I note a visit?",
                "2 user: No, that is all I needed. Good night.",
            ],
            user={1: [(4.4, 7.9)], 2: [(13.9, 16.2)]},
            agent={0: [(0.9, 3.6)], 1: [(9.1, 13.0)]},
            waits={1: 1.2},  # 9.1 - 7.9
        )
        context = metric_context(calls["normal"])
        # What each side meant, beside what the other made of it.
        assert context.intended_user_turns == {
            1: "Hello, my cat is due for her shots. Are you open this Saturday?",
            2: "No, that is all I needed. Good night.",
        }
        assert context.transcribed_assistant_turns == {
            0: GREETING,
            1: "Yes, on Saturday we see animals from 8 until noon. Shall I note a visit?",
        }
        assert (context.num_turns, context.num_assistant_turns, context.num_user_turns) == (3, 2, 2)
        assert (context.num_tool_calls, context.tools_called, context.tool_params) == (0, [], [])
        assert context.conversation_finished is True
        assert context.duration_seconds == 17.4
        assert notes["normal"] == []

    def test_tool_calls_and_a_recogniser_that_hears_in_pieces(self, calls: dict[str, Conversation]) -> None:
        assert told(calls["tool-calls"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user: When is Bruno's checkup? My owner number is OW204 and the PIN is 4471.",
                "1 verify_owner(OW-204, 4471)",
                "1 verify_owner -> success",
                "1 find_appointments(OW-204)",
                "1 find_appointments -> success",
                "1 assistant: Thank you, Imre. Bruno's check-up is tomorrow, the twelfth, "
                "at twenty past nine with Doctor Osei.",
                "2 user: Lovely, thank you, bye.",
                "2 assistant: You're welcome. Good night.",
            ],
            user={1: [(4.2, 8.4)], 2: [(19.8, 21.5)]},
            agent={0: [(0.8, 3.5)], 1: [(13.1, 18.9)], 2: [(22.6, 24.4)]},
            waits={1: 4.71, 2: 1.12},  # as response_latencies.json has them
        )
        context = metric_context(calls["tool-calls"])
        assert context.sound_latency_assistant_turns == {1: 4.7, 2: 1.1}  # 13.1 - 8.4, 22.6 - 21.5
        assert context.tools_called == ["verify_owner", "find_appointments"]
        assert context.tool_params[0] == {
            "tool_name": "verify_owner",
            "tool_parameters": {"owner_id": "OW-204", "pin": "4471"},
        }
        assert context.tool_responses[0] == {
            "tool_name": "verify_owner",
            "tool_response": {"status": "success", "name": "Imre Talvik"},
        }

    def test_speech_before_a_tool_stays_before_it(self, calls: dict[str, Conversation]) -> None:
        assert told(calls["speech-before-tool"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user: Please cancel the grooming for Pixel on Friday.",
                "1 assistant: Let me look that up for you.",
                "1 cancel_appointment(AP-902)",
                "1 cancel_appointment -> success",
                "1 assistant: Done, the grooming on Friday is cancelled.",
                "2 user: Perfect, bye.",
            ],
            user={1: [(4.1, 6.6)], 2: [(14.0, 15.1)]},
            agent={0: [(0.9, 3.4)], 1: [(8.3, 9.7), (10.9, 13.2)]},
            waits={1: 1.7},  # to the first of its sounds: 8.3 - 6.6
        )

    def test_the_agent_breaks_in(self, calls: dict[str, Conversation]) -> None:
        assert told(calls["agent-interrupts"]) == Told(
            [
                "0 assistant: Night desk, good evening.",
                "1 user: I would like to move Bruno's visit.",
                "1 assistant: Which day would suit you?",
            ],
            user={1: [(3.6, 8.0)]},
            agent={0: [(0.9, 2.8)], 1: [(7.2, 9.6)]},
            waits={},  # who was interrupted waited for nothing
            agent_broke_in={1},
        )

    def test_fifty_milliseconds_are_breaking_in_and_the_user_opens_a_new_turn(
        self, calls: dict[str, Conversation]
    ) -> None:
        assert told(calls["agent-interrupts-new-turn"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user: Our rabbit has stopped eating and I'm worried.",
                "1 assistant: I'm sorry to hear that. What is her name, and since when?",
                "2 user: Nutmeg. And since this morning.",
                "2 leave_message(vet on duty, Nutmeg has not eaten since this morning)",
                "2 leave_message -> success",
                "2 assistant: I have left a note for the vet on duty. She will call you within ten minutes. All right?",
                "3 user: Yes, thank you.",
            ],
            user={1: [(3.7, 6.4)], 2: [(10.4, 13.1)], 3: [(20.1, 20.9)]},
            agent={0: [(0.9, 2.9)], 1: [(6.35, 9.2)], 2: [(15.5, 19.0)]},
            waits={2: 2.4},
            agent_broke_in={1},
        )

    def test_the_agent_breaks_in_with_a_fragment(self, calls: dict[str, Conversation]) -> None:
        """The user goes on in the same sound, so all of it is one turn."""
        assert told(calls["agent-interrupts-fragment"]) == Told(
            [
                "0 assistant: Night desk, how can I help?",
                "1 user: I need a refill for Pixel and I would also like to book a nail trim.",
                "1 assistant: I'd be happy to order the refill. Sure, which day suits you for the trim?",
                "2 user: Friday, please.",
            ],
            user={1: [(3.0, 6.9)], 2: [(12.4, 13.5)]},
            agent={0: [(0.8, 2.2)], 1: [(5.6, 6.1), (9.1, 11.3)]},
            waits={},
            agent_broke_in={1},
        )
        # Sent to the voice were seven words; the caller heard two.
        heard = metric_context(calls["agent-interrupts-fragment"]).transcribed_assistant_turns
        assert heard[1] == "I'd be Sure, which day suits you for the trim?"

    def test_the_recogniser_is_late_after_an_interruption(self, calls: dict[str, Conversation]) -> None:
        assert told(calls["late-recogniser"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user: I have a question about the bill. For Pixel's operation last month.",
                "1 assistant: Which bill do you mean? I'll ask the office to send you a copy.",
                "2 user: Thank you.",
            ],
            user={1: [(4.2, 9.6)], 2: [(14.5, 15.6)]},
            agent={0: [(0.9, 3.4)], 1: [(7.4, 8.8), (11.2, 13.6)]},
            waits={},
            agent_broke_in={1},
        )

    def test_the_user_speaks_first_and_the_agent_breaks_in_after_a_tool(self, calls: dict[str, Conversation]) -> None:
        """Turn 0 is the greeting; where nobody greets there is none."""
        assert told(calls["barge-in-after-tool"]) == Told(
            [
                "1 user: Hello? Is this the animal clinic? I need an appointment.",
                "1 find_slots(2026-02-12)",
                "1 find_slots -> success",
                "1 assistant: It is. The first free slot is tomorrow at twenty to five.",
                "2 user: I'll take it.",
                "2 assistant: Booked. See you tomorrow.",
            ],
            user={1: [(0.8, 3.9)], 2: [(7.9, 9.0)]},
            agent={1: [(3.5, 6.8)], 2: [(10.1, 12.0)]},
            waits={2: 1.1},
            agent_broke_in={1},
        )

    def test_the_user_breaks_in_and_opens_a_new_turn(self, calls: dict[str, Conversation]) -> None:
        assert told(calls["user-interrupts-with-tools"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user: I want to change tomorrow's appointment.",
                "1 assistant: Of course. What are your owner number and your pin?",
                "2 user: OW319, PIN 8820.",
                "2 assistant: Thank you. So that is O W three one nine and the pin eight eight two zero, correct?",
                "3 user: Just move it to any slot after 4, as long as it is with Dr. Osei.",
                "3 verify_owner(OW-319, 8802)",
                "3 verify_owner -> error",
                "3 assistant: That pin does not match. Could you say it once more?",
                "4 user: 8820.",
                "4 verify_owner(OW-319, 8820)",
                "4 verify_owner -> success",
                "4 move_appointment(AP-903, 2026-02-12 16:40)",
                "4 move_appointment -> success",
                "4 assistant: Thank you. Your appointment is now tomorrow at twenty to five with Doctor Osei.",
            ],
            user={1: [(4.3, 6.5)], 2: [(11.8, 15.0)], 3: [(18.6, 23.2)], 4: [(28.8, 30.6)]},
            agent={0: [(0.9, 3.5)], 1: [(7.6, 10.9)], 2: [(16.2, 19.1)], 3: [(25.4, 27.9)], 4: [(34.1, 38.4)]},
            waits={1: 1.1, 2: 1.2, 3: 2.2, 4: 3.5},
            user_broke_in={3},  # the turn that they opened
        )
        context = metric_context(calls["user-interrupts-with-tools"])
        assert context.transcribed_assistant_turns[2] == "Thank you."
        assert context.tools_called == ["verify_owner", "move_appointment"]
        assert context.num_tool_calls == 3

    def test_a_reply_counts_as_far_as_it_was_spoken(
        self, calls: dict[str, Conversation], notes: dict[str, list[str]]
    ) -> None:
        """The model went on to ask whether the animal was hurt; nothing of that was sent to the voice."""
        assert told(calls["reply-cut-to-spoken"]) == Told(
            [
                "0 assistant: Night desk, hello.",
                "1 user: Can I bring in a hedgehog?",
                "1 assistant: Yes, we look after hedgehogs too.",
            ],
            user={1: [(2.9, 4.8)]},
            agent={0: [(0.8, 2.0)], 1: [(6.0, 8.3)]},
            waits={1: 1.2},
        )
        assert notes["reply-cut-to-spoken"] == ["reply_cut_to_spoken"]

    def test_a_sound_without_words_is_no_turn(
        self, calls: dict[str, Conversation], notes: dict[str, list[str]]
    ) -> None:
        assert told(calls["empty-user-sound"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user: Hi, I'm calling about a lost microchip card.",
                "1 assistant: I can help. What is your owner number?",
                "2 user: It's OW117.",
                "2 assistant: Thank you. A new card will be in the post tomorrow.",
                "3 user: Great, thanks.",
            ],
            user={1: [(4.1, 7.0)], 2: [(12.8, 14.9)], 3: [(19.7, 20.7)]},  # not 11.1 to 11.5
            agent={0: [(0.9, 3.3)], 1: [(8.2, 10.5)], 2: [(16.0, 18.8)]},
            waits={1: 1.2, 2: 1.1},
        )
        assert notes["empty-user-sound"] == ["false_speech_detection"]
        (noise,) = [event for event in calls["empty-user-sound"].timeline if getattr(event, "name", "") == "noise"]
        assert isinstance(noise, Marker)

    def test_two_sounds_without_words_are_no_interruption_but_the_third_is(
        self, calls: dict[str, Conversation]
    ) -> None:
        assert told(calls["two-empty-sounds"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user: How late can I call tomorrow?",
                "1 assistant: The desk answers until six in the morning, and from eight the clinic itself answers.",
                "2 user: From 8, got it.",
                "2 assistant: Exactly. Good night.",
            ],
            user={1: [(4.2, 6.1)], 2: [(11.5, 13.4)]},
            agent={0: [(0.9, 3.4)], 1: [(7.2, 12.2)], 2: [(14.4, 15.6)]},
            waits={1: 1.1, 2: 1.0},
            user_broke_in={2},
        )

    def test_a_user_who_never_speaks(self, calls: dict[str, Conversation]) -> None:
        assert told(calls["user-never-speaks"]) == Told(
            [f"0 assistant: {GREETING}"], user={}, agent={0: [(0.9, 3.4)]}, waits={}
        )
        context = metric_context(calls["user-never-speaks"])
        assert (context.conversation_finished, context.conversation_ended_reason) == (False, "inactivity_timeout")
        assert (context.num_turns, context.num_user_turns) == (1, 0)

    def test_what_the_caller_heard_may_be_logged_late(self, calls: dict[str, Conversation]) -> None:
        """The caller notes the agent's words when the caller's own next turn has begun."""
        assert told(calls["late-transcripts"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user: How much is a vaccination for a kitten?",
                "1 assistant: Forty-five, and the second one is free.",
                "2 user: That's good to know, thank you.",
            ],
            user={1: [(4.2, 6.5)], 2: [(11.4, 13.2)]},
            agent={0: [(0.9, 3.4)], 1: [(7.6, 10.6)]},
            waits={1: 1.1},
        )
        heard = metric_context(calls["late-transcripts"]).transcribed_assistant_turns
        assert heard == {0: GREETING, 1: "45, and the second one is free."}

    def test_what_the_caller_means_may_be_logged_before_it_sounds(
        self, calls: dict[str, Conversation], notes: dict[str, list[str]]
    ) -> None:
        context = metric_context(calls["early-user-speech"])
        assert context.intended_user_turns == {
            1: "Do you have parking for a horse trailer?",
            2: "Please do, we are nearly there.",
        }
        assert context.audio_timestamps_user_turns == {1: [(4.2, 6.5)], 2: [(12.0, 13.8)]}
        assert notes["early-user-speech"] == ["early_transcript"]

    def test_a_nudge_after_a_turn_that_was_ended_for_want_of_an_answer(self, calls: dict[str, Conversation]) -> None:
        assert told(calls["fallback-nudge"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user: Um, I'm looking for",
                "1 assistant: Are you still there? Take your time.",
                "2 user: Yes, the opening hours for Sunday.",
                "2 assistant: On Sundays we open at ten.",
            ],
            user={1: [(4.2, 5.8)], 2: [(18.2, 20.6)]},
            agent={0: [(0.9, 3.4)], 1: [(15.0, 17.2)], 2: [(21.8, 23.6)]},
            waits={1: 9.2, 2: 1.2},
        )
        assert metric_context(calls["fallback-nudge"]).fallback_turn_ids == {1}


class TestAudioNative:
    """Where the model hears the sound itself, the user's words are as intended."""

    def test_speech_to_speech_speaks_calls_a_tool_and_speaks(
        self, calls: dict[str, Conversation], notes: dict[str, list[str]]
    ) -> None:
        assert told(calls["s2s-speak-tool-speak"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user*: Hello, I'd like to know when Juno's blood results are due.",
                "1 assistant: One moment, I'll check.",
                "1 find_results(Juno)",
                "1 find_results -> success",
                "1 assistant: Juno's results are expected tomorrow by noon.",
                "2 user*: Wonderful, thanks. Bye.",
            ],
            user={1: [(5.3, 8.9)], 2: [(19.4, 20.9)]},
            agent={0: [(1.1, 4.0)], 1: [(10.2, 17.8)]},  # one sound holds both
            waits={1: 1.3},
        )
        context = metric_context(calls["s2s-speak-tool-speak"])
        assert (context.pipeline_type, context.is_audio_native, context.is_s2s) == (PipelineType.S2S, True, True)
        # A service beside the model wrote this; the model did not read it.
        assert context.transcribed_user_turns[1] == "Hello. I'd like to know when Juno's blood results are due."
        assert notes["s2s-speak-tool-speak"] == ["pipeline_s2s"]

    def test_a_barge_in_that_two_logs_have_at_the_same_millisecond(self, calls: dict[str, Conversation]) -> None:
        assert told(calls["s2s-same-instant"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user*: Do you treat parrots?",
                "1 assistant: We do. Our bird days are Monday and Wednesday, "
                "and on both you can come without an appointment.",
                "2 user*: Wednesday, from what time?",
                "2 assistant: From two until six.",
                "3 user*: Good, bye.",
            ],
            user={1: [(5.0, 7.4)], 2: [(12.9, 15.5)], 3: [(19.6, 20.5)]},
            agent={0: [(1.0, 4.2)], 1: [(8.6, 13.3)], 2: [(16.4, 18.7)]},
            waits={1: 1.2, 2: 0.9},
            user_broke_in={2},
        )

    def test_sounds_that_only_touch_are_no_interruption(self, calls: dict[str, Conversation]) -> None:
        assert told(calls["equal-times"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user*: Can I still come tonight?",
                "1 assistant: Yes, any time before six.",
                "2 user*: We're leaving now.",
            ],
            user={1: [(4.0, 6.0)], 2: [(8.5, 9.6)]},
            agent={0: [(1.0, 4.0)], 1: [(6.0, 8.5)]},
            waits={1: 0.0},
        )

    def test_the_caller_hears_the_beginning_of_a_reply(self, calls: dict[str, Conversation]) -> None:
        context = metric_context(calls["s2s-reply-cut"])
        meant = "Yes, the desk is staffed all night. For anything urgent please come straight to the side door."
        assert context.intended_assistant_turns[1] == meant
        assert context.transcribed_assistant_turns[1] == "Yes, the desk is staffed all night."
        assert (context.conversation_finished, context.conversation_ended_reason) == (False, "timeout")

    def test_a_model_that_gets_sound_and_gives_text(
        self, calls: dict[str, Conversation], notes: dict[str, list[str]]
    ) -> None:
        assert told(calls["audio-llm"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user*: My dog ate a raisin biscuit.",
                "1 assistant: How heavy is he, and when did he eat it?",
                "2 user*: Twelve kilos, ten minutes ago.",
                "2 leave_message(vet on duty, dog, 12 kg, raisins)",
                "2 leave_message -> success",
                "2 assistant: Please bring him in now. The vet is waiting at the side door.",
                "3 user*: On our way.",
            ],
            user={1: [(4.2, 6.4)], 2: [(11.2, 13.6)], 3: [(20.0, 20.9)]},
            agent={0: [(0.9, 3.4)], 1: [(7.6, 10.2)], 2: [(16.1, 19.2)]},
            waits={1: 1.2, 2: 2.5},
        )
        context = metric_context(calls["audio-llm"])
        assert (context.pipeline_type, context.is_audio_native) == (PipelineType.AUDIO_LLM, True)
        assert context.is_s2s is False
        # `[user audio]` stands where words would, and is none.
        assert context.transcribed_user_turns == {2: "Twelve kilos, ten minutes ago."}
        assert "pipeline_audio_llm" in notes["audio-llm"]


class TestDamagedLogs:
    def test_what_is_left_is_joined(self, calls: dict[str, Conversation]) -> None:
        assert told(calls["damaged-logs"]) == Told(
            [
                f"0 assistant: {GREETING}",
                "1 user: Is a vet on duty tonight?",
                "1 assistant: Yes, Doctor Osei is here until seven.",
                "2 user: Good, then we will come over.",
                "2 assistant: See you soon.",
            ],
            # The noise before the greeting is no turn; what was logged twice sounded once.
            user={1: [(4.4, 6.6)], 2: [(11.2, 12.7)]},
            # The end of the agent's second sound is not there, and nothing is made up for it.
            agent={0: [(1.1, 3.6)], 2: [(13.8, 15.2)]},
            # Its start is enough for the wait: 7.7 - 6.6.
            waits={1: 1.1, 2: 1.1},
        )

    def test_every_repair_is_said(self, notes: dict[str, list[str]]) -> None:
        assert sorted(notes["damaged-logs"]) == [
            "audio_end_missing",
            "blank_line",
            "cut_last_line",  # of the framework's log
            "cut_last_line",  # of the caller's
            "duplicate_record",  # a sound
            "duplicate_record",  # a text
            "false_speech_detection",
        ]


class TestTheJsonForm:
    def test_turn_ids_are_text_sets_are_ascending_lists_intervals_are_pairs(
        self, calls: dict[str, Conversation]
    ) -> None:
        plain = metric_context(calls["user-interrupts-with-tools"]).to_dict()
        assert json.loads(json.dumps(plain)) == plain
        assert list(plain["intended_user_turns"]) == ["1", "2", "3", "4"]
        assert plain["audio_timestamps_user_turns"]["1"] == [[4.3, 6.5]]
        assert plain["latency_assistant_turns"]["3"] == 2.2
        assert plain["user_interrupted_turns"] == [3]
        assert plain["assistant_interrupted_turns"] == []
        assert plain["pipeline_type"] == "cascade"

    def test_the_default_rule_has_the_fields_of_the_seed_and_no_other(self, calls: dict[str, Conversation]) -> None:
        plain = metric_context(calls["normal"]).to_dict()
        names = list(MetricContext.__struct_fields__)
        assert list(plain) == names[: names.index("turn_rule")]

    def test_the_rule_eva_adds_its_fields_and_keeps_times_as_logged(self) -> None:
        (call,) = [one for one in convoscope.read(RUN, turns="eva") if one.id == "user-interrupts-with-tools"]
        plain = metric_context(call).to_dict()
        assert plain["tool_called"] == ["verify_owner", "verify_owner", "move_appointment"]
        assert plain["is_s2s"] is False
        assert plain["fallback_turn_ids"] == []
        assert plain["audio_timestamps_user_turns"]["1"] == [[1770849664.7, 1770849666.9]]
        assert plain["transcribed_user_turns"]["3"].startswith("[user interrupts] Just move it")
        assert plain["intended_assistant_turns"]["2"].endswith("correct? [likely cut off by user]")

    def test_a_key_that_an_entry_of_the_trace_does_not_have_reads_as_none(self, calls: dict[str, Conversation]) -> None:
        trace = metric_context(calls["tool-calls"]).conversation_trace
        assert [entry["role"] for entry in trace].count(None) == 4
        assert trace[0]["tool_name"] is None
        assert "tool_name" not in trace[0]
