"""audio.word_accuracy: what the agent was given to say against the transcript of the session (standard-data, 2.5)."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation import Agent, AudioFile, Conversation, Item
from convoscope.metrics.audio.word_accuracy import TranscriptLine, speakers_of, transcript_lines, word_accuracy
from convoscope.scores.observation import Observation
from convoscope.scoring.evaluate import evaluate, observe
from support.chats import agent, chat, told, user
from support.stacks import part
from support.strategies import json_values, texts


def spoken(transcript: str, *lines: str, **facts: Any) -> Conversation:
    """One item whose agent was given these lines, and the transcript of the whole."""
    spans = [part("tts_span", label=f"turn_{number}", input_text=line) for number, line in enumerate(lines, start=1)]
    item = Item(id="1", events=tuple(range(len(spans))))
    return chat(*spans, items=(item,), recording=AudioFile(transcript=transcript), **facts)


def only(conversation: Conversation) -> Observation:
    (one,) = observe(word_accuracy, conversation)
    return one


class TestWords:
    def test_all_right_and_nothing_wrong(self) -> None:
        one = only(spoken("User: Hi!\nAssistant: Your table is booked.", "Your table is booked."))
        assert (one.value, one.numerator, one.denominator) == (1.0, 4.0, 4.0)
        assert one.details == {"words": 4, "substitutions": 0, "deletions": 0, "insertions": 0}

    def test_errors_are_counted_and_shown(self) -> None:
        # your table is booked for friday → your cable is for friday now: 1 substituted, 1 deleted, 1 inserted of 6
        one = only(spoken("Assistant: Your cable is for Friday now.", "Your table is booked for Friday."))
        assert one.value == pytest.approx(0.5)  # 1 − 3 ÷ 6
        assert one.details == {
            "words": 6,
            "substitutions": 1,
            "deletions": 1,
            "insertions": 1,
            "worst": [
                {"said": "table", "heard": "cable"},
                {"said": "booked", "heard": ""},
                {"said": "", "heard": "now"},
            ],
        }

    def test_not_below_zero(self) -> None:
        # 1 word, 3 inserted: 1 − 3 would be −2.
        one = only(spoken("Assistant: yes that is right", "Yes."))
        assert (one.value, one.numerator) == (0.0, 0.0)

    def test_numbers_punctuation_and_case_are_said_alike(self) -> None:
        one = only(spoken("AGENT: that's twenty-three euros", "That's 23 euros!"))
        assert one.value == 1.0

    def test_points(self) -> None:
        (evaluated,) = evaluate(spoken("Bot: see you on", "see you on Friday"), [word_accuracy])
        assert evaluated.scores[0].ten == pytest.approx(7.5)  # 10 · (1 − 1 ÷ 4)

    def test_the_agents_words_are_missing_altogether(self) -> None:
        assert only(spoken("User: hello? Anybody?\nCaller: hello?", "Good morning.")).value == 0.0


class TestReference:
    def test_turn_2_comes_before_turn_10(self) -> None:
        lines = ("your", "table", "for", "us", "is", "booked", "at", "our", "usual", "place")
        spans = [part("tts_span", label=f"turn_{number}", input_text=line) for number, line in enumerate(lines, 1)]
        spans.sort(key=lambda span: span.label)  # turn_1, turn_10, turn_2, …
        transcript = "Assistant: your table for us is booked at our usual place"
        conversation = chat(
            *spans, items=(Item(id="1", events=tuple(range(10))),), recording=AudioFile(transcript=transcript)
        )
        assert only(conversation).value == 1.0

    def test_items_of_one_recording_are_one_text(self) -> None:
        events = [part("tts_span", input_text="good morning"), part("tts_span", input_text="goodbye")]
        conversation = chat(
            *events,
            items=(Item(id="a", events=(0,)), Item(id="b", events=(1,)), Item(id="c")),
            recording=AudioFile(transcript="Assistant: Good morning\nUser: bye\nAssistant: Goodbye"),
        )
        assert told(observe(word_accuracy, conversation)) == [
            ("conversation", 1.0),
            ("item c", "unmeasured: no_tts_data"),
        ]

    def test_a_session_that_each_item_repeats_is_said_once(self) -> None:
        whole = [part("tts_span", label="turn_1", input_text="hi"), part("tts_span", label="turn_2", input_text="bye")]
        conversation = chat(
            *whole,
            *whole,
            items=(Item(id="a", events=(0, 1)), Item(id="b", events=(2, 3))),
            recording=AudioFile(transcript="Assistant: hi\nAssistant: bye"),
        )
        assert told(observe(word_accuracy, conversation)) == [("conversation", 1.0)]

    def test_an_item_with_a_recording_of_its_own(self) -> None:
        events = [part("tts_span", input_text="good morning"), part("tts_span", input_text="goodbye now")]
        own = {"raw_complete_audio": {"complete_transcript": "Agent: goodbye cow"}}
        conversation = chat(
            *events,
            items=(Item(id="a", events=(0,)), Item(id="b", events=(1,), extras=own)),
            recording=AudioFile(transcript="Agent: good morning"),
        )
        assert told(observe(word_accuracy, conversation)) == [("item a", 1.0), ("item b", 0.5)]

    def test_a_span_that_does_not_tell_its_text(self) -> None:
        conversation = spoken("Agent: good morning", "good morning")
        spans = [*conversation.timeline, part("tts_span", label="turn_2", provider="x")]
        one = only(chat(*spans, recording=conversation.recording))
        assert (one.status, one.reason, one.detail) == ("unmeasured", "no_input_text", "turn_2")

    def test_nothing_to_say(self) -> None:
        assert told([only(spoken("Agent: hm", "…", ""))]) == [("item 1", "not_applicable: nothing_to_say")]

    def test_another_language(self) -> None:
        one = only(spoken("Agent: três vezes", "Três vezes!", extras={"language": "pt-BR"}))
        assert one.value == 1.0


class TestNeeds:
    def test_no_synthesis(self) -> None:
        conversation = chat(user("hi"), agent("yes"), recording=AudioFile(transcript="Agent: yes"))
        assert told([only(conversation)]) == [("conversation", "unmeasured: no_tts_data")]

    def test_no_recording(self) -> None:
        conversation = chat(part("tts_span", input_text="yes"))
        assert told([only(conversation)]) == [("conversation", "unmeasured: no_raw_complete_audio")]

    @pytest.mark.parametrize("transcript", ["", "  \n"])
    def test_no_transcript(self, transcript: str) -> None:
        assert told([only(spoken(transcript, "yes"))]) == [("item 1", "unmeasured: no_transcript")]


class TestWhoSpeaks:
    @pytest.mark.parametrize(
        "transcript",
        [
            "Assistant: good morning\nUser: hello\nAssistant: goodbye",
            "agent: good morning\ncaller: hello\nagent: goodbye",
            "AI: good morning\nHuman: hello\nAI: goodbye",
            "[00:01.2] Bot: good morning\n[00:03.0] Customer: hello\n[00:04.1] Bot: goodbye",
            "**Assistant:** good morning\n**User:** hello\n**Assistant:** goodbye",
            "- Agent (0:01): good morning\n- User (0:03): hello\n- Agent (0:04): goodbye",
            "Assistant: good\nmorning\n\nUser: hello\nAssistant: goodbye",
            "Assistant: good morning User: hello Assistant: goodbye",
            "Agent: good morning\nJohn Miller: hello\nAgent: goodbye",
            "Ava: good morning\nUser: hello\nAva: goodbye",  # the agent's name
            json.dumps([{"speaker": "assistant", "text": "good morning"}, {"speaker": "user", "text": "hello"}])[:-1]
            + ', {"role": "agent", "content": "goodbye"}]',
            json.dumps(
                {"turns": [{"speaker": "Agent", "message": "good morning"}, {"speaker": "bot", "text": "goodbye"}]}
            ),
        ],
    )
    def test_is_told_by_labels(self, transcript: str) -> None:
        one = only(spoken(transcript, "good morning", "goodbye", agent=Agent(name="Ava")))
        assert (one.value, one.reason) == (1.0, "")

    @pytest.mark.parametrize(
        "transcript",
        [
            "good morning hello goodbye",
            "Speaker 1: good morning\nSpeaker 2: hello",
            "Call of Monday\nAssistant: good morning",  # nobody knows who said the first line
            json.dumps([{"speaker": "spk_0", "text": "good morning"}, {"speaker": "user", "text": "hello"}]),
            "[not json",
        ],
    )
    def test_is_not_told(self, transcript: str) -> None:
        assert told([only(spoken(transcript, "good morning"))]) == [("item 1", "unmeasured: speakers_not_told")]

    def test_a_colon_in_a_sentence_is_no_speaker(self) -> None:
        speakers = speakers_of(chat())
        transcript = "Assistant: One thing:\nNote: bring your agent: card\nUser: ok"
        assert transcript_lines(transcript, speakers) == [
            TranscriptLine("assistant", "One thing:\nNote: bring your agent: card"),
            TranscriptLine("user", "ok"),
        ]

    def test_the_agent_alone_needs_no_label(self) -> None:
        for timeline in (
            {"agent": [[0.0, 1.0]]},
            [{"speaker": "assistant", "start": 0}],
            {"segments": [{"role": "bot"}]},
        ):
            recording = AudioFile(transcript="good morning", extras={"timeline": timeline})
            conversation = chat(part("tts_span", input_text="good morning"), recording=recording)
            assert only(conversation).value == 1.0
        both = AudioFile(transcript="good morning", extras={"timeline": {"agent": [[0, 1]], "user": [[1, 2]]}})
        conversation = chat(part("tts_span", input_text="good morning"), recording=both)
        assert only(conversation).reason == "speakers_not_told"

    def test_the_agent_alone_by_the_conversation(self) -> None:
        spoke = (part("tts_span", input_text="good morning"), agent("good morning"))
        recording = AudioFile(transcript="good morning")
        assert only(chat(*spoke, recording=recording)).value == 1.0
        assert only(chat(*spoke, user("hi"), recording=recording)).reason == "speakers_not_told"


class TestNeverRaises:
    @given(
        st.lists(texts() | st.sampled_from(["User: hi", "Agent: one two", "AI:", '[{"speaker": "bot"}', "3: x"])),
        st.lists(json_values(max_leaves=2), max_size=3),
        json_values(),
    )
    def test_whatever_is_said(self, lines: list[str], given: list[Any], timeline: Any) -> None:
        spans = [part("tts_span", label=f"turn_{number}", input_text=one) for number, one in enumerate(given)]
        recording = AudioFile(transcript="\n".join(lines), extras={"timeline": timeline})
        (one,) = observe(word_accuracy, chat(*spans, recording=recording))
        assert one.status != "error", one.detail
        assert one.value is None or 0 <= one.value <= 1

    def test_a_long_line_takes_no_time(self) -> None:
        assert transcript_lines("1:" * 50_000 + " -" * 50_000, speakers_of(chat())) == []
