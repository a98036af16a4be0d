"""The greatest of all subjects as a group figure: a maximum has a value, and no interval."""

from convoscope.metrics import unmeasured
from convoscope.runs.summary import describe
from convoscope.runs.targets import figure_names
from convoscope.scores.reducers import MAXIMUM_OF_SUBJECTS
from convoscope.scoring.job import check_declarations
from support.tables import headline, reduced_by, summary, turn, values


class TestMaximumOfSubjects:
    def test_of_the_pooled_values(self) -> None:
        declared = reduced_by("mean", "mean_of_subjects", also={"max": MAXIMUM_OF_SUBJECTS})
        figures = summary(declared, values(1, 9, 2), values(5))
        assert (figures["max"].value, figures["max"].n) == (9.0, 4)
        assert figures[""].value == 4.25  # 17 ÷ 4

    def test_only_of_the_group(self) -> None:
        figure = headline(
            reduced_by("mean", MAXIMUM_OF_SUBJECTS), values(1), values(50), values(5), rows=[True, False, True]
        )
        assert figure.value == 5.0

    def test_below_zero(self) -> None:
        assert headline(reduced_by("mean", MAXIMUM_OF_SUBJECTS), values(-3, -2), values(-7)).value == -2.0

    def test_has_no_interval(self) -> None:
        for group in ([values(1, 2)], [values(1), values(2), values(3)]):
            figure = headline(reduced_by("mean", MAXIMUM_OF_SUBJECTS), *group)
            assert (figure.interval, figure.interval_reason) == (None, "extreme_value")

    def test_of_nothing(self) -> None:
        figure = headline(reduced_by("mean", MAXIMUM_OF_SUBJECTS), [unmeasured(turn(1), "no_clock")])
        assert (figure.value, figure.status, figure.reason) == (None, "unmeasured", "no_clock")

    def test_can_be_declared_and_aimed_at(self) -> None:
        declared = reduced_by("mean", "mean_of_subjects", also={"max": MAXIMUM_OF_SUBJECTS})
        check_declarations([declared])
        assert figure_names(describe(declared)) == [declared.key, f"{declared.key} max"]
