"""A number nobody measured is never a number: what cannot be constructed (design, idea 1)."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.conversation import Item
from convoscope.metrics import (
    Observation,
    Score,
    State,
    Subject,
    counted,
    measured,
    not_applicable,
    ratio,
    unmeasured,
)
from convoscope.scores.observation import Counts, failed, subject_of
from convoscope.views.items import WHOLE
from support.chats import agent, call, chat, user

EMPTY = ("not_applicable", "unmeasured", "error")


def observation(status: str = "measured", **fields: Any) -> Observation:
    return Observation(subject=WHOLE, status=status, **fields)  # type: ignore[arg-type]


class TestMeasured:
    def test_a_measured_score_has_its_value_and_no_reason(self) -> None:
        one = measured(WHOLE, 0.25)
        assert (one.status, one.value, one.reason, one.detail) == ("measured", 0.25, "", "")
        assert (one.numerator, one.denominator, one.counts) == (None, None, None)
        assert (one.judge, one.repeat) == ("(computed)", 0)

    def test_without_a_value_it_is_refused(self) -> None:
        with pytest.raises(ValueError, match="finite value"):
            observation()

    @pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, "0.5", "", [0.5], 1j])
    def test_what_is_not_a_finite_number_is_refused(self, value: Any) -> None:
        with pytest.raises(ValueError, match="finite value"):
            observation(value=value)
        with pytest.raises(ValueError, match="finite value"):
            measured(WHOLE, value)

    @pytest.mark.parametrize("value", [True, False, 1, 0])
    def test_a_truth_value_or_a_whole_number_is_not_yet_a_value(self, value: float) -> None:
        with pytest.raises(ValueError, match="finite value"):
            observation(value=value)

    @pytest.mark.parametrize(("given_", "value"), [(True, 1.0), (False, 0.0), (3, 3.0), (0, 0.0), (-2, -2.0)])
    def test_measured_makes_it_one(self, given_: float, value: float) -> None:
        one = measured(WHOLE, given_)
        assert one.value == value
        assert type(one.value) is float

    @pytest.mark.parametrize("field", ["reason", "detail"])
    def test_a_reason_is_refused(self, field: str) -> None:
        with pytest.raises(ValueError, match="no reason"):
            observation(value=1.0, **{field: "no_clock"})

    def test_zero_is_a_value(self) -> None:
        assert measured(WHOLE, 0).status == "measured"

    def test_judge_repeat_and_details_are_kept(self) -> None:
        one = measured(WHOLE, 1, judge="p/m@abc", repeat=2, details={"quote": "yes"})
        assert (one.judge, one.repeat, one.details) == ("p/m@abc", 2, {"quote": "yes"})

    def test_nor_can_a_value_be_taken_away(self) -> None:
        one = measured(WHOLE, 1)
        with pytest.raises(AttributeError):
            one.value = None  # type: ignore[misc]
        with pytest.raises(ValueError, match="finite value"):
            msgspec.structs.replace(one, value=None)


class TestFractions:
    def test_a_numerator_needs_a_denominator(self) -> None:
        with pytest.raises(ValueError, match="needs a denominator"):
            observation(value=1.0, numerator=1.0)

    def test_a_denominator_needs_a_numerator(self) -> None:
        with pytest.raises(ValueError, match="numerator and denominator"):
            observation(value=1.0, denominator=1.0)

    @pytest.mark.parametrize("denominator", [0.0, -0.0, -1.0, math.nan, math.inf, 2, "2"])
    def test_a_denominator_is_a_finite_number_above_zero(self, denominator: Any) -> None:
        with pytest.raises(ValueError, match="numerator and denominator"):
            observation(value=1.0, numerator=1.0, denominator=denominator)

    @pytest.mark.parametrize("numerator", [math.nan, math.inf, "1"])
    def test_a_numerator_is_a_finite_number(self, numerator: Any) -> None:
        with pytest.raises(ValueError, match="numerator and denominator"):
            observation(value=1.0, numerator=numerator, denominator=1.0)

    @pytest.mark.parametrize("counts", [Counts(-1.0, 0.0, 1.0), Counts(1.0, math.nan, 0.0), Counts(1.0, 0.0, math.inf)])
    def test_counts_are_finite_and_not_negative(self, counts: Counts) -> None:
        with pytest.raises(ValueError, match="counts"):
            observation(value=1.0, counts=counts)

    @pytest.mark.parametrize("value", [0.0, 1.0])
    def test_counts_of_nothing_are_no_measurement(self, value: float) -> None:
        with pytest.raises(ValueError, match="must not all be zero"):
            observation(value=value, counts=Counts(0.0, 0.0, 0.0))


@pytest.mark.parametrize("status", EMPTY)
class TestWithoutANumber:
    @pytest.mark.parametrize(
        "number",
        [{"value": 0.0}, {"value": 1.0}, {"numerator": 1.0}, {"denominator": 1.0}, {"counts": Counts(1.0, 0.0, 0.0)}],
        ids=lambda number: next(iter(number)),
    )
    def test_it_has_no_number_of_any_kind(self, status: str, number: dict[str, Any]) -> None:
        with pytest.raises(ValueError, match="has no number"):
            observation(status, reason="no_clock", **number)

    def test_it_has_a_reason(self, status: str) -> None:
        with pytest.raises(ValueError, match="reason code"):
            observation(status)

    @pytest.mark.parametrize("reason", ["", "No clock", "no clock", "no-clock", "2_clocks", "_x", "NO_CLOCK", "x\n"])
    def test_the_reason_is_a_code_that_can_be_counted(self, status: str, reason: str) -> None:
        with pytest.raises(ValueError, match="reason code"):
            observation(status, reason=reason)

    def test_a_code_and_a_detail_for_a_person(self, status: str) -> None:
        one = observation(status, reason="no_clock", detail="turn 3 has no time")
        assert (one.status, one.value, one.reason, one.detail) == (status, None, "no_clock", "turn 3 has no time")


@pytest.mark.parametrize("status", ["", "skipped", "MEASURED", "ok", None])
def test_there_are_four_statuses_and_no_other(status: Any) -> None:
    with pytest.raises(ValueError, match="cannot be"):
        observation(status, value=1.0)
    with pytest.raises(ValueError, match="cannot be"):
        observation(status, reason="no_clock")


class TestWaysToSayIt:
    def test_a_ratio_keeps_its_counts(self) -> None:
        one = ratio(WHOLE, 3, 4, empty="no_turns")
        # 3 of 4
        assert (one.status, one.value, one.numerator, one.denominator) == ("measured", 0.75, 3.0, 4.0)

    @pytest.mark.parametrize("numerator", [0, 1, 0.0])
    def test_a_zero_denominator_is_not_applicable(self, numerator: float) -> None:
        one = ratio(WHOLE, numerator, 0, empty="no_turns")
        assert (one.status, one.value, one.reason) == ("not_applicable", None, "no_turns")
        assert (one.numerator, one.denominator) == (None, None)

    def test_none_of_some_is_a_real_zero(self) -> None:
        assert ratio(WHOLE, 0, 4, empty="no_turns").value == 0.0

    def test_a_negative_denominator_is_refused(self) -> None:
        with pytest.raises(ValueError, match="above zero"):
            ratio(WHOLE, 1, -1, empty="no_turns")

    def test_counts_come_to_f1(self) -> None:
        one = counted(WHOLE, tp=2, fp=1, fn=1)
        # F1 = 2·2 ÷ (2·2 + 1 + 1) = 4 ÷ 6
        assert one.value == pytest.approx(4 / 6)
        assert one.counts == (2.0, 1.0, 1.0)

    def test_nothing_to_find_and_nothing_found_is_not_applicable(self) -> None:
        one = counted(WHOLE, tp=0, fp=0, fn=0)
        assert (one.status, one.value, one.reason, one.counts) == ("not_applicable", None, "nothing_to_find", None)
        assert counted(WHOLE, tp=0, fp=0, fn=0, empty="no_gold_risks").reason == "no_gold_risks"

    @pytest.mark.parametrize(("fp", "fn"), [(0, 2), (3, 0), (1, 1)])
    def test_none_right_but_something_missed_or_made_up_is_a_real_zero(self, fp: float, fn: float) -> None:
        one = counted(WHOLE, tp=0, fp=fp, fn=fn)
        # F1 = 0 ÷ (fp + fn), and fp + fn is above zero
        assert (one.status, one.value, one.counts) == ("measured", 0.0, (0.0, fp, fn))

    @pytest.mark.parametrize("counts", [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (2, -1, 1), (-1, 2, 0), (-1, 1, 1)])
    def test_nobody_counts_below_zero(self, counts: tuple[float, float, float]) -> None:
        tp, fp, fn = counts
        with pytest.raises(ValueError, match="not negative"):
            counted(WHOLE, tp=tp, fp=fp, fn=fn)

    def test_weighted_counts_need_not_be_whole(self) -> None:
        # F1 = 2·0.5 ÷ (2·0.5 + 0.25 + 0.75) = 1 ÷ 2
        assert counted(WHOLE, tp=0.5, fp=0.25, fn=0.75).value == 0.5

    def test_what_was_not_measured_says_why(self) -> None:
        assert not_applicable(WHOLE, "no_reply").status == "not_applicable"
        assert unmeasured(WHOLE, "no_judge", judge="p/m").judge == "p/m"
        assert not_applicable(WHOLE, "off_topic", judge="p/m").judge == "p/m"
        broken = failed(WHOLE, "metric_raised", "KeyError: 'x'")
        assert (broken.status, broken.reason, broken.detail) == ("error", "metric_raised", "KeyError: 'x'")


class TestSubjects:
    def test_what_a_score_speaks_of(self) -> None:
        conversation = chat(user("hi"), agent("hello"), call("look_up"), user("bye"))
        second = conversation.turns[1]
        assert subject_of(conversation) == Subject("conversation")
        assert subject_of(second) == Subject("turn", "2", 2)
        assert subject_of(conversation.tool_calls[0]) == Subject("tool_call", "2", 2)  # the third event, seq 2
        assert subject_of(State("greeting", 1)) == Subject("state", "greeting", 1)
        assert subject_of(Item(id="q7")) == Subject("item", "q7")
        assert subject_of(Subject("turn", "9", 9)) == Subject("turn", "9", 9)

    def test_it_reads_as_one_would_say_it(self) -> None:
        assert str(Subject("turn", "3", 3)) == "turn 3"
        assert str(Subject("tool_call", "2", 2)) == "tool call 2"
        assert str(WHOLE) == "conversation"


def test_a_score_row_shows_its_observation() -> None:
    score = Score(conversation="c1", metric="answer.f1", observation=unmeasured(WHOLE, "no_judge", judge="p/m"))
    assert (score.status, score.value, score.reason, score.judge) == ("unmeasured", None, "no_judge", "p/m")
    assert (score.subject, score.variant) == (WHOLE, "")


NUMBERS = st.none() | st.floats() | st.integers(-2, 2) | st.booleans() | st.text(max_size=2)
COUNTS = st.none() | st.builds(Counts, st.floats(-1, 3), st.floats(-1, 3), st.floats(allow_nan=True))


@given(
    status=st.sampled_from(["measured", *EMPTY, "other", ""]),
    value=NUMBERS,
    numerator=NUMBERS,
    denominator=NUMBERS,
    counts=COUNTS,
    reason=st.sampled_from(["", "no_clock", "No clock"]) | st.text(max_size=3),
    detail=st.sampled_from(["", "turn 3"]),
)
def test_either_it_is_refused_or_it_is_a_measurement_or_it_has_a_reason(status: str, **fields: Any) -> None:
    try:
        one = observation(status, **fields)
    except ValueError:
        return
    numbers = (one.value, one.numerator, one.denominator, one.counts)
    if one.status == "measured":
        assert type(one.value) is float
        assert math.isfinite(one.value)
        assert one.reason == one.detail == ""
        assert (one.numerator is None) == (one.denominator is None)
        if one.denominator is not None and one.numerator is not None:
            assert 0 < one.denominator < math.inf
            assert math.isfinite(one.numerator)
        assert one.counts is None or all(math.isfinite(count) and count >= 0 for count in one.counts)
    else:
        assert one.status in EMPTY
        assert numbers == (None, None, None, None)
        assert one.reason.isascii()
        assert one.reason.replace("_", "").isalnum()
        assert one.reason == one.reason.lower()


@given(status=st.sampled_from(EMPTY), reason=st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True))
def test_a_reason_code_is_always_taken(status: str, reason: str) -> None:
    assert observation(status, reason=reason).reason == reason


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_every_finite_number_is_always_taken(value: float) -> None:
    assert measured(WHOLE, value).value == value
