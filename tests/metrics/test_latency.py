"""The thirteen latencies: source, sentinels and score map of each (standard-data, 2.5), from component metrics."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import ComponentMetric, Conversation, Expected
from convoscope.metrics.latency.components import (
    LATENCIES,
    LatencySummary,
    latency_summary,
    no_audio_rate,
    no_token_rate,
)
from convoscope.scores.observation import Observation
from convoscope.scores.reducers import MEAN_OF_SUBJECTS
from convoscope.scoring.evaluate import evaluate, observe
from convoscope.scoring.profiles import plan
from support.chats import agent, chat, told, user
from support.stacks import items, part, stack

SHARED = Path(os.environ.get("CONVOSCOPE_SHARED", Path(__file__).parents[3] / "shared"))
PAYLOADS = SHARED / "data" / "cases" / "livekit-pipecat-metrics.json"

# One turn as LiveKit reports it (standard-data, 7).
EOU = {"end_of_utterance_delay": 0.553, "transcription_delay": 0.312, "on_user_turn_completed_delay": 0.0004}
LLM = {"duration": 1.41, "ttft": 0.482, "cancelled": False}
TTS = {"ttfb": 0.187, "duration": 1.02, "audio_duration": 4.6, "cancelled": False, "acquire_time": 0.0}
STT = {"duration": 0.0, "audio_duration": 5.05, "streamed": True}


def scores(name: str, conversation: Conversation) -> list[tuple[str, Any]]:
    return told(observe(LATENCIES[name], conversation))


def only(name: str, conversation: Conversation) -> Observation:
    (one,) = observe(LATENCIES[name], conversation)
    return one


def points(name: str, conversation: Conversation) -> float | None:
    (evaluated,) = evaluate(conversation, [LATENCIES[name]])
    return evaluated.scores[0].ten


def livekit(speech: str = "speech_abc123") -> list[ComponentMetric]:
    return [part("stt", **STT), part("eou", speech, **EOU), part("llm", speech, **LLM), part("tts", speech, **TTS)]


class TestOneTurnOfLiveKit:
    @pytest.mark.parametrize(
        ("name", "seconds"),
        [
            ("llm_ttft", 0.482),
            ("llm_latency", 1.41),
            ("tts_ttfb", 0.187),
            ("tts_latency", 0.187),  # 0.187 + 0
            ("tts_duration", 1.02),
            ("tts_audio_duration", 4.6),
            ("stt_latency", 0.312),  # the recogniser streams: the transcription's delay
            ("stt_audio_duration", 5.05),
            ("end_of_turn_delay", 0.553),
            ("on_user_turn_completed_delay", 0.0004),
            ("assistant_latency", 0.669),  # 0.482 + 0.187
            ("e2e_latency", 1.2224),  # 0.553 + 0.0004 + 0.482 + 0.187
        ],
    )
    def test_value(self, name: str, seconds: float) -> None:
        (evaluated,) = evaluate(stack(*livekit()), [LATENCIES[name]])
        assert evaluated.scores[0].value == pytest.approx(seconds, abs=1e-12)

    def test_a_recogniser_that_streams_does_no_work_of_its_own(self) -> None:
        assert scores("stt_processing_duration", stack(*livekit())) == [
            ("component metric 0", "not_applicable: streamed")
        ]

    @pytest.mark.skipif(not PAYLOADS.exists(), reason="no shared data")
    def test_the_payloads_that_were_dumped_are_these(self) -> None:
        real = json.loads(PAYLOADS.read_text())["livekit_agents_1.8.9"]
        for name, mine in (("eou", EOU), ("llm", LLM), ("tts", TTS), ("stt", STT)):
            assert {field: real[name][field] for field in mine} == mine


class TestScoreMaps:
    """The pass column of the table follows from target, limit and the pass mark 7: limit − 0.7 · (limit − target)."""

    @pytest.mark.parametrize(
        ("name", "target", "limit", "passes"),
        [
            ("llm_ttft", 0.4, 2.0, 0.88),
            ("llm_latency", 1.0, 5.0, 2.2),
            ("tts_ttfb", 0.2, 1.5, 0.59),
            ("tts_latency", 0.25, 2.0, 0.775),  # 0.78 in the table
            ("tts_duration", 0.5, 1.5, 0.8),
            ("stt_latency", 0.3, 2.0, 0.81),
            ("stt_processing_duration", 0.5, 1.5, 0.8),
            ("end_of_turn_delay", 0.5, 2.5, 1.1),
            ("on_user_turn_completed_delay", 0.05, 1.0, 0.335),  # 0.34 in the table
            ("assistant_latency", 0.6, 3.0, 1.32),
            ("e2e_latency", 0.8, 4.0, 1.76),
        ],
    )
    def test_target_limit_and_pass(self, name: str, target: float, limit: float, passes: float) -> None:
        ten = LATENCIES[name].ten
        assert ten is not None
        assert [ten.score(target), ten.score(limit), ten.score(0), ten.score(limit + 9)] == [10, 0, 10, 0]
        assert ten.score(passes) == pytest.approx(7.0)
        assert ten.score(passes) >= ten.passes_at > ten.score(passes + 0.001)

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            ("llm_ttft", 9.4875),  # 10 · (2 − 0.482) ÷ 1.6
            ("e2e_latency", 8.68),  # 10 · (4 − 1.2224) ÷ 3.2
            ("tts_duration", 10.0),  # 1.02 ÷ 4.6 = 0.22 of real time
            ("tts_audio_duration", 10.0),
            ("stt_audio_duration", 10.0),
        ],
    )
    def test_of_the_turn(self, name: str, expected: float) -> None:
        assert points(name, stack(*livekit())) == pytest.approx(expected)

    def test_the_real_time_factor_is_of_sums(self) -> None:
        conversation = stack(
            part("tts", duration=3.0, audio_duration=4.0), part("tts", duration=1.0, audio_duration=1.0)
        )
        assert scores("tts_duration", conversation) == [("component metric 0", 3.0), ("component metric 1", 1.0)]
        assert points("tts_duration", conversation) == pytest.approx(7.0)  # (3 + 1) ÷ (4 + 1) = 0.8; mean 0.875

    @pytest.mark.parametrize("sound", [{}, {"audio_duration": 0.0}, {"audio_duration": -1}, {"audio_duration": "?"}])
    def test_work_on_no_known_sound_has_a_time_and_no_points(self, sound: dict[str, Any]) -> None:
        conversation = stack(part("tts", duration=0.5, **sound))
        assert scores("tts_duration", conversation) == [("component metric 0", 0.5)]
        assert points("tts_duration", conversation) is None
        beside = stack(part("tts", duration=0.5, **sound), part("tts", duration=1.0, audio_duration=1.0))
        assert points("tts_duration", beside) == pytest.approx(5.0)  # 1 ÷ 1, of the one that tells

    def test_no_sound_at_all_is_informed_of_with_0(self) -> None:
        conversation = stack(part("stt", audio_duration=0.0), part("stt", audio_duration=0))
        (evaluated,) = evaluate(conversation, [LATENCIES["stt_audio_duration"]])
        assert (evaluated.scores[0].value, evaluated.scores[0].ten) == (0.0, 0.0)


class TestSentinels:
    @pytest.mark.parametrize(
        ("name", "component", "values", "reason"),
        [
            ("llm_ttft", "llm", {"ttft": 0.4, "cancelled": True}, "cancelled"),
            ("llm_ttft", "llm", {"ttft": -1, "cancelled": "true"}, "cancelled"),
            ("llm_latency", "llm", {"duration": 2.0, "cancelled": True}, "cancelled"),
            ("tts_ttfb", "tts", {"ttfb": 0.2, "cancelled": True}, "cancelled"),
            ("tts_latency", "tts", {"ttfb": 0.2, "acquire_time": 0.1, "cancelled": 1}, "cancelled"),
            ("stt_latency", "stt", {"duration": 0.0}, "streamed"),
            ("stt_processing_duration", "stt", {"duration": 0.0}, "streamed"),
            ("stt_processing_duration", "stt", {"duration": 0.7, "streamed": True}, "streamed"),
        ],
    )
    def test_is_not_applicable(self, name: str, component: str, values: dict[str, Any], reason: str) -> None:
        conversation = stack(part(component, **values))
        assert scores(name, conversation) == [("component metric 0", f"not_applicable: {reason}")]

    @pytest.mark.parametrize(
        ("name", "component", "values", "reason"),
        [
            ("llm_ttft", "llm", {"ttft": -1}, "no_token"),
            ("llm_ttft", "llm", {"ttft": -0.5}, "no_token"),
            ("tts_ttfb", "tts", {"ttfb": -1.0}, "no_audio"),
            ("tts_latency", "tts", {"ttfb": -1.0, "acquire_time": 0.1}, "no_audio"),
            ("end_of_turn_delay", "eou", {"end_of_utterance_delay": 0.0}, "not_detected"),
        ],
    )
    def test_is_unmeasured(self, name: str, component: str, values: dict[str, Any], reason: str) -> None:
        """Nine calls without a token were not applicable, and left a coverage of 100 %."""
        conversation = stack(part(component, **values))
        assert scores(name, conversation) == [("component metric 0", f"unmeasured: {reason}")]

    def test_calls_that_never_gave_a_token_are_counted(self) -> None:
        failing = [part("llm", ttft=-1)] * 9
        conversation = stack(part("llm", ttft=0.4), *failing, part("llm", ttft=0.4, cancelled=True))
        (evaluated,) = evaluate(conversation, [no_token_rate])
        assert (evaluated.scores[0].value, evaluated.scores[0].n) == (0.9, 10)
        conversation = stack(part("tts", ttfb=-1), part("tts", ttfb=0.2))
        assert [one.value for one in observe(no_audio_rate, conversation)] == [1.0, 0.0]

    @pytest.mark.parametrize("name", ["llm_ttft", "llm_latency", "tts_ttfb", "tts_latency", "tts_duration"])
    def test_times_that_are_all_0_were_not_measured(self, name: str) -> None:
        """They gave "0.00 s, 10.0, passes"."""
        component, field = {
            "llm_ttft": ("llm", "ttft"),
            "llm_latency": ("llm", "duration"),
            "tts_duration": ("tts", "duration"),
        }.get(name, ("tts", "ttfb"))
        zeros = [part(component, **{field: 0}), part(component, **{field: 0.0})]
        reason = "unmeasured: clock_without_resolution"
        assert [value for _, value in scores(name, stack(*zeros))] == [reason, reason]
        # Beside a time, a 0 is a time.
        assert [value for _, value in scores(name, stack(*zeros, part(component, **{field: 0.5})))] == [0.0, 0.0, 0.5]

    @pytest.mark.parametrize(
        ("name", "component", "values", "seconds"),
        [
            ("llm_latency", "llm", {"duration": 2.0, "ttft": -1}, 2.0),  # a call without text has its duration
            ("tts_latency", "tts", {"ttfb": 0.2, "acquire_time": 0.1}, 0.3),
            ("tts_latency", "tts", {"ttfb": 0.2}, 0.2),  # older versions do not tell of the connection
            ("tts_duration", "tts", {"duration": 1.0, "cancelled": True}, 1.0),
            ("tts_audio_duration", "tts", {"audio_duration": 1.0, "cancelled": True}, 1.0),
            ("stt_latency", "stt", {"duration": 0.7, "streamed": True}, 0.7),
            ("stt_processing_duration", "stt", {"duration": 0.7, "streamed": False}, 0.7),
            ("end_of_turn_delay", "eou", {"end_of_turn_delay": 0.553}, 0.553),  # as ChatMessage metrics call it
            ("on_user_turn_completed_delay", "eou", {"on_user_turn_completed_delay": 0.0}, 0.0),
            ("llm_ttft", "llm", {"ttft": "0.25"}, 0.25),
        ],
    )
    def test_is_a_time(self, name: str, component: str, values: dict[str, Any], seconds: float) -> None:
        assert only(name, stack(part(component, **values))).value == pytest.approx(seconds)

    @pytest.mark.parametrize(
        ("given", "reason"),
        [
            ("soon", "not_a_number"),
            (True, "not_a_number"),
            (float("nan"), "not_a_number"),
            (float("inf"), "not_a_number"),
            ([0.4], "not_a_number"),
            (-0.1, "negative_time"),
            (1763200000.25, "implausible_time"),  # a time of the clock
            (10**400, "not_a_number"),
        ],
    )
    def test_a_fault_of_the_log_is_unmeasured(self, given: Any, reason: str) -> None:
        assert scores("llm_latency", stack(part("llm", duration=given))) == [
            ("component metric 0", f"unmeasured: {reason}")
        ]

    def test_what_is_left_out_is_counted(self) -> None:
        conversation = stack(part("llm", ttft=0.5), part("llm", ttft=-1), part("llm", ttft=0.7), part("llm", ttft="?"))
        (evaluated,) = evaluate(conversation, [LATENCIES["llm_ttft"]])
        one = evaluated.scores[0]
        assert one.value == pytest.approx(0.6)  # (0.5 + 0.7) ÷ 2
        assert (one.n, one.not_applicable, one.unmeasured) == (2, 0, 2)

    def test_a_wait_for_a_connection_that_cannot_be_read(self) -> None:
        conversation = stack(part("tts", ttfb=0.2, acquire_time="?"))
        assert scores("tts_latency", conversation) == [("component metric 0", "unmeasured: not_a_number")]


class TestRecogniser:
    def test_work_that_took_time_comes_first(self) -> None:
        conversation = stack(part("stt", duration=0.8), part("stt", duration=0.0), part("eou", **EOU))
        assert scores("stt_latency", conversation) == [
            ("component metric 0", 0.8),
            ("component metric 1", "not_applicable: streamed"),
        ]

    def test_all_streamed_the_delay_of_the_transcription_is_taken(self) -> None:
        observations = observe(LATENCIES["stt_latency"], stack(part("stt", **STT), part("eou", "s1", **EOU)))
        assert told(observations) == [("component metric 0", "not_applicable: streamed"), ("component metric 1", 0.312)]
        assert observations[1].details == {"speech_id": "s1", "from": "transcription_delay"}

    def test_also_where_the_recogniser_itself_tells_nothing(self) -> None:
        assert scores("stt_latency", stack(part("eou", transcription_delay=0.244))) == [("component metric 0", 0.244)]

    @pytest.mark.parametrize(
        ("values", "outcome"),
        [
            ({"transcription_delay": 0.0}, 0.0),  # the text was there when speech ended
            ({"transcription_delay": 0.0, "end_of_utterance_delay": 0.3}, 0.0),
            ({"transcription_delay": 0.0, "end_of_utterance_delay": 0.0}, "unmeasured: not_detected"),
        ],
    )
    def test_no_delay(self, values: dict[str, Any], outcome: Any) -> None:
        assert scores("stt_latency", stack(part("eou", **values))) == [("component metric 0", outcome)]

    def test_work_of_a_session_is_added_up(self) -> None:
        conversation = stack(
            part("stt", duration=0.5, audio_duration=2.0),
            part("stt", duration=1.5, audio_duration=3.0),
            part("stt", **STT),
        )
        (evaluated,) = evaluate(conversation, [LATENCIES["stt_processing_duration"]])
        one = evaluated.scores[0]
        assert (one.value, one.n, one.not_applicable) == (2.0, 2, 1)  # 0.5 + 1.5
        assert one.ten == 10.0  # 2 ÷ 5 = 0.4, below 0.5

    def test_sound_of_a_session_is_added_up(self) -> None:
        conversation = stack(*(part("stt", audio_duration=seconds) for seconds in (0, 5.05, 2.2)))
        (evaluated,) = evaluate(conversation, [LATENCIES["stt_audio_duration"]])
        assert evaluated.scores[0].value == pytest.approx(7.25)


class TestOtherFrameworks:
    """Pipecat's names, as logs of calls keep them: ttfb, processing, latency. Never a mixture."""

    def test_names(self) -> None:
        conversation = stack(
            part("llm", ttfb=0.412), part("llm", processing=1.201), part("tts", ttfb=0.133), part("tts", processing=0.9)
        )
        assert scores("llm_ttft", conversation) == [("component metric 0", 0.412)]
        assert scores("llm_latency", conversation) == [("component metric 1", 1.201)]
        assert scores("tts_ttfb", conversation) == [("component metric 2", 0.133)]
        assert scores("tts_duration", conversation) == [("component metric 3", 0.9)]

    def test_never_a_mixture(self) -> None:
        conversation = stack(part("llm", processing=9.0), part("llm", duration=1.0), part("llm", processing=9.0))
        assert scores("llm_latency", conversation) == [("component metric 1", 1.0)]


class TestWithoutSamples:
    def test_a_chat_has_no_metrics(self) -> None:
        for name in LATENCIES:
            assert scores(name, chat(user("hi"), agent("yes"))) == [
                ("conversation", "unmeasured: no_metrics_collected")
            ]

    @pytest.mark.parametrize(
        ("name", "reason"),
        [
            ("llm_ttft", "no_llm_metrics"),
            ("llm_latency", "no_llm_metrics"),
            ("tts_ttfb", "no_tts_metrics"),
            ("tts_latency", "no_tts_metrics"),
            ("tts_duration", "no_tts_metrics"),
            ("tts_audio_duration", "no_tts_metrics"),
            ("stt_latency", "no_stt_metrics"),
            ("stt_processing_duration", "no_stt_metrics"),
            ("stt_audio_duration", "no_stt_metrics"),
            ("end_of_turn_delay", "no_eou_metrics"),
            ("on_user_turn_completed_delay", "no_eou_metrics"),
            ("assistant_latency", "no_llm_metrics"),
            ("e2e_latency", "no_eou_metrics"),
        ],
    )
    def test_metrics_of_other_parts(self, name: str, reason: str) -> None:
        for other in (part("vad", idle_time=1.9), part("realtime_model", ttft=0.6, duration=2.1)):
            one = only(name, stack(other))
            assert (str(one.subject), f"{one.status}: {one.reason}") == ("item 1", f"unmeasured: {reason}")
            assert one.detail == f"there are metrics of {other.component}"

    @pytest.mark.parametrize(
        ("name", "component", "reason"),
        [
            ("llm_ttft", "llm", "no_ttft"),
            ("llm_latency", "llm", "no_duration"),
            ("tts_latency", "tts", "no_ttfb"),
            ("tts_audio_duration", "tts", "no_audio_duration"),
            ("stt_latency", "stt", "no_duration"),
            ("end_of_turn_delay", "eou", "no_end_of_utterance_delay"),
            ("on_user_turn_completed_delay", "eou", "no_on_user_turn_completed_delay"),
        ],
    )
    def test_metrics_of_the_part_that_do_not_tell_it(self, name: str, component: str, reason: str) -> None:
        one = only(name, stack(part(component, other=1)))
        assert (one.status, one.reason, one.detail) == ("unmeasured", reason, "")

    @pytest.mark.parametrize("component", ["turn", "call"])
    def test_the_wait_for_a_reply_is_of_no_part(self, component: str) -> None:
        """A log that tells only how long turns took does not promise what the parts of the stack took."""
        for values, can in (({"latency_ms": 640}, set()), ({"e2e_latency": 0.64}, {"latency.e2e_latency"})):
            conversation = stack(part(component, **values))
            assert {one.metric for one in plan(list(LATENCIES.values()), [conversation]).ready} == can
            assert only("tts_ttfb", conversation).reason == "no_metrics_collected"
        assert scores("e2e_latency", conversation)[0][1] == 0.64

    def test_null_is_not_given(self) -> None:
        assert scores("llm_ttft", stack(part("llm", ttft=None))) == [("item 1", "unmeasured: no_ttft")]

    def test_an_item_beside_others_says_so_for_itself(self) -> None:
        conversation = items(([part("llm", ttft=0.4)], None), ([], None))
        assert scores("llm_ttft", conversation) == [
            ("component metric 0", 0.4),
            ("item 2", "unmeasured: no_metrics_collected"),
        ]


class TestCases:
    def test_a_conversation_without_items(self) -> None:
        conversation = chat(user("hi"), part("llm", "s1", ttft=0.4), agent("yes"))
        one = only("llm_ttft", conversation)
        assert (str(one.subject), one.value, one.details) == ("component metric 1", 0.4, {"speech_id": "s1"})

    def test_what_two_cases_share_counts_once(self) -> None:
        conversation = stack(part("llm", ttft=0.4), expected=Expected(ground_truth="yes"))
        assert scores("llm_ttft", conversation) == [("component metric 0", 0.4)]

    def test_the_conversation_leaves_the_word_to_its_items(self) -> None:
        conversation = stack(latency={"llm_ttft": 0.4}, expected=Expected(ground_truth="yes"))
        assert scores("llm_ttft", conversation) == [("item 1", 0.4)]


class TestToldAgain:
    """Exports that repeat the metrics of a conversation in each of its items: what is told again is counted once."""

    LLM = part("llm", "s1", ttft=0.4, duration=1.0, request_id="r1")
    TTS = part("tts", "s1", ttfb=0.2, request_id="r2")

    def test_by_an_item_after_it(self) -> None:
        conversation = items(([self.LLM, self.TTS], None), ([self.LLM, self.TTS], None))
        assert scores("llm_ttft", conversation) == [
            ("component metric 0", 0.4),
            ("component metric 2", "not_applicable: repeated_metric"),
        ]
        whole = observe(LATENCIES["assistant_latency"], conversation)
        assert whole[0].value == pytest.approx(0.6)  # 0.4 + 0.2, and not 1.0 + 0.4 + 0.2
        assert [(str(one.subject), one.reason, one.detail) for one in whole[1:]] == [
            ("item 2", "repeated_metric", "2 component metrics")
        ]

    def test_what_is_new_beside_it_counts(self) -> None:
        other = part("llm", "s2", ttft=0.6, duration=1.0, request_id="r3")
        conversation = items(([self.LLM], None), ([self.LLM, other], None))
        assert [value for _, value in scores("llm_ttft", conversation)] == [
            0.4,
            0.6,
            "not_applicable: repeated_metric",
        ]

    def test_one_for_one(self) -> None:
        # The first item tells it once, the second twice: once more.
        conversation = items(([self.LLM], None), ([self.LLM, self.LLM], None))
        assert sorted(str(value) for _, value in scores("llm_ttft", conversation)) == [
            "0.4",
            "0.4",
            "not_applicable: repeated_metric",
        ]

    def test_a_time_tells_which_it_is(self) -> None:
        timed = part("llm", ttft=0.4, timestamp=1763200000.25)
        conversation = items(([timed], None), ([timed], None))
        assert [value for _, value in scores("llm_ttft", conversation)] == [0.4, "not_applicable: repeated_metric"]

    @pytest.mark.parametrize("other", [{"ttft": 0.5, "request_id": "r1"}, {"ttft": 0.4, "request_id": "r9"}])
    def test_one_that_differs_is_another(self, other: dict[str, Any]) -> None:
        first = part("llm", ttft=0.4, request_id="r1")
        assert len(scores("llm_ttft", items(([first], None), ([part("llm", **other)], None)))) == 2

    def test_equal_metrics_without_an_id_may_be_two(self) -> None:
        turn = [part("llm", ttft=0.4)]
        assert [value for _, value in scores("llm_ttft", items((turn, None), (turn, None)))] == [0.4, 0.4]

    def test_the_session_is_not_asked_for_what_was_told(self) -> None:
        conversation = items(([self.LLM], None), ([self.LLM], {"llm_ttft": 0.9}))
        assert [value for _, value in scores("llm_ttft", conversation)] == [0.4, "not_applicable: repeated_metric"]


class TestFiveNumbers:
    def test_of_a_conversation(self) -> None:
        conversation = stack(*(part("llm", ttft=seconds) for seconds in (0.2, 0.4, 0.6, 1.8, -1)))
        # n 4; mean 3.0 ÷ 4; p50 between 0.4 and 0.6; p95 at rank 2.85: 0.6 + 0.85 · 1.2; max
        expected = LatencySummary(4, 0.75, 0.5, 1.62, 1.8)
        for name in ("llm_ttft", "latency.llm_ttft"):
            found = latency_summary(conversation, name)
            assert found is not None
            assert tuple(found) == pytest.approx(tuple(expected))

    def test_of_nothing_there_are_none(self) -> None:
        assert latency_summary(stack(part("llm", ttft=-1)), "llm_ttft") is None

    def test_every_one_shows_them(self) -> None:
        for declared in LATENCIES.values():
            assert {"p50", "p95", "max"} <= set(declared.also)
            assert MEAN_OF_SUBJECTS in (declared.reduce.across, declared.also.get("mean"))
            assert declared.ten is not None
