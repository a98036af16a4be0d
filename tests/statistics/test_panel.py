"""Median over judges: several judges of one subject become a panel (design, ideas 4 and 6)."""

import pytest

from convoscope.conversation import Conversation
from convoscope.errors import UsageError
from convoscope.metrics import CONVERSATION, HIGHER, LOWER, Metric, Observation, measured, metric, unmeasured
from convoscope.metrics.declaration import RATIO, TenPoints
from convoscope.statistics.panels import (
    Aggregation,
    Marks,
    PanelRule,
    consensus_of,
    joined_repeats,
    marks_of,
    panel,
    panel_name,
    panel_verdict,
    panels,
)
from support.tables import turn


def said(judge: str, *values: float, about: int = 1) -> list[Observation]:
    """What a judge says of a turn, once or several times."""
    return [measured(turn(about), value, judge=judge, repeat=repeat) for repeat, value in enumerate(values)]


class TestPanel:
    def test_the_middle_of_three(self) -> None:
        (one,) = panel([*said("p/a", 1), *said("p/b", 5), *said("p/c", 4)])
        assert (one.subject, one.value) == (turn(1), 4.0)  # 1 4 5; the mean would be 3.33
        values = {"p/a": 1.0, "p/b": 5.0, "p/c": 4.0}
        assert one.details == {"judges": 3, "spread": 4.0, "values": values, "aggregation": "median"}  # 5 − 1

    @pytest.mark.parametrize(
        ("values", "median"),
        [([1, 4], 2.5), ([1, 9, 2, 4], 3.0)],  # (1 + 4) ÷ 2; 1 2 4 9: (2 + 4) ÷ 2
    )
    def test_between_the_two_middle_ones_of_an_even_number(self, values: list[float], median: float) -> None:
        (one,) = panel([each for judge, value in enumerate(values) for each in said(f"p/{judge}", value)])
        assert one.value == median

    def test_a_judge_that_was_asked_several_times_has_one_voice(self) -> None:
        (one,) = panel([*said("p/a", 1, 3), *said("p/b", 5), *said("p/c", 4)])
        assert one.value == 4.0  # 2 4 5; with each answer a voice, 1 3 4 5, it would be 3.5
        assert one.details is not None
        assert one.details["spread"] == 3.0  # 5 − 2

    def test_each_subject_has_its_verdict(self) -> None:
        both = [*said("p/a", 1), *said("p/b", 3), *said("p/a", 7, about=2), *said("p/b", 8, about=2)]
        assert [(one.subject, one.value) for one in panel(both)] == [(turn(1), 2.0), (turn(2), 7.5)]

    def test_a_missing_judge_makes_the_panel_unmeasured(self) -> None:
        silent = unmeasured(turn(1), "refused", judge="p/c")
        (one,) = panel([*said("p/a", 1), *said("p/b", 5), silent])
        assert (one.status, one.value, one.reason, one.detail) == ("unmeasured", None, "judge_missing", "p/c")

    def test_only_where_it_is_missing(self) -> None:
        first = [*said("p/a", 1), *said("p/b", 5), *said("p/c", 2)]
        second = [*said("p/a", 1, about=2), *said("p/c", 1, about=2)]  # b says nothing of turn 2
        assert [(one.value, one.detail) for one in panel([*first, *second])] == [(2.0, ""), (None, "p/b")]

    def test_one_judge_is_no_panel(self) -> None:
        assert panel(said("p/a", 1, 2, 3)) == []
        assert panel([]) == []


class TestName:
    def test_who_sits_on_it_in_any_order(self) -> None:
        assert panel_name(["p/a", "p/b", "p/c"]) == panel_name(["p/c", "p/a", "p/b"])
        assert panel_name(["p/a", "p/b"]) != panel_name(["p/a", "p/c"])
        assert panel_name(["p/a", "p/b"]).startswith("panel:")

    def test_the_verdict_carries_it(self) -> None:
        forth, back = [*said("p/a", 1), *said("p/b", 5)], [*said("p/b", 5), *said("p/a", 1)]
        name = panel_name(["p/a", "p/b"])
        assert [one.judge for one in (*panel(forth), *panel(back))] == [name, name]

    def test_also_where_it_has_no_verdict(self) -> None:
        (one,) = panel([*said("p/a", 1), unmeasured(turn(1), "refused", judge="p/b")])
        assert one.judge == panel_name(["p/a", "p/b"])


TO_ONE = Marks(0.0, 1.0, 0.7)


class TestAggregations:
    """Section 4.1 of the specification of judged measures."""

    @pytest.mark.parametrize(
        ("aggregation", "score"),
        [
            ("mean", 0.7),  # (0.9 + 0.5 + 0.7) ÷ 3
            ("median", 0.7),
            ("weighted_mean", 0.75),  # (2 × 0.9 + 0.5 + 0.7) ÷ 4
            ("majority_vote", 1.0),  # 0.9 and 0.7 pass at 0.7: two of three
            ("consensus", 0.0),  # 0.5 does not pass
            ("min", 0.5),
            ("max", 0.9),
        ],
    )
    def test_of_three(self, aggregation: Aggregation, score: float) -> None:
        rule = PanelRule(aggregation=aggregation, weights={"p/a": 2, "p/b": 1, "p/c": 1})
        verdict = panel_verdict({"p/a@1": 0.9, "p/b@1": 0.5, "p/c@1": 0.7}, rule, TO_ONE)
        assert verdict.score == pytest.approx(score)

    def test_consensus_is_the_lowest_where_all_pass(self) -> None:
        rule = PanelRule(aggregation="consensus")
        assert panel_verdict({"a": 0.9, "b": 0.75}, rule, TO_ONE).score == 0.75
        # Of a defect, less is better: 2 of 1 to 10 is nine tenths, 4 is seven tenths, and 5 fails.
        defect = Marks(11.0, 1.0, 4.0)
        assert panel_verdict({"a": 2.0, "b": 4.0}, rule, defect).score == 4.0
        assert panel_verdict({"a": 2.0, "b": 5.0}, rule, defect).score == 11.0

    def test_weights_of_nothing_are_the_mean(self) -> None:
        rule = PanelRule(aggregation="weighted_mean", weights={"a": 0, "b": 0})
        assert panel_verdict({"a": 1.0, "b": 0.0}, rule, None).score == 0.5

    @pytest.mark.parametrize(
        ("aggregation", "judges"),
        [("mean", 1), ("median", 1), ("min", 1), ("consensus", 1), ("majority_vote", 2), ("majority_vote", 4)],
    )
    def test_too_few_judges_have_no_score(self, aggregation: Aggregation, judges: int) -> None:
        voices = {f"p/{number}": 1.0 for number in range(judges)}
        verdict = panel_verdict(voices, PanelRule(aggregation=aggregation), TO_ONE)
        assert (verdict.score, verdict.reason) == (None, "too_few_judges")

    def test_a_vote_needs_a_mark(self) -> None:
        verdict = panel_verdict({"a": 1, "b": 1, "c": 1}, PanelRule(aggregation="majority_vote"), None)
        assert (verdict.score, verdict.reason) == (None, "no_pass_mark")

    @pytest.mark.parametrize("name", ["medean", "average"])
    def test_an_unknown_one_is_refused(self, name: str) -> None:
        with pytest.raises(UsageError, match=name) as no:
            PanelRule(aggregation=name)  # type: ignore[arg-type]
        assert "median" in no.value.hint

    @pytest.mark.parametrize("wrong", [{"weights": {"a": -1.0}}, {"require_consensus": 1.1}])
    def test_numbers_that_mean_nothing_are_refused(self, wrong: dict[str, object]) -> None:
        with pytest.raises(UsageError):
            PanelRule(**wrong)  # type: ignore[arg-type]


class TestConsensus:
    @pytest.mark.parametrize(
        ("shares", "level"),
        [
            ([1, 0], 0.0),  # as far apart as two can be
            ([0.8, 0.6], 0.8),  # standard deviation 0.1414, largest 0.7071
            ([1, 0.5, 0], 1 - 0.5 / (1 / 3) ** 0.5),  # standard deviation 0.5, largest √(4 ÷ 12)
            ([1, 1, 0, 0], 0.0),  # √(1 ÷ 3), which is the largest of four
            ([0.3, 0.3, 0.3], 1.0),
        ],
    )
    def test_of_the_largest_deviation_that_so_many_can_have(self, shares: list[float], level: float) -> None:
        assert consensus_of(shares) == pytest.approx(level, abs=1e-12)

    def test_one_judge_has_none(self) -> None:
        assert consensus_of([0.4]) is None

    def test_too_little_is_undetermined_and_never_0(self) -> None:
        rule = PanelRule(require_consensus=0.8)
        apart = panel_verdict({"a": 1.0, "b": 0.5}, rule, TO_ONE)  # deviation 0.3536 of 0.7071: 0.5
        assert (apart.score, apart.reason) == (None, "no_consensus")
        assert apart.consensus == pytest.approx(0.5)
        assert panel_verdict({"a": 0.8, "b": 0.6}, rule, TO_ONE).score == pytest.approx(0.7)


def declared(**more: object) -> Metric:
    fields: dict[str, object] = {"version": 1, "observes": CONVERSATION, "unit": RATIO, "better": HIGHER, **more}

    def rate(conversation: Conversation) -> list[Observation]:
        """How good is it?"""
        return []

    return metric("test.rated", **fields)(rate)  # type: ignore[arg-type]


def rated(judge: str, *values: float) -> list[Observation]:
    return [measured(turn(1), value, judge=judge, details={"passes_at": 0.5}) for value in values]


class TestKinds:
    def test_people_and_models_and_programs_of_others_never_sit_together(self) -> None:
        all_of_them = [*said("human:ann", 1), *said("human:bob", 0), *said("external:eva", 0.5), *said("p/a@1", 0.25)]
        [people] = panels(all_of_them)
        assert people.judge.startswith("panel:human:")
        assert people.details is not None
        assert (people.value, people.details["values"]) == (0.5, {"human:ann": 1.0, "human:bob": 0.0})

    def test_the_rule_of_models_is_not_that_of_people(self) -> None:
        each = [*said("human:ann", 1), *said("human:bob", 0), *said("p/a@1", 1), *said("p/b@1", 0)]
        values = {one.judge.split(":")[1]: one.value for one in panels(each, None, PanelRule(aggregation="min"))}
        assert values.pop("human") == 0.5
        assert list(values.values()) == [0.0]

    def test_another_rule_is_another_panel(self) -> None:
        judges = ["p/a", "p/b"]
        assert panel_name(judges, PanelRule(aggregation="min")) != panel_name(judges)
        assert panel_name(judges, PanelRule()) == panel_name(judges)


class TestMarks:
    def test_of_ten_points_or_of_the_rubric(self) -> None:
        # Seven of ten points on the way from 1 to 10 are 1 + 0.7 × 9.
        assert marks_of(declared(ten=TenPoints(1, 10)), []) == Marks(1, 10, pytest.approx(7.3))
        assert marks_of(declared(), rated("p/a", 1.0)) == Marks(0.0, 1.0, 0.5)
        assert marks_of(declared(better=LOWER), []) == Marks(1.0, 0.0, None)
        assert marks_of(declared(unit="points"), []) is None

    def test_ratings_in_another_unit_have_the_scale_that_their_scores_name(self) -> None:
        details = {"scale": [1, 5], "passes_at": 4.0}
        [one] = [measured(turn(1), 3.0, judge="p/a", details=details)]
        assert marks_of(declared(unit="points"), [one]) == Marks(1, 5, 4.0)
        assert marks_of(declared(unit="points", better=LOWER), [one]) == Marks(5, 1, 4.0)

    def test_a_panel_says_whether_its_judges_are_on_both_sides(self) -> None:
        [one] = panel([*rated("p/a", 1.0), *rated("p/b", 0.0)], declared())
        assert one.details is not None
        assert (one.value, one.details["split"], one.details["consensus"]) == (0.5, True, 0.0)


class TestRepeats:
    def test_on_one_side_of_the_mark_their_mean_counts(self) -> None:
        [one] = joined_repeats([rated("p/a", 1.0), rated("p/a", 0.5), rated("p/a", 1.0)], declared())
        assert one.value == pytest.approx(2.5 / 3)
        assert one.details is not None
        assert (one.details["repeats"], one.details["spread"]) == ([1.0, 0.5, 1.0], 0.5)

    def test_on_both_sides_it_is_undetermined(self) -> None:
        [one] = joined_repeats([rated("p/a", 1.0), rated("p/a", 0.0), rated("p/a", 1.0)], declared())
        assert (one.status, one.value, one.reason) == ("unmeasured", None, "repeats_straddle")
        assert one.detail == "2 of 3 repeats pass"
        assert one.details is not None
        assert one.details["repeats"] == [1.0, 0.0, 1.0]

    def test_on_both_sides_of_a_mark_in_points(self) -> None:
        # 4 of 5 passes, 3 does not; their mean 3.5 would be a rating that was never given.
        details = {"scale": [1, 5], "passes_at": 4.0}
        rounds = [[measured(turn(1), value, judge="p/a", details=details)] for value in (4.0, 3.0)]
        [one] = joined_repeats(rounds, declared(unit="points"))
        assert (one.status, one.value, one.reason) == ("unmeasured", None, "repeats_straddle")

    def test_without_a_mark_nothing_straddles(self) -> None:
        [one] = joined_repeats([said("p/a", 1.0), said("p/a", 0.0)], declared())
        assert one.value == 0.5

    def test_a_repeat_without_an_answer_leaves_no_score(self) -> None:
        silent = [unmeasured(turn(1), "not_on_scale", judge="p/a")]
        [one] = joined_repeats([rated("p/a", 1.0), silent, rated("p/a", 1.0)], declared())
        assert (one.status, one.reason) == ("unmeasured", "not_on_scale")
        assert one.details is not None
        assert one.details["repeats"] == [1.0, None, 1.0]

    def test_what_all_repeats_took_is_added(self) -> None:
        took = [measured(turn(1), 1.0, judge="p/a", details={"input_tokens": 100, "cost": None}) for _ in range(3)]
        [one] = joined_repeats([[each] for each in took], declared())
        assert one.details is not None
        assert (one.details["input_tokens"], one.details["cost"]) == (300, None)
