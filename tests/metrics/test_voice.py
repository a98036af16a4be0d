"""voice.*: a voice agent at work."""

from typing import Any

import pytest

from convoscope.metrics.voice.speech import output_tokens, pre_tool_speech, reasoning_tokens
from convoscope.scoring.evaluate import evaluate, observe
from support.calls import bot, caller, reported, voice_call
from support.chats import agent, call, chat, result, told, user


class TestPreToolSpeech:
    def test_who_says_one_moment_first(self) -> None:
        conversation = voice_call(caller("book it"), bot("One moment."), call("book"), result("book"), bot("Done."))
        (one,) = observe(pre_tool_speech, conversation)
        assert (str(one.subject), one.value, one.details) == ("tool call 2", 1.0, {"tool": "book", "turn": 1})

    def test_who_works_in_silence(self) -> None:
        conversation = voice_call(caller("book it"), call("book"), result("book"), bot("Done."))
        assert told(observe(pre_tool_speech, conversation)) == [("tool call 1", 0.0)]

    def test_calls_with_no_speech_between_are_one_group(self) -> None:
        conversation = voice_call(
            caller("book it"),
            call("search"),  # in silence
            result("search"),
            call("book"),  # the same silence
            result("book"),
            bot("Done. And the receipt:"),
            call("receipt"),  # after speech
            caller("Thanks."),  # another turn
            call("log"),  # in silence: what it said before was of another turn
        )
        assert told(observe(pre_tool_speech, conversation)) == [
            ("tool call 1", 0.0),
            ("tool call 6", 1.0),
            ("tool call 8", 0.0),
        ]
        (evaluated,) = evaluate(conversation, [pre_tool_speech])
        assert evaluated.scores[0].value == pytest.approx(1 / 3)

    def test_words_of_the_user_part_groups_too(self) -> None:
        conversation = voice_call(caller("book"), call("search"), caller("please"), call("book"))
        # The user goes on in the same turn; the agent has still said nothing.
        assert told(observe(pre_tool_speech, conversation)) == [("tool call 1", 0.0), ("tool call 3", 0.0)]

    def test_a_false_start_of_speech_is_none(self) -> None:
        conversation = voice_call(caller("book it"), bot(""), call("book"))
        assert told(observe(pre_tool_speech, conversation)) == [("tool call 2", 0.0)]

    def test_without_a_call_of_a_tool_or_without_a_voice(self) -> None:
        assert told(observe(pre_tool_speech, voice_call(caller("hi")))) == [
            ("conversation", "not_applicable: no_tool_calls")
        ]
        assert told(observe(pre_tool_speech, chat(user("hi"), call("book"), agent("done")))) == [
            ("conversation", "not_applicable: not_a_call")
        ]


class TestTokens:
    def test_the_mean_of_the_calls_of_the_model(self) -> None:
        conversation = voice_call(
            reported("llm", output_tokens=120, reasoning_tokens=0),
            reported("llm", latency=0.8),  # says nothing of tokens
            reported("llm", output_tokens=40, reasoning_tokens=30),
        )
        assert told(observe(output_tokens, conversation)) == [
            ("component metric 0", 120.0),
            ("component metric 2", 40.0),
        ]
        (evaluated,) = evaluate(conversation, [output_tokens])
        assert evaluated.scores[0].value == 80  # (120 + 40) ÷ 2
        (evaluated,) = evaluate(conversation, [reasoning_tokens])
        assert evaluated.scores[0].value == 15  # (0 + 30) ÷ 2; no thinking is a real zero

    @pytest.mark.parametrize("value", [None, "many", -3, float("nan"), True])
    def test_a_call_that_was_not_counted(self, value: Any) -> None:
        conversation = voice_call(reported("llm", output_tokens=120, reasoning_tokens=value))
        assert told(observe(reasoning_tokens, conversation)) == [("component metric 0", "unmeasured: no_token_counts")]

    def test_a_log_that_counts_none(self) -> None:
        for conversation in (voice_call(caller("hi")), voice_call(reported("tts", output_tokens=3))):
            for metric in (output_tokens, reasoning_tokens):
                assert told(observe(metric, conversation)) == [("conversation", "unmeasured: no_token_counts")]
