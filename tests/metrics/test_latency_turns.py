"""assistant_latency and e2e_latency: the parts of a turn joined and added up (standard-data, 2.5)."""

from typing import Any

import pytest

from convoscope.conversation import ComponentMetric, Conversation
from convoscope.metrics.latency.components import LATENCIES
from convoscope.scoring.evaluate import observe
from convoscope.views.standard_data import tidy, to_conversation
from support.chats import told
from support.stacks import items, part, stack


def scores(name: str, conversation: Conversation) -> list[tuple[str, Any]]:
    found = told(observe(LATENCIES[name], conversation))
    return [(subject, pytest.approx(value) if isinstance(value, float) else value) for subject, value in found]


def eou(delay: float, speech: str = "", label: str = "", completed: float = 0.0) -> ComponentMetric:
    values = {"end_of_utterance_delay": delay, "on_user_turn_completed_delay": completed, "transcription_delay": 0.3}
    return part("eou", speech, label, **values)


def llm(ttft: float, duration: float, speech: str = "", label: str = "", **values: Any) -> ComponentMetric:
    return part("llm", speech, label, ttft=ttft, duration=duration, **values)


def tts(ttfb: float, speech: str = "", label: str = "", **values: Any) -> ComponentMetric:
    return part("tts", speech, label, ttfb=ttfb, **values)


class TestOneTurn:
    def test_the_parts_are_added_and_shown(self) -> None:
        conversation = stack(eou(0.553, "s", completed=0.0004), llm(0.482, 1.41, "s"), tts(0.187, "s"))
        (assistant,) = observe(LATENCIES["assistant_latency"], conversation)
        assert assistant.value == pytest.approx(0.669)  # 0.482 + 0.187
        (whole,) = observe(LATENCIES["e2e_latency"], conversation)
        assert whole.value == pytest.approx(1.2224)  # 0.553 + 0.0004 + 0.482 + 0.187, and no transcription_delay
        assert whole.details == {
            "joined_by": "speech_id",
            "end_of_utterance_delay": 0.553,
            "on_user_turn_completed_delay": 0.0004,
            "llm_ttft": 0.482,
            "tts_ttfb": 0.187,
        }
        assert str(whole.subject) == "turn s"

    def test_calls_before_the_last_count_in_full(self) -> None:
        # A tool is called twice before the agent speaks: 1.5 + 0.8 + 0.4 + the first 0.2
        conversation = stack(llm(0.9, 1.5, "s"), llm(-1, 0.8, "s"), llm(0.4, 3.0, "s"), tts(0.2, "s"), tts(0.1, "s"))
        assert scores("assistant_latency", conversation) == [("turn s", 2.9)]

    def test_a_measured_wait_is_believed(self) -> None:
        conversation = stack(eou(0.5, "s"), llm(0.4, 1.0, "s"), tts(0.2, "s", e2e_latency=1.32))
        (one,) = observe(LATENCIES["e2e_latency"], conversation)
        assert (one.value, one.details) == (1.32, {"joined_by": "speech_id", "e2e_latency": 1.32})
        # One that is no time is not: 0.5 + 0 + 0.4 + 0.2
        for bad in (-1, "?", None, True):
            without = stack(eou(0.5, "s"), llm(0.4, 1.0, "s"), tts(0.2, "s", e2e_latency=bad))
            assert scores("e2e_latency", without) == [("turn s", 1.1)]

    def test_any_part_may_measure_it(self) -> None:
        conversation = stack(part("turn", e2e_latency=1.5), part("llm", idle=1))
        assert scores("e2e_latency", conversation) == [("turn #1", 1.5)]

    def test_a_call_that_is_reported_in_two_metrics_is_one(self) -> None:
        # Pipecat: first token and duration apart. Two calls: 1.2 + 0.4 + 0.1
        conversation = stack(
            part("llm", ttft=0.5),
            part("llm", duration=1.2),
            part("llm", ttft=0.4),
            part("llm", duration=0.9),
            part("llm", total_tokens=7),
            tts(0.1),
        )
        assert scores("assistant_latency", conversation) == [("turn #1", 1.7)]

    def test_a_cancelled_call_is_none(self) -> None:
        conversation = stack(
            llm(0.9, 1.5, "s", cancelled=True), llm(0.4, 1.0, "s"), tts(0.9, "s", cancelled=True), tts(0.2, "s")
        )
        assert scores("assistant_latency", conversation) == [("turn s", 0.6)]  # 0.4 + 0.2


def item(**payload: Any) -> Conversation:
    """A conversation of the one item that this payload is."""
    return to_conversation([tidy({"turn_id": "1", **payload})], id="c")


class TestArrays:
    """An array for each component, as exports have them, without speech ids: the first of each belong together."""

    EOU = [{"end_of_utterance_delay": delay, "on_user_turn_completed_delay": 0.1} for delay in (0.5, 0.7)]
    LLM = [{"ttft": 0.4, "duration": 1.0}, {"ttft": 0.6, "duration": 2.0}]
    TTS = [{"ttfb": 0.2}, {"ttfb": 0.1}]

    def test_one_turn(self) -> None:
        conversation = item(tts_metrics=self.TTS[:1], llm_metrics=self.LLM[:1], eou_metrics=self.EOU[:1])
        assert scores("assistant_latency", conversation) == [("turn #1", 0.6)]  # 0.4 + 0.2
        assert scores("e2e_latency", conversation) == [("turn #1", 1.2)]  # 0.5 + 0.1 + 0.6

    def test_two_turns(self) -> None:
        arrays = {"tts_metrics": self.TTS, "llm_metrics": self.LLM, "eou_metrics": self.EOU}
        by_component = {"tts": self.TTS, "llm": self.LLM, "eou": self.EOU}
        for conversation in (item(**arrays), item(metrics_collected=by_component)):
            # 0.4 + 0.2 and 0.6 + 0.1; with 0.5 + 0.1 and 0.7 + 0.1
            assert scores("assistant_latency", conversation) == [("turn #1", 0.6), ("turn #2", 0.7)]
            assert scores("e2e_latency", conversation) == [("turn #1", 1.2), ("turn #2", 1.5)]

    def test_without_ends_of_turns(self) -> None:
        conversation = item(tts_metrics=self.TTS, llm_metrics=self.LLM, vad_metrics=[{"idle_time": 1.0}] * 3)
        assert scores("assistant_latency", conversation) == [("turn #1", 0.6), ("turn #2", 0.7)]

    def test_arrays_that_differ_in_length_are_not_joined(self) -> None:
        # Two calls for one reply, or a call whose speech is missing: nobody knows.
        conversation = item(tts_metrics=self.TTS[:1], llm_metrics=self.LLM, eou_metrics=self.EOU[:1])
        for name in ("assistant_latency", "e2e_latency"):
            (one,) = observe(LATENCIES[name], conversation)
            assert (one.status, one.reason, one.detail) == ("unmeasured", "cannot_join", "eou 1, llm 2, tts 1")
        assert [value for _, value in scores("llm_ttft", conversation)] == [0.4, 0.6]

    def test_unless_their_times_tell(self) -> None:
        # 1.0 + 0.6 + 0.2: the second call comes before the speech.
        def at(second: int, metric: dict[str, Any]) -> dict[str, Any]:
            return {**metric, "timestamp": 1763200000.0 + second}

        conversation = item(
            tts_metrics=[at(4, self.TTS[0])],
            llm_metrics=[at(2, self.LLM[0]), at(3, self.LLM[1])],
            eou_metrics=[at(1, self.EOU[0])],
            stt_data={"transcript": "hi"},
        )
        assert scores("assistant_latency", conversation) == [("turn #1", 1.8)]
        assert scores("e2e_latency", conversation) == [("turn #1", 2.4)]  # 0.5 + 0.1 + 1.8

    def test_or_their_speech(self) -> None:
        llm = [{**one, "speech_id": speech} for one, speech in zip(self.LLM, "aa", strict=True)]
        conversation = item(tts_metrics=[{"ttfb": 0.2, "speech_id": "a"}], llm_metrics=llm)
        assert scores("assistant_latency", conversation) == [("turn a", 1.8)]  # 1.0 + 0.6 + 0.2

    def test_by_turn_under_any_name(self) -> None:
        turns = {"greeting": [{"ttft": 0.4}], "1": [{"ttfb": 0.2}], "booking": [{"ttft": 0.3}, {"ttfb": 0.1}]}
        assert scores("assistant_latency", item(metrics_collected=turns)) == [
            ("turn greeting", "unmeasured: missing_part"),
            ("turn 1", "unmeasured: missing_part"),
            ("turn booking", 0.4),  # 0.3 + 0.1
        ]


class TestPipecatWithoutNames:
    """Bare numbers of a call of two turns: 0.4 + 0.1 and 0.6 + 0.2."""

    CALL = [
        *[("DeepgramSTTService#0", 0.2), ("OpenAILLMService#0", 0.4)],
        *[("CartesiaTTSService#0", 0.1), ("OpenAILLMService#0", 1.0)],
        *[("DeepgramSTTService#0", 0.3), ("OpenAILLMService#0", 0.6)],
        *[("CartesiaTTSService#0", 0.2), ("OpenAILLMService#0", 1.5)],
    ]

    @pytest.mark.parametrize("framed", [True, False])
    def test_two_turns(self, framed: bool) -> None:
        entries = [{"processor": processor, "value": value} for processor, value in self.CALL]
        conversation = item(metrics_collected=[{"data": [one]} for one in entries] if framed else entries)
        assert scores("assistant_latency", conversation) == [("turn #1", 0.5), ("turn #2", 0.8)]
        for name, values in (("llm_ttft", [0.4, 0.6]), ("llm_latency", [1.0, 1.5]), ("tts_ttfb", [0.1, 0.2])):
            assert [value for _, value in scores(name, conversation)] == values
        assert [value for _, value in scores("stt_latency", conversation)] == [0.2, 0.3]


class TestMissingParts:
    @pytest.mark.parametrize(
        ("events", "reason", "missing"),
        [
            ([llm(0.4, 1.0, "s")], "missing_part", "tts_ttfb"),
            ([tts(0.2, "s")], "missing_part", "llm_ttft"),
            ([eou(0.5, "s")], "missing_part", "llm_ttft, tts_ttfb"),
            ([llm(-1, 1.0, "s"), tts(0.2, "s")], "no_token", "llm_ttft (no_token)"),
            ([llm(0.4, 1.0, "s"), tts(-1, "s")], "no_audio", "tts_ttfb (no_audio)"),
            ([part("llm", "s", ttft=0.3), llm(0.4, 1.0, "s"), tts(0.2, "s")], "missing_part", "llm_duration_1"),
        ],
    )
    def test_of_the_assistant(self, events: list[ComponentMetric], reason: str, missing: str) -> None:
        """Not applicable, one such turn of ten left a coverage of 100 %."""
        (one,) = observe(LATENCIES["assistant_latency"], stack(*events))
        assert (one.status, one.reason, one.detail) == ("unmeasured", reason, missing)

    def test_a_call_that_was_cancelled_owes_no_part(self) -> None:
        cancelled = stack(llm(0.4, 1.0, "s", cancelled=True), tts(0.2, "s"))
        (one,) = observe(LATENCIES["assistant_latency"], cancelled)
        assert (one.status, one.reason, one.detail) == ("not_applicable", "cancelled", "llm_ttft (cancelled)")

    @pytest.mark.parametrize(
        ("first", "missing"),
        [
            ([], "end_of_utterance_delay, on_user_turn_completed_delay"),
            ([eou(0.0, "s")], "end_of_utterance_delay (not_detected)"),
            ([part("eou", "s", end_of_utterance_delay=0.5)], "on_user_turn_completed_delay"),
            # The delay of the transcription is no part of the wait.
            ([part("eou", "s", transcription_delay=0.5)], "end_of_utterance_delay, on_user_turn_completed_delay"),
        ],
    )
    def test_of_the_whole(self, first: list[ComponentMetric], missing: str) -> None:
        (one,) = observe(LATENCIES["e2e_latency"], stack(*first, llm(0.4, 1.0, "s"), tts(0.2, "s")))
        assert (one.status, one.reason, one.detail) == ("unmeasured", "missing_part", missing)

    def test_such_turns_are_left_out_and_counted(self) -> None:
        conversation = stack(llm(0.4, 1.0, "a"), tts(0.2, "a"), llm(0.4, 1.0, "b"))
        assert scores("assistant_latency", conversation) == [
            ("turn a", 0.6),
            ("turn b", "unmeasured: missing_part"),
        ]


class TestJoin:
    def test_by_speech_id_whatever_the_order(self) -> None:
        conversation = stack(
            tts(0.1, "b"), eou(0.5, "a"), llm(0.4, 1.0, "a"), llm(0.3, 1.0, "b"), tts(0.2, "a"), eou(0.6, "b")
        )
        # b: 0.6 + 0.3 + 0.1; a: 0.5 + 0.4 + 0.2
        assert scores("e2e_latency", conversation) == [("turn b", 1.0), ("turn a", 1.1)]

    def test_a_speech_may_be_spread_over_items(self) -> None:
        # An item for each span: the same speech id is the same speech.
        conversation = items(([eou(0.5, "a")], None), ([llm(0.4, 1.0, "a")], None), ([tts(0.2, "a")], None))
        assert scores("e2e_latency", conversation)[0] == ("turn a", 1.1)

    def test_by_the_label_of_the_turn(self) -> None:
        conversation = stack(
            llm(0.4, 1.0, label="turn_1"),
            llm(0.3, 1.0, label="turn_2"),
            tts(0.2, label="turn_1"),
            tts(0.1, label="turn_2"),
        )
        assert scores("assistant_latency", conversation) == [("turn turn_1", 0.6), ("turn turn_2", 0.4)]

    def test_the_speech_id_goes_before_the_label(self) -> None:
        conversation = stack(llm(0.4, 1.0, "a", "turn_1"), tts(0.2, "a", "turn_2"), tts(0.1, "b", "turn_1"))
        assert scores("assistant_latency", conversation)[0] == ("turn a", 0.6)

    def test_a_label_that_belongs_to_one_speech_joins_it(self) -> None:
        conversation = stack(llm(0.4, 1.0, "a", "turn_1"), tts(0.2, label="turn_1"))
        assert scores("assistant_latency", conversation) == [("turn a", 0.6)]

    def test_a_label_of_any_kind_beside_the_plugins_own(self) -> None:
        conversation = stack(
            llm(0.4, 1.0, label="greeting", source_label="openai.LLM"),
            llm(0.3, 1.0, label="booking", source_label="openai.LLM"),
            tts(0.2, label="greeting"),
            tts(0.1, label="booking"),
        )
        assert scores("assistant_latency", conversation) == [("turn greeting", 0.6), ("turn booking", 0.4)]

    def test_the_name_of_a_plugin_is_no_turn(self) -> None:
        # By order: two turns, not one of all calls of the plugin.
        conversation = stack(
            llm(0.4, 1.0, label="livekit.plugins.openai.llm.LLM"),
            tts(0.2, label="livekit.plugins.cartesia.tts.TTS"),
            llm(0.3, 1.0, label="livekit.plugins.openai.llm.LLM"),
            tts(0.1, label="livekit.plugins.cartesia.tts.TTS"),
        )
        assert scores("assistant_latency", conversation) == [("turn #1", 0.6), ("turn #2", 0.4)]

    def test_a_plugin_for_two_parts_is_no_turn_either(self) -> None:
        # One plugin makes both: 0.4 + 0.2 and 0.6 + 0.1, not 1.0 + 0.6 + 0.2.
        conversation = stack(
            eou(0.5),
            llm(0.4, 1.0, label="openai"),
            tts(0.2, label="openai"),
            eou(0.7),
            llm(0.6, 1.0, label="openai"),
            tts(0.1, label="openai"),
        )
        assert scores("assistant_latency", conversation) == [("turn #1", 0.6), ("turn #2", 0.7)]
        assert scores("e2e_latency", conversation) == [("turn #1", 1.1), ("turn #2", 1.4)]

    @pytest.mark.parametrize("label", ["1", "t5", "tts-1", "gpt-4"])
    def test_a_number_in_a_name_makes_no_turn(self, label: str) -> None:
        conversation = stack(llm(0.4, 1.0), tts(0.2, label=label), llm(0.6, 1.0), tts(0.1, label=label))
        assert scores("assistant_latency", conversation) == [("turn #1", 0.6), ("turn #2", 0.7)]

    def test_a_label_under_which_the_turn_ends_twice_is_no_turn(self) -> None:
        conversation = stack(
            eou(0.5, label="turn_1"),
            llm(0.4, 1.0, label="turn_1"),
            tts(0.2, label="turn_1"),
            eou(0.7, label="turn_1"),
            llm(0.6, 1.0, label="turn_1"),
            tts(0.1, label="turn_1"),
        )
        assert scores("e2e_latency", conversation) == [("turn #1", 1.1), ("turn #2", 1.4)]

    def test_what_comes_without_an_order_is_not_joined(self) -> None:
        conversation = stack(
            eou(0.5, "a"),
            llm(0.4, 1.0, "a"),
            tts(0.2, "a"),
            part("llm", ttft=0.4, unordered=True),
            part("llm", ttft=0.6, unordered=True),
            part("tts", ttfb=0.2, unordered=True),
        )
        for name, seconds in (("assistant_latency", 0.6), ("e2e_latency", 1.1)):
            turn, rest = observe(LATENCIES[name], conversation)
            assert turn.value == pytest.approx(seconds)
            assert (rest.status, rest.reason, rest.detail) == ("unmeasured", "cannot_join", "llm 2, tts 1")

    def test_a_wait_that_is_stated_needs_no_joining(self) -> None:
        conversation = stack(part("llm", e2e_latency=1.5, unordered=True), part("tts", ttfb=0.2, unordered=True))
        assert scores("e2e_latency", conversation) == [("turn #1", 1.5), ("item 1", "unmeasured: cannot_join")]

    def test_by_order_a_turn_begins_with_the_end_of_the_users(self) -> None:
        # The agent speaks while a tool works: with eou metrics, that is still one turn.
        conversation = stack(
            eou(0.5), llm(0.4, 1.0), tts(0.2), llm(0.3, 2.0), tts(0.1), eou(0.6), eou(0.7), llm(0.4, 1.0), tts(0.2)
        )
        assert scores("e2e_latency", conversation) == [
            ("turn #1", 2.0),  # 0.5 + 0 + 1.0 + 0.3 + 0.2
            ("turn #2", "unmeasured: missing_part"),  # the user went on before any reply
            ("turn #3", 1.3),  # 0.7 + 0 + 0.4 + 0.2
        ]

    def test_by_order_what_is_reported_in_pieces_stays_together(self) -> None:
        # Pipecat: turn analysis, transcription and hook are three metrics of one end of turn.
        conversation = stack(
            part("eou", transcription_delay=0.244),
            part("eou", end_of_utterance_delay=0.064),
            part("eou", on_user_turn_completed_delay=0.001),
            part("llm", ttft=0.412),
            tts(0.133),
            part("llm", duration=1.201),
            part("eou", end_of_utterance_delay=0.1),
        )
        assert scores("e2e_latency", conversation) == [
            ("turn #1", 0.61),  # 0.064 + 0.001 + 0.412 + 0.133
            ("turn #2", "unmeasured: missing_part"),
        ]

    def test_labels_are_the_items_own(self) -> None:
        turn = [llm(0.4, 1.0, label="turn_1"), tts(0.2, label="turn_1")]
        conversation = items((turn, None), (turn, None))
        assert scores("assistant_latency", conversation) == [("turn turn_1", 0.6), ("turn turn_1", 0.6)]
