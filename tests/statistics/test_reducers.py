"""Reducers are declared per step: subject → conversation, conversation → group (design, idea 4)."""

import pytest

from convoscope.errors import DeclarationError
from convoscope.metrics import CONVERSATION, HIGHER, Observation, Reduce, metric, not_applicable, unmeasured
from convoscope.scores.reducers import MEAN_OF_SUBJECTS, POOLED_COUNTS, Within, percentile, register
from support.tables import counts, headline, ratios, reduced_by, summary, turn, values, within


class TestWithinAConversation:
    @pytest.mark.parametrize(
        ("reducer", "value"),
        [
            ("mean", 4.0),  # (1 + 9 + 2) ÷ 3
            ("sum", 12.0),
            ("median", 2.0),
            ("max", 9.0),
            ("min", 1.0),
            ("last", 2.0),  # of the order, not of the size
        ],
    )
    def test_three_turns(self, reducer: str, value: float) -> None:
        score = within(reducer, values(1, 9, 2))
        assert (score.status, score.value, score.n, score.total) == ("measured", value, 3, 12.0)

    def test_the_median_of_an_even_number_lies_between(self) -> None:
        assert within("median", values(1, 9, 2, 4)).value == 3.0  # (2 + 4) ÷ 2

    def test_a_ratio_divides_the_sums(self) -> None:
        score = within("ratio", ratios((1, 1), (1, 9)))
        # (1 + 1) ÷ (1 + 9) = 0.2; the mean of the ratios would be (1 + 1/9) ÷ 2 = 0.556
        assert (score.value, score.numerator, score.denominator) == (0.2, 2.0, 10.0)

    def test_counts_are_pooled_to_f1(self) -> None:
        score = within("counts", counts((1, 0, 0), (1, 2, 2)))
        # tp 2, fp 2, fn 2: F1 = 4 ÷ 8; the mean of the turns' F1 would be (1 + 2/6) ÷ 2 = 0.667
        assert (score.value, score.tp, score.fp, score.fn) == (0.5, 2.0, 2.0, 2.0)

    @pytest.mark.parametrize("reducer", ["mean", "sum", "ratio", "counts", "median", "max", "min", "last"])
    def test_one_turn_is_itself(self, reducer: str) -> None:
        one = counts((1, 1, 0)) if reducer == "counts" else ratios((2, 3))
        # F1 = 2 ÷ 3, and 2 of 3
        assert within(reducer, one).value == pytest.approx(2 / 3)

    @pytest.mark.parametrize("reducer", ["mean", "sum", "median", "max", "min", "last"])
    def test_turns_without_a_value_are_left_out_and_counted(self, reducer: str) -> None:
        score = within(reducer, [*values(5), not_applicable(turn(2), "no_reply"), unmeasured(turn(3), "no_clock")])
        assert (score.value, score.n) == (5.0, 1)
        assert (score.not_applicable, score.unmeasured, score.errors) == (1, 1, 0)

    @pytest.mark.parametrize("reducer", ["ratio", "counts"])
    def test_plain_values_do_not_fit_a_reducer_of_counts(self, reducer: str) -> None:
        with pytest.raises(DeclarationError, match=r"ratio\(\)|counted\(\)"):
            within(reducer, values(1, 0))


class TestMeans:
    # Two conversations: one of 1 turn worth 1, one of 3 turns worth 0.
    SHORT, LONG = values(1), values(0, 0, 0)

    def test_mean_of_conversation_means(self) -> None:
        figure = headline(reduced_by("mean", "mean_of_conversations"), self.SHORT, self.LONG)
        assert (figure.value, figure.n) == (0.5, 4)  # (1 + 0) ÷ 2

    def test_mean_of_all_turns(self) -> None:
        figure = headline(reduced_by("mean", "mean_of_subjects"), self.SHORT, self.LONG)
        assert (figure.value, figure.n) == (0.25, 4)  # (1 + 0 + 0 + 0) ÷ 4

    def test_the_mean_of_conversations_takes_what_the_first_step_gave(self) -> None:
        figure = headline(reduced_by("max", "mean_of_conversations"), values(1, 5), values(3, 2))
        assert figure.value == 4.0  # (5 + 3) ÷ 2

    def test_a_second_named_reduction_stands_beside_the_first(self) -> None:
        declared = reduced_by("mean", "mean_of_conversations", also={"micro": MEAN_OF_SUBJECTS})
        figures = summary(declared, self.SHORT, self.LONG)
        assert {name: figure.value for name, figure in figures.items()} == {"": 0.5, "micro": 0.25}

    def test_micro_counts_beside_macro_f1(self) -> None:
        declared = reduced_by("counts", "mean_of_conversations", also={"micro": POOLED_COUNTS})
        figures = summary(declared, counts((1, 0, 0)), counts((0, 2, 4)))
        assert {name: figure.value for name, figure in figures.items()} == {
            "": 0.5,  # (1 + 0) ÷ 2
            "micro": 0.25,  # tp 1, fp 2, fn 4: 2 ÷ (2 + 2 + 4)
            "micro precision": pytest.approx(1 / 3),
            "micro recall": pytest.approx(1 / 5),
        }


class TestRatioOfSums:
    def test_violations_by_turns(self) -> None:
        # 1 violation in 2 turns, 0 in 8
        figure = headline(reduced_by("ratio", "ratio_of_sums"), ratios((1, 1), (0, 1)), ratios(*[(0, 1)] * 8))
        # 1 ÷ 10; the mean of the conversations would be (0.5 + 0) ÷ 2
        assert (figure.value, figure.n) == (0.1, 10)

    def test_whole_conversations_weigh_by_their_denominator(self) -> None:
        figure = headline(reduced_by("ratio", "ratio_of_sums"), ratios((3, 4)), ratios((0, 6)), ratios((6, 10)))
        assert figure.value == 0.45  # (3 + 0 + 6) ÷ (4 + 6 + 10)

    def test_a_rate_may_exceed_one(self) -> None:
        assert headline(reduced_by("ratio", "ratio_of_sums"), ratios((5, 2))).value == 2.5


class TestMeanOverOpportunities:
    """Memory transfer: a conversation that never switches has nothing to transfer."""

    def test_conversations_without_an_opportunity_are_not_in_the_mean(self) -> None:
        declared = reduced_by("ratio", "mean_of_conversations")
        carried_both, carried_one_of_four = ratios((1, 1), (1, 1)), ratios((1, 1), (0, 3))
        no_switch = ratios((0, 0))
        figure = headline(declared, carried_both, no_switch, carried_one_of_four, no_switch)
        # (2/2 + 1/4) ÷ 2: neither 0 nor 1 for those without a switch
        assert figure.value == 0.625
        assert (figure.samples_total, figure.samples_measured, figure.samples_not_applicable) == (4, 2, 2)
        assert figure.skipped_reasons == {"no_chance": 2}
        assert figure.coverage == 1.0  # 2 ÷ (4 − 2)

    def test_an_opportunity_that_was_missed_is_in_it(self) -> None:
        figure = headline(reduced_by("ratio", "mean_of_conversations"), ratios((0, 1)), ratios((1, 1)))
        assert figure.value == 0.5

    def test_without_any_opportunity_there_is_no_figure(self) -> None:
        figure = headline(reduced_by("ratio", "mean_of_conversations"), ratios((0, 0)), ratios((0, 0)))
        assert (figure.value, figure.status, figure.reason, figure.coverage) == (
            None,
            "not_applicable",
            "no_chance",
            None,
        )


class TestPooledCounts:
    POOLED = reduced_by("counts", "pooled_counts")

    def test_precision_recall_and_f1(self) -> None:
        figures = summary(self.POOLED, counts((3, 1, 0), (0, 0, 2)), counts((1, 1, 2)))
        # tp 4, fp 2, fn 4
        assert figures[""].value == pytest.approx(8 / 14)
        assert figures["precision"].value == pytest.approx(4 / 6)
        assert figures["recall"].value == pytest.approx(4 / 8)

    def test_weighted_counts(self) -> None:
        figures = summary(self.POOLED, counts((0.5, 0.25, 0)), counts((1.0, 0, 0.75)))
        # tp 1.5, fp 0.25, fn 0.75
        assert figures[""].value == pytest.approx(3 / 4)  # 3 ÷ (3 + 0.25 + 0.75)
        assert figures["precision"].value == pytest.approx(1.5 / 1.75)
        assert figures["recall"].value == pytest.approx(1.5 / 2.25)

    def test_nothing_predicted(self) -> None:
        figures = summary(self.POOLED, counts((0, 0, 2)), counts((0, 0, 1)))
        assert figures[""].value == 0.0  # 0 ÷ 3: all was missed
        assert figures["recall"].value == 0.0  # 0 of 3
        precision = figures["precision"]
        assert (precision.value, precision.status, precision.reason) == (None, "not_applicable", "nothing_predicted")

    def test_nothing_in_gold(self) -> None:
        figures = summary(self.POOLED, counts((0, 2, 0)))
        assert figures[""].value == 0.0
        assert figures["precision"].value == 0.0  # 0 of 2
        recall = figures["recall"]
        assert (recall.value, recall.status, recall.reason) == (None, "not_applicable", "nothing_in_gold")

    def test_nothing_at_all(self) -> None:
        figures = summary(self.POOLED, counts((0, 0, 0)), counts((0, 0, 0)))
        assert {figure.value for figure in figures.values()} == {None}
        assert {(figure.status, figure.reason) for figure in figures.values()} == {
            ("not_applicable", "nothing_to_find")
        }
        assert set(figures) == {"", "precision", "recall"}

    def test_a_conversation_with_nothing_to_find_changes_nothing(self) -> None:
        figure = headline(self.POOLED, counts((3, 1, 0)), counts((0, 0, 0)))
        assert figure.value == pytest.approx(6 / 7)
        assert (figure.samples_measured, figure.samples_not_applicable) == (1, 1)


class TestPercentiles:
    def test_of_the_pooled_values(self) -> None:
        declared = reduced_by("mean", "mean_of_subjects", also={"p50": percentile(50)})
        figures = summary(declared, values(1, 2, 3, 4), values(100))
        # Pooled: 1 2 3 4 100. The median of the conversations' medians would be (2.5 + 100) ÷ 2 = 51.25.
        assert figures["p50"].value == 3.0
        assert figures[""].value == 22.0  # 110 ÷ 5

    def test_linear_between_the_two_nearest_ranks(self) -> None:
        declared = reduced_by("mean", percentile(95))
        figure = headline(declared, values(10, 30), values(20, 40, 50))
        # Rank (5 − 1) · 0.95 = 3.8 counted from 0: between 40 and 50, 40 + 0.8 · 10
        assert figure.value == pytest.approx(48.0)

    def test_a_percentile_may_be_the_headline(self) -> None:
        figure = headline(reduced_by("mean", percentile(50)), values(7), values(9))
        assert (figure.reduction, figure.value, figure.n) == ("", 8.0, 2)

    def test_only_the_group_is_pooled(self) -> None:
        declared = reduced_by("mean", percentile(50))
        figure = headline(declared, values(1, 2), values(50), values(5), rows=[True, False, True])
        assert figure.value == 2.0  # of 1 2 5

    def test_turns_without_a_value_are_not_in_it(self) -> None:
        figure = headline(reduced_by("mean", percentile(50)), [*values(1, 3), unmeasured(turn(3), "no_clock")])
        assert (figure.value, figure.n, figure.subjects_skipped) == (2.0, 2, 1)


class TestWholeRatio:
    """A conversation of which a subject could not be measured has no value: that one may be the one that matters."""

    def test_with_every_subject(self) -> None:
        figure = headline(reduced_by("whole_ratio", "ratio_of_sums"), ratios((1, 2), (1, 2)), ratios((0, 4), (1, 4)))
        assert (figure.value, figure.n) == (0.25, 4)  # (1 + 1 + 0 + 1) ÷ (2 + 2 + 4 + 4)

    def test_without_one(self) -> None:
        half = [*ratios((1, 1), (1, 1)), unmeasured(turn(3), "outcome_unknown")]
        figure = headline(reduced_by("whole_ratio", "ratio_of_sums"), half, ratios((0, 1), (1, 1)))
        assert (figure.value, figure.samples_measured, figure.skipped_reasons) == (0.5, 1, {"outcome_unknown": 1})

    def test_a_subject_without_an_opportunity_is_not_missed(self) -> None:
        figure = headline(
            reduced_by("whole_ratio", "ratio_of_sums"), [*ratios((1, 2), (1, 2)), not_applicable(turn(3), "no_slot")]
        )
        assert (figure.value, figure.subjects_skipped) == (0.5, 1)


class TestOnesOwn:
    def test_a_reducer_of_ones_own_reduces_like_ours(self) -> None:
        first = Within("first", lambda measured: measured[0].value)
        declared = metric(
            "test.first", version=1, observes=CONVERSATION, unit="x", better=HIGHER, reduce=Reduce(first)
        )(said_by_the_test)
        assert headline(declared, values(3, 5), values(5, 1)).value == 4.0  # (3 + 5) ÷ 2

    def test_two_of_one_name_are_refused(self) -> None:
        with pytest.raises(DeclarationError, match="already"):
            register(Within("mean", lambda measured: 0.0))


def said_by_the_test(conversation: object) -> tuple[Observation, ...]:
    """What the test says."""
    return ()
