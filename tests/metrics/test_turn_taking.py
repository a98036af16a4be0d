"""voice.turn_taking: who waits, who interrupts, who gives way (voice logs, 1.3 and 1.7)."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.conversation import Clock, Conversation, Logged, Outcome, Segment, Text, Utterance
from convoscope.metrics.declaration import HIGHER, LOWER, NEITHER, Metric
from convoscope.metrics.registry import collect
from convoscope.metrics.voice import turn_taking
from convoscope.metrics.voice import turn_taking as interruptions
from convoscope.metrics.voice.turn_analysis import analyse_turns, count_score, latency_score, overlap_score, yield_score
from convoscope.scores.reducers import Percentile
from convoscope.scoring.evaluate import evaluate, observe
from convoscope.statistics.intervals import percentile
from convoscope.views import metric_context
from support.calls import bot, caller, exchange, voice_call
from support.chats import agent, call, chat, told, user

DECLARED = collect([turn_taking, interruptions])
GREETING = ("turn 0", "not_applicable: greeting")
TIMED_OUT = Outcome(ended_reason="inactivity_timeout")


def sub(name: str) -> Metric:
    found = DECLARED[f"voice.turn_taking.{name}"]
    assert isinstance(found, Metric)
    return found


def turns(name: str, conversation: Conversation) -> list[tuple[str, Any]]:
    return told(observe(sub(name) if name else turn_taking.turn_taking, conversation))


def value(name: str, conversation: Conversation) -> float | None:
    """The value of the whole conversation."""
    declared = sub(name) if name else turn_taking.turn_taking
    (evaluated,) = evaluate(conversation, [declared])
    return evaluated.scores[0].value


class TestCurves:
    @pytest.mark.parametrize(
        ("ms", "score"),
        [
            (-9999, 0.0),
            (-500, 0.0),
            (-250, 0.25),  # (−250 + 500) ÷ 1000
            (0, 0.5),
            (400, 0.9),
            (500, 1.0),
            (2000, 1.0),
            (2750, 0.5),  # (3500 − 2750) ÷ 1500
            (3500, 0.0),
            (9999, 0.0),
        ],
    )
    def test_the_wait_for_a_reply(self, ms: float, score: float) -> None:
        assert latency_score(ms) == pytest.approx(score)

    @pytest.mark.parametrize(
        ("ms", "score"), [(0, 0.5), (500, 1.0), (2750, 1.0), (3000, 1.0), (4000, 0.5), (5000, 0.0), (9999, 0.0)]
    )
    def test_a_tool_takes_its_time(self, ms: float, score: float) -> None:
        assert latency_score(ms, tool=True) == pytest.approx(score)

    @pytest.mark.parametrize(("ms", "score"), [(0, 0.5), (1000, 0.25), (2000, 0.0), (5000, 0.0)])
    def test_both_at_once(self, ms: float, score: float) -> None:
        assert overlap_score(ms) == score

    @pytest.mark.parametrize(("times", "score"), [(1, 0.5), (2, 0.25), (3, 0.0), (9, 0.0)])
    def test_how_often(self, times: int, score: float) -> None:
        assert count_score(times) == score

    @pytest.mark.parametrize(("ms", "score"), [(0, 1.0), (500, 0.75), (1000, 0.5), (2000, 0.0), (3000, 0.0)])
    def test_giving_way(self, ms: float, score: float) -> None:
        assert yield_score(ms) == score

    @given(ms=st.floats(-1e9, 1e9), times=st.integers(1, 99), tool=st.booleans())
    def test_scores_lie_between_0_and_1(self, ms: float, times: int, tool: bool) -> None:
        assert 0 <= latency_score(ms, tool=tool) <= 1
        assert 0 <= yield_score(max(0.0, ms)) <= 1
        assert 0 <= overlap_score(max(0.0, ms)) <= 0.5
        assert 0 <= count_score(times) <= 0.5


class TestNobodyInterrupts:
    @pytest.mark.parametrize(
        ("gap", "score"),
        [(0.0, 0.5), (0.4, 0.9), (0.5, 1.0), (1.25, 1.0), (2.0, 1.0), (2.75, 0.5), (3.5, 0.0), (60.0, 0.0)],
    )
    def test_the_gap_decides(self, gap: float, score: float) -> None:
        (one,) = observe(turn_taking.turn_taking, exchange(gap))
        assert one.value == pytest.approx(score)
        assert one.details == {"reason": "latency", "latency": gap}

    @pytest.mark.parametrize(("gap", "score"), [(2.75, 1.0), (3.0, 1.0), (4.0, 0.5), (5.0, 0.0)])
    def test_in_a_turn_with_a_tool_call_the_gap_may_be_longer(self, gap: float, score: float) -> None:
        (one,) = observe(turn_taking.turn_taking, exchange(gap, call("book")))
        assert one.value == pytest.approx(score)
        assert one.details == {"reason": "latency", "latency": gap, "tool_call": True}

    def test_the_mean_of_the_turns(self) -> None:
        conversation = voice_call(
            bot("welcome", (0.0, 1.0)),
            caller("hi", (2.0, 3.0)),
            bot("yes?", (4.0, 5.0)),  # 1 s: 1
            caller("bye", (6.0, 7.0)),
            bot("bye", (9.75, 11.0)),  # 2.75 s: 0.5
        )
        assert turns("", conversation) == [GREETING, ("turn 1", 1.0), ("turn 2", 0.5)]
        assert value("", conversation) == 0.75

    def test_segments_of_one_turn_count_together(self) -> None:
        conversation = voice_call(caller("a b", (0.0, 1.0), (2.0, 4.0)), bot("c d", (5.0, 6.0), (9.0, 9.5)))
        assert turns("latency", conversation) == [("turn 1", 1.0)]  # 5 − 4

    def test_clocks_with_an_offset_are_brought_together(self) -> None:
        clocks = (Clock(id="audio", kind="audio", offset=0.0), Clock(id="late", kind="audio", offset=100.0))
        # 5.5 to 7 s of the common time.
        reply = Utterance(seq=1, speaker="agent", intended=Text("yes"), segments=(Segment(-94.5, -93.0, "late"),))
        conversation = voice_call(caller("hi", (0.0, 4.0)), reply, clocks=clocks)
        assert turns("latency", conversation) == [("turn 1", 1.5)]


class TestTheAgentInterrupts:
    def test_the_worst_of_three(self) -> None:
        # User 0–4, agent 3–3.6 and again at 5: overlap 0.6 s → 0.5(1 − 0.3) = 0.35; once → 0.5; 1 s after → 1.
        conversation = voice_call(caller("I want to", (0.0, 4.0)), bot("Sure. Which?", (3.0, 3.6), (5.0, 6.0)))
        (one,) = observe(turn_taking.turn_taking, conversation)
        assert one.value == pytest.approx(0.35)
        assert one.details == {
            "reason": "agent_interrupt",
            "overlap": pytest.approx(0.6),
            "interruptions": 1,
            "post_interrupt_latency": 1.0,
        }
        assert turns("agent_interruption.overlap", conversation) == [("turn 1", pytest.approx(0.6))]
        assert turns("agent_interruption.overlap_score", conversation) == [("turn 1", pytest.approx(0.35))]
        assert turns("agent_interruption.count_score", conversation) == [("turn 1", 0.5)]
        assert turns("agent_interruption.post_interrupt_latency", conversation) == [("turn 1", 1.0)]
        assert turns("agent_interruption.post_interrupt_latency_score", conversation) == [("turn 1", 1.0)]
        assert turns("agent_interruption.rate", conversation) == [("turn 1", 1.0)]
        assert turns("agent_interruption.count", conversation) == [("turn 1", 1.0)]

    def test_a_late_answer_after_it_can_be_the_worst(self) -> None:
        # Overlap 0.1 s → 0.475; once → 0.5; 3.2 s after → (3500 − 3200) ÷ 1500 = 0.2.
        conversation = voice_call(caller("I want to", (0.0, 4.0)), bot("Sure.", (3.0, 3.1), (7.2, 8.0)))
        assert turns("", conversation) == [("turn 1", pytest.approx(0.2))]

    def test_twice_is_worse_than_once(self) -> None:
        # Three stretches, two of them over the user: 0.1 + 0.1 s → 0.45; twice → 0.25; 1 s after → 1.
        conversation = voice_call(caller("I want", (0.0, 4.0)), bot("Eh. Eh. Yes?", (1.0, 1.1), (2.0, 2.1), (5.0, 6.0)))
        assert turns("", conversation) == [("turn 1", pytest.approx(0.25))]
        assert value("agent_interruption.count", conversation) == 2

    def test_who_speaks_through_the_end_has_no_wait_after_it(self) -> None:
        # From 3 to 8 over a user who ends at 4: 1 s → 0.25; once → 0.5.
        conversation = voice_call(caller("I want", (0.0, 4.0)), bot("Listen.", (3.0, 8.0)))
        assert turns("", conversation) == [("turn 1", pytest.approx(0.25))]
        name = "agent_interruption.post_interrupt_latency"
        assert turns(name, conversation) == [("turn 1", "not_applicable: spoke_through")]

    def test_who_says_no_more_has_none_either(self) -> None:
        conversation = voice_call(caller("I want", (0.0, 4.0)), bot("Mm.", (3.0, 3.5)))
        name = "agent_interruption.post_interrupt_latency"
        assert turns(name, conversation) == [("turn 1", "not_applicable: said_no_more")]
        assert turns("", conversation) == [("turn 1", pytest.approx(0.375))]  # 0.5(1 − 0.25), and once: 0.5

    def test_its_time_is_no_latency(self) -> None:
        """Defect 2: a mean of 2.6 s of which one value was −21 s."""
        conversation = voice_call(
            caller("one", (0.0, 4.0)),
            bot("two", (3.0, 5.0)),
            caller("three", (6.0, 7.0)),
            bot("four", (8.0, 9.0)),
        )
        assert turns("latency", conversation) == [("turn 1", "not_applicable: interrupted"), ("turn 2", 1.0)]
        assert value("latency", conversation) == 1.0
        assert value("agent_interruption.rate", conversation) == 0.5

    def test_a_quick_answer_without_overlap_is_none(self) -> None:
        """Defect 1: 0.4 s without overlap is worth 0.9, whatever the log calls it."""
        conversation = exchange(0.4)
        context = metric_context(conversation)
        flagged = msgspec.structs.replace(context, assistant_interrupted_turns={1})  # as a log by order has it
        conversation.__dict__["_metric_context"] = flagged
        assert turns("", conversation) == [("turn 1", pytest.approx(0.9))]
        assert turns("agent_interruption.rate", conversation) == [("turn 1", 0.0)]

    def test_sounds_that_touch_do_not_overlap(self) -> None:
        conversation = voice_call(caller("hi", (0.0, 4.0)), bot("yes", (3.9995, 5.0)))
        # −0.5 ms: (500 − 0.5) ÷ 1000
        assert turns("", conversation) == [("turn 1", pytest.approx(0.4995))]
        assert turns("latency", conversation) == [("turn 1", "not_applicable: replied_before_the_end")]
        assert turns("early_rate", conversation) == [("turn 1", 1.0)]


class TestTheUserInterrupts:
    @staticmethod
    def barge_in(until: float) -> Conversation:
        """The agent's welcome from 0 until …, the user from 2 to 3, the reply after 1 s."""
        return voice_call(bot("welcome to the long", (0.0, until)), caller("hi", (2.0, 3.0)), bot("yes?", (4.0, 5.0)))

    @pytest.mark.parametrize(("until", "score"), [(2.5, 0.75), (3.0, 0.5), (3.5, 0.25)])
    def test_the_sooner_it_gives_way_the_better(self, until: float, score: float) -> None:
        conversation = self.barge_in(until)
        (_, one) = observe(turn_taking.turn_taking, conversation)
        assert one.value == pytest.approx(score)  # 1 − (until − 2) ÷ 2
        assert one.details == {"reason": "user_interrupt", "yield_time": until - 2}
        assert turns("user_interruption.yield_time", conversation)[1] == ("turn 1", until - 2)
        assert turns("user_interruption.yield_score", conversation)[1] == ("turn 1", pytest.approx(score))
        assert turns("user_interruption.rate", conversation)[1] == ("turn 1", 1.0)

    def test_it_is_no_latency(self) -> None:
        assert turns("latency", self.barge_in(2.5))[1] == ("turn 1", "not_applicable: interrupted")

    def test_who_waits_for_the_end_does_not_interrupt(self) -> None:
        conversation = self.barge_in(2.0)
        assert turns("", conversation)[1] == ("turn 1", 1.0)  # by the gap of 1 s
        name = "user_interruption.yield_time"
        assert turns(name, conversation)[1] == ("turn 1", "not_applicable: user_did_not_interrupt")
        assert turns("user_interruption.rate", conversation)[1] == ("turn 1", 0.0)

    def test_both_in_one_turn_give_the_worse(self) -> None:
        # The user breaks in at 2, the agent goes on until 2.5: 0.75. Then it speaks over the user from
        # 3.6 to 4.6, who ends at 4: 0.4 s → 0.4, once → 0.5.
        conversation = voice_call(
            bot("welcome", (0.0, 2.5)), caller("hi there", (2.0, 4.0)), bot("yes", (3.6, 4.6)), bot("go on", (6.0, 7.0))
        )
        (_, one) = observe(turn_taking.turn_taking, conversation)
        assert one.value == pytest.approx(0.4)
        assert one.details is not None
        assert one.details["reason"] == "dual_interrupt"


class TestRates:
    @pytest.mark.parametrize(
        ("gap", "tool", "which"),
        [
            (0.0, False, "early"),
            (0.199, False, "early"),
            (0.2, False, "on_time"),
            (2.749, False, "on_time"),
            (2.75, False, "late"),
            (2.75, True, "on_time"),
            (3.999, True, "on_time"),
            (4.0, True, "late"),
            (0.1, True, "early"),
        ],
    )
    def test_bounds(self, gap: float, tool: bool, which: str) -> None:
        conversation = exchange(gap, *([call("book")] if tool else []))
        found = {name: value(f"{name}_rate", conversation) for name in ("early", "on_time", "late")}
        assert found == {"early": 0.0, "on_time": 0.0, "late": 0.0} | {which: 1.0}

    def test_the_median_of_1_and_3_seconds_is_2(self) -> None:
        """Defect 3: element floor(p·n) made it 3."""
        assert sub("latency").also == {"p50": Percentile(50), "p90": Percentile(90)}
        assert percentile(np.array([1.0, 3.0]), 50) == 2.0
        assert percentile(np.array([1.0, 3.0]), 90) == pytest.approx(2.8)  # 1 + 0.9 × 2

    def test_directions(self) -> None:
        """Defect 4: they were guessed from the last word of the name."""
        assert {name.removeprefix("voice.turn_taking"): one.better for name, one in DECLARED.items()} == {
            "": HIGHER,
            "@eva": HIGHER,
            ".latency": LOWER,
            ".on_time_rate": HIGHER,
            ".early_rate": LOWER,
            ".late_rate": LOWER,
            ".agent_interruption.rate": LOWER,
            ".agent_interruption.count": LOWER,
            ".agent_interruption.overlap": LOWER,
            ".agent_interruption.overlap_score": HIGHER,
            ".agent_interruption.count_score": HIGHER,
            ".agent_interruption.post_interrupt_latency": LOWER,
            ".agent_interruption.post_interrupt_latency_score": HIGHER,
            ".user_interruption.rate": NEITHER,
            ".user_interruption.yield_time": LOWER,
            ".user_interruption.yield_score": HIGHER,
            ".fallback_nudge.rate": LOWER,
            ".fallback_nudge.count": LOWER,
        }


class TestNudges:
    @staticmethod
    def nudged() -> Conversation:
        return voice_call(
            caller("hi", (0.0, 1.0)),
            bot("yes?", (2.0, 3.0)),
            caller("book it", (4.0, 5.0)),
            bot("Are you still there?", (6.0, 7.0), manner="fallback"),
        )

    def test_a_nudge_is_worth_nothing(self) -> None:
        conversation = self.nudged()
        (_, one) = observe(turn_taking.turn_taking, conversation)
        assert (one.value, one.details) == (0.0, {"reason": "turn_end_fallback", "latency": 1.0})
        assert value("", conversation) == 0.5  # (1 + 0) ÷ 2
        assert value("fallback_nudge.rate", conversation) == 0.5
        assert value("fallback_nudge.count", conversation) == 1

    def test_a_log_that_would_not_show_one_says_nothing(self) -> None:
        for name in ("fallback_nudge.rate", "fallback_nudge.count"):
            assert turns(name, exchange(1.0)) == [("conversation", "unmeasured: nudges_not_logged")]

    def test_a_log_that_would_and_does_not_is_a_real_zero(self) -> None:
        conversation = voice_call(
            caller("hi", (0.0, 1.0)), bot("yes?", (2.0, 3.0)), log=(Logged(source="audit", kind="user", text="hi"),)
        )
        assert value("fallback_nudge.rate", conversation) == 0
        assert value("fallback_nudge.count", conversation) == 0


class TestLeftWaiting:
    @staticmethod
    def ending(outcome: Outcome) -> Conversation:
        return voice_call(
            caller("hi", (0.0, 1.0)), bot("yes?", (2.0, 3.0)), caller("book it", (4.0, 5.0)), outcome=outcome
        )

    def test_a_call_that_the_agent_let_die_is_0_as_a_whole(self) -> None:
        (one,) = observe(turn_taking.turn_taking, self.ending(TIMED_OUT))
        assert (str(one.subject), one.value) == ("conversation", 0.0)
        assert one.details == {
            "left_waiting": True,
            "turns": {"1": {"score": 1.0, "reason": "latency", "latency": 1.0}},
        }

    def test_its_turns_are_as_they_were(self) -> None:
        assert turns("latency", self.ending(TIMED_OUT)) == [("turn 1", 1.0), ("turn 2", NO_REPLY)]

    def test_so_is_one_in_which_it_never_spoke(self) -> None:
        conversation = voice_call(caller("hello?", (0.0, 1.0)), outcome=TIMED_OUT)
        assert turns("", conversation) == [("conversation", 0.0)]

    @pytest.mark.parametrize("reason", ["", "goodbye", "time_limit_exceeded"])
    def test_not_where_it_ended_otherwise(self, reason: str) -> None:
        assert value("", self.ending(Outcome(ended_reason=reason))) == 1.0

    def test_not_where_the_user_fell_silent(self) -> None:
        conversation = voice_call(caller("hi", (0.0, 1.0)), bot("yes?", (2.0, 3.0)), outcome=TIMED_OUT)
        assert value("", conversation) == 1.0


class TestEmptyCases:
    def test_nothing_to_evaluate_is_not_0(self) -> None:
        conversation = voice_call(bot("welcome", (0.0, 1.0)), caller("hi", (2.0, 3.0)))
        assert turns("", conversation) == [("conversation", "not_applicable: no_evaluable_turn")]
        greeting = voice_call(bot("welcome", (0.0, 1.0)))
        assert turns("", greeting) == [("conversation", "not_applicable: no_user_speech")]

    def test_turns_that_nobody_answered_say_so(self) -> None:
        conversation = voice_call(caller("hi", (0.0, 1.0)), bot("yes?", (2.0, 3.0)), caller("bye", (4.0, 5.0)))
        assert turns("", conversation) == [("turn 1", 1.0), ("turn 2", "unmeasured: end_unknown")]

    def test_a_side_without_sound_could_have_been_measured(self) -> None:
        conversation = voice_call(caller("hi", (0.0, 1.0)), bot("yes?"))
        assert turns("", conversation) == [("conversation", "unmeasured: no_sound")]
        more = voice_call(caller("hi", (0.0, 1.0)), bot("yes?", (2.0, 3.0)), caller("and", (4.0, 5.0)), bot("?"))
        assert turns("", more) == [("turn 1", 1.0), ("turn 2", "unmeasured: no_sound")]

    def test_a_call_without_any_sound(self) -> None:
        for name in ("", "latency", "agent_interruption.rate"):
            assert turns(name, voice_call(caller("hi"), bot("yes?"))) == [("conversation", "unmeasured: no_sound")]

    def test_a_chat_is_no_call(self) -> None:
        for conversation in (chat(user("hi"), agent("yes")), chat(user("hi"), agent("yes"), pipeline="text")):
            assert turns("", conversation) == [("conversation", "not_applicable: not_a_call")]


SPANS = st.lists(
    st.tuples(st.floats(0, 30), st.floats(0, 5)).map(lambda span: (span[0], span[0] + span[1])), min_size=1, max_size=3
)


class TestAnyCall:
    @settings(deadline=None)
    @given(st.lists(st.tuples(st.booleans(), SPANS), min_size=1, max_size=8), st.booleans())
    def test_scores_lie_between_0_and_1(self, said: list[tuple[bool, list]], timed_out: bool) -> None:
        events = [(caller if by_user else bot)("words", *spans) for by_user, spans in said]
        conversation = voice_call(*events, outcome=TIMED_OUT if timed_out else Outcome())
        for declared in DECLARED.values():
            for one in observe(declared, conversation):
                assert one.status != "error", one.detail
                if one.value is not None:
                    assert math.isfinite(one.value)
                    assert one.value >= 0
                    if declared.unit in ("ratio", "share"):
                        assert one.value <= 1

    def test_it_is_looked_at_once(self) -> None:
        context = metric_context(exchange(1.0))
        assert analyse_turns(context) is analyse_turns(context)


class TestSilence:
    """A turn without a reply was not applicable, so that an agent which ignores the user took its turns well."""

    def asked(self, *later: Utterance, reason: str = "goodbye") -> Conversation:
        answered = (caller("book it", (0.0, 4.0)), bot("done", (5.0, 9.0)))
        return voice_call(*answered, *later, outcome=Outcome(ended_reason=reason))

    def test_an_agent_that_answers_once_and_ignores_nine_questions(self) -> None:
        again = [caller("hello?", (10.0 * number, 10.0 * number + 1)) for number in range(1, 10)]
        call = self.asked(*again, reason="error")
        # Nine questions in a row are one turn without a reply: (1 + 0) ÷ 2.
        assert turns("", call) == [("turn 1", 1.0), ("turn 2", 0.0)]
        assert told(observe(turn_taking.turn_taking_eva, call)) == [("turn 1", 1.0), ("turn 2", NO_REPLY)]

    def test_one_that_never_speaks(self) -> None:
        call = voice_call(caller("hi", (0.0, 1.0)), outcome=Outcome(ended_reason="goodbye"))
        assert turns("", call) == [("turn 1", 0.0)]
        assert told(observe(turn_taking.turn_taking_eva, call)) == [("conversation", "unmeasured: no_reply")]

    def test_a_user_who_says_goodbye_and_leaves_is_owed_nothing(self) -> None:
        assert turns("", self.asked(caller("bye", (10.0, 11.0)))) == [("turn 1", 1.0), ("turn 2", LEFT)]

    def test_one_that_talks_on_over_the_user(self) -> None:
        talked = (caller("hi", (0.0, 4.0)), bot("Let me explain.", (5.0, 100.0)), caller("Stop.", (10.0, 11.0)))
        call = voice_call(*talked, outcome=Outcome(ended_reason="inactivity_timeout", error="hung"))
        assert turns("", call) == [("turn 1", 1.0), ("turn 2", 0.0)]


NO_REPLY = "unmeasured: no_reply"
LEFT = "not_applicable: user_left"
