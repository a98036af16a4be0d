"""The published fixtures' reading of a call, after its last record: what was spoken, tools, intervals, both ends.

Every expectation is derived by hand from the steps of the specification of voice logs; the numbers
in the comments are its sections.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from convoscope.conversation.events import Logged
from convoscope.views.eva import read_eva
from support.eva_calls import (
    GREETING,
    answers,
    calls,
    caught,
    ends,
    falls_back,
    hangs_up,
    hears,
    means,
    read,
    replies,
    reply,
    says,
    speaks,
    starts,
    trace,
)


class TestSpokenPart:
    """3.6(2): what the audit log has against what the speech engine got."""

    LONG = "Your flight leaves at noon from gate four, and it is on time."

    def said(self, logged: str, *sent: str) -> list[str | None]:
        told = read(*GREETING, *says("Hi."), replies(logged), *(speaks(text) for text in sent), *says("Bye."))
        return [text for turn, who, text in trace(told) if (turn, who) == (1, "assistant")]

    def test_whole_text_inside_a_segment(self) -> None:
        assert self.said("I'd be", "I’d be happy to help.") == ["I'd be"]

    def test_signs_and_case_do_not_count(self) -> None:
        assert self.said("**Two** flights:\n\n- noon", "two FLIGHTS - noon.") == ["**Two** flights:\n\n- noon"]

    def test_whole_text_across_all_segments(self) -> None:
        assert self.said("One two three", "One t", "wo three") == ["One two three"]

    def test_a_longer_text_is_cut_to_the_words_that_were_sent(self) -> None:
        # "Your flight leaves at noon": 22 alphanumeric characters
        assert self.said(self.LONG, "Your flight leaves at noon") == ["Your flight leaves at noon"]

    def test_half_a_word_was_not_sent(self) -> None:
        assert self.said(self.LONG, "Your flight leaves at noon fro") == ["Your flight leaves at noon"]

    def test_fewer_than_20_characters_are_nothing(self) -> None:
        # "Your flight leaves" has 16, "Your flight leaves at" 18
        assert self.said(self.LONG, "Your flight leaves at no") == []
        # "Yours flight leaves at xy" would be 21: one of exactly 20 is kept
        assert self.said("abcdefghij klmnopqrst uvw", "Abcdefghij klmnopqrst!") == ["abcdefghij klmnopqrst"]
        assert self.said("abcdefghij klmnopqrs tuvw", "Abcdefghij klmnopqrs!") == []

    def test_a_part_is_never_looked_for_across_segments(self) -> None:
        assert self.said(self.LONG, "Your flight leaves", "at noon from gate") == []

    def test_unsaid_texts_are_dropped(self) -> None:
        assert self.said("Never said.", "Something else entirely.") == []
        assert self.said("Never said.") == []
        assert self.said("—", "Something else entirely.") == []

    def test_segments_of_another_turn_do_not_count(self) -> None:
        told = read(*GREETING, *says("Hi."), replies("Hello."), *says("Bye."))
        # turn 1 has no segment; the user's second say stays in turn 1, since nobody spoke
        assert [who for _, who, _ in trace(told)] == ["assistant", "user"]

    def test_a_prefixed_text_loses_two_words_more(self) -> None:
        told = read(
            *GREETING, starts("user"), means("Hi"), starts("assistant"), replies(self.LONG),
            speaks("Your flight leaves at noon from gate"), ends("user"), ends("assistant"), *says("Bye."),
        )  # fmt: skip
        # seven words were sent; the label is two of the seven that are kept
        assert (1, "assistant", "[assistant interrupts] Your flight leaves at noon") in trace(told)

    def test_a_nudge_is_kept_said_or_not_and_only_the_next_entry_is_one(self) -> None:
        told = read(
            *GREETING, *says("Hi."), falls_back(), replies("Are you there?"), replies("Never said."), *says("Bye."),
        )  # fmt: skip
        assert [text for _, who, text in trace(told) if who == "assistant"] == ["Hello.", "Are you there?"]
        assert told.fallback_turn_ids == {1}

    def test_without_a_framework_log_everything_counts(self) -> None:
        # 3.9, missing logs: nothing is known of what was spoken
        told = read(
            starts("assistant"), ends("assistant"), caught("Hello."), *says("Hi."), replies("Well?"),
            starts("assistant"), caught("Well?"), ends("assistant"), *says("Bye."),
        )  # fmt: skip
        assert trace(told) == [
            (0, "assistant", "Hello."),
            (1, "user", "Hi."),
            (1, "assistant", "Well?"),
            (2, "user", "Bye."),
        ]


class TestTools:
    def test_in_order_with_repeats_and_names_as_logged(self) -> None:
        told = read(
            *GREETING, *says("Hi."), calls("Find", {"to": "OSL"}), answers("Find", {"ok": True}), calls("Find", {}),
            calls("none", None), answers("none", None), *says("Bye."),
        )  # fmt: skip
        assert told.tool_called == ["find", "find"]
        assert told.num_tool_calls == 2  # a call without parameters does not count
        assert told.tool_params == [
            {"tool_name": "Find", "tool_parameters": {"to": "OSL"}},
            {"tool_name": "Find", "tool_parameters": {}},
        ]
        assert told.tool_responses == [{"tool_name": "Find", "tool_response": {"ok": True}}]
        assert told.conversation_trace[2:4] == [
            {"tool_name": "Find", "parameters": {"to": "OSL"}, "type": "tool_call", "turn_id": 1},
            {"tool_name": "Find", "tool_response": {"ok": True}, "type": "tool_response", "turn_id": 1},
        ]

    def test_s2s_tools_stand_before_the_text_that_announced_them(self) -> None:
        # 3.8, s2s_audit_truncated_to_spoken: the text comes from the caller's recogniser, after the sound; the
        # audit log's own text is not used, however long
        told = read(
            starts("assistant"), ends("assistant"), caught("Hello."), starts("user"), means("Hi."), hears("hi"),
            ends("user"), starts("assistant"), replies("One moment, I look that up and tell you all about it."),
            calls("find", {}), answers("find", {}), ends("assistant"), caught("One moment, I look"),
            starts("user"), means("Bye."), ends("user"), pipeline="s2s",
        )  # fmt: skip
        assert trace(told) == [
            (0, "assistant", "Hello."),
            (1, "user", "Hi."),
            (1, "tool_call", "find"),
            (1, "tool_response", "find"),
            (1, "assistant", "One moment, I look"),
            (2, "user", "Bye."),
        ]
        assert [entry["type"] for entry in told.conversation_trace if "role" in entry] == [
            "transcribed", "intended", "transcribed", "intended",
        ]  # fmt: skip
        assert told.intended_assistant_turns == {0: "", 1: ""}
        assert told.transcribed_user_turns == {1: "hi", 2: "Bye."}  # backfilled

    @pytest.mark.parametrize("value", [None, "find", 7, [], {}, {"tool": None}, {"tool": ["x"], "parameters": 0}])
    def test_odd_values_are_told_as_they_are(self, value: Any) -> None:
        told = read(Logged(source="audit", kind="tool_call", value=value))
        assert len(told.conversation_trace) == 1
        assert told.num_tool_calls == len(told.tool_called) <= 1


class TestIntervals:
    def test_a_missing_end_is_the_end_of_the_session(self) -> None:
        told = read(starts("assistant", 1.25), hangs_up(8000), hangs_up(9000))
        assert told.audio_timestamps_assistant_turns == {0: [(1.25, 9.0)]}  # the last one counts

    def test_or_the_last_event_of_any_log(self) -> None:
        assert read(starts("assistant", 1.0), hears("Hi.", 7500)).audio_timestamps_assistant_turns == {0: [(1.0, 7.5)]}
        ignored = Logged(source="audit", kind="llm_call", ms=7700)
        assert read(starts("assistant", 1.0), ignored).audio_timestamps_assistant_turns == {0: [(1.0, 7.7)]}
        # a sign of silence is not an event, nor is the framework's log in S2S
        told = read(
            starts("assistant", 1.0), means("...", 9000), speaks("Hello.", 9000), hangs_up(None), pipeline="s2s"
        )
        assert told.audio_timestamps_assistant_turns == {0: [(1.0, 1.3)]}

    def test_surplus_ends_and_ends_before_any_start_do_not_count(self) -> None:
        told = read(ends("assistant", 0.5), starts("assistant", 1.0), ends("assistant", 2.0), ends("assistant", 3.0))
        assert told.audio_timestamps_assistant_turns == {0: [(1.0, 2.0)]}

    def test_an_end_belongs_to_the_turn_of_its_start(self) -> None:
        told = read(
            speaks("Hello."), starts("assistant", 1.0), starts("user", 2.0), means("No."), ends("assistant", 3.0)
        )
        assert told.audio_timestamps_assistant_turns == {0: [(1.0, 3.0)]}

    def test_latency_is_from_the_last_user_end_to_the_first_assistant_start(self) -> None:
        told = read(
            *GREETING, starts("user", 10.0), means("One"), ends("user", 11.0000004), starts("user", 12.0),
            means("two"), ends("user", 13.1234567), speaks("Yes."), starts("assistant", 14.5), ends("assistant", 15.0),
            starts("assistant", 16.0),
        )  # fmt: skip
        # 14.5 - 13.1234567 = 1.3765433, six decimals; turn 0 has no user sound
        assert told.latency_assistant_turns == {1: 1.376543}

    def test_latency_can_be_negative(self) -> None:
        told = read(
            *GREETING, starts("user", 2.0), means("Hi"), starts("assistant", 2.5), ends("user", 2.75), hangs_up(),
        )  # fmt: skip
        assert told.latency_assistant_turns == {1: -0.25}

    def test_keys_are_the_same_for_each_role(self) -> None:
        told = read(*GREETING, starts("user"), means("Hi."), ends("user"), speaks("Well?"), hears("again"))
        # the line opens turn 2 without sound and without intended text
        assert told.intended_user_turns == {1: "Hi.", 2: ""}
        assert told.transcribed_user_turns == {1: "", 2: "again"}
        assert told.audio_timestamps_user_turns == {1: [(1.4, 1.6)], 2: None}
        assert told.transcribed_assistant_turns == {0: "Hello.", 1: ""}
        assert told.audio_timestamps_assistant_turns == {0: [(1.1, 1.2)], 1: None}
        assert (told.num_user_turns, told.num_assistant_turns) == (1, 2)  # before keys are added


class TestReconciliation:
    def test_only_a_greeting(self) -> None:
        told = read(*GREETING)
        assert told.conversation_trace == [
            {"role": "assistant", "content": "Hello.", "type": "intended", "turn_id": 0}
        ]  # no trailing label: the trace was empty

    def test_an_s2s_greeting_alone_is_labelled_only_where_a_user_was_meant(self) -> None:
        alone = read(starts("assistant"), caught("Hello."), pipeline="s2s")
        assert trace(alone) == [(0, "assistant", "Hello.")]  # intended_user_turns has no key

    def test_an_empty_trace_does_not_use_what_the_caller_heard(self) -> None:
        assert read(starts("assistant"), caught("Hello.")).conversation_trace == []

    def test_a_greeting_that_was_logged_late_is_moved(self) -> None:
        late = read(
            starts("assistant"), ends("assistant"), starts("user"), means("Hi."), caught("Hello."), ends("user"),
            pipeline="s2s",
        )  # fmt: skip
        assert trace(late) == [(0, "assistant", "Hello."), (1, "user", "Hi.")]

    def test_a_greeting_that_was_not_logged_is_made(self) -> None:
        made = read(*GREETING, *says("Hi.")).conversation_trace[0]
        assert made == {"role": "assistant", "content": "Hello.", "type": "intended", "turn_id": 0}
        heard = read(starts("assistant"), ends("assistant"), caught("Hm."), *says("Hi.")).conversation_trace[0]
        assert heard == {"role": "assistant", "content": "Hm.", "type": "transcribed", "turn_id": 0}

    def test_the_users_last_words_are_appended_where_only_the_caller_has_them(self) -> None:
        told = read(*GREETING, *says("Hi."), *reply("Well?"), starts("user"), means("Bye."), ends("user"))
        assert told.conversation_trace[-1] == {"role": "user", "content": "Bye.", "type": "intended", "turn_id": 2}
        assert told.transcribed_user_turns == {1: "Hi.", 2: "Bye."}
        assert told.intended_assistant_turns[1] == "Well?"

    def test_a_last_user_turn_that_was_not_transcribed_is_backfilled(self) -> None:
        heard = (*says("Hey."), *reply("Yes?"))
        told = read(*GREETING, *heard, starts("user"), means("Hi."), ends("user"), calls("find", {}))
        assert told.transcribed_user_turns == {1: "Hey.", 2: "Hi."}
        assert trace(told)[-1] == (2, "tool_call", "find")

    def test_a_trace_that_begins_with_a_tool_gets_no_greeting(self) -> None:
        told = read(*GREETING, calls("find", {}))
        assert trace(told) == [(0, "tool_call", "find")]

    def test_the_agents_last_words_are_taken_as_cut_off(self) -> None:
        told = read(*GREETING, *says("Hi."), *reply("Goodbye."))
        assert trace(told)[-1] == (1, "assistant", "Goodbye. [speaker likely cut itself off]")
        assert told.intended_assistant_turns[1] == "Goodbye. [speaker likely cut itself off]"
        assert told.transcribed_assistant_turns[1] == "Goodbye. [speaker likely cut itself off]"

    def test_what_nobody_transcribed_is_a_copy_with_the_label(self) -> None:
        told = read(*GREETING, *says("Hi."), replies("Goodbye."), speaks("Goodbye."))
        assert told.transcribed_assistant_turns[1] == "Goodbye. [speaker likely cut itself off]"

    def test_in_s2s_intended_stays_empty(self) -> None:
        told = read(
            starts("assistant"), ends("assistant"), caught("Hello."), starts("user"), means("Hi."), ends("user"),
            starts("assistant"), ends("assistant"), caught("Bye."), pipeline="s2s",
        )  # fmt: skip
        assert told.transcribed_assistant_turns[1] == "Bye. [speaker likely cut itself off]"
        assert told.intended_assistant_turns == {0: "", 1: ""}

    def test_spoken_words_that_no_entry_has_are_appended_after_a_user_or_tool(self) -> None:
        told = read(*GREETING, *says("Hi."), calls("find", {}), speaks("One moment."), starts("assistant"))
        assert told.conversation_trace[-1] == {
            "role": "assistant",
            "content": "One moment. [speaker likely cut itself off]",
            "type": "intended",
            "turn_id": 1,
        }
        assert told.intended_assistant_turns[1] == "One moment. [speaker likely cut itself off]"
        assert told.transcribed_assistant_turns[1] == "One moment. [speaker likely cut itself off]"

    def test_but_not_where_the_turn_has_an_assistant_entry(self) -> None:
        told = read(*GREETING, *says("Hi."), replies("One."), speaks("One."), calls("find", {}))
        assert trace(told)[-1] == (1, "tool_call", "find")
        assert told.intended_assistant_turns[1] == "One."

    def test_nor_where_the_highest_turn_is_before_the_last_entry(self) -> None:
        told = read(*GREETING, *says("Hi."))
        assert trace(told)[-1] == (1, "user", "Hi.")
        assert told.intended_assistant_turns == {0: "Hello."}

    def test_a_kept_nudge_at_the_end_of_a_turn_without_other_words(self) -> None:
        told = read(*GREETING, *says("Hi."), falls_back(), replies("Are you there?"))
        assert trace(told)[-1] == (1, "assistant", "Are you there? [speaker likely cut itself off]")
        assert told.transcribed_assistant_turns == {0: "Hello.", 1: None}
        assert told.intended_assistant_turns == {0: "Hello."}

    def test_entries_of_one_role_and_turn_are_one_and_a_tool_parts_them(self) -> None:
        told = read(
            *GREETING, *says("Hi."), hears("you"), replies("One."), replies("Two."), speaks("One. Two. Three."),
            calls("find", {}), replies("Three."), *says("Bye."),
        )  # fmt: skip
        assert trace(told)[1:5] == [
            (1, "user", "Hi. you"),
            (1, "assistant", "One. Two."),
            (1, "tool_call", "find"),
            (1, "assistant", "Three."),
        ]


class TestWhatIsMissing:
    def test_nothing_at_all(self) -> None:
        told = read_eva([], None)
        assert told.conversation_trace == []
        assert told.turn_of == ()

    def test_the_audit_log_alone_still_has_turns(self) -> None:
        told = read(hears("Hi."), replies("Well?"), hears("Bye."), replies("Goodbye."))
        assert told.transcribed_user_turns == {0: "Hi.", 1: "Bye."}
        assert trace(told)[1] == (0, "assistant", "Well?")

    def test_the_simulators_log_may_be_missing(self) -> None:
        told = read(speaks("Hello."), hears("Hi."), replies("Well?"), speaks("Well?"), hears("Bye."))
        assert trace(told) == [
            (0, "assistant", "Hello."),
            (1, "user", "Hi."),
            (1, "assistant", "Well?"),
            (2, "user", "Bye."),
        ]

    def test_a_record_without_a_time_stands_after_the_one_before_it_in_its_file(self) -> None:
        records = [
            hears("first", 2000),
            msgspec.structs.replace(hears("second"), ms=None),
            hears("third", 4000),
            speaks("between", 3000),
        ]
        # first and second at 2000, then the assistant speaks, then third
        assert read_eva(records, "cascade").transcribed_user_turns == {0: "first second", 1: "third"}

    def test_the_first_record_without_a_time_stands_before_the_next_of_its_file(self) -> None:
        records = [msgspec.structs.replace(hears("first"), ms=None), hears("second", 4000), speaks("before", 3000)]
        assert read_eva(records, "cascade").transcribed_user_turns == {1: "first second"}

    def test_a_source_is_shifted_before_sorting(self) -> None:
        records = [hears("Hi.", 1000), speaks("Hello.", 2000)]
        assert read_eva(records, "cascade").transcribed_user_turns == {0: "Hi."}
        assert read_eva(records, "cascade", {"audit": 1500}).transcribed_user_turns == {1: "Hi."}

    def test_a_missing_end_is_told_in_the_simulators_clock(self) -> None:
        # the audit line is logged at 5.0 s, which is 4.0 s of the simulator's clock
        records = [hears("Hi.", 5000), starts("assistant", 1.0, 1000)]
        shifted = read_eva(records, "cascade", {"simulator": 1000})
        assert shifted.audio_timestamps_assistant_turns == {0: [(1.0, 4.0)]}

    def test_a_sound_without_its_own_time_is_when_it_was_logged(self) -> None:
        told = read(starts("assistant", None, 1500), ends("assistant", None, 2500))
        assert told.audio_timestamps_assistant_turns == {0: [(1.5, 2.5)]}
        timeless = [starts("assistant"), ends("assistant")]
        assert read_eva(timeless, "cascade").audio_timestamps_assistant_turns == {}

    def test_texts_that_are_none_are_empty(self) -> None:
        nothing: Any = None
        told = read(hears(nothing), replies(nothing), speaks(nothing), caught(nothing), means(nothing))
        assert told.transcribed_user_turns == {0: ""}
        assert told.intended_user_turns == {0: ""}  # aligned
