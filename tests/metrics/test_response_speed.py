"""voice.response_speed: how fast the agent answers, and which of its parts takes the time (voice logs, 1.4)."""

from typing import Any

import pytest

from convoscope.conversation import Conversation, Outcome, Source
from convoscope.metrics.latency import components, response
from convoscope.metrics.registry import collect
from convoscope.scoring.evaluate import evaluate, observe
from convoscope.scoring.profiles import Profiles
from support.calls import bot, caller, reported, voice_call
from support.chats import agent, call, chat, told, user

DECLARED = collect([components, response])


def turns(name: str, conversation: Conversation) -> list[tuple[str, Any]]:
    return told(observe(DECLARED[f"voice.response_speed{name}"], conversation))


def three_turns(**facts: Any) -> Conversation:
    """Waits of 1 s, of 3 s with a tool, and none: the agent interrupts."""
    return voice_call(
        caller("hi", (0.0, 1.0)),
        bot("yes?", (2.0, 3.0)),
        caller("book", (4.0, 5.0)),
        call("book"),
        bot("done", (8.0, 9.0)),
        caller("and bye", (10.0, 12.0)),
        bot("bye", (11.0, 12.5)),
        **facts,
    )


class TestTurns:
    def test_from_the_sound_where_the_log_states_none(self) -> None:
        observations = observe(response.response_speed, three_turns())
        assert told(observations) == [
            ("turn 1", 1.0),  # 2 − 1
            ("turn 2", 3.0),  # 8 − 5
            ("turn 3", "not_applicable: agent_interrupted"),
        ]
        assert observations[0].details == {"from": "sound"}

    def test_a_recording_without_a_log_has_no_wait_by_the_log(self) -> None:
        """Its waits are those of `timing.response_latency`."""
        bare = three_turns(source=Source(format="recording"))
        profile = Profiles([response.response_speed, response.response_latency]).of(bare)
        assert [metric.key for _, metric in profile.ready] == ["timing.response_latency"]
        assert [(one.status, one.reason) for one in profile.absent.values()] == [("not_applicable", "times_from_sound")]

    def test_as_the_log_states_it(self) -> None:
        conversation = three_turns(extras={"response_latencies": [1.25, 3.5, 0.75]})
        observations = observe(response.response_speed, conversation)
        assert told(observations) == [("turn 1", 1.25), ("turn 2", 3.5), ("turn 3", 0.75)]
        assert observations[0].details == {"from": "log"}
        # The sound stands beside it.
        assert turns(".sound", conversation)[:2] == [("turn 1", 1.0), ("turn 2", 3.0)]

    @pytest.mark.parametrize(
        ("stated", "outcome"),
        [
            (-21.288, "not_applicable: no_wait"),  # the value that spoiled a mean (1.7, defect 2)
            (0.0, "not_applicable: no_wait"),
            (0.001, 0.001),
            (999.9, 999.9),
            (1000.0, "unmeasured: implausible_latency"),
        ],
    )
    def test_what_counts_as_a_wait_by_the_published_rule(self, stated: float, outcome: float | str) -> None:
        conversation = three_turns(extras={"response_latencies": [stated, 1.0, 1.0]})
        observations = observe(response.response_speed_eva, conversation)
        assert told(observations)[0] == ("turn 1", outcome)
        if observations[0].value is None:
            assert observations[0].detail == f"{stated:g} s"

    @pytest.mark.parametrize(
        ("stated", "outcome"),
        [
            (-21.288, "unmeasured: negative_time"),
            (0.0, 0.0),
            (1000.5, 1000.5),  # it was left out, so that with a wait of 1 s the mean was 1.00 s
            (2000.5, "unmeasured: longer_than_the_call"),
        ],
    )
    def test_only_what_cannot_be_is_set_aside(self, stated: float, outcome: float | str) -> None:
        facts: Any = {"extras": {"response_latencies": [stated, 1.0, 1.0]}, "outcome": Outcome(duration=2000.0)}
        assert told(observe(response.response_speed, three_turns(**facts)))[0] == ("turn 1", outcome)

    def test_waits_that_are_all_0_were_not_measured(self) -> None:
        conversation = three_turns(extras={"response_latencies": [0, 0, 0]})
        found = {reason for _, reason in told(observe(response.response_speed, conversation))}
        assert found == {"unmeasured: clock_without_resolution"}

    def test_with_and_without_a_tool_call(self) -> None:
        assert turns(".with_tool_calls", three_turns()) == [
            ("turn 1", "not_applicable: no_tool_calls"),
            ("turn 2", 3.0),
            ("turn 3", "not_applicable: no_tool_calls"),
        ]
        assert turns(".no_tool_calls", three_turns()) == [
            ("turn 1", 1.0),
            ("turn 2", "not_applicable: tool_calls"),
            ("turn 3", "not_applicable: agent_interrupted"),
        ]

    def test_turns_without_a_wait(self) -> None:
        conversation = voice_call(bot("welcome", (0.0, 1.0)), caller("hi"), bot("yes?"), caller("bye", (5.0, 6.0)))
        assert turns("", conversation) == [
            ("turn 0", "not_applicable: no_user_speech"),
            ("turn 1", "unmeasured: no_latency"),
            ("turn 2", "unmeasured: end_unknown"),
        ]

    def test_the_mean_of_a_call(self) -> None:
        (evaluated,) = evaluate(three_turns(), [response.response_speed])
        assert evaluated.scores[0].value == 2.0  # (1 + 3) ÷ 2

    def test_a_chat_is_no_call(self) -> None:
        assert turns("", chat(user("hi"), agent("yes"))) == [("conversation", "not_applicable: not_a_call")]


class TestComponents:
    def test_the_mean_that_the_log_states(self) -> None:
        latencies = {"llm": {"mean_ms": 812.5, "p50_ms": 800.0, "total_calls": 4}}
        conversation = voice_call(reported("llm", latency=9.0), extras={"latencies": latencies})
        (one,) = observe(components.mean_llm_latency, conversation)
        assert (one.value, one.details) == (0.8125, {"from": "stated mean", "calls": 4})  # 812.5 ms

    @pytest.mark.parametrize(
        "stated",
        [{"mean_ms": 0.0, "total_calls": 0}, {"mean_ms": 0.0}, {"mean_ms": None}, {"mean_ms": "fast"}, {}, None, 7],
    )
    def test_a_mean_of_nothing_is_none(self, stated: Any) -> None:
        conversation = voice_call(extras={"latencies": {"stt": stated}})
        assert turns(".stt_latency", conversation) == [("conversation", "unmeasured: no_component_latency")]

    def test_else_of_what_the_part_reports(self) -> None:
        conversation = voice_call(
            reported("tts", ttfb=0.25),
            reported("tts", processing=3.0),
            reported("tts", ttfb=0.75),
            reported("llm", latency=9.0),
        )
        (one,) = observe(components.mean_tts_latency, conversation)
        # (0.25 + 0.75) ÷ 2; what processing took is another thing.
        assert (one.value, one.details) == (0.5, {"from": "ttfb", "calls": 2})

    def test_a_part_that_the_pipeline_does_not_have(self) -> None:
        for name, pipeline in ((".stt_latency", "audio_llm"), (".tts_latency", "s2s"), (".llm_latency", "s2s")):
            assert turns(name, voice_call(pipeline=pipeline)) == [("conversation", "not_applicable: no_such_component")]
        # A recogniser that ran beside it has its latency all the same.
        beside = voice_call(reported("stt", latency=0.5), pipeline="s2s")
        assert turns(".stt_latency", beside) == [("conversation", 0.5)]

    def test_the_model_as_a_whole(self) -> None:
        conversation = voice_call(extras={"latencies": {"model_response": {"mean_ms": 1500, "total_calls": 3}}})
        assert turns(".model_response_latency", conversation) == [("conversation", 1.5)]
