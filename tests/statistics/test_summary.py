"""Every aggregate says how much of the whole it stands for, and why the rest is missing (design, idea 1)."""

import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.metrics import Observation, TenPoints, measured, not_applicable, unmeasured
from convoscope.scores.observation import failed
from convoscope.scores.reducers import percentile
from convoscope.statistics.summary import Figure
from convoscope.views.items import WHOLE
from support.tables import headline, ratios, reduced_by, summary, turn, values

MEAN = reduced_by("mean", "mean_of_conversations")
NO_REPLY = [not_applicable(WHOLE, "no_reply")]
NO_CLOCK = [unmeasured(WHOLE, "no_clock")]
NO_TEXT = [unmeasured(WHOLE, "no_text")]
RAISED = [failed(WHOLE, "metric_raised", "KeyError: 'x'")]


def figure(**fields: Any) -> Figure:
    """A figure over 3 conversations, of which one was skipped."""
    usual = {
        "metric": "test.metric",
        "judge": "(computed)",
        "unit": "x",
        "better": "higher",
        "status": "measured",
        "value": 1.0,
        "coverage": 2 / 3,
        "samples_total": 3,
        "samples_measured": 2,
        "samples_skipped": 1,
        "samples_not_applicable": 0,
        "skipped_reasons": {"no_clock": 1},
        "n": 2,
    }
    return Figure(**{**usual, **fields})


class TestWhatAFigureCannotBe:
    def test_this_is_one(self) -> None:
        assert figure().value == 1.0
        assert figure(status="unmeasured", value=None, reason="no_clock").value is None

    @pytest.mark.parametrize(
        ("fields", "why"),
        [
            ({"value": None}, "a value when it is measured"),
            ({"status": "unmeasured", "reason": "no_clock"}, "a value when it is measured"),
            ({"status": "not_applicable", "reason": "no_reply", "value": 0.0}, "a value when it is measured"),
            ({"value": math.nan}, "finite"),
            ({"value": math.inf}, "finite"),
            ({"status": "unmeasured", "value": None}, "needs a reason"),
            ({"samples_total": 4}, "add up"),
            ({"samples_measured": 3}, "add up"),
            ({"samples_skipped": 2, "samples_total": 4}, "its reason"),
            ({"skipped_reasons": {}}, "its reason"),
            ({"skipped_reasons": {"no_clock": 1, "no_text": 1}}, "its reason"),
        ],
    )
    def test_it_is_refused(self, fields: dict[str, Any], why: str) -> None:
        with pytest.raises(ValueError, match=why):
            figure(**fields)

    def test_nor_can_it_become_one(self) -> None:
        with pytest.raises(ValueError, match="a value when it is measured"):
            msgspec.structs.replace(figure(), value=None)


class TestCoverage:
    def test_measured_of_those_with_an_opportunity(self) -> None:
        one = headline(MEAN, values(1), values(0), values(1), NO_REPLY, NO_REPLY, NO_CLOCK)
        assert one.value == pytest.approx(2 / 3)
        assert (one.samples_total, one.samples_measured, one.samples_skipped) == (6, 3, 3)
        assert one.samples_not_applicable == 2
        assert one.coverage == 0.75  # 3 ÷ (6 − 2)
        assert one.skipped_reasons == {"no_reply": 2, "no_clock": 1}

    def test_an_error_is_an_opportunity_that_was_not_measured(self) -> None:
        one = headline(MEAN, values(1), RAISED)
        assert (one.value, one.coverage, one.skipped_reasons) == (1.0, 0.5, {"metric_raised": 1})

    def test_everything_measured(self) -> None:
        one = headline(MEAN, values(1), values(0))
        assert (one.coverage, one.samples_skipped, one.skipped_reasons) == (1.0, 0, {})

    def test_the_commonest_reason_comes_first_and_equals_by_name(self) -> None:
        one = headline(MEAN, values(1), NO_TEXT, NO_CLOCK, NO_REPLY, NO_REPLY)
        assert list(one.skipped_reasons.items()) == [("no_reply", 2), ("no_clock", 1), ("no_text", 1)]

    def test_of_the_group_alone(self) -> None:
        one = headline(MEAN, values(1), values(5), NO_CLOCK, NO_REPLY, rows=[True, False, True, False])
        assert (one.value, one.samples_total, one.samples_measured, one.coverage) == (1.0, 2, 1, 0.5)
        assert one.skipped_reasons == {"no_clock": 1}


class TestNothingMeasured:
    @pytest.mark.parametrize(
        ("conversations", "status", "reason", "coverage"),
        [
            ([NO_REPLY, NO_REPLY], "not_applicable", "no_reply", None),
            ([NO_CLOCK, NO_TEXT, NO_TEXT], "unmeasured", "no_text", 0.0),
            ([NO_CLOCK, NO_CLOCK, NO_REPLY], "unmeasured", "no_clock", 0.0),  # 0 ÷ (3 − 1)
            ([RAISED, RAISED, NO_REPLY], "error", "metric_raised", 0.0),
            ([RAISED, NO_REPLY, NO_REPLY], "error", "metric_raised", 0.0),  # the gravest, not the commonest
            ([NO_CLOCK, NO_REPLY, NO_REPLY], "unmeasured", "no_clock", 0.0),
            ([RAISED, NO_CLOCK, NO_CLOCK, NO_REPLY], "error", "metric_raised", 0.0),
            ([NO_TEXT, NO_CLOCK], "unmeasured", "no_clock", 0.0),  # equally common: by name
        ],
    )
    def test_status_and_commonest_reason(
        self, conversations: list[list[Observation]], status: str, reason: str, coverage: float | None
    ) -> None:
        one = headline(MEAN, *conversations)
        assert (one.value, one.status, one.reason, one.coverage) == (None, status, reason, coverage)
        assert (one.samples_measured, one.samples_skipped, one.n) == (0, len(conversations), 0)
        assert (one.interval, one.interval_reason) == (None, "")

    @pytest.mark.parametrize("across", ["mean_of_conversations", "mean_of_subjects", "ratio_of_sums", percentile(95)])
    def test_whatever_the_reducer(self, across: str) -> None:
        one = headline(reduced_by("mean", across), NO_CLOCK, NO_CLOCK)
        assert (one.value, one.status, one.reason) == (None, "unmeasured", "no_clock")

    @pytest.mark.parametrize("across", ["mean_of_conversations", "mean_of_subjects", "ratio_of_sums", percentile(95)])
    def test_a_group_without_conversations(self, across: str) -> None:
        one = headline(reduced_by("mean", across), ratios((1, 1)), rows=[False])
        assert (one.value, one.status, one.reason, one.coverage) == (None, "unmeasured", "no_conversations", None)
        assert (one.samples_total, one.samples_measured, one.samples_skipped, one.skipped_reasons) == (0, 0, 0, {})


class TestPartlyMeasuredConversations:
    PARTLY = [*values(2, 4), not_applicable(turn(3), "no_reply")]
    HARDLY = [unmeasured(turn(1), "no_clock"), unmeasured(turn(2), "no_clock"), measured(turn(3), 9)]

    def test_turns_are_counted_beside_conversations(self) -> None:
        one = headline(MEAN, self.PARTLY, self.HARDLY, NO_CLOCK)
        assert one.value == 6.0  # ((2 + 4)/2 + 9) ÷ 2
        assert (one.samples_measured, one.samples_skipped) == (2, 1)
        assert one.n == 3  # 2, 4, 9
        assert one.subjects_skipped == 3  # one of the first, two of the second; the third was skipped whole

    def test_a_conversation_without_any_value_has_its_gravest_status(self) -> None:
        silent = [not_applicable(turn(1), "no_reply"), not_applicable(turn(2), "no_reply"), *NO_CLOCK]
        one = headline(MEAN, silent)
        assert (one.status, one.reason, one.skipped_reasons) == ("unmeasured", "no_clock", {"no_clock": 1})

    def test_and_the_commonest_reason_of_that_status(self) -> None:
        silent = [*NO_CLOCK, unmeasured(turn(1), "no_text"), unmeasured(turn(2), "no_text")]
        assert headline(MEAN, silent).skipped_reasons == {"no_text": 1}


class TestTenPoints:
    def test_the_headline_has_them(self) -> None:
        declared = reduced_by("mean", ten=TenPoints(0, 8), also={"p50": percentile(50)})
        figures = summary(declared, values(1), values(3))
        # The mean is 2 of 8: 2.5 points. What stands beside it has none.
        assert (figures[""].ten, figures["p50"].ten) == (2.5, None)

    def test_without_a_value_there_are_none(self) -> None:
        assert headline(reduced_by("mean", ten=TenPoints(0, 8)), NO_CLOCK).ten is None


def test_a_figure_repeats_what_was_declared() -> None:
    one = headline(reduced_by("mean", unit="s", better="lower", variant="strict"), values(1))
    assert (one.metric, one.variant, one.unit, one.better, one.judge) == (
        "test.metric",
        "strict",
        "s",
        "lower",
        "(computed)",
    )


CONVERSATION = st.one_of(
    st.lists(st.floats(-100, 100), min_size=1, max_size=3).map(lambda numbers: values(*numbers)),
    st.sampled_from([NO_REPLY, NO_CLOCK, NO_TEXT, RAISED]),
)


@given(conversations=st.lists(CONVERSATION, min_size=1, max_size=8))
def test_whatever_happened_the_numbers_add_up(conversations: list[list[Observation]]) -> None:
    one = headline(MEAN, *conversations)
    with_value = [each for each in conversations if each[0].value is not None]
    without_chance = sum(each is NO_REPLY for each in conversations)
    assert one.samples_total == len(conversations)
    assert one.samples_measured == len(with_value)
    assert one.samples_measured + one.samples_skipped == one.samples_total
    assert sum(one.skipped_reasons.values()) == one.samples_skipped
    assert one.n == sum(len(each) for each in with_value)
    if without_chance == len(conversations):
        assert one.coverage is None
    else:
        assert one.coverage == len(with_value) / (len(conversations) - without_chance)
    if with_value:
        means = [sum(one.value for one in each) / len(each) for each in with_value]
        assert one.value == pytest.approx(sum(means) / len(means), abs=1e-9)
    else:
        assert one.value is None
        assert one.status != "measured"
        assert one.reason in one.skipped_reasons


class TestBounds:
    """What those without a value allow: all of them at 0, all of them at 1."""

    POOLED = reduced_by("ratio", "ratio_of_sums", "share")
    EACH = reduced_by("mean", "mean_of_conversations", "share")

    def test_of_pooled_subjects(self) -> None:
        # 1 of 2 in a, nothing known of the third; nothing known of b. 1 ÷ 4 and (1 + 2) ÷ 4.
        gap = unmeasured(turn(3), "no_text")
        figure = headline(self.POOLED, [*ratios((1, 1), (0, 1)), gap], NO_TEXT)
        assert (figure.value, figure.bounds) == (0.5, (0.25, 0.75))

    def test_of_conversations(self) -> None:
        # a: 1 of 1 and one unknown, so 0.5 to 1. b: unknown, 0 to 1. c: 0. Of three: 0.5 ÷ 3 and 2 ÷ 3.
        figure = headline(self.EACH, [*values(1.0), unmeasured(turn(2), "no_text")], NO_TEXT, values(0.0))
        assert figure.value == 0.5
        assert figure.bounds == pytest.approx((0.5 / 3, 2 / 3))

    def test_what_had_no_opportunity_changes_nothing(self) -> None:
        assert headline(self.EACH, values(1.0), NO_REPLY).bounds is None

    def test_there_are_none_of_seconds_nor_where_subjects_weigh_differently(self) -> None:
        seconds = reduced_by("mean", "mean_of_conversations", "s")
        assert headline(seconds, values(1.0), NO_CLOCK).bounds is None
        assert headline(self.POOLED, ratios((1, 5)), NO_TEXT).bounds is None

    @given(st.lists(st.lists(st.sampled_from([0.0, 1.0, None]), min_size=1, max_size=4), min_size=1, max_size=5))
    def test_they_hold_whatever_the_missing_would_have_been(self, rows: list[list[float | None]]) -> None:
        def conversations(unknown: float | None) -> list[list[Observation]]:
            return [
                [
                    unmeasured(turn(place), "no_text") if value is None else measured(turn(place), value)
                    for place, value in enumerate((unknown if one is None else one for one in row), start=1)
                ]
                for row in rows
            ]

        figure = headline(self.EACH, *conversations(None))
        if figure.bounds is not None:
            ends = tuple(headline(self.EACH, *conversations(unknown)).value for unknown in (0.0, 1.0))
            assert figure.bounds == pytest.approx(ends)
            assert figure.bounds[0] <= (figure.value or 0.0) + 1e-12
            assert figure.bounds[1] >= (figure.value or 0.0) - 1e-12
